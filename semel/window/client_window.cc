#include "semel/window/client_window.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <unordered_map>

#include "semel/core/assert.h"
#include "semel/core/limits.h"
#include "semel/hash/internal/digests_in_order.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/batch.h"
#include "semel/window/internal/generation_time.h"
#include "semel/window/internal/sequence_set.h"

namespace semel {

using window_internal::GenerationTime;
using window_internal::judge_each;
using window_internal::SequenceSet;

namespace {

constexpr Format kFormat{"WCL", 1, "client window"};  // docs/formats/client_window_v1.md
constexpr std::size_t kClientHeader = 26;
constexpr std::size_t kMarkHeader = 16;
constexpr std::size_t kPieceSize = 16;

// Memory of an empty window, of a client with its share of the hash table, and of a mark with its
// place on the roll.
constexpr std::uint64_t kWindowBytes = 256;
constexpr std::uint64_t kClientBytes = 96;
constexpr std::uint64_t kMarkBytes = 88;

// An insert clears up to this many marks that have left the window. It adds at most one, so
// clearing two keeps up with any load.
constexpr int kClearedByInsert = 2;
constexpr int kClearedByAdvance = 32;

Result<void> check(const ClientWindow::Goal& goal) {
  if (!GenerationTime::valid(goal.window_ms, goal.generations)) {
    return Error{Errc::invalid, "a client window is longer than 0, of 1 to 64 generations"};
  }
  if (goal.max_bytes < ClientWindow::kLeastCap) {
    return Error{Errc::invalid, "a client window needs 4096 bytes"};
  }
  if (!goal.hash.valid() || goal.on_full > OnFull::forget) {
    return Error{Errc::invalid, "a client window of unknown hash or policy"};
  }
  return {};
}

// Returns the bytes by which a set grows with this number. It may shrink.
std::uint64_t growth(const SequenceSet& set, std::uint64_t number) {
  return std::max(set.bytes_with(number), set.bytes()) - set.bytes();
}

}  // namespace

struct ClientWindow::Mark {
  std::int64_t generation;
  SequenceSet sequences;
  bool operator==(const Mark&) const = default;
};

struct ClientWindow::Client {
  std::optional<std::uint64_t> forgotten;  // the highest sequence
  std::vector<Mark> marks;                 // ascending by generation; capacity: the size

  // Removes the first `count` marks, and keeps their highest sequence in `forgotten`.
  void forget(std::size_t count);
  bool operator==(const Client&) const = default;
};

struct ClientWindow::Memory {
  // Lists the clients that have a mark in a generation, or had one.
  struct Roll {
    std::int64_t generation;
    std::deque<Digest> clients;
  };

  GenerationTime time;
  std::unordered_map<Digest, Client> clients;
  std::deque<Roll> rolls;  // ascending by generation; none is empty
};

void ClientWindow::Client::forget(std::size_t count) {
  if (count == 0) return;
  const auto end = marks.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto mark = marks.begin(); mark != end; ++mark) {
    forgotten = std::max(forgotten.value_or(0), mark->sequences.highest());
  }
  marks = std::vector<Mark>(std::make_move_iterator(end), std::make_move_iterator(marks.end()));
}

ClientWindow::ClientWindow(const Goal& goal, TimeMs now_ms)
    : goal_(goal),
      memory_(std::in_place,
              Memory{GenerationTime(goal.window_ms, goal.generations, now_ms), {}, {}}),
      bytes_(kWindowBytes) {}

Result<ClientWindow> ClientWindow::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  return ClientWindow(goal, now_ms);
}

TimeMs ClientWindow::now() const { return memory_->time.now(); }

WindowPromise ClientWindow::promise() const { return memory_->time.promise(); }

std::uint64_t ClientWindow::clients() const { return memory_->clients.size(); }

WindowCounts ClientWindow::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = memory_->time.backward_steps();
  return counts;
}

std::size_t ClientWindow::dead_marks(const Client& client, TimeMs now_ms) const {
  const std::int64_t oldest = memory_->time.oldest_alive(now_ms);
  std::size_t dead = 0;
  while (dead < client.marks.size() && client.marks[dead].generation < oldest) ++dead;
  return dead;
}

