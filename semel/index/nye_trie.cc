#include "semel/index/nye_trie.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"
#include "semel/index/internal/container_builder.h"
#include "semel/index/internal/nye_trie_body.h"

namespace semel {

using namespace index_internal;

namespace {

using Walk = ContainerBlocks::Walk;

Side side_of(const Walk& walk, const BitPath& node) {
  return index_internal::side_of({walk.path().bytes(), walk.path().size()}, node);
}

// Returns true if the container has keys on both sides of the cut before `key`.
bool cuts(const std::string& key, const Walk& walk) {
  return walk.valid() && walk.path().is_prefix_of_key(key) && walk.path().first_key() < key;
}

// Calls `record` for each record of the range.
template <class Record>
Result<void> for_each_record(const KeyRange& range, Cursor& cursor, const Record& record) {
  if (range.empty()) return {};
  for (cursor.seek(range.first); cursor.valid(); cursor.next()) {
    const std::string_view key = cursor.key();
    if (range.end && key >= *range.end) return {};
    record(key, cursor.value());
  }
  return cursor.status();
}

}  // namespace

NyeTrie::NyeTrie(std::uint32_t burst_bytes, const EntryDigest& digest, RecordMeasure measure)
    : body_(std::make_unique<Body>(burst_bytes, digest, measure)) {
  SEMEL_ASSERT(burst_bytes >= kLeastBurst && burst_bytes <= kMostBurst);
  body_->marks.mark_gap_before(body_->blocks, body_->blocks.at(0));
}

NyeTrie::NyeTrie(NyeTrie&& other) noexcept = default;
NyeTrie& NyeTrie::operator=(NyeTrie&& other) noexcept = default;
NyeTrie::~NyeTrie() = default;

bool NyeTrie::marked() const { return body_->marks.any() || !body_->pending.empty(); }
Aggregate NyeTrie::total() const { return body_->blocks.total(); }
std::size_t NyeTrie::container_count() const { return body_->blocks.containers(); }
std::uint32_t NyeTrie::burst_bytes() const { return body_->burst_bytes; }
const EntryDigest& NyeTrie::entry_digest() const { return body_->digest; }
RecordMeasure NyeTrie::measured_by() const { return body_->measure; }

void index_internal::Marks::mark_container(const ContainerBlocks& blocks, const Walk& at) {
  if (blocks_.empty()) blocks_.resize(blocks.blocks());
  blocks_[at.block()].containers |= std::uint64_t{1} << at.index();
}

void index_internal::Marks::mark_gap_before(const ContainerBlocks& blocks, const Walk& at) {
  if (!at.valid()) {
    last_gap_ = true;
    return;
  }
  if (blocks_.empty()) blocks_.resize(blocks.blocks());
  blocks_[at.block()].gaps |= std::uint64_t{1} << at.index();
}

void NyeTrie::mark(std::string_view key) {
  if (container_count() == 0) {
    body_->marks.mark_gap_before(body_->blocks, body_->blocks.at(0));
    return;
  }
  body_->pending.add(key);
  if (body_->pending.full()) body_->settle();
}

void NyeTrie::mark(const KeyRange& range) {
  if (range.empty()) return;
  const BitPath first = BitPath::of_key(range.first);
  Walk walk = body_->blocks.find(first, Side::related);
  const Walk end = body_->at_or_after(range.end);
  bool in_gap = !walk.valid() || side_of(walk, first) == Side::after;
  for (;; walk.next()) {
    if (in_gap) body_->marks.mark_gap_before(body_->blocks, walk);
    if (walk.same_place(end)) break;
    body_->marks.mark_container(body_->blocks, walk);
    in_gap = true;
  }
  if (range.end && cuts(*range.end, end)) body_->marks.mark_container(body_->blocks, end);
}

NyeTrie::Body::Walk NyeTrie::Body::at_or_after(const std::optional<std::string>& key) const {
  return key ? blocks.find(BitPath::of_key(*key), Side::related) : blocks.at(blocks.blocks());
}

// Looks up the keys in order, so that each block is walked once.
void NyeTrie::Body::mark_pending(Marks& to) const {
  if (pending.empty()) return;
  Walk walk = blocks.at(0);
  for (const std::string_view key : pending.sorted()) {
    const BitPath node = BitPath::of_key(key);
    if (blocks.begins_by(walk.block() + 1, node)) {
      walk = blocks.at(blocks.find_block(node, Side::after));
    }
    while (walk.valid() && side_of(walk, node) == Side::before) walk.next();
    if (walk.valid() && side_of(walk, node) == Side::related) {
      to.mark_container(blocks, walk);
    } else {
      to.mark_gap_before(blocks, walk);
    }
  }
}

void NyeTrie::Body::settle() {
  mark_pending(marks);
  pending.clear();
}

// Reads the marked runs of some neighbouring blocks. Makes new containers of the records read and
// of the unmarked containers.
class NyeTrie::Body::Rebuild {
 public:
  Rebuild(Body& trie, Cursor& cursor, const NyeTrie::Seen& seen)
      : trie_(trie), cursor_(cursor), seen_(seen), splice_(trie.blocks) {}

