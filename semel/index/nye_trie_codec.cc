#include <deque>
#include <limits>
#include <utility>

#include "semel/hash/internal/sealed.h"
#include "semel/index/internal/container_builder.h"
#include "semel/index/internal/nye_trie_body.h"

namespace semel {

using namespace index_internal;

namespace {

// docs/formats/nye_trie_v1.md.
constexpr Format kFormat{"SNT", 1, "trie"};
constexpr std::size_t kLeastContainer = 19;
// The first path of each block is in full in memory, but not in the encoding. With this limit a
// trie takes at most some ten times the bytes that it is read from.
constexpr std::size_t kMostPathBits = std::size_t{1} << 16;

std::size_t bytes_for(std::size_t bits) { return bits / 8 + (bits % 8 != 0); }

void set_bit(Bytes& bits, std::size_t i) {
  bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << i % 8);
}

bool bit_of(ByteView bits, std::size_t i) { return (bits[i / 8] >> i % 8 & 1) != 0; }

bool padded(ByteView bits, std::size_t count) {
  return count % 8 == 0 || bits.back() >> count % 8 == 0;
}

// Returns true if such records can exist below the path, in one container.
bool sound(const Container& container, std::uint32_t burst_bytes) {
  const auto& [path, sum] = container;
  if (!path.possible() || sum.count == 0) return false;
  if (sum.count == 1) return sum.volume >= path.first_key().size();
  const bool one_key = path.size() % 9 == 1 && !path.bit(path.size() - 1);
  return !one_key && sum.volume <= burst_bytes && sum.volume >= sum.count - 1 &&
         sum.volume / sum.count >= path.first_key().size();
}

bool overflows(const Aggregate& sum, const Aggregate& more) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return more.count > kMost - sum.count || more.volume > kMost - sum.volume;
}

// Checks that the containers read are those that a builder makes of them.
class CanonicalCheck {
 public:
  explicit CanonicalCheck(std::uint32_t burst_bytes)
      : builder_(burst_bytes, [this](Container&& made) {
          same_ = same_ && made == read_.front();
          read_.pop_front();
        }) {}

  bool add(const Container& container) {
    read_.push_back(container);
    builder_.add(container.path.first_key(), container.sum);
    return same_;
  }
  bool finish() {
    builder_.finish();
    return same_ && read_.empty();
  }

 private:
  std::deque<Container> read_;
  bool same_ = true;
  ContainerBuilder builder_;
};

}  // namespace

void NyeTrie::encode(Sink out) const {
  const std::size_t count = container_count();
  Marks marks = body_->marks;
  body_->mark_pending(marks);
  seal(out, kFormat, [&](Writer& w) {
    w.u8(body_->blocks.measured() == Measured::yes ? 1 : 0);
    w.u32(body_->burst_bytes);
    w.u64(body_->digest.id().seed);
    w.u64(count);
    Bytes containers(bytes_for(count)), gaps(bytes_for(count + 1));
    std::optional<BitPath> before;
    std::size_t i = 0;
    for (ContainerBlocks::Walk walk = body_->blocks.at(0); walk.valid(); walk.next(), ++i) {
      write_container(w, walk.container(), before ? &*before : nullptr, body_->blocks.measured());
      before = walk.path();
      if (marks.container(walk)) set_bit(containers, i);
      if (marks.gap_before(walk)) set_bit(gaps, i);
    }
    if (marks.last_gap()) set_bit(gaps, count);
    w.bytes(containers);
    w.bytes(gaps);
  });
}

Result<NyeTrie> NyeTrie::decode(ByteView in, const EntryDigest& digest, RecordMeasure measure) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const bool measured = r.boolean();
  const std::uint32_t burst_bytes = r.u32();
  const std::uint64_t key_name = r.u64();
  const std::uint64_t count = r.u64();
  if (!r.ok()) return corrupt(kFormat, "header");
  if (burst_bytes < kLeastBurst || burst_bytes > kMostBurst) return corrupt(kFormat, "burst size");
  if (key_name != digest.id().seed) {
    return Error{Errc::mismatch, "trie: its digests were made with another key"};
  }
  if (measured && measure == nullptr) {
    return Error{Errc::mismatch, "trie: it has measures, and none are wanted"};
  }
  if (!measured && measure != nullptr) return Error{Errc::mismatch, "trie: it has no measures"};
  if (count > r.rest() / kLeastContainer) return corrupt(kFormat, "number of containers");
  ByteView rest = r.view(r.rest());

  NyeTrie trie(burst_bytes, digest, measure);
  ContainerBlocks::Splice splice(trie.body_->blocks);
  CanonicalCheck check(burst_bytes);
  Container container;
  Aggregate total;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!read_container(rest, i == 0, container, trie.body_->blocks.measured())) {
      return corrupt(kFormat, "container");
    }
    if (container.path.size() > kMostPathBits) {
      return Error{Errc::limit, "trie: the path of a container is too long"};
    }
    if (!sound(container, burst_bytes) || overflows(total, container.sum)) {
      return corrupt(kFormat, "sum of a container");
    }
    total += container.sum;
    if (!check.add(container)) return corrupt(kFormat, "containers that no trie has");
    splice.add(container);
  }
  if (!check.finish()) return corrupt(kFormat, "containers that no trie has");
  splice.finish();
  trie.body_->blocks.take(std::move(splice));

  if (rest.size() != bytes_for(count) + bytes_for(count + 1)) return corrupt(kFormat, "size");
  const ByteView containers = rest.first(bytes_for(count));
  const ByteView gaps = rest.last(bytes_for(count + 1));
  if (!padded(containers, count) || !padded(gaps, count + 1)) return corrupt(kFormat, "marks");
  trie.body_->marks = {};
  std::size_t i = 0;
  ContainerBlocks::Walk walk = trie.body_->blocks.at(0);
  for (; walk.valid(); walk.next(), ++i) {
    if (bit_of(containers, i)) trie.body_->marks.mark_container(trie.body_->blocks, walk);
    if (bit_of(gaps, i)) trie.body_->marks.mark_gap_before(trie.body_->blocks, walk);
  }
  if (bit_of(gaps, count)) trie.body_->marks.mark_gap_before(trie.body_->blocks, walk);
  return trie;
}

}  // namespace semel
