#include "semel/tally/internal/recogniser.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cmath>
#include <new>
#include <utility>

#include "semel/core/arithmetic.h"
#include "semel/core/assert.h"
#include "semel/core/error_rate.h"
#include "semel/hash/hasher.h"
#include "semel/hash/seal.h"

namespace semel::tally {
namespace {

// docs/formats/tally_recogniser_v1.md. All integers little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "STR1"; a new layout takes a new magic
//         4        1  kind: 0 clients, 1 filter, 2 exact
//         5        1  when full: 0 refuse, 1 forget
//         6        1  kind of hash: 0 fast, 1 keyed
//         7        1  windows
//         8        8  window
//        16        8  error, an IEEE 754 double
//        24        8  ids expected in a window
//        32        8  most bytes of memory
//        40        8  seed of the hash, or name of its key
//        48        8  under-count, an IEEE 754 double
//        56        8  unsettled ids
//        64           windows, each its size (8) and its bytes
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31525453;
constexpr std::size_t kTrailerSize = 8;
constexpr std::uint64_t kMostIds = std::uint64_t{1} << 38;

// FROZEN: seeds of digests that are made of digests.
constexpr std::uint64_t kNumberedSeed = 0x005245424d554e53;
constexpr std::uint64_t kContentSeed = 0x544e45544e4f4353;

// A filter for so many is made of small blocks (limits::kSmallBlock), whatever the error.
constexpr std::uint64_t kFewIds = 4096;

// How many ids are handed to a window at once: many more than it looks ahead, and all on the stack.
constexpr std::size_t kBatch = 256;

// Marks that tell whether an id of a batch may have come before in it: of 256 new ones 8 on
// average.
constexpr std::size_t kMarks = 4096;

using Kind = Recogniser::Kind;

Result<void> check(const Recogniser::Goal& goal) {
  if (goal.kind > Kind::exact || goal.when_full > WhenFull::forget || !goal.hash.valid()) {
    return Error{Errc::invalid, "a recogniser of unknown kind, policy or hash"};
  }
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (!is_error_rate(goal.fpr)) return kErrorRateRefused;
  if (goal.ids == 0) return Error{Errc::invalid, "a recogniser needs room for one id"};
  if (goal.max_bytes < Recogniser::kLeastBytes) {
    return Error{Errc::invalid, "a recogniser needs 8192 bytes"};
  }
  if (goal.ids > kMostIds) return Error{Errc::limit, "a recogniser of more than 2^38 ids"};
  return {};
}

// Of two windows each has half.
std::uint64_t share(const Recogniser::Goal& goal) {
  return goal.kind == Kind::clients && goal.max_bytes != kNoCap ? goal.max_bytes / 2
                                                                : goal.max_bytes;
}

ClientWindow::Goal goal_of_clients(const Recogniser::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .generations = 4,
          .max_bytes = share(goal),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

// Four lines for an id: at 1e-6 a seventh less memory than three, in the same time. Anywhere (plain)
// they would take a sixth less still, and an addition up to 0.2 us more. A little room to spare: a
// load that is not quite even would soon need a second table.
ForgetfulFilter::Goal goal_of_filter(const Recogniser::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .fpr = goal.fpr,
          .ids = goal.ids + goal.ids / 32,
          .past_lanes = 7,
          .layout = BloomLayout::blocked4,
          .max_bytes = share(goal),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

// Three quarters of the error are for the first table, if it is large: more is not expected then.
// A small one, which a larger one may well follow, leaves as much for that.
Result<ForgetfulFilter> make_filter(const Recogniser::Goal& goal, TimeMs now_ms) {
  constexpr std::uint64_t kLarge = 1 << 18;
  return ForgetfulFilter::make(goal_of_filter(goal), now_ms, goal.ids < kLarge ? 0.25 : 0.75);
}

// Whether the filter is of this goal. It may have had more room to spare, up to an eighth.
bool agrees(const ForgetfulFilter& filter, const Recogniser::Goal& goal) {
  ForgetfulFilter::Goal wanted = goal_of_filter(goal);
  const std::uint64_t ids = filter.goal().ids;
  if (ids < wanted.ids || ids > goal.ids + goal.ids / 8) return false;
  wanted.ids = ids;
  return filter.goal() == wanted;
}

ExactWindow::Goal goal_of_exact(const Recogniser::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .ids = 2 * goal.ids,
          .generations = 4,
          .max_bytes = share(goal),
          .when_full = goal.when_full,
          .hash = goal.hash};
}

// REQUIRES: there is an id.
Digest digest_of(const OperationId& id) {
  if (id.kind == OperationId::Kind::opaque) return id.digest;
  return Hasher::fast(kNumberedSeed).of_numbers(id.digest.lo, id.digest.hi, id.sequence);
}

Digest content_of(Digest id, Digest content) {
  return Hasher::fast(kContentSeed).of_numbers(id.lo, id.hi, content.lo, content.hi);
}

constexpr Recognised recognised(Verdict verdict) { return static_cast<Recognised>(verdict); }
static_assert(recognised(Verdict::fresh) == Recognised::fresh);
static_assert(recognised(Verdict::duplicate) == Recognised::duplicate);
static_assert(recognised(Verdict::stale) == Recognised::stale);
static_assert(recognised(Verdict::full) == Recognised::full);

// Whether it was not taken for a retry, and might have been.
constexpr bool is_new(Recognised answer) {
  return answer == Recognised::fresh || answer == Recognised::full;
}

// Of an insert, which remembers what it knew already too.
constexpr Recognised remembered(Verdict verdict) {
  return verdict == Verdict::duplicate ? Recognised::fresh : recognised(verdict);
}

// Those ids of a batch that one window judges, and their places in the batch.
template <class Id>
class Part {
 public:
  void add(const Id& id, std::size_t place) {
    ids_[size_] = id;
    places_[size_++] = static_cast<std::uint16_t>(place);
  }
  bool empty() const { return size_ == 0; }

  // judge(ids, verdicts) judges them all. How many are new.
  template <class Judge>
  std::uint64_t judge(std::span<Recognised> answers, Judge judge) {
    std::array<Verdict, kBatch> verdicts;
    judge(std::span<const Id>(ids_).first(size_), std::span(verdicts).first(size_));
    std::uint64_t new_ones = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      answers[places_[i]] = recognised(verdicts[i]);
      new_ones += is_new(answers[places_[i]]);
    }
    return new_ones;
  }
  void answer(std::span<Recognised> answers, Recognised answer) const {
    for (std::size_t i = 0; i < size_; ++i) answers[places_[i]] = answer;
  }

 private:
  std::array<Id, kBatch> ids_;
  std::array<std::uint16_t, kBatch> places_;
  std::size_t size_ = 0;
};

// A batch by the windows that judge it. Those without an id are fresh, and answered here.
struct Split {
  Split(std::span<const Recogniser::Query> queries, std::span<Recognised> answers,
        bool clients_apart) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const OperationId& id = queries[i].id;
      if (id.kind == OperationId::Kind::none) {
        answers[i] = Recognised::fresh;
      } else if (clients_apart && id.kind == OperationId::Kind::numbered) {
        numbered.add({id.digest, id.sequence}, i);
      } else {
        others.add(digest_of(id), i);
      }
    }
  }

