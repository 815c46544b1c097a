#include "semel/window/client_window.h"

#include <algorithm>
#include <iterator>

#include "semel/core/assert.h"
#include "semel/core/limits.h"
#include "semel/hash/seal.h"
#include "semel/window/digest_order.h"

namespace semel {
namespace {

// docs/formats/client_window_v1.md. All integers little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SCW1"; a new layout takes a new magic
//         4        1  kind of hash: 0 fast, 1 keyed
//         5        1  when full: 0 refuse, 1 forget
//         6        2  generations in a window
//         8        8  window
//        16        8  most bytes of memory
//        24        8  seed of the hash, or name of its key
//        32        8  now
//        40        8  kept from
//        48        8  clients that follow, ascending: each its digest (16), the highest sequence
//                     forgotten (8), whether there is one (1), the number of its marks (1), and for
//                     each mark its generation (8), the number of its pieces (8) and these (16 each)
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31574353;
constexpr std::size_t kTrailerSize = 8;
constexpr std::size_t kClientHeader = 26;
constexpr std::size_t kMarkHeader = 16;
constexpr std::size_t kPieceSize = 16;

// The window itself; a client, with its share of the hash table; a mark, with its place on the roll.
constexpr std::uint64_t kWindowBytes = 256;
constexpr std::uint64_t kClientBytes = 96;
constexpr std::uint64_t kMarkBytes = 88;

// Marks that one call clears of what has left the window. An insert adds one at most, so that two keep
// up with any load.
constexpr int kClearedByInsert = 2;
constexpr int kClearedByAdvance = 32;

Result<void> check(const ClientWindow::Goal& goal) {
  if (!GenerationTime::valid(goal.window_ms, goal.generations)) {
    return Error{Errc::invalid, "a client window is longer than 0, of 1 to 64 generations"};
  }
  if (goal.max_bytes < ClientWindow::kLeastCap) {
    return Error{Errc::invalid, "a client window needs 4096 bytes"};
  }
  if (!goal.hash.valid() || goal.when_full > WhenFull::forget) {
    return Error{Errc::invalid, "a client window of unknown hash or policy"};
  }
  return {};
}

// The bytes by which a set grows with this number. It may be able to shrink, too.
std::uint64_t growth(const SequenceSet& set, std::uint64_t number) {
  return std::max(set.bytes_with(number), set.bytes()) - set.bytes();
}

}  // namespace

void ClientWindow::Client::forget(std::size_t count) {
  if (count == 0) return;
  const auto end = marks.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto mark = marks.begin(); mark != end; ++mark) {
    forgotten = std::max(forgotten.value_or(0), mark->sequences.highest());
  }
  marks = std::vector<Mark>(std::make_move_iterator(end), std::make_move_iterator(marks.end()));
}

ClientWindow::ClientWindow(const Goal& goal, TimeMs now_ms)
    : goal_(goal), time_(goal.window_ms, goal.generations, now_ms), bytes_(kWindowBytes) {}

Result<ClientWindow> ClientWindow::make(const Goal& goal, TimeMs now_ms) {
  if (const Result<void> sound = check(goal); !sound) return sound.error();
  return ClientWindow(goal, now_ms);
}

WindowCounts ClientWindow::counts() const {
  WindowCounts counts = counts_;
  counts.backward_steps = time_.backward_steps();
  return counts;
}

std::size_t ClientWindow::dead_marks(const Client& client, TimeMs now_ms) const {
  const std::int64_t oldest = time_.oldest_alive(now_ms);
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
  const auto at = clients_.find(client);
  if (at == clients_.end()) return std::nullopt;
  const std::size_t dead = dead_marks(at->second);
  if (dead == at->second.marks.size()) return std::nullopt;
  return forgotten_of(at->second, dead);
}

void ClientWindow::restore_forgotten(Digest client, std::uint64_t sequence) {
  const auto at = clients_.find(client);
  if (at == clients_.end() || dead_marks(at->second) == at->second.marks.size()) return;
  std::optional<std::uint64_t>& forgotten = at->second.forgotten;
  forgotten = std::max(forgotten.value_or(0), sequence);
}

Verdict ClientWindow::test(const ClientOperation& id, TimeMs now_ms) const {
  const auto client = clients_.find(id.client);
  return client == clients_.end() ? Verdict::fresh : judge(client->second, id.sequence, now_ms);
}

// Whether it is remembered in this generation or a later one.
bool ClientWindow::remembers(const ClientOperation& id, std::int64_t from_generation) const {
  const auto client = clients_.find(id.client);
  if (client == clients_.end()) return false;
  const auto& marks = client->second.marks;
  return std::any_of(marks.begin(), marks.end(), [&](const Mark& mark) {
    return mark.generation >= from_generation && mark.sequences.contains(id.sequence);
  });
}