Verdict ClientWindow::judge(const Client& client, std::uint64_t sequence, TimeMs now_ms) const {
  const std::size_t dead = dead_marks(client, now_ms);
  if (dead == client.marks.size()) return Verdict::fresh;  // it has left
  for (std::size_t i = client.marks.size(); i > dead; --i) {
    if (client.marks[i - 1].sequences.contains(sequence)) return Verdict::duplicate;
  }
  const std::optional<std::uint64_t> forgotten = forgotten_of(client, dead);
  return forgotten && sequence <= *forgotten ? Verdict::stale : Verdict::fresh;
}

std::optional<std::uint64_t> ClientWindow::forgotten_of(const Client& client,
                                                        std::size_t dead) const {
  std::optional<std::uint64_t> forgotten = client.forgotten;
  for (std::size_t i = 0; i < dead; ++i) {
    forgotten = std::max(forgotten.value_or(0), client.marks[i].sequences.highest());
  }
  return forgotten;
}

std::optional<std::uint64_t> ClientWindow::forgotten(Digest client) const {
  const auto at = memory_->clients.find(client);
  if (at == memory_->clients.end()) return std::nullopt;
  const std::size_t dead = dead_marks(at->second);
  if (dead == at->second.marks.size()) return std::nullopt;
  return forgotten_of(at->second, dead);
}

void ClientWindow::restore_forgotten(Digest client, std::uint64_t sequence) {
  const auto at = memory_->clients.find(client);
  if (at == memory_->clients.end() || dead_marks(at->second) == at->second.marks.size()) return;
  std::optional<std::uint64_t>& forgotten = at->second.forgotten;
  forgotten = std::max(forgotten.value_or(0), sequence);
}

Verdict ClientWindow::test(const ClientOperation& id, TimeMs now_ms) const {
  const auto client = memory_->clients.find(id.client);
  return client == memory_->clients.end() ? Verdict::fresh
                                          : judge(client->second, id.sequence, now_ms);
}

// Returns true if the operation is remembered in this generation or a later one.
bool ClientWindow::remembers(const ClientOperation& id, std::int64_t from_generation) const {
  const auto client = memory_->clients.find(id.client);
  if (client == memory_->clients.end()) return false;
  const auto& marks = client->second.marks;
  return std::any_of(marks.begin(), marks.end(), [&](const Mark& mark) {
    return mark.generation >= from_generation && mark.sequences.contains(id.sequence);
  });
}

Verdict ClientWindow::insert(const ClientOperation& id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  const Verdict known = test(id);
  if (known == Verdict::fresh) return test_and_insert(id, at_ms);
  if (memory_->time.too_old(at_ms)) {
    if (known == Verdict::stale) ++counts_.stale;
    return known;
  }
  if (remembers(id, memory_->time.generation_of(at_ms))) return Verdict::duplicate;
  const Verdict placed = place(id, at_ms);
  return placed == Verdict::fresh && known == Verdict::duplicate ? known : placed;
}

Verdict ClientWindow::test_and_insert(const ClientOperation& id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  const auto client = memory_->clients.find(id.client);
  const bool known = client != memory_->clients.end();
  Verdict verdict = known ? judge(client->second, id.sequence, now()) : Verdict::fresh;
  if (verdict == Verdict::fresh && memory_->time.too_old(at_ms)) verdict = Verdict::stale;
  if (verdict == Verdict::stale) ++counts_.stale;
  if (verdict != Verdict::fresh) return verdict;
  return known && place_at_once(client->second, id.sequence, at_ms) ? Verdict::fresh
                                                                    : place(id, at_ms);
}

// Does the work of place() in the usual case: there is nothing to clear and no mark to make.
// Returns false, and changes nothing, in other cases.
bool ClientWindow::place_at_once(Client& client, std::uint64_t sequence, TimeMs at_ms) {
  if (some_have_left()) return false;
  Mark& last = client.marks.back();
  if (last.generation != memory_->time.generation_of(at_ms)) return false;
  if (goal_.max_bytes != kNoCap && bytes_ + growth(last.sequences, sequence) > goal_.max_bytes) {
    return false;
  }
  put(last, sequence);
  return true;
}