  Part<ClientOperation> numbered;
  Part<Digest> others;
};

// The digests of a batch for an exact window: of each operation its id, then its content.
class Pairs {
 public:
  explicit Pairs(std::span<const Recogniser::Query> queries) {
    for (const Recogniser::Query& query : queries) {
      if (query.id.kind == OperationId::Kind::none) continue;
      const Digest id = digest_of(query.id);
      digests_[size_++] = id;
      digests_[size_++] = content_of(id, query.content);
    }
  }
  std::span<const Digest> digests() const { return std::span(digests_).first(size_); }

 private:
  std::array<Digest, 2 * kBatch> digests_;
  std::size_t size_ = 0;
};

Recognised judged(Verdict id, Verdict content) {
  if (id != Verdict::duplicate) return recognised(id);
  return content == Verdict::duplicate ? Recognised::duplicate : Recognised::conflict;
}

// Calls visit(queries, answers) for a batch after the other, each of up to most() queries.
template <class Most, class Visit>
void for_each_batch(std::span<const Recogniser::Query> queries, std::span<Recognised> answers,
                    Most most, Visit visit) {
  SEMEL_ASSERT(queries.size() == answers.size());
  for (std::size_t first = 0, size = 0; first < queries.size(); first += size) {
    size = std::min({kBatch, most(), queries.size() - first});
    visit(queries.subspan(first, size), answers.subspan(first, size));
  }
}