Verdict ClientWindow::insert(const ClientOperation& id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  const Verdict known = test(id);
  if (known == Verdict::fresh) return test_and_insert(id, at_ms);
  if (time_.too_old(at_ms)) {
    if (known == Verdict::stale) ++counts_.stale;
    return known;
  }
  if (remembers(id, time_.generation_of(at_ms))) return Verdict::duplicate;
  const Verdict placed = place(id, at_ms);
  return placed == Verdict::fresh && known == Verdict::duplicate ? known : placed;
}

Verdict ClientWindow::test_and_insert(const ClientOperation& id, TimeMs at_ms) {
  at_ms = std::min(at_ms, now());
  const auto client = clients_.find(id.client);
  const bool known = client != clients_.end();
  Verdict verdict = known ? judge(client->second, id.sequence, now()) : Verdict::fresh;
  if (verdict == Verdict::fresh && time_.too_old(at_ms)) verdict = Verdict::stale;
  if (verdict == Verdict::stale) ++counts_.stale;
  if (verdict != Verdict::fresh) return verdict;
  return known && place_at_once(client->second, id.sequence, at_ms) ? Verdict::fresh
                                                                    : place(id, at_ms);
}

// What place() does where there is nothing to clear and no mark to make, as is mostly so. False, and no
// change, where it is not.
bool ClientWindow::place_at_once(Client& client, std::uint64_t sequence, TimeMs at_ms) {
  if (some_have_left()) return false;
  Mark& last = client.marks.back();
  if (last.generation != time_.generation_of(at_ms)) return false;
  if (goal_.max_bytes != kNoCap && bytes_ + growth(last.sequences, sequence) > goal_.max_bytes) {
    return false;
  }
  put(last, sequence);
  return true;
}

// REQUIRES: the operation is not remembered in the generation of this time.
Verdict ClientWindow::place(const ClientOperation& id, TimeMs at_ms) {
  const std::int64_t generation = time_.generation_of(at_ms);
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

// The table of clients is the one large block.
bool ClientWindow::takes(std::uint64_t ids) const {
  const std::uint64_t clients = clients_.size() + ids;
  return clients * 2 * sizeof(void*) < limits::kSmallBlock ||
         static_cast<double>(clients) <=
             static_cast<double>(clients_.bucket_count()) * clients_.max_load_factor();
}

// What has left the window goes first, so that the answer does not depend on how much of it is still
// there.
bool ClientWindow::make_room(const ClientOperation& id, std::int64_t generation) {
  while (bytes_ + bytes_for(id, generation) > goal_.max_bytes) {
    if (clear_one()) continue;
    if (goal_.when_full == WhenFull::refuse || rolls_.empty()) return false;
    forget_oldest();
  }
  return true;
}

std::uint64_t ClientWindow::bytes_for(const ClientOperation& id, std::int64_t generation) const {
  const std::uint64_t first = kMarkBytes + SequenceSet().bytes_with(id.sequence);
  const auto client = clients_.find(id.client);
  if (client == clients_.end()) return kClientBytes + first;
  for (const Mark& mark : client->second.marks) {
    if (mark.generation == generation) return growth(mark.sequences, id.sequence);
  }
  return first;
}

ClientWindow::Mark& ClientWindow::mark_of(Digest client, std::int64_t generation) {
  const auto by_generation = [](const auto& one, std::int64_t wanted) {
    return one.generation < wanted;
  };
  const auto [entry, joined] = clients_.try_emplace(client);
  if (joined) bytes_ += kClientBytes;
  std::vector<Mark>& marks = entry->second.marks;
  auto mark = std::lower_bound(marks.begin(), marks.end(), generation, by_generation);
  if (mark != marks.end() && mark->generation == generation) return *mark;

  bytes_ += kMarkBytes;
  auto roll = std::lower_bound(rolls_.begin(), rolls_.end(), generation, by_generation);
  if (roll == rolls_.end() || roll->generation != generation) {
    roll = rolls_.insert(roll, Roll{generation, {}});
  }
  roll->clients.push_back(client);
  const auto at = mark - marks.begin();
  marks.reserve(marks.size() + 1);
  return *marks.insert(marks.begin() + at, Mark{generation, {}});
}

// Takes out the first marks of a client, and the client if none is left.
void ClientWindow::forget(Digest client, std::size_t marks) {
  const auto entry = clients_.find(client);
  SEMEL_ASSERT(entry != clients_.end() && marks <= entry->second.marks.size());
  for (std::size_t i = 0; i < marks; ++i) {
    bytes_ -= kMarkBytes + entry->second.marks[i].sequences.bytes();
  }
  entry->second.forget(marks);
  if (!entry->second.marks.empty()) return;
  bytes_ -= kClientBytes;
  clients_.erase(entry);
}

// Takes out what of a client has left the window. The rolls may name it still.
void ClientWindow::clear(Digest client) {
  const auto entry = clients_.find(client);
  if (entry == clients_.end()) return;
  if (const std::size_t dead = dead_marks(entry->second); dead > 0) forget(client, dead);
}

bool ClientWindow::some_have_left() const {
  return !rolls_.empty() && rolls_.front().generation < time_.oldest_alive();
}

// False if nothing has left the window.
bool ClientWindow::clear_one() {
  if (!some_have_left()) return false;
  clear(rolls_.front().clients.front());
  rolls_.front().clients.pop_front();
  if (rolls_.front().clients.empty()) rolls_.pop_front();
  return true;
}

void ClientWindow::clear_some(int marks) {
  while (marks > 0 && clear_one()) --marks;
}

// REQUIRES: nothing is left to be cleared, so that the oldest mark of all is the first of its client.
void ClientWindow::forget_oldest() {
  const Roll& oldest = rolls_.front();
  for (const Digest& client : oldest.clients) {
    const auto entry = clients_.find(client);
    SEMEL_ASSERT(entry != clients_.end());
    const Mark& mark = entry->second.marks.front();
    SEMEL_ASSERT(mark.generation == oldest.generation);
    counts_.forgotten_early += mark.sequences.size();
    forget(client, 1);
  }
  time_.forget_early(oldest.generation);
  rolls_.pop_front();
}

void ClientWindow::advance(TimeMs now_ms) {
  time_.advance(now_ms);
  clear_some(kClearedByAdvance);
}

void ClientWindow::test(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) const {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::transform(ids.begin(), ids.end(), verdicts.begin(),
                 [&](const ClientOperation& id) { return test(id); });
}

void ClientWindow::insert(std::span<const ClientOperation> ids, std::span<Verdict> verdicts) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::transform(ids.begin(), ids.end(), verdicts.begin(),
                 [&](const ClientOperation& id) { return insert(id); });
}