// REQUIRES: the operation is not remembered in the generation of this time.
Verdict ClientWindow::place(const ClientOperation& id, TimeMs at_ms) {
  const std::int64_t generation = memory_->time.generation_of(at_ms);
  clear_some(kClearedByInsert);
  clear(id.client);
  if (!make_room(id, generation)) {
    ++counts_.refused;
    return Verdict::full;
  }
  put(mark_of(id.client, generation), id.sequence);
  return Verdict::fresh;
}

void ClientWindow::put(Mark& mark, std::uint64_t sequence) {
  const std::uint64_t before = mark.sequences.bytes();
  mark.sequences.insert(sequence);
  bytes_ += mark.sequences.bytes() - before;
}

// Only the table of clients is a large block.
bool ClientWindow::takes(std::uint64_t ids) const {
  const std::uint64_t clients = memory_->clients.size() + ids;
  return clients * 2 * sizeof(void*) < limits::kSmallBlock ||
         static_cast<double>(clients) <= static_cast<double>(memory_->clients.bucket_count()) *
                                             memory_->clients.max_load_factor();
}

// First clears everything that has left the window, so that the answer does not depend on how much
// was cleared before.
bool ClientWindow::make_room(const ClientOperation& id, std::int64_t generation) {
  while (bytes_ + bytes_for(id, generation) > goal_.max_bytes) {
    if (clear_one()) continue;
    if (goal_.on_full == OnFull::refuse || memory_->rolls.empty()) return false;
    forget_oldest();
  }
  return true;
}

std::uint64_t ClientWindow::bytes_for(const ClientOperation& id, std::int64_t generation) const {
  const std::uint64_t first = kMarkBytes + SequenceSet().bytes_with(id.sequence);
  const auto client = memory_->clients.find(id.client);
  if (client == memory_->clients.end()) return kClientBytes + first;
  for (const Mark& mark : client->second.marks) {
    if (mark.generation == generation) return growth(mark.sequences, id.sequence);
  }
  return first;
}

ClientWindow::Mark& ClientWindow::mark_of(Digest client, std::int64_t generation) {
  const auto by_generation = [](const auto& one, std::int64_t wanted) {
    return one.generation < wanted;
  };
  const auto [entry, joined] = memory_->clients.try_emplace(client);
  if (joined) bytes_ += kClientBytes;
  std::vector<Mark>& marks = entry->second.marks;
  auto mark = std::lower_bound(marks.begin(), marks.end(), generation, by_generation);
  if (mark != marks.end() && mark->generation == generation) return *mark;

  bytes_ += kMarkBytes;
  auto roll =
      std::lower_bound(memory_->rolls.begin(), memory_->rolls.end(), generation, by_generation);
  if (roll == memory_->rolls.end() || roll->generation != generation) {
    roll = memory_->rolls.insert(roll, Memory::Roll{generation, {}});
  }
  roll->clients.push_back(client);
  const auto at = mark - marks.begin();
  marks.reserve(marks.size() + 1);
  return *marks.insert(marks.begin() + at, Mark{generation, {}});
}

// Removes the first marks of a client, and the client if none is left.
void ClientWindow::forget(Digest client, std::size_t marks) {
  const auto entry = memory_->clients.find(client);
  SEMEL_ASSERT(entry != memory_->clients.end() && marks <= entry->second.marks.size());
  for (std::size_t i = 0; i < marks; ++i) {
    bytes_ -= kMarkBytes + entry->second.marks[i].sequences.bytes();
  }
  entry->second.forget(marks);
  if (!entry->second.marks.empty()) return;
  bytes_ -= kClientBytes;
  memory_->clients.erase(entry);
}

// Removes the marks of a client that have left the window. The rolls may still name the client.
void ClientWindow::clear(Digest client) {
  const auto entry = memory_->clients.find(client);
  if (entry == memory_->clients.end()) return;
  if (const std::size_t dead = dead_marks(entry->second); dead > 0) forget(client, dead);
}