template <class W>
Result<void> put(std::optional<W>& place, Result<W> window) {
  if (!window) return window.error();
  place = *std::move(window);
  return {};
}

}  // namespace

Result<Recogniser> Recogniser::make(const Goal& goal, TimeMs now_ms) {
  if (const Result<void> sound = check(goal); !sound) return sound.error();
  Recogniser made(goal);
  Result<void> done;
  if (goal.kind == Kind::exact) {
    done = put(made.exact_, ExactWindow::make(goal_of_exact(goal), now_ms));
  } else {
    done = put(made.filter_, make_filter(goal, now_ms));
  }
  if (done && goal.kind == Kind::clients) {
    made.filter_.reset();  // it can be made: that is all there is to know before an opaque id comes
    done = put(made.clients_, ClientWindow::make(goal_of_clients(goal), now_ms));
  }
  if (!done) return done.error();
  return made;
}

template <class Visit>
void Recogniser::for_each_window(Visit visit) const {
  if (clients_) visit(*clients_);
  if (filter_) visit(*filter_);
  if (exact_) visit(*exact_);
}

// The filter, to be written to. None if it cannot be made, which make() does not let through, but
// bytes may ask for.
ForgetfulFilter* Recogniser::filter() {
  if (!filter_ && !put(filter_, make_filter(goal_, now()))) return nullptr;
  return &*filter_;
}

Recognised Recogniser::test_exact(Digest id, Digest content, TimeMs now_ms) const {
  if (exact_->test(id, now_ms) != Verdict::duplicate) return Recognised::fresh;
  return judged(Verdict::duplicate, exact_->test(content, now_ms));
}

// The content goes first: one without its id is no harm, an id without its content would be a
// conflict with its own retry.
Recognised Recogniser::take_exact(Digest id, Digest content) {
  const Recognised known = test_exact(id, content, now());
  return known == Recognised::fresh ? take_new_exact(id, content) : known;
}

// What is refused leaves nothing behind.
Recognised Recogniser::take_new_exact(Digest id, Digest content) {
  if (goal_.when_full == WhenFull::refuse && !exact_->has_room(2, now())) {
    ++refused_;
    return Recognised::full;
  }
  return remember_exact(id, content, now());
}

// A look at all of them first, for their misses of the cache to overlap. It still holds for an id
// when its turn comes, unless another of the batch may be the same or something was forgotten
// meanwhile.
void Recogniser::take_exact(std::span<const Query> queries, std::span<Recognised> answers) {
  const Pairs pairs(queries);
  std::array<Verdict, 2 * kBatch> verdicts;
  exact_->test(pairs.digests(), std::span(verdicts).first(pairs.digests().size()));
  const std::uint64_t forgotten = exact_->counts().forgotten_early;
  std::bitset<kMarks> met;
  std::size_t at = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (queries[i].id.kind == OperationId::Kind::none) {
      answers[i] = Recognised::fresh;
      continue;
    }
    const Digest id = pairs.digests()[at], content = pairs.digests()[at + 1];
    const Recognised seen = judged(verdicts[at], verdicts[at + 1]);
    at += 2;
    auto mark = met[id.hi % kMarks];
    if (mark || exact_->counts().forgotten_early != forgotten) {
      answers[i] = take_exact(id, content);
    } else {
      answers[i] = seen == Recognised::fresh ? take_new_exact(id, content) : seen;
    }
    mark = true;
  }
}

