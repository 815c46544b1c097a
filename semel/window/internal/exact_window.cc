#include "semel/window/internal/exact_window.h"

#include <algorithm>
#include <new>
#include <utility>

#include "semel/bits/internal/prefetch.h"
#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/limits.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/batch.h"

namespace semel::window_internal {
namespace {

constexpr Format kFormat{"WEX", 1, "exact window"};  // docs/formats/exact_window_v1.md

constexpr std::uint64_t kMostIds = std::uint64_t{1} << 39;
constexpr std::uint64_t kLeastRoom = 4 * DigestTable::kRoomStep;
constexpr std::uint64_t kMostRoom = DigestTable::kRoomStep * kMostIds;

// Memory of an empty window, and of a generation with the records of a few tables. A table takes 16
// bytes a slot, 24 with times.
constexpr std::uint64_t kWindowBytes = 256;
constexpr std::uint64_t kGenerationBytes = 512;

Result<void> check(const ExactWindow::Goal& goal) {
  if (!GenerationTime::valid(goal.window_ms, goal.generations)) {
    return Error{Errc::invalid, "an exact window is longer than 0, of 1 to 64 generations"};
  }
  if (goal.max_bytes < ExactWindow::kLeastCap) {
    return Error{Errc::invalid, "an exact window needs 4096 bytes"};
  }
  if (!goal.hash.valid() || goal.on_full > OnFull::forget) {
    return Error{Errc::invalid, "an exact window of unknown hash or policy"};
  }
  if (goal.ids > kMostIds) return Error{Errc::limit, "an exact window of more than 2^39 ids"};
  return {};
}

}  // namespace

bool ExactWindow::Generation::contains(Digest id) const {
  return std::any_of(tables.rbegin(), tables.rend(),
                     [&](const DigestTable& table) { return table.contains(id); });
}

// Makes a table when it is needed, no larger than all before it. The room of a generation may be
// untrusted, so nothing is allocated on its word alone.
void ExactWindow::Generation::prepare(bool timed) {
  SEMEL_ASSERT(size < room);
  if (tables.empty()) {
    tables.emplace_back(room, timed);
  } else if (tables.back().full()) {
    tables.emplace_back(std::min(room - size, std::max(size, kLeastRoom)), timed);
  }
}

void ExactWindow::Generation::insert(Digest id, TimeMs at_ms, bool timed) {
  prepare(timed);
  tables.back().insert(id, at_ms);
  ++size;
}

const TimeMs* ExactWindow::Generation::time_of(Digest id) const {
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {
    if (const TimeMs* const time_ms = table->time_of(id)) return time_ms;
  }
  return nullptr;
}

TimeMs* ExactWindow::Generation::time_of(Digest id) {
  return const_cast<TimeMs*>(static_cast<const Generation*>(this)->time_of(id));
}

// Merges the tables, which are few: each is as large as all before it.
template <class Visit>
void ExactWindow::Generation::for_each_ascending(Visit visit) const {
  const auto holds_zero = [](const DigestTable& table) { return table.holds_zero(); };
  if (std::any_of(tables.begin(), tables.end(), holds_zero)) visit(Digest{0, 0});
  std::vector<SlotCursor<DigestTable::Home>> cursors;
  cursors.reserve(tables.size());
  for (const DigestTable& table : tables) cursors.push_back(table.ascending());
  std::erase_if(cursors, [](const auto& cursor) { return !cursor.valid(); });
  while (!cursors.empty()) {
    const auto least = std::min_element(cursors.begin(), cursors.end(),
                                        [](const auto& a, const auto& b) { return *a < *b; });
    visit(**least);
    least->next();
    if (!least->valid()) cursors.erase(least);
  }
}

bool ExactWindow::Generation::same(const Generation& other, bool timed) const {
  if (number != other.number || room != other.room || size != other.size) return false;
  bool all = true;
  for_each_ascending([&](Digest id) {
    all = all && other.contains(id) && (!timed || *time_of(id) == *other.time_of(id));
  });
  return all;
}

ExactWindow::ExactWindow(const Goal& goal, TimeMs now_ms)
    : goal_(goal),
      time_(goal.window_ms, goal.generations, now_ms),
      horizon_(horizon(now_ms)),
      bytes_(kWindowBytes) {}

Result<ExactWindow> ExactWindow::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  return ExactWindow(goal, now_ms);
}

