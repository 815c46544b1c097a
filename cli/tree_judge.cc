// A judge over a tree of filters. A node is made with the first record that names it.
#include <algorithm>
#include <iomanip>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "cli/escaped.h"
#include "cli/remote_judge.h"
#include "cli/serial_judge.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "client/remote_slice.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/slices/bloom_tree.h"
#include "semel/slices/sliced_filter.h"
#include "semel/slices/sliced_node.h"
#include "semel/slices/window_slice.h"

namespace semel::cli {
namespace {

// A node below the root begins with room for this share of all keys: 256 keys, which take 1 KiB. It
// grows.
constexpr double kNodeShare = 256.0 / kFirstKeys;

// Returns the path to a node: one digest of all places that a record comes through.
Digest path_through(Digest parent, Digest place) {
  return {mix(parent.lo + place.lo), mix(parent.hi ^ place.hi)};
}

// Two paths with equal digests would share a node. That is as unlikely as equal digests of two
// keys.
std::string hexadecimal(Digest path) {
  std::ostringstream out;
  out << std::hex << std::setfill('0') << std::setw(16) << path.hi << std::setw(16) << path.lo;
  return out.str();
}

// The nodes that are keys of servers.
class RemoteNodes {
 public:
  // REQUIRES: the settings outlive it.
  explicit RemoteNodes(const RemoteSettings& settings)
      : settings_(settings), owner_(make_owner()) {}

  // Makes one key, or one for each slice.
  Result<std::vector<Slice*>> make(const TreePlan::Level& level, const std::string& path,
                                   double error, double share) {
    auto& cluster = clusters_[level.at];
    if (!cluster) {
      cluster = SEMEL_TRY(connect(*client::parse_url(level.at), settings_));
    }
    const std::string stream = settings_.stream + '/' + level.name;
    const bool first = !agreed_.contains(level.name);
    if (first) {
      SEMEL_TRY(client::expect_slices(*cluster, stream, level.slices));
    }
    const std::string name = stream + path;
    std::vector<std::string> names = {name};
    if (level.slices > 1) names = client::spread_keys(name, level.slices);
    std::vector<client::SiftKey> keys;
    for (std::string& key : names) keys.emplace_back(std::move(key));
    client::SiftShape shape = settings_.shape;
    shape.error = error;
    shape.capacity = std::max<std::uint64_t>(
        64, static_cast<std::uint64_t>(static_cast<double>(shape.capacity) * share));
    SEMEL_TRY(client::reserve(*cluster, keys, shape));
    if (first) SEMEL_TRY(client::record_slices(*cluster, stream, level.slices));
    agreed_.insert(level.name);
    cluster->end_by(client::kNever);
    std::vector<Slice*> made;
    for (client::SiftKey& key : keys) {
      slices_.push_back(std::make_unique<client::RemoteSlice>(
          *cluster, std::move(key),
          client::RemoteSlice::Options{
              settings_.delivery == Delivery::at_most_once ? client::Taking::added
                                                           : client::Taking::claimed,
              owner_, settings_.claim_ms,
              [patience = StopPatience()]() mutable { return patience.is_over(); }}));
      made.push_back(slices_.back().get());
    }
    return made;
  }

  // Returns the error of the first node that failed. A tree takes a failed node for one that its
  // parent can replace. Here a failure ends the run, because nothing replaces a root.
  Result<void> sound() const {
    for (const auto& slice : slices_) {
      if (slice->error()) return *slice->error();
    }
    return {};
  }

  std::size_t size() const { return slices_.size(); }

 private:
  const RemoteSettings& settings_;
  std::string owner_;
  std::map<std::string, std::unique_ptr<client::Cluster>> clusters_;  // by URL
  std::vector<std::unique_ptr<client::RemoteSlice>> slices_;
  std::set<std::string> agreed_;  // levels whose number of slices is that at the server
};

class TreeJudge final : public SerialJudge {
 public:
  TreeJudge(TreePlan plan, const Memory& memory, const RemoteSettings* remote)
      : plan_(std::move(plan)),
        // A new key is asked for on every level.
        error_(memory.error / static_cast<double>(plan_.levels.size())),
        memory_(memory) {
    if (remote != nullptr) {
      settings_ = *remote;
      remote_.emplace(*settings_);
    }
  }

  Result<void> begin() {
    Slice* const slice = SEMEL_TRY(make_node(0, {0, 0}));
    const std::size_t none = TreeShape::kNone;
    auto shape = TreeShape::make({&none, 1});
    tree_ =
        SEMEL_TRY(BloomTree::make(*std::move(shape), {slice},
                                  {.rules = {.kind = plan_.kind, .confirm_at = plan_.confirm_at},
                                   .first_owner = 0,
                                   .pause = {}}));
    nodes_.push_back({TreeShape::kNone, {0, 0}});
    return {};
  }