Recognised Recogniser::remember_exact(Digest id, Digest content, TimeMs at_ms) {
  // An insert looks twice for what is new, which most is.
  const auto remember = [&](Digest digest) {
    const Verdict verdict = exact_->test_and_insert(digest, at_ms);
    if (verdict != Verdict::duplicate) return recognised(verdict);
    return exact_->insert(digest, at_ms) == Verdict::full ? Recognised::full : Recognised::fresh;
  };
  const bool known = exact_->test(content) == Verdict::duplicate;
  Recognised answer = remember(content);
  if (answer != Recognised::fresh) return answer;
  try {
    answer = remember(id);
  } catch (const std::bad_alloc&) {
    if (!known) exact_->take_back(content, at_ms);
    throw;
  }
  if (answer == Recognised::fresh && goal_.when_full == WhenFull::forget) {
    (void)remember(content);  // it may be what made room for the id
  }
  return answer;
}

Recognised Recogniser::test(const Query& query, TimeMs now_ms) const {
  if (query.id.kind == OperationId::Kind::none) return Recognised::fresh;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return recognised(clients_->test({query.id.digest, query.id.sequence}, now_ms));
  }
  const Digest id = digest_of(query.id);
  if (exact_) return test_exact(id, content_of(id, query.content), now_ms);
  return filter_ ? recognised(filter_->test(id, now_ms)) : Recognised::fresh;
}

Recognised Recogniser::test_and_insert(const Query& query) {
  if (query.id.kind == OperationId::Kind::none) return Recognised::fresh;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return recognised(clients_->test_and_insert({query.id.digest, query.id.sequence}));
  }
  const Digest id = digest_of(query.id);
  if (exact_) return take_exact(id, content_of(id, query.content));
  ForgetfulFilter* const window = filter();
  if (window == nullptr) return Recognised::full;
  const Recognised answer = recognised(window->test_and_insert(id));
  if (is_new(answer)) count_new(1);
  return answer;
}

void Recogniser::touch(const OperationId& id) const {
  if (filter_ && id.kind == OperationId::Kind::opaque) filter_->touch(id.digest);
}

Recognised Recogniser::insert(const Query& query, TimeMs at_ms) {
  if (query.id.kind == OperationId::Kind::none) return Recognised::fresh;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return remembered(clients_->insert({query.id.digest, query.id.sequence}, at_ms));
  }
  const Digest id = digest_of(query.id);
  if (exact_) return remember_exact(id, content_of(id, query.content), at_ms);
  ForgetfulFilter* const window = filter();
  return window == nullptr ? Recognised::full : remembered(window->insert(id, at_ms));
}

void Recogniser::set_max_bytes(std::uint64_t of_each_window) {
  if (clients_) clients_->set_max_bytes(of_each_window);
  if (filter_) filter_->set_max_bytes(of_each_window);
  if (exact_) exact_->set_max_bytes(of_each_window);
}

Recognised Recogniser::recall(const Query& query, TimeMs at_ms) {
  Recognised answer = insert(query, at_ms);
  if (answer != Recognised::full) return answer;
  set_max_bytes(kNoCap);
  answer = insert(query, at_ms);
  set_max_bytes(share(goal_));
  if (answer == Recognised::fresh) ++beyond_cap_;
  return answer;
}

void Recogniser::test(std::span<const Query> queries, std::span<Recognised> answers) const {
  for_each_batch(
      queries, answers, [] { return kBatch; },
      [&](auto some, auto said) {
        if (exact_) {
          const Pairs pairs(some);
          std::array<Verdict, 2 * kBatch> verdicts;
          exact_->test(pairs.digests(), std::span(verdicts).first(pairs.digests().size()));
          const Verdict* verdict = verdicts.data();
          for (std::size_t i = 0; i < some.size(); ++i) {
            const bool none = some[i].id.kind == OperationId::Kind::none;
            said[i] = none ? Recognised::fresh : judged(verdict[0], verdict[1]);
            if (!none) verdict += 2;
          }
          return;
        }
        Split split(some, said, clients_.has_value());
        const auto judge = [](const auto& window) {
          return [&](auto ids, auto verdicts) { window.test(ids, verdicts); };
        };
        if (clients_) split.numbered.judge(said, judge(*clients_));
        if (filter_) {
          split.others.judge(said, judge(*filter_));
        } else {
          split.others.answer(said, Recognised::fresh);
        }
      });
}