void ClientWindow::test_and_insert(std::span<const ClientOperation> ids,
                                   std::span<Verdict> verdicts) {
  SEMEL_ASSERT(ids.size() == verdicts.size());
  std::transform(ids.begin(), ids.end(), verdicts.begin(),
                 [&](const ClientOperation& id) { return test_and_insert(id); });
}

// All clients that have not left, ascending, without what has left the window.
std::vector<std::pair<Digest, ClientWindow::Client>> ClientWindow::remembered() const {
  std::vector<std::pair<Digest, Client>> all;
  all.reserve(clients_.size());
  for (const auto& [digest, client] : clients_) {
    const std::size_t dead = dead_marks(client);
    if (dead == client.marks.size()) continue;
    all.emplace_back(digest, client).second.forget(dead);
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
  return all;
}

Result<void> ClientWindow::merge(const ClientWindow& other) {
  if (goal_ != other.goal_) return Error{Errc::mismatch, "client windows of different goals"};
  if (now() != other.now()) return Error{Errc::mismatch, "client windows at different times"};
  ClientWindow both = *this;
  while (both.clear_one()) {
  }
  both.time_.keep_from(other.time_.kept_from());
  for (const auto& [digest, client] : other.remembered()) {
    for (const Mark& mark : client.marks) {
      SequenceSet& sequences = both.mark_of(digest, mark.generation).sequences;
      both.bytes_ -= sequences.bytes();
      sequences.insert(mark.sequences);
      both.bytes_ += sequences.bytes();
    }
    std::optional<std::uint64_t>& forgotten = both.clients_.find(digest)->second.forgotten;
    forgotten = std::max(forgotten, client.forgotten);  // nothing is less than anything
  }
  if (both.bytes_ > goal_.max_bytes) return Error{Errc::full, "no room for both client windows"};
  *this = std::move(both);
  return {};
}

// Without what has left the window.
void ClientWindow::encode_client(const Client& client, Writer& out) const {
  const std::size_t dead = dead_marks(client);
  const std::optional<std::uint64_t> forgotten = forgotten_of(client, dead);
  out.u64(forgotten.value_or(0));
  out.u8(forgotten.has_value() ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(client.marks.size() - dead));
  for (const Mark& mark : std::span(client.marks).subspan(dead)) {
    out.u64(static_cast<std::uint64_t>(mark.generation));
    out.u64(mark.sequences.pieces().size());
    for (const SequenceSet::Piece& piece : mark.sequences.pieces()) {
      out.u64(piece.head);
      out.u64(piece.body);
    }
  }
}

void ClientWindow::encode(Sink out) const {
  Seal seal(out);
  const auto here = [&](const Client& client) { return dead_marks(client) < client.marks.size(); };
  std::uint64_t clients = 0, size = 0;
  for (const auto& [digest, client] : clients_) {
    if (!here(client)) continue;
    ++clients;
    size += kClientHeader;
    for (const Mark& mark : std::span(client.marks).subspan(dead_marks(client))) {
      size += kMarkHeader + mark.sequences.pieces().size() * kPieceSize;
    }
  }
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(goal_.hash.kind));
  w.u8(static_cast<std::uint8_t>(goal_.when_full));
  w.u16(static_cast<std::uint16_t>(goal_.generations));
  w.u64(static_cast<std::uint64_t>(goal_.window_ms));
  w.u64(goal_.max_bytes);
  w.u64(goal_.hash.seed);
  w.u64(static_cast<std::uint64_t>(now()));
  w.u64(static_cast<std::uint64_t>(time_.kept_from()));
  w.u64(clients);
  if (!out.only_measures(size)) {
    for_each_in_order(clients_, here, [&](Digest digest, const Client& client) {
      w.u64(digest.lo);
      w.u64(digest.hi);
      encode_client(client, w);
    });
  }
  seal.close();
}

