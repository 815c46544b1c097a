#include "semel/sync/internal/frontier.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/internal/bit_codec.h"
#include "semel/sync/internal/path_codec.h"

namespace semel::sync_internal {
namespace {

const Error kBadFrontier{Errc::corrupt, "frontier: not a tree of nodes"};
const Error kTooLarge{Errc::limit, "frontier: paths are too long"};

BitPath child(const BitPath& at, bool right) {
  BitPath path = at;
  path.push(right);
  return path;
}

}  // namespace

Result<Frontier> Frontier::grow(const RangeView& view, std::span<const BitPath> tops,
                                std::size_t slots, std::uint64_t enough) {
  Frontier made;
  made.tops_ = tops.size();
  using Candidate = std::pair<std::uint64_t, std::size_t>;  // records, node
  std::priority_queue<Candidate> largest;
  for (const BitPath& top : tops) {
    const Aggregate sum = SEMEL_TRY(view.sum(top));
    made.nodes_.push_back({top, sum, {}, 0});
    largest.emplace(sum.count, made.nodes_.size() - 1);
  }
  std::size_t leaves = tops.size();
  while (leaves < slots && !largest.empty()) {
    const auto [records, node] = largest.top();
    largest.pop();
    if (records <= std::max<std::uint64_t>(enough, 1)) break;
    SEMEL_TRY(made.split(view, node));
    const std::size_t left = made.nodes_[node].child;
    if (left == 0) continue;  // a container
    ++leaves;
    for (const std::size_t part : {left, left + 1}) {
      largest.emplace(made.nodes_[part].sum.count, part);
    }
  }
  made.visit_in_order([&](const Node& node) {
    if (node.child == 0) {
      made.slots_.push_back({{node.path, std::nullopt}, node.sum});
    } else if (node.at.size() > node.path.size()) {
      made.slots_.push_back({{node.path, node.at}, {}});
    }
  });
  return made;
}

Result<void> Frontier::split(const RangeView& view, std::size_t node) {
  std::optional<BitPath> at = view.branch(nodes_[node].path);
  if (!at) return {};
  BitPath left = child(*at, false);
  const Aggregate sum = SEMEL_TRY(view.sum(left));
  Aggregate rest = nodes_[node].sum;
  // Writes that come while the cut containers are read can make a part larger than the whole. Then
  // the node stays as it is.
  if (sum.count > rest.count || sum.volume > rest.volume) return {};
  rest -= sum;
  nodes_[node].at = *at;
  nodes_[node].child = nodes_.size();
  nodes_.push_back({std::move(left), sum, {}, 0});
  nodes_.push_back({child(*at, true), rest, {}, 0});
  return {};
}

template <class Visit>
void Frontier::visit_in_order(Visit visit) const {
  for (std::size_t top = 0; top < tops_; ++top) {
    std::vector<std::size_t> open = {top};
    while (!open.empty()) {
      const Node& node = nodes_[open.back()];
      open.pop_back();
      visit(node);
      if (node.child == 0) continue;
      open.push_back(node.child + 1);
      open.push_back(node.child);
    }
  }
}

void Frontier::encode(const ShortDigest& shorten, Writer& out) const {
  std::vector<BitPath> tops;
  for (std::size_t i = 0; i < tops_; ++i) tops.push_back(nodes_[i].path);
  encode_paths(tops, out);
  Bytes tree;
  BitWriter bits(tree);
  visit_in_order([&](const Node& node) {
    bits.put_bit(node.child != 0);
    if (node.child == 0) {
      bits.put(node_bits(shorten, node.sum), kDigestBits);
      return;
    }
    const std::size_t skipped = node.at.size() - node.path.size();
    bits.gamma(skipped + 1);
    for (std::size_t i = node.path.size(); i < node.at.size(); ++i) bits.put_bit(node.at.bit(i));
  });
  out.varint(tree.size());
  out.bytes(tree);
}

Result<std::vector<PeerSlot>> decode_frontier(Reader& in) {
  std::vector<BitPath> tops = SEMEL_TRY(decode_paths(in));
  const std::uint64_t size = in.varint();
  const ByteView tree = in.view(size);
  if (!in.ok()) return kBadFrontier;
  BitReader bits(tree);
  std::vector<PeerSlot> slots;
  std::size_t bytes = 0;
  for (BitPath& top : tops) {
    std::vector<BitPath> open;
    open.push_back(std::move(top));
    while (!open.empty()) {
      BitPath path = std::move(open.back());
      open.pop_back();
      bytes += path.bytes().size() + sizeof(PeerSlot);
      if (bytes > kMostPathBytes) return kTooLarge;
      if (!bits.get_bit()) {
        const auto digest = static_cast<std::uint32_t>(bits.get(Frontier::kDigestBits));
        if (!bits.ok()) return kBadFrontier;
        slots.push_back({{std::move(path), std::nullopt}, digest, false});
        continue;
      }
      const std::uint64_t skipped = bits.gamma() - 1;
      if (!bits.ok() || skipped > kMostPathBits - path.size()) return kBadFrontier;
      BitPath at = path;
      for (std::uint64_t i = 0; i < skipped; ++i) at.push(bits.get_bit());
      if (!bits.ok() || !child(at, false).possible()) return kBadFrontier;
      bytes += at.bytes().size() * 3;
      if (skipped > 0) slots.push_back({{std::move(path), at}, 0, true});
      open.push_back(child(at, true));
      open.push_back(child(at, false));
    }
  }
  if (!bits.at_end()) return kBadFrontier;
  return slots;
}

}  // namespace semel::sync_internal