void Recogniser::test_and_insert(std::span<const Query> queries, std::span<Recognised> answers) {
  // No batch goes beyond the id with which the under-count is settled: that is so one by one.
  const auto unsettled = [&] { return kSettled - unsettled_; };
  for_each_batch(queries, answers, unsettled, [&](auto some, auto said) {
    if (exact_) {
      take_exact(some, said);
      return;
    }
    Split split(some, said, clients_.has_value());
    const auto judge = [](auto& window) {
      return [&](auto ids, auto verdicts) { window.test_and_insert(ids, verdicts); };
    };
    if (clients_) split.numbered.judge(said, judge(*clients_));
    if (split.others.empty()) return;
    if (ForgetfulFilter* const window = filter()) {
      count_new(split.others.judge(said, judge(*window)));
    } else {
      split.others.answer(said, Recognised::full);
    }
  });
}

namespace {

// How many new ids were taken for retries, for each that was not.
double lost_for_each(double rate) { return rate / std::max(1 - rate, 0x1p-53); }

}  // namespace

// A rate takes some microseconds.
void Recogniser::count_new(std::uint64_t ids) {
  unsettled_ += ids;
  if (unsettled_ < kSettled) return;
  undercount_ = expected_undercount();
  unsettled_ = 0;
}

double Recogniser::expected_undercount() const {
  if (unsettled_ == 0) return undercount_;
  return undercount_ + static_cast<double>(unsettled_) * lost_for_each(false_positive_rate());
}

bool Recogniser::takes(std::uint64_t ids) const {
  if (exact_) return exact_->takes(2 * ids);
  if (clients_ && !clients_->takes(ids)) return false;
  return filter_ ? filter_->takes(ids) : clients_.has_value() && goal_.ids < kFewIds;
}

void Recogniser::advance(TimeMs now_ms) {
  if (clients_) clients_->advance(now_ms);
  if (filter_) filter_->advance(now_ms);
  if (exact_) exact_->advance(now_ms);
}

TimeMs Recogniser::now() const {
  if (clients_) return clients_->now();
  return filter_ ? filter_->now() : exact_->now();
}

Promise Recogniser::promise() const {
  std::optional<Promise> weakest;
  for_each_window([&](const auto& window) {
    const Promise promise = window.promise();
    if (!weakest) weakest = promise;
    weakest->kept_from_ms = std::max(weakest->kept_from_ms, promise.kept_from_ms);
    weakest->forgotten_before_ms =
        std::min(weakest->forgotten_before_ms, promise.forgotten_before_ms);
  });
  return *weakest;
}

WindowCounts Recogniser::counts() const {
  WindowCounts sum{.refused = refused_};
  for_each_window([&](const auto& window) {
    const WindowCounts counts = window.counts();
    sum.backward_steps = std::max(sum.backward_steps, counts.backward_steps);  // the same steps
    sum.refused += counts.refused;
    sum.stale += counts.stale;
    sum.forgotten_early += counts.forgotten_early;
  });
  sum.refused -= beyond_cap_;
  if (exact_) sum.forgotten_early = divide_up(sum.forgotten_early, 2);  // an id and a content each
  return sum;
}

double Recogniser::false_positive_rate() const {
  return filter_ ? filter_->false_positive_rate() : 0;
}

std::uint64_t Recogniser::bytes() const {
  std::uint64_t sum = 0;
  for_each_window([&](const auto& window) { sum += window.bytes(); });
  return sum;
}

namespace {

// The others do not encode their counts.
void encode_state(const ForgetfulFilter& filter, Sink out) { filter.encode_state(out); }
void encode_state(const auto& window, Sink out) { window.encode(out); }

}  // namespace