// Rooms come in few sizes, so that the larger of two windows' rooms, or the next that holds their
// union, is the same in whatever order windows are merged.
std::uint64_t ExactWindow::room_for(std::uint64_t ids) {
  constexpr std::uint64_t kStep = DigestTable::kRoomStep;
  return std::max(kLeastRoom, kStep * size_class(divide_up(ids, kStep)));
}

std::uint64_t ExactWindow::bytes_of(std::uint64_t room) const {
  return kGenerationBytes + DigestTable::slots_for(room) * id_bytes();
}

std::size_t ExactWindow::id_bytes() const {
  return sizeof(Digest) + (goal_.punctual ? sizeof(TimeMs) : 0);
}

TimeMs ExactWindow::longest_ms(const Goal& goal) {
  if (goal.punctual) return goal.window_ms;
  return later_by(goal.window_ms, (goal.window_ms - 1) / goal.generations);
}

WindowPromise ExactWindow::promise() const {
  WindowPromise promise = time_.promise();
  if (goal_.punctual) promise.forgotten_before_ms = horizon_.from_ms;
  return promise;
}

std::uint64_t ExactWindow::ids(TimeMs now_ms) const {
  const std::int64_t oldest = time_.oldest_alive(now_ms);
  std::uint64_t sum = 0;
  for (const Generation& generation : generations_) {
    if (generation.number >= oldest) sum += generation.size;
  }
  return sum;
}

WindowCounts ExactWindow::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

// Only the oldest generation has times on both sides of the edge.
bool ExactWindow::remembers(const Generation& generation, Digest id, const Horizon& horizon) const {
  if (!goal_.punctual || generation.number > horizon.oldest) return generation.contains(id);
  const TimeMs* const time_ms = generation.time_of(id);
  return time_ms != nullptr && *time_ms >= horizon.from_ms;
}

const ExactWindow::Generation* ExactWindow::find(Digest id, const Horizon& horizon) const {
  for (auto g = generations_.rbegin(); g != generations_.rend(); ++g) {
    if (g->number < horizon.oldest) break;
    if (remembers(*g, id, horizon)) return &*g;
  }
  return nullptr;
}

std::vector<ExactWindow::Generation>::iterator ExactWindow::at_or_after(std::int64_t number) {
  return std::lower_bound(generations_.begin(), generations_.end(), number,
                          [](const Generation& g, std::int64_t n) { return g.number < n; });
}

Verdict ExactWindow::insert(Digest id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  const Generation* const known = find(id, horizon_);
  if (known == nullptr) return test_and_insert(id, at_ms);
  const std::int64_t number = time_.generation_of(at_ms);
  if (time_.too_old(at_ms) || known->number > number) return Verdict::duplicate;
  if (known->number == number) {
    renew(number, id, at_ms);
    return Verdict::duplicate;
  }
  return place(id, at_ms) == Verdict::full ? Verdict::full : Verdict::duplicate;
}

Verdict ExactWindow::test_and_insert(Digest id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  if (find(id, horizon_) != nullptr) return Verdict::duplicate;
  if (time_.too_old(at_ms)) {
    ++counts_.stale;
    return Verdict::stale;
  }
  // The oldest generation may hold the id with a time that has left a punctual window.
  const std::int64_t number = time_.generation_of(at_ms);
  if (goal_.punctual && number == horizon_.oldest && renew(number, id, at_ms)) {
    return Verdict::fresh;
  }
  return place(id, at_ms);
}