  TimeMs now() const override {
    TimeMs latest = std::numeric_limits<TimeMs>::min();
    for (const auto& slice : windows_) latest = std::max(latest, slice->window().now());
    return latest;
  }

  // The first section is the shape. The windows follow, one section each.
  std::size_t sections() const override { return 1 + windows_.size(); }
  void encode(std::size_t section, Sink out) const override {
    if (section > 0) return windows_[section - 1]->window().encode(out);
    Writer w(out);
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      w.u64(nodes_[i].parent);
      w.u64(nodes_[i].path.lo);
      w.u64(nodes_[i].path.hi);
    }
  }
  bool prepare(std::uint64_t sections) override {
    expected_ = sections;
    return sections > 0;
  }
  Result<void> decode(std::size_t section, ByteView in) override {
    if (section == 0) return decode_shape(in);
    windows_[section - 1]->replace(SEMEL_TRY(decode_like(windows_[section - 1]->window(), in)));
    return {};
  }

  std::string details() const override {
    std::ostringstream out;
    const std::vector<TreeLevel> levels = tree_->levels();
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const TreeLevel& level = levels[i];
      out << "level            " << printable(plan_.levels[i].name) << ": " << grouped(level.nodes)
          << (level.nodes == 1 ? " node, " : " nodes, ") << in_units(level.bytes) << ", asked "
          << grouped(level.load.accesses()) << " times, " << grouped(level.load.hits) << " hits";
      if (level.load.refuted > 0) out << ", " << grouped(level.load.refuted) << " refuted";
      out << '\n';
    }
    return out.str();
  }
  JsonObject json_details() const override {
    const auto json_of = [](const TreeLevel& level) {
      return JsonObject()
          .add("nodes", level.nodes)
          .add("memory_bytes", level.bytes)
          .add("accesses", level.load.accesses())
          .add("hits", level.load.hits)
          .add("refuted", level.load.refuted)
          .end();
    };
    return JsonObject().add("levels", json_array(tree_->levels(), json_of));
  }

 private:
  struct Node {
    std::size_t parent;
    Digest path;
  };

  // One window for a node, or one for each of its slices.
  Result<Slice*> make_node(std::size_t level, Digest path) {
    const std::uint32_t slices = plan_.levels[level].slices;
    const double share = (level == 0 ? 1 : kNodeShare) / slices;
    std::vector<Slice*> made;
    if (!plan_.levels[level].at.empty()) {
      const std::string name = level == 0 ? "" : '/' + hexadecimal(path);
      made = SEMEL_TRY(remote_->make(plan_.levels[level], name, error_, share));
    }
    while (made.size() < slices) {
      Window window = SEMEL_TRY(Window::make(window_goal(memory_, share, error_), memory_.now_ms));
      windows_.push_back(std::make_unique<WindowSlice<Window>>(std::move(window), 0));
      made.push_back(windows_.back().get());
    }
    if (slices == 1) return made.front();
    const Placement placement = SEMEL_TRY(Placement::make({SliceLayout::horizontal, slices}));
    SlicedFilter filter = SEMEL_TRY(SlicedFilter::make(placement, made, {}));
    sliced_.push_back(std::make_unique<SlicedNode>(std::move(filter), std::move(made)));
    return sliced_.back().get();
  }

  Result<std::size_t> add(std::size_t parent, Digest path) {
    Slice* const slice = SEMEL_TRY(make_node(tree_->shape().level(parent) + 1, path));
    const std::size_t node = SEMEL_TRY(tree_->add_leaf(parent, slice));
    nodes_.push_back({parent, path});
    by_path_.emplace(path, node);
    return node;
  }

  // Returns the leaf at the end of the places, and makes the nodes that are missing on the way.
  Result<std::size_t> leaf_of(const std::vector<Digest>& places) {
    std::size_t node = tree_->shape().root();
    Digest path{0, 0};
    for (const Digest& place : places) {
      path = path_through(path, place);
      if (const auto known = by_path_.find(path); known != by_path_.end()) {
        node = known->second;
        continue;
      }
      node = SEMEL_TRY(add(node, path));
    }
    return node;
  }

  Result<void> judge_in_turn(Chunk& chunk) override {
    // After a failure no server is waited for again.
    if (sound_) sound_ = plan_.remote() ? judge_by_leaves(chunk) : judge_in_order(chunk);
    return sound_;
  }