void Recogniser::encode(Sink out) const {
  Seal seal(out);
  std::uint8_t windows = 0;
  for_each_window([&](const auto&) { ++windows; });
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(goal_.kind));
  w.u8(static_cast<std::uint8_t>(goal_.when_full));
  w.u8(static_cast<std::uint8_t>(goal_.hash.kind));
  w.u8(windows);
  w.u64(static_cast<std::uint64_t>(goal_.window_ms));
  w.u64(std::bit_cast<std::uint64_t>(goal_.fpr));
  w.u64(goal_.ids);
  w.u64(goal_.max_bytes);
  w.u64(goal_.hash.seed);
  w.u64(std::bit_cast<std::uint64_t>(undercount_));
  w.u64(unsettled_);
  for_each_window([&](const auto& window) {
    w.u64(measured([&](Sink size) { encode_state(window, size); }));
    encode_state(window, out);
  });
  seal.close();
}

// The window at this place of the bytes. Behind a sound checksum, one that ends too early is as
// corrupt as any other.
Result<void> Recogniser::decode_window(ByteView in, std::size_t place) {
  Result<void> read;
  if (goal_.kind == Kind::exact) {
    read = put(exact_, ExactWindow::decode(in));
  } else if (goal_.kind == Kind::clients && place == 0) {
    read = put(clients_, ClientWindow::decode(in));
  } else {
    read = put(filter_, ForgetfulFilter::decode(in));
  }
  if (!read) return Error{Errc::corrupt, read.error().what};
  const bool agreed = (!exact_ || exact_->goal() == goal_of_exact(goal_)) &&
                      (!clients_ || clients_->goal() == goal_of_clients(goal_)) &&
                      (!filter_ || agrees(*filter_, goal_));
  if (!agreed) return Error{Errc::corrupt, "recogniser: a window of another goal"};
  return {};
}

Result<Recogniser> Recogniser::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  Goal goal{};
  goal.kind = static_cast<Kind>(r.u8());
  goal.when_full = static_cast<WhenFull>(r.u8());
  goal.hash.kind = static_cast<HashKind>(r.u8());
  const std::size_t windows = r.u8();
  goal.window_ms = static_cast<TimeMs>(r.u64());
  goal.fpr = std::bit_cast<double>(r.u64());
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  goal.hash.seed = r.u64();
  const auto undercount = std::bit_cast<double>(r.u64());
  const std::uint64_t unsettled = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "recogniser: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "recogniser: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "recogniser: checksum"};
  }
  if (!check(goal)) return Error{Errc::corrupt, "recogniser: goal"};
  if (windows == 0 || windows > (goal.kind == Kind::clients ? 2 : 1)) {
    return Error{Errc::corrupt, "recogniser: number of windows"};
  }
  Recogniser read(goal);
  for (std::size_t i = 0; i < windows; ++i) {
    const std::uint64_t size = r.u64();
    if (!r.ok() || r.rest() < kTrailerSize || size > r.rest() - kTrailerSize) {
      return Error{Errc::corrupt, "recogniser: size of a window"};
    }
    if (const auto sound = read.decode_window(r.view(size), i); !sound) return sound.error();
  }
  if (r.rest() != kTrailerSize) return Error{Errc::corrupt, "recogniser: size"};
  if (read.clients_ && read.filter_ && read.clients_->now() != read.filter_->now()) {
    return Error{Errc::corrupt, "recogniser: two times"};
  }
  const bool counted = std::isfinite(undercount) && !std::signbit(undercount);
  const bool empty = undercount == 0 && unsettled == 0;
  if (!counted || unsettled >= kSettled || (!read.filter_ && !empty)) {
    return Error{Errc::corrupt, "recogniser: under-count"};
  }
  read.undercount_ = undercount;
  read.unsettled_ = unsettled;
  return read;
}

bool Recogniser::operator==(const Recogniser& other) const {
  return goal_ == other.goal_ && clients_ == other.clients_ && filter_ == other.filter_ &&
         exact_ == other.exact_;
}

}  // namespace semel::tally