// Takes the later of the two times if the id is in this generation; returns false if it is not.
bool ExactWindow::renew(std::int64_t number, Digest id, TimeMs at_ms) {
  const auto at = at_or_after(number);
  if (at == generations_.end() || at->number != number) return false;
  if (!goal_.punctual) return at->contains(id);
  TimeMs* const time_ms = at->time_of(id);
  if (time_ms != nullptr) *time_ms = std::max(*time_ms, at_ms);
  return time_ms != nullptr;
}

// REQUIRES: the id is not in the generation of this time.
Verdict ExactWindow::place(Digest id, TimeMs at_ms) {
  Generation* const generation = make_room(time_.generation_of(at_ms));
  if (generation == nullptr) {
    ++counts_.refused;
    return Verdict::full;
  }
  generation->insert(id, at_ms, goal_.punctual);
  return Verdict::fresh;
}

bool ExactWindow::has_room(std::uint64_t ids, TimeMs at_ms) const {
  const std::int64_t number = time_.generation_of(std::min(at_ms, now()));
  const auto at = std::find_if(generations_.begin(), generations_.end(),
                               [&](const Generation& g) { return g.number == number; });
  const std::uint64_t size = at == generations_.end() ? 0 : at->size;
  const std::uint64_t room = at == generations_.end() ? 0 : at->room;
  if (ids <= room - size) return true;
  const std::uint64_t held = bytes_ - (room == 0 ? 0 : bytes_of(room));
  const std::uint64_t needed = room_for(size + ids);
  return needed <= kMostRoom && held + bytes_of(needed) <= goal_.max_bytes;
}

bool ExactWindow::takes(std::uint64_t ids) const {
  if (generations_.empty()) return room_for(goal_.ids) * 2 * sizeof(Digest) < limits::kSmallBlock;
  const Generation& newest = generations_.back();
  const std::uint64_t larger = 2 * std::max(newest.room, room_for(ids));
  if (DigestTable::slots_for(larger) * sizeof(Digest) < limits::kSmallBlock) return true;
  return newest.number == time_.newest() && !newest.tables.empty() &&
         newest.tables.back().room() - newest.tables.back().size() >= ids;
}

void ExactWindow::take_back(Digest id, TimeMs at_ms) {
  const auto at = at_or_after(time_.generation_of(std::min(at_ms, now())));
  SEMEL_ASSERT(at != generations_.end() && !at->tables.empty() && at->size > 1);
  at->tables.back().take_back(id);
  --at->size;
}

// Returns the generation of this number, with room for one more id; nullptr if the cap leaves none.
ExactWindow::Generation* ExactWindow::make_room(std::int64_t number) {
  for (;;) {
    const auto at = at_or_after(number);
    const bool exists = at != generations_.end() && at->number == number;
    if (exists && at->size < at->room) return &*at;

    // A new generation gets the size of the newest one, and a full one twice its size.
    std::uint64_t wanted = divide_up(goal_.ids, goal_.generations);
    if (!generations_.empty()) wanted = generations_.back().size;
    if (exists) wanted = 2 * at->size;
    if (const auto room = room_that_fits(exists ? at->room : 0, wanted)) {
      if (!exists) {
        Generation fresh{number, *room};
        fresh.prepare(goal_.punctual);  // if this throws, nothing has changed
        const auto placed = generations_.insert(at, std::move(fresh));
        bytes_ += bytes_of(*room);
        return &*placed;
      }
      const std::uint64_t before = std::exchange(at->room, *room);
      try {
        at->prepare(goal_.punctual);
      } catch (const std::bad_alloc&) {
        at->room = before;
        throw;
      }
      bytes_ += bytes_of(*room) - bytes_of(before);
      return &*at;
    }
    if (goal_.on_full == OnFull::refuse || generations_.empty()) return nullptr;
    forget_oldest();
  }
}