  // A call to a server takes as long for many keys as for one, so all keys of one leaf go together.
  // Each key is asked for only at the first place that it comes to. Later ones are duplicates,
  // whatever the first one is, so the order of leaves does not matter.
  Result<void> judge_by_leaves(Chunk& chunk) {
    std::set<Digest> met;
    std::map<std::size_t, std::vector<std::size_t>> leaves;
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] != Fate::unknown) continue;
      if (!met.insert(chunk.keys[i]).second) {
        chunk.fates[i] = Fate::duplicate;
        continue;
      }
      const std::size_t leaf = SEMEL_TRY(leaf_of(chunk.places[i]));
      leaves[leaf].push_back(i);
    }
    std::vector<Digest> keys;
    for (const auto& [leaf, records] : leaves) {
      keys.clear();
      for (const std::size_t record : records) keys.push_back(chunk.keys[record]);
      verdicts_.resize(keys.size());
      tree_->test_and_set(leaf, keys, {}, verdicts_, chunk.read_ms);
      SEMEL_TRY(remote_->sound());
      for (std::size_t i = 0; i < records.size(); ++i) {
        if (verdicts_[i] == Verdict::full || verdicts_[i] == Verdict::stale) return no_room();
        chunk.fates[records[i]] = fate_of(verdicts_[i]);
      }
    }
    return {};
  }

  // Consecutive records of one leaf and one time go in one call.
  Result<void> judge_in_order(Chunk& chunk) {
    for (std::size_t begin = 0; begin < chunk.records.size();) {
      if (chunk.fates[begin] != Fate::unknown) {
        ++begin;
        continue;
      }
      const std::size_t leaf = SEMEL_TRY(leaf_of(chunk.places[begin]));
      const TimeMs now_ms = chunk.timed ? chunk.now_ms[begin] : chunk.read_ms;
      std::size_t end = begin;
      while (end < chunk.records.size() && chunk.fates[end] == Fate::unknown &&
             chunk.places[end] == chunk.places[begin] &&
             (!chunk.timed || chunk.now_ms[end] == now_ms)) {
        ++end;
      }
      verdicts_.resize(end - begin);
      const std::span<const Digest> keys(chunk.keys);
      const std::span<const TimeMs> times(chunk.times_ms);
      tree_->test_and_set(leaf, keys.subspan(begin, end - begin),
                          chunk.timed ? times.subspan(begin, end - begin) : times, verdicts_,
                          now_ms);
      for (const Verdict verdict : verdicts_) {
        if (verdict == Verdict::full) return no_room();
        chunk.fates[begin++] = fate_of(verdict);
      }
    }
    return {};
  }

  // Measures the mean over the leaves. A new key is asked for once on every level.
  Trust measure() const override {
    Trust trust;
    for (const TreeLevel& level : tree_->levels()) {
      trust.error_now += level.false_positive_rate;
      trust.bytes += level.bytes;
    }
    trust.windows = nodes_.size();
    trust.kind = "node";
    return trust;
  }

  Result<void> decode_shape(ByteView in) {
    constexpr std::size_t kNode = 24;
    const Error damaged{Errc::corrupt, "tree: nodes"};
    if (in.size() % kNode != 0) return damaged;
    Reader r(in);
    while (r.rest() > 0) {
      const std::uint64_t parent = r.u64();
      const std::uint64_t lo = r.u64();
      const Digest path{lo, r.u64()};
      if (parent >= nodes_.size() || by_path_.count(path) > 0 ||
          tree_->shape().level(parent) + 1 >= plan_.levels.size()) {
        return damaged;
      }
      // There may not be more windows than sections.
      const TreePlan::Level& level = plan_.levels[tree_->shape().level(parent) + 1];
      if (level.at.empty() && sections() + level.slices > expected_) {
        return damaged;
      }
      SEMEL_TRY(add(parent, path));
    }
    return sections() == expected_ ? Result<void>() : damaged;
  }

  TreePlan plan_;
  double error_;
  Memory memory_;
  std::optional<RemoteSettings> settings_;
  std::optional<RemoteNodes> remote_;
  std::vector<std::unique_ptr<WindowSlice<Window>>> windows_;
  std::vector<std::unique_ptr<SlicedNode>> sliced_;
  std::optional<BloomTree> tree_;
  std::vector<Node> nodes_;
  std::map<Digest, std::size_t> by_path_;
  std::uint64_t expected_ = 0;  // sections
  Result<void> sound_;

  std::vector<Verdict> verdicts_;
};

}  // namespace

Result<std::unique_ptr<Judge>> make_tree_judge(const Memory& memory, const TreePlan& plan,
                                               const RemoteSettings* remote) {
  auto judge = std::make_unique<TreeJudge>(plan, memory, remote);
  SEMEL_TRY(judge->begin());
  return std::unique_ptr<Judge>(std::move(judge));
}

}  // namespace semel::cli