bool ClientWindow::some_have_left() const {
  return !memory_->rolls.empty() &&
         memory_->rolls.front().generation < memory_->time.oldest_alive();
}

// Returns false if nothing has left the window.
bool ClientWindow::clear_one() {
  if (!some_have_left()) return false;
  clear(memory_->rolls.front().clients.front());
  memory_->rolls.front().clients.pop_front();
  if (memory_->rolls.front().clients.empty()) memory_->rolls.pop_front();
  return true;
}

void ClientWindow::clear_some(int marks) {
  while (marks > 0 && clear_one()) --marks;
}

// REQUIRES: everything is cleared, so that the oldest mark of all is the first of its client.
void ClientWindow::forget_oldest() {
  const Memory::Roll& oldest = memory_->rolls.front();
  for (const Digest& client : oldest.clients) {
    const auto entry = memory_->clients.find(client);
    SEMEL_ASSERT(entry != memory_->clients.end());
    const Mark& mark = entry->second.marks.front();
    SEMEL_ASSERT(mark.generation == oldest.generation);
    counts_.forgotten_early += mark.sequences.size();
    forget(client, 1);
  }
  memory_->time.forget_early(oldest.generation);
  memory_->rolls.pop_front();
}

void ClientWindow::advance(TimeMs now_ms) {
  memory_->time.advance(now_ms);
  clear_some(kClearedByAdvance);
}

void ClientWindow::test(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) const {
  judge_each(ids, verdicts, [&](const ClientOperation& id) { return test(id); });
}

void ClientWindow::insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](const ClientOperation& id) { return insert(id); });
}

void ClientWindow::test_and_insert(std::span<const ClientOperation> ids,
                                   std::span<Verdict> verdicts) {
  judge_each(ids, verdicts, [&](const ClientOperation& id) { return test_and_insert(id); });
}

// Returns all clients that stay, ascending, without marks that have left the window.
std::vector<std::pair<Digest, ClientWindow::Client>> ClientWindow::remembered() const {
  std::vector<std::pair<Digest, Client>> all;
  all.reserve(memory_->clients.size());
  for (const auto& [digest, client] : memory_->clients) {
    const std::size_t dead = dead_marks(client);
    if (dead == client.marks.size()) continue;
    all.emplace_back(digest, client).second.forget(dead);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return all;
}

Result<void> ClientWindow::merge(const ClientWindow& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "client windows of different goals"};
  if (now() != other.now()) return Error{Errc::mismatch, "client windows at different times"};
  ClientWindow both = *this;
  while (both.clear_one()) {
  }
  both.memory_->time.keep_from(other.memory_->time.kept_from());
  for (const auto& [digest, client] : other.remembered()) {
    for (const Mark& mark : client.marks) {
      SequenceSet& sequences = both.mark_of(digest, mark.generation).sequences;
      both.bytes_ -= sequences.bytes();
      sequences.insert(mark.sequences);
      both.bytes_ += sequences.bytes();
    }
    std::optional<std::uint64_t>& forgotten = both.memory_->clients.find(digest)->second.forgotten;
    forgotten = std::max(forgotten, client.forgotten);  // an empty optional is less than any number
  }
  if (both.bytes_ > goal_.max_bytes) return Error{Errc::full, "no room for both client windows"};
  *this = std::move(both);
  return {};
}

// Leaves out marks that have left the window.
void ClientWindow::encode_client(const Client& client, Writer& out) const {
  const std::size_t dead = dead_marks(client);
  const std::optional<std::uint64_t> forgotten = forgotten_of(client, dead);
  out.u64(forgotten.value_or(0));
  out.boolean(forgotten.has_value());
  out.u8(static_cast<std::uint8_t>(client.marks.size() - dead));
  for (const Mark& mark : std::span(client.marks).subspan(dead)) {
    out.i64(mark.generation);
    out.u64(mark.sequences.pieces().size());
    for (const SequenceSet::Piece& piece : mark.sequences.pieces()) {
      out.u64(piece.head);
      out.u64(piece.body);
    }
  }
}