// Returns the largest room above `now` that memory allows, but no more than `wanted` ids need.
std::optional<std::uint64_t> ExactWindow::room_that_fits(std::uint64_t now,
                                                         std::uint64_t wanted) const {
  const std::uint64_t held = bytes_ - (now == 0 ? 0 : bytes_of(now));
  const std::uint64_t least = room_for(now + 1);
  if (least > kMostRoom || held + bytes_of(least) > goal_.max_bytes) return std::nullopt;
  std::uint64_t room = least;
  while (room < wanted) {
    const std::uint64_t larger = room_for(room + 1);
    if (larger > kMostRoom || held + bytes_of(larger) > goal_.max_bytes) break;
    room = larger;
  }
  return room;
}

void ExactWindow::forget_oldest() {
  const Generation& oldest = generations_.front();
  counts_.forgotten_early += oldest.size;
  time_.forget_early(oldest.number);
  bytes_ -= bytes_of(oldest.room);
  generations_.erase(generations_.begin());
}

void ExactWindow::advance(TimeMs now_ms) {
  if (!time_.advance(now_ms)) return;
  horizon_ = horizon(now_ms);
  const auto alive = at_or_after(horizon_.oldest);
  for (auto g = generations_.begin(); g != alive; ++g) bytes_ -= bytes_of(g->room);
  generations_.erase(generations_.begin(), alive);
}

void ExactWindow::touch(Digest id) const {
  for (const Generation& generation : generations_) {
    for (const DigestTable& table : generation.tables) table.touch(id);
  }
}

void ExactWindow::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test(id); });
}

void ExactWindow::test(std::span<const Digest> ids, TimeMs now_ms,
                       std::span<Verdict> verdicts) const {
  const Horizon then = horizon(now_ms);
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test(id, then); });
}

void ExactWindow::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return insert(id); });
}

void ExactWindow::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  judge_ahead(
      ids, verdicts, [&](Digest id) { touch(id); }, [&](Digest id) { return test_and_insert(id); });
}

// Moves the ids of a generation into one table, together with ids of another. REQUIRES: the ids
// ascend, the other generation holds them, and this one does not.
void ExactWindow::add_ascending(Generation& into, std::span<const Digest> ids,
                                const Generation& other) const {
  const std::uint64_t size = into.size + ids.size();
  DigestTable table(room_for(size), goal_.punctual);
  DigestTable::End end;
  const auto append = [&](Digest id, const Generation& holder) {
    table.append(end, id, goal_.punctual ? *holder.time_of(id) : 0);
  };
  auto next = ids.begin();
  into.for_each_ascending([&](Digest held) {
    for (; next != ids.end() && *next < held; ++next) append(*next, other);
    append(held, into);
  });
  for (; next != ids.end(); ++next) append(*next, other);
  into.tables.clear();
  into.tables.push_back(std::move(table));
  into.size = size;
}

// Returns false beyond the cap. The missing ids ascend. Inserted into a table that is too small for
// all of them they would crowd at its beginning, so they get a table with room for all.
bool ExactWindow::unite(const Generation& other) {
  auto at = at_or_after(other.number);
  if (at == generations_.end() || at->number != other.number) {
    bytes_ += bytes_of(other.room);
    generations_.insert(at, other);
    return bytes_ <= goal_.max_bytes;
  }
  std::vector<Digest> missing;
  other.for_each_ascending([&](Digest id) {
    if (!renew(other.number, id, goal_.punctual ? *other.time_of(id) : 0)) missing.push_back(id);
  });
  const std::uint64_t room = std::max({at->room, other.room, room_for(at->size + missing.size())});
  if (room > kMostRoom) return false;
  bytes_ += bytes_of(room) - bytes_of(at->room);
  if (bytes_ > goal_.max_bytes) return false;
  at->room = room;
  if (!missing.empty()) add_ascending(*at, missing, other);
  return true;
}

Result<void> ExactWindow::merge(const ExactWindow& other) {
  Goal goal = other.goal_;
  goal.max_bytes = goal_.max_bytes;
  goal.on_full = goal_.on_full;
  if (goal != goal_) return Error{Errc::mismatch, "exact windows of different goals"};
  if (now() != other.now()) return Error{Errc::mismatch, "exact windows at different times"};
  ExactWindow both = *this;
  both.time_.keep_from(other.time_.kept_from());
  for (const Generation& generation : other.generations_) {
    if (!both.unite(generation)) return Error{Errc::full, "no room for both exact windows"};
  }
  *this = std::move(both);
  return {};
}