// Reads the marks of one client. False if they are none that a client has.
bool ClientWindow::decode_marks(Reader& r, Digest client, std::uint64_t marks) {
  const auto rest = [&] { return r.rest() - kTrailerSize; };
  if (marks == 0 || marks > rest() / (kMarkHeader + kPieceSize)) return false;
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < marks; ++i) {
    if (rest() < kMarkHeader) return false;
    const auto generation = static_cast<std::int64_t>(r.u64());
    const std::uint64_t pieces = r.u64();
    const bool ascends = i == 0 ? generation >= time_.oldest_alive() : generation > last;
    if (!ascends || generation > time_.newest()) return false;
    last = generation;
    // Length before allocation: until here the number of pieces is only a claim.
    if (pieces == 0 || pieces > rest() / kPieceSize) return false;
    SequenceSet& sequences = mark_of(client, generation).sequences;
    sequences.reserve(pieces);
    for (std::uint64_t n = 0; n < pieces; ++n) {
      const std::uint64_t head = r.u64();
      if (!sequences.append({head, r.u64()})) return false;
    }
    bytes_ += sequences.bytes();
  }
  return true;
}

Result<ClientWindow> ClientWindow::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  Goal goal{};
  goal.hash.kind = static_cast<HashKind>(r.u8());
  goal.when_full = static_cast<WhenFull>(r.u8());
  goal.generations = r.u16();
  goal.window_ms = static_cast<TimeMs>(r.u64());
  goal.max_bytes = r.u64();
  goal.hash.seed = r.u64();
  const auto now_ms = static_cast<TimeMs>(r.u64());
  const auto kept_from_ms = static_cast<TimeMs>(r.u64());
  const std::uint64_t clients = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "client window: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "client window: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "client window: checksum"};
  }
  if (!check(goal)) return Error{Errc::corrupt, "client window: goal"};
  if (kept_from_ms > now_ms && kept_from_ms - 1 > now_ms) {
    return Error{Errc::corrupt, "client window: kept from a time to come"};
  }

  ClientWindow window(goal, now_ms);
  window.time_.keep_from(kept_from_ms);
  Digest last{};
  for (std::uint64_t i = 0; i < clients; ++i) {
    if (r.rest() < kClientHeader + kTrailerSize) {
      return Error{Errc::corrupt, "client window: number of clients"};
    }
    const std::uint64_t lo = r.u64();
    const Digest client{lo, r.u64()};
    if (i > 0 && !comes_before(last, client)) {
      return Error{Errc::corrupt, "client window: order of clients"};
    }
    last = client;
    const std::uint64_t forgotten = r.u64();
    const std::uint8_t forgot = r.u8();
    if (forgot > 1 || (forgot == 0 && forgotten != 0)) {
      return Error{Errc::corrupt, "client window: sequence forgotten"};
    }
    if (!window.decode_marks(r, client, r.u8())) {
      return Error{Errc::corrupt, "client window: marks of a client"};
    }
    if (forgot == 1) window.clients_.find(client)->second.forgotten = forgotten;
  }
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "client window: size"};
  if (window.bytes_ > goal.max_bytes) return Error{Errc::corrupt, "client window: beyond its cap"};
  return window;
}

bool ClientWindow::operator==(const ClientWindow& other) const {
  return goal_ == other.goal_ && now() == other.now() &&
         time_.kept_from() == other.time_.kept_from() && remembered() == other.remembered();
}

}  // namespace semel