void ClientWindow::encode(Sink out) const {
  const auto here = [&](const Client& client) { return dead_marks(client) < client.marks.size(); };
  std::uint64_t clients = 0, size = 0;
  for (const auto& [digest, client] : memory_->clients) {
    if (!here(client)) continue;
    ++clients;
    size += kClientHeader;
    for (const Mark& mark : std::span(client.marks).subspan(dead_marks(client))) {
      size += kMarkHeader + mark.sequences.pieces().size() * kPieceSize;
    }
  }
  seal(out, kFormat, [&](Writer& w) {
    write(w, goal_.hash);
    w.enumeration(goal_.on_full);
    w.u8(static_cast<std::uint8_t>(goal_.generations));
    w.i64(goal_.window_ms);
    w.u64(goal_.max_bytes);
    w.i64(now());
    w.i64(memory_->time.kept_from());
    w.u64(clients);
    if (w.sink().only_measures(size)) return;
    for_each_in_order(memory_->clients, here, [&](Digest digest, const Client& client) {
      write(w, digest);
      encode_client(client, w);
    });
  });
}

// Reads the marks of one client.
Result<void> ClientWindow::read_marks(Reader& r, Digest client, std::uint64_t marks) {
  const auto wrong = [] { return corrupt(kFormat, "marks of a client"); };
  if (marks == 0 || marks > r.rest() / (kMarkHeader + kPieceSize)) return wrong();
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < marks; ++i) {
    const std::int64_t generation = r.i64();
    const std::uint64_t pieces = r.u64();
    const bool ascends = i == 0 ? generation >= memory_->time.oldest_alive() : generation > last;
    if (!r.ok() || !ascends || generation > memory_->time.newest()) return wrong();
    last = generation;
    // Length before allocation: until here the number of pieces is only a claim.
    if (pieces == 0 || pieces > r.rest() / kPieceSize) return wrong();
    SequenceSet& sequences = mark_of(client, generation).sequences;
    sequences.reserve(pieces);
    for (std::uint64_t n = 0; n < pieces; ++n) {
      const std::uint64_t head = r.u64();
      if (!sequences.append({head, r.u64()})) return wrong();
    }
    bytes_ += sequences.bytes();
  }
  return {};
}

Result<ClientWindow> ClientWindow::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  Goal goal{};
  goal.hash = read_hash_id(r);
  goal.on_full = r.enumeration(OnFull::forget);
  goal.generations = r.u8();
  goal.window_ms = r.i64();
  goal.max_bytes = r.u64();
  const TimeMs now_ms = r.i64();
  const TimeMs kept_from_ms = r.i64();
  const std::uint64_t clients = r.u64();
  if (!r.ok() || !check(goal)) return corrupt(kFormat, "goal");
  if (kept_from_ms > later_by(now_ms, 1)) return corrupt(kFormat, "kept from a later time");

  ClientWindow window(goal, now_ms);
  window.memory_->time.keep_from(kept_from_ms);
  Digest last{};
  for (std::uint64_t i = 0; i < clients; ++i) {
    const Digest client = read_digest(r);
    const std::uint64_t forgotten = r.u64();
    const bool forgot = r.boolean();
    const std::uint8_t marks = r.u8();
    if (!r.ok()) return corrupt(kFormat, "number of clients");
    if (i > 0 && client <= last) return corrupt(kFormat, "order of clients");
    if (!forgot && forgotten != 0) return corrupt(kFormat, "sequence forgotten");
    SEMEL_TRY(window.read_marks(r, client, marks));
    if (forgot) window.memory_->clients.find(client)->second.forgotten = forgotten;
    last = client;
  }
  if (!r.at_end()) return corrupt(kFormat, "size");
  return window;
}

bool ClientWindow::operator==(const ClientWindow& other) const {
  return goal_ == other.goal_ && now() == other.now() &&
         memory_->time.kept_from() == other.memory_->time.kept_from() &&
         remembered() == other.remembered();
}

}  // namespace semel