void ExactWindow::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, goal_.hash);
    w.enumeration(goal_.on_full);
    w.boolean(goal_.punctual);
    w.u8(static_cast<std::uint8_t>(goal_.generations));
    w.i64(goal_.window_ms);
    w.u64(goal_.ids);
    w.u64(goal_.max_bytes);
    w.i64(now());
    w.i64(time_.kept_from());
    w.u64(generations_.size());
    for (const Generation& generation : generations_) {
      w.i64(generation.number);
      w.u64(generation.room);
      w.u64(generation.size);
      if (w.sink().only_measures(generation.size * id_bytes())) continue;
      generation.for_each_ascending([&](Digest id) {
        write(w, id);
        if (goal_.punctual) w.i64(*generation.time_of(id));
      });
    }
  });
}

// Reads one generation, newer than those that are there.
Result<void> ExactWindow::read_generation(Reader& r) {
  const bool punctual = goal_.punctual;
  Generation generation{r.i64(), r.u64(), r.u64()};
  const bool ascends = generations_.empty() ? generation.number >= time_.oldest_alive()
                                            : generation.number > generations_.back().number;
  if (!r.ok() || !ascends || generation.number > time_.newest()) {
    return corrupt(kFormat, "number of a generation");
  }
  // Length before allocation: until here the size is only a claim.
  if (generation.size == 0 || generation.size > r.rest() / id_bytes()) {
    return corrupt(kFormat, "size of a generation");
  }
  if (generation.room < generation.size || generation.room > kMostRoom ||
      generation.room != room_for(generation.room)) {
    return corrupt(kFormat, "room of a generation");
  }
  constexpr std::uint64_t kStep = DigestTable::kRoomStep;
  DigestTable& table =
      generation.tables.emplace_back(divide_up(generation.size, kStep) * kStep, punctual);
  DigestTable::End end;
  Digest last{};
  for (std::uint64_t n = 0; n < generation.size; ++n) {
    const Digest id = read_digest(r);
    if (n > 0 && id <= last) return corrupt(kFormat, "order of ids");
    const TimeMs at_ms = punctual ? r.i64() : 0;
    if (punctual && (at_ms > now() || time_.generation_of(at_ms) != generation.number)) {
      return corrupt(kFormat, "time of an id");
    }
    table.append(end, id, at_ms);
    last = id;
  }
  bytes_ += bytes_of(generation.room);
  generations_.push_back(std::move(generation));
  return {};
}

Result<ExactWindow> ExactWindow::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  Goal goal{};
  goal.hash = read_hash_id(r);
  goal.on_full = r.enumeration(OnFull::forget);
  goal.punctual = r.boolean();
  goal.generations = r.u8();
  goal.window_ms = r.i64();
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  const TimeMs now_ms = r.i64();
  const TimeMs kept_from_ms = r.i64();
  const std::uint64_t generations = r.u64();
  if (!r.ok() || !check(goal)) return corrupt(kFormat, "goal");
  if (kept_from_ms > later_by(now_ms, 1)) return corrupt(kFormat, "kept from a later time");

  ExactWindow window(goal, now_ms);
  window.time_.keep_from(kept_from_ms);
  for (std::uint64_t i = 0; i < generations; ++i) SEMEL_TRY(window.read_generation(r));
  if (!r.at_end()) return corrupt(kFormat, "size");
  return window;
}

bool ExactWindow::operator==(const ExactWindow& other) const {
  const auto same = [&](const Generation& a, const Generation& b) {
    return a.same(b, goal_.punctual);
  };
  return goal_ == other.goal_ && now() == other.now() &&
         time_.kept_from() == other.time_.kept_from() &&
         std::equal(generations_.begin(), generations_.end(), other.generations_.begin(),
                    other.generations_.end(), same);
}

}  // namespace semel::window_internal