  void keep(std::size_t block) { splice_.keep(block); }
  Result<void> run(std::size_t first, std::size_t end);
  ContainerBlocks::Splice finish() && {
    splice_.finish();
    return std::move(splice_);
  }

 private:
  Result<void> read(ContainerBuilder& builder, const KeyRange& range) {
    return for_each_record(range, cursor_, [&](std::string_view key, std::string_view value) {
      const Aggregate record = trie_.of_record(key, value, trie_.digest);
      builder.add(key, record);
      if (seen_) seen_(key, value, record.digest);
    });
  }

  Body& trie_;
  Cursor& cursor_;
  const NyeTrie::Seen& seen_;
  ContainerBlocks::Splice splice_;
};

Result<void> NyeTrie::Body::Rebuild::run(std::size_t first, std::size_t end) {
  ContainerBuilder builder(trie_.burst_bytes,
                           [&](Container&& container) { splice_.add(std::move(container)); });
  std::optional<BitPath> before;  // the previous container
  if (first > 0) {
    before = trie_.blocks.last_of(first - 1);
    builder.begin_after(before->first_key());
  }
  // Returns the end of the previous container, where a gap begins.
  const auto gap_begin = [&] { return before ? before->range().end : std::string(); };

  std::optional<std::string> from;  // the start of the open marked run, if any
  Walk walk = trie_.blocks.at(first);
  for (; walk.block() < end; walk.next()) {
    if (trie_.marks.gap_before(walk)) {
      if (!from) from = gap_begin();
    } else if (from) {
      if (Result<void> done = read(builder, {*std::exchange(from, {}), gap_begin()}); !done) {
        return done;
      }
    }
    if (trie_.marks.container(walk)) {
      if (!from) from = walk.path().first_key();
    } else {
      const std::string key = walk.path().first_key();
      if (from) {
        if (Result<void> done = read(builder, {*std::exchange(from, {}), key}); !done) return done;
      }
      builder.add(key, walk.sum());
    }
    before = walk.path();
  }
  if (walk.valid()) {
    // These containers were not marked. They are here only so that they can join marked ones.
    SEMEL_ASSERT(!from);
    builder.finish_before(walk.path().first_key());
    return {};
  }
  KeyRange rest;
  if (!trie_.marks.last_gap()) rest.end = gap_begin();
  if (!from && trie_.marks.last_gap()) from = gap_begin();
  if (from) {
    rest.first = *std::move(from);
    if (Result<void> done = read(builder, rest); !done) return done;
  }
  builder.finish();
  return {};
}

// Returns the bytes of a block's containers before its first mark and after its last.
NyeTrie::Body::Margins NyeTrie::Body::margins(std::size_t block) const {
  const bool last_gap = marks.last_gap() && block + 1 == blocks.blocks();
  Margins margins;
  bool any = false;
  Walk walk = blocks.at(block);
  for (; walk.valid() && walk.block() == block; walk.next()) {
    if (marks.container(walk) || marks.gap_before(walk)) {
      any = true;
      margins.after = 0;
    }
    if (!any) margins.before += walk.sum().volume;
    if (!marks.container(walk)) margins.after += walk.sum().volume;
  }
  if (last_gap) margins.after = 0;
  return margins;
}

// Returns the blocks with marks, and enough containers on either side of each. Enough means: a node
// that reaches beyond them is too large to be a container.
std::vector<bool> NyeTrie::Body::blocks_to_rebuild() const {
  const std::size_t count = blocks.blocks();
  const std::uint64_t enough = std::uint64_t{burst_bytes} + 1;
  std::vector<bool> again(count);
  const auto pass = [&](std::size_t block, std::uint64_t Margins::*margin, std::uint64_t& since) {
    const Marks::OfBlock marked = marks.of(block);
    if ((marked.containers | marked.gaps) != 0 || (marks.last_gap() && block + 1 == count)) {
      again[block] = true;
      since = margins(block).*margin;
    } else if (since < enough) {
      again[block] = true;
      since += blocks.sum_before(block + 1).volume - blocks.sum_before(block).volume;
    }
  };
  std::uint64_t since = enough;
  for (std::size_t block = 0; block < count; ++block) pass(block, &Margins::after, since);
  since = enough;
  for (std::size_t block = count; block-- > 0;) pass(block, &Margins::before, since);
  return again;
}

Result<void> NyeTrie::refresh(Cursor& cursor, const Seen& seen) {
  body_->settle();
  if (!body_->marks.any()) return {};
  const std::vector<bool> again = body_->blocks_to_rebuild();
  Body::Rebuild rebuild(*body_, cursor, seen);
  std::size_t block = 0;
  do {
    if (block < again.size() && !again[block]) {
      rebuild.keep(block++);
      continue;
    }
    const std::size_t first = block;
    while (block < again.size() && again[block]) ++block;
    if (Result<void> done = rebuild.run(first, block); !done) return done;
  } while (block < again.size());
  body_->blocks.take(std::move(rebuild).finish());
  body_->marks = {};
  body_->pending.release();
  return {};
}

Aggregate NyeTrie::Body::of_record(std::string_view key, std::string_view value,
                                   EntryDigest& with) const {
  return {1, key.size() + value.size(), with(key, value),
          measure == nullptr ? 0 : measure(key, value)};
}

Result<Aggregate> NyeTrie::Body::read(const KeyRange& range, Cursor& cursor) const {
  EntryDigest copy = digest;
  Aggregate sum;
  SEMEL_TRY(for_each_record(range, cursor, [&](std::string_view key, std::string_view value) {
    sum += of_record(key, value, copy);
  }));
  return sum;
}

Result<Aggregate> NyeTrie::sum(const BitPath& node, Cursor& cursor) const {
  SEMEL_ASSERT(!marked());
  const Walk first = body_->blocks.find(node, Side::related);
  if (!first.valid() || side_of(first, node) == Side::after) return Aggregate{};
  if (first.path().size() == node.size()) return first.sum();
  if (first.path().size() < node.size()) return body_->read(node.range(), cursor);
  Aggregate sum = body_->blocks.find(node, Side::after).sum_before();
  return sum -= first.sum_before();
}

Result<Aggregate> NyeTrie::sum(const KeyRange& range, Cursor& cursor) const {
  SEMEL_ASSERT(!marked());
  if (range.empty()) return Aggregate{};
  const Walk first = body_->at_or_after(range.first);
  const Walk end = body_->at_or_after(range.end);
  const bool first_is_cut = cuts(range.first, first);
  if (first_is_cut && first.same_place(end)) return body_->read(range, cursor);

  Aggregate sum = end.sum_before();
  sum -= first.sum_before();
  if (first_is_cut) {
    const Result<Aggregate> part = body_->read({range.first, first.path().range().end}, cursor);
    if (!part) return part;
    sum -= first.sum();
    sum += *part;
  }
  if (range.end && cuts(*range.end, end)) {
    const Result<Aggregate> part = body_->read({end.path().first_key(), range.end}, cursor);
    if (!part) return part;
    sum += *part;
  }
  return sum;
}

std::optional<BitPath> NyeTrie::branch(const BitPath& node) const {
  SEMEL_ASSERT(!marked());
  const Walk first = body_->blocks.find(node, Side::related);
  if (!first.valid() || !node.is_prefix_of(first.path())) return std::nullopt;
  BitPath last;
  for (Walk walk = body_->blocks.at(body_->blocks.find_block(node, Side::after));
       walk.valid() && side_of(walk, node) != Side::after; walk.next()) {
    last = walk.path();
  }
  const std::size_t common = common_bits(first.path(), last);
  if (common == first.path().size()) return std::nullopt;  // first and last are the same
  last.truncate(common);
  return last;
}

std::vector<Container> NyeTrie::containers(const KeyRange& range) const {
  SEMEL_ASSERT(!marked());
  std::vector<Container> found;
  if (range.empty()) return found;
  const Walk end = body_->at_or_after(range.end);
  Walk walk = body_->at_or_after(range.first);
  for (; !walk.same_place(end); walk.next()) found.push_back(walk.container());
  if (range.end && cuts(*range.end, end)) found.push_back(end.container());
  return found;
}

Result<std::vector<Container>> NyeTrie::histogram(const KeyRange& range, std::size_t most,
                                                  Cursor& cursor) const {
  SEMEL_ASSERT(!marked() && most > 0);
  const auto part_of = [&](const BitPath& node) {
    const KeyRange keys = node.range();
    return range.covers(keys) ? sum(node, cursor) : sum(intersection(range, keys), cursor);
  };
  const auto lighter = [](const Container& a, const Container& b) {
    return a.sum.volume < b.sum.volume;
  };
  std::vector<Container> open;  // a heap with the heaviest first
  std::vector<Container> done;  // not to be split
  const auto add = [&](BitPath node) -> Result<void> {
    const Aggregate sum = SEMEL_TRY(part_of(node));
    if (sum.count == 0) return {};
    open.push_back({std::move(node), sum});
    std::push_heap(open.begin(), open.end(), lighter);
    return {};
  };
  SEMEL_TRY(add(BitPath()));
  while (!open.empty() && open.size() + done.size() < most) {
    std::pop_heap(open.begin(), open.end(), lighter);
    Container heaviest = std::move(open.back());
    open.pop_back();
    std::optional<BitPath> at = branch(heaviest.path);
    if (!at) {
      done.push_back(std::move(heaviest));
      continue;
    }
    for (const bool bit : {false, true}) {
      BitPath child = *at;
      child.push(bit);
      SEMEL_TRY(add(std::move(child)));
    }
  }
  done.insert(done.end(), std::make_move_iterator(open.begin()),
              std::make_move_iterator(open.end()));
  std::sort(done.begin(), done.end(),
            [](const Container& a, const Container& b) { return a.path < b.path; });
  return done;
}

std::size_t NyeTrie::bytes() const {
  return sizeof *this + sizeof *body_ + body_->blocks.bytes() + body_->marks.bytes() +
         body_->pending.capacity();
}

std::vector<NyeTrie::Unlike> NyeTrie::unlike(const NyeTrie& other) const {
  SEMEL_ASSERT(!marked() && !other.marked());
  std::vector<Unlike> found;
  bool open = false;  // true if the previous containers differed
  const auto add = [&](const Walk& at, bool of_other) {
    KeyRange keys = at.path().range();
    if (!std::exchange(open, true)) {
      found.push_back({std::move(keys), 0});
    } else {
      std::optional<std::string>& end = found.back().keys.end;
      if (!keys.end || (end && *end < *keys.end)) end = std::move(keys.end);
    }
    if (of_other) found.back().records += at.sum().count;
  };
  Walk a = body_->blocks.at(0);
  Walk b = other.body_->blocks.at(0);
  while (a.valid() || b.valid()) {
    if (a.valid() && b.valid() && a.container() == b.container()) {
      open = false;
      a.next();
      b.next();
      continue;
    }
    const bool take_a = a.valid() && (!b.valid() || a.path() <= b.path());
    const bool take_b = b.valid() && (!a.valid() || b.path() <= a.path());
    if (take_a) add(a, false);
    if (take_b) add(b, true);
    if (take_a) a.next();
    if (take_b) b.next();
  }
  return found;
}

bool NyeTrie::operator==(const NyeTrie& other) const {
  if (marked() || other.marked() || body_->burst_bytes != other.body_->burst_bytes ||
      body_->digest.id() != other.body_->digest.id() ||
      body_->blocks.measured() != other.body_->blocks.measured() ||
      container_count() != other.container_count()) {
    return false;
  }
  Walk b = other.body_->blocks.at(0);
  for (Walk a = body_->blocks.at(0); a.valid(); a.next(), b.next()) {
    if (a.container() != b.container()) return false;
  }
  return true;
}

}  // namespace semel
