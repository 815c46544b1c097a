#include "semel/tally/internal/recogniser.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <new>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/error_rate.h"
#include "semel/hash/hasher.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/exact_window.h"

namespace semel::tally::internal {
namespace {

constexpr Format kFormat{"REC", 1, "recogniser"};  // docs/formats/tally_recogniser_v1.md
constexpr std::uint64_t kMostIds = std::uint64_t{1} << 38;

// FROZEN: seeds of digests that are computed from digests.
constexpr std::uint64_t kNumberedSeed = 0x005245424d554e53;
constexpr std::uint64_t kContentSeed = 0x544e45544e4f4353;

// A filter for fewer ids than this is made of small blocks (limits::kSmallBlock), whatever its
// error.
constexpr std::uint64_t kFewIds = 4096;

// The number of ids that a window judges at once: many more than it looks ahead, and few enough for
// the stack.
constexpr std::size_t kBatch = 256;

// Marks tell whether an id may have come earlier in the same batch. On average they take 8 of 256
// new ids for known.
constexpr std::size_t kMarks = 4096;

using Kind = Recogniser::Kind;

Result<void> check(const Recogniser::Goal& goal) {
  if (goal.kind > Kind::exact || goal.on_full > OnFull::forget || !goal.hash.valid()) {
    return Error{Errc::invalid, "a recogniser of unknown kind, policy or hash"};
  }
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (!is_error_rate(goal.fpr)) return error_rate_refused();
  if (goal.ids == 0) return Error{Errc::invalid, "a recogniser needs room for one id"};
  if (goal.max_bytes < Recogniser::kLeastBytes) {
    return Error{Errc::invalid, "a recogniser needs 8192 bytes"};
  }
  if (goal.ids > kMostIds) return Error{Errc::limit, "a recogniser of more than 2^38 ids"};
  return {};
}

// Returns the share of max_bytes that each window gets.
std::uint64_t share(const Recogniser::Goal& goal) {
  return goal.kind == Kind::clients && goal.max_bytes != kNoCap ? goal.max_bytes / 2
                                                                : goal.max_bytes;
}

ClientWindow::Goal goal_of_clients(const Recogniser::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .generations = 4,
          .max_bytes = share(goal),
          .on_full = goal.on_full,
          .hash = goal.hash};
}

Window::Goal goal_of_window(const Recogniser::Goal& goal) {
  const bool exact = goal.kind == Kind::exact;
  return {.structure = exact ? Window::Structure::exact : Window::Structure::forgetful,
          .window_ms = goal.window_ms,
          .fpr = exact ? 0 : goal.fpr,
          .ids = exact ? 2 * goal.ids : goal.ids,  // an exact window has contents too
          .max_bytes = share(goal),
          .on_full = goal.on_full,
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

// Returns true if the id was not taken for a retry, but could have been.
constexpr bool is_new(Verdict verdict) {
  return verdict == Verdict::fresh || verdict == Verdict::full;
}

// Returns what a window's verdict on the id means for the operation.
constexpr Outcome outcome_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::fresh:
      return Outcome::applied;
    case Verdict::duplicate:
      return Outcome::duplicate;
    case Verdict::stale:
      return Outcome::stale;
    case Verdict::full:
      break;
  }
  return Outcome::full;
}

// Returns the answer of an insert, which remembers known ids too.
constexpr Outcome remembered(Verdict verdict) {
  return verdict == Verdict::duplicate ? Outcome::applied : outcome_of(verdict);
}

// The ids of a batch that one window judges, and their places in the batch.
template <class Id>
class Part {
 public:
  void add(const Id& id, std::size_t place) {
    ids_[size_] = id;
    places_[size_++] = static_cast<std::uint16_t>(place);
  }
  bool empty() const { return size_ == 0; }

  // Calls judge(ids, verdicts) for all of them. Returns the number of new ids.
  template <class Judge>
  std::uint64_t judge(std::span<Outcome> answers, Judge judge) {
    std::array<Verdict, kBatch> verdicts;
    judge(std::span<const Id>(ids_).first(size_), std::span(verdicts).first(size_));
    std::uint64_t new_ones = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      answers[places_[i]] = outcome_of(verdicts[i]);
      new_ones += is_new(verdicts[i]);
    }
    return new_ones;
  }
  void answer(std::span<Outcome> answers, Outcome answer) const {
    for (std::size_t i = 0; i < size_; ++i) answers[places_[i]] = answer;
  }

 private:
  std::array<Id, kBatch> ids_;
  std::array<std::uint16_t, kBatch> places_;
  std::size_t size_ = 0;
};

// A batch, split by the windows that judge it. Operations without an id are new, and are answered
// here.
struct Split {
  Split(std::span<const Recogniser::Query> queries, std::span<Outcome> answers,
        bool clients_apart) {
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const OperationId& id = queries[i].id;
      if (id.kind == OperationId::Kind::none) {
        answers[i] = Outcome::applied;
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

// The digests of a batch for an exact window: for each operation its id, then its content.
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

Outcome judged(Verdict id, Verdict content) {
  if (id != Verdict::duplicate) return outcome_of(id);
  return content == Verdict::duplicate ? Outcome::duplicate : Outcome::conflict;
}

// Calls visit(queries, answers) for one batch after another, each with up to most() queries.
template <class Most, class Visit>
void for_each_batch(std::span<const Recogniser::Query> queries, std::span<Outcome> answers,
                    Most most, Visit visit) {
  SEMEL_ASSERT(queries.size() == answers.size());
  for (std::size_t first = 0, size = 0; first < queries.size(); first += size) {
    size = std::min({kBatch, most(), queries.size() - first});
    visit(queries.subspan(first, size), answers.subspan(first, size));
  }
}

}  // namespace

Result<Recogniser> Recogniser::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(check(goal));
  Recogniser made(goal);
  made.window_ = SEMEL_TRY(Window::make(goal_of_window(goal), now_ms));
  if (goal.kind == Kind::clients) {
    made.window_.reset();  // it can be made; the first opaque id makes it
    made.clients_ = SEMEL_TRY(ClientWindow::make(goal_of_clients(goal), now_ms));
  }
  return made;
}

template <class Visit>
void Recogniser::for_each_window(Visit visit) const {
  if (clients_) visit(*clients_);
  if (window_) visit(*window_);
}

// Returns the window for opaque ids, for writing; nullptr if it cannot be made. make() rejects such
// a goal, but bytes may have it.
Window* Recogniser::filter() {
  if (!window_) {
    Result<Window> made = Window::make(goal_of_window(goal_), now());
    if (!made) return nullptr;
    window_ = *std::move(made);
  }
  return &*window_;
}

window_internal::ExactWindow* Recogniser::exact() {
  return window_internal::ExactWindow::inside(*window_);
}
const window_internal::ExactWindow* Recogniser::exact() const {
  return window_internal::ExactWindow::inside(*window_);
}

Outcome Recogniser::test_exact(Digest id, Digest content, TimeMs now_ms) const {
  if (exact()->test(id, now_ms) != Verdict::duplicate) return Outcome::applied;
  return judged(Verdict::duplicate, exact()->test(content, now_ms));
}

// The content is inserted first. A content without its id does no harm, but an id without its
// content would make its own retry a conflict.
Outcome Recogniser::take_exact(Digest id, Digest content) {
  const Outcome known = test_exact(id, content, now());
  return known == Outcome::applied ? take_new_exact(id, content) : known;
}

// A refused operation leaves nothing behind.
Outcome Recogniser::take_new_exact(Digest id, Digest content) {
  if (goal_.on_full == OnFull::refuse && !exact()->has_room(2, now())) {
    ++refused_;
    return Outcome::full;
  }
  return remember_exact(id, content, now());
}

// Tests all of them first, so that their cache misses overlap. The answer for an id still holds at
// its turn, unless another id of the batch may be the same or something was forgotten meanwhile.
void Recogniser::take_exact(std::span<const Query> queries, std::span<Outcome> answers) {
  const Pairs pairs(queries);
  std::array<Verdict, 2 * kBatch> verdicts;
  exact()->test(pairs.digests(), std::span(verdicts).first(pairs.digests().size()));
  const std::uint64_t forgotten = exact()->counts().forgotten_early;
  std::bitset<kMarks> met;
  std::size_t at = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    if (queries[i].id.kind == OperationId::Kind::none) {
      answers[i] = Outcome::applied;
      continue;
    }
    const Digest id = pairs.digests()[at], content = pairs.digests()[at + 1];
    const Outcome seen = judged(verdicts[at], verdicts[at + 1]);
    at += 2;
    auto mark = met[id.hi % kMarks];
    if (mark || exact()->counts().forgotten_early != forgotten) {
      answers[i] = take_exact(id, content);
    } else {
      answers[i] = seen == Outcome::applied ? take_new_exact(id, content) : seen;
    }
    mark = true;
  }
}

Outcome Recogniser::remember_exact(Digest id, Digest content, TimeMs at_ms) {
  // insert() looks twice for a new id, and most ids are new.
  const auto remember = [&](Digest digest) {
    const Verdict verdict = exact()->test_and_insert(digest, at_ms);
    if (verdict != Verdict::duplicate) return outcome_of(verdict);
    return exact()->insert(digest, at_ms) == Verdict::full ? Outcome::full : Outcome::applied;
  };
  const bool known = exact()->test(content) == Verdict::duplicate;
  Outcome answer = remember(content);
  if (answer != Outcome::applied) return answer;
  try {
    answer = remember(id);
  } catch (const std::bad_alloc&) {
    if (!known) exact()->take_back(content, at_ms);
    throw;
  }
  if (answer == Outcome::applied && goal_.on_full == OnFull::forget) {
    (void)remember(content);  // it may have been dropped to make room for the id
  }
  return answer;
}

Outcome Recogniser::test(const Query& query, TimeMs now_ms) const {
  if (query.id.kind == OperationId::Kind::none) return Outcome::applied;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return outcome_of(clients_->test({query.id.digest, query.id.sequence}, now_ms));
  }
  const Digest id = digest_of(query.id);
  if (wants_content()) return test_exact(id, content_of(id, query.content), now_ms);
  return window_ ? outcome_of(window_->test(id, now_ms)) : Outcome::applied;
}

Outcome Recogniser::test_and_insert(const Query& query) {
  if (query.id.kind == OperationId::Kind::none) return Outcome::applied;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return outcome_of(clients_->test_and_insert({query.id.digest, query.id.sequence}));
  }
  const Digest id = digest_of(query.id);
  if (wants_content()) return take_exact(id, content_of(id, query.content));
  Window* const window = filter();
  if (window == nullptr) return Outcome::full;
  const Verdict verdict = window->test_and_insert(id);
  if (is_new(verdict)) count_new(1);
  return outcome_of(verdict);
}

void Recogniser::touch(const OperationId& id) const {
  if (window_ && id.kind == OperationId::Kind::opaque) window_->touch(id.digest);
}

Outcome Recogniser::insert(const Query& query, TimeMs at_ms) {
  if (query.id.kind == OperationId::Kind::none) return Outcome::applied;
  if (clients_ && query.id.kind == OperationId::Kind::numbered) {
    return remembered(clients_->insert({query.id.digest, query.id.sequence}, at_ms));
  }
  const Digest id = digest_of(query.id);
  if (wants_content()) return remember_exact(id, content_of(id, query.content), at_ms);
  Window* const window = filter();
  return window == nullptr ? Outcome::full : remembered(window->insert(id, at_ms));
}

void Recogniser::set_max_bytes(std::uint64_t of_each_window) {
  if (clients_) clients_->set_max_bytes(of_each_window);
  if (window_) window_->set_max_bytes(of_each_window);
}

Outcome Recogniser::recall(const Query& query, TimeMs at_ms) {
  Outcome answer = insert(query, at_ms);
  if (answer != Outcome::full) return answer;
  set_max_bytes(kNoCap);
  answer = insert(query, at_ms);
  set_max_bytes(share(goal_));
  if (answer == Outcome::applied) ++beyond_cap_;
  return answer;
}

void Recogniser::test(std::span<const Query> queries, std::span<Outcome> answers) const {
  for_each_batch(
      queries, answers, [] { return kBatch; },
      [&](auto some, auto said) {
        if (wants_content()) {
          const Pairs pairs(some);
          std::array<Verdict, 2 * kBatch> verdicts;
          exact()->test(pairs.digests(), std::span(verdicts).first(pairs.digests().size()));
          const Verdict* verdict = verdicts.data();
          for (std::size_t i = 0; i < some.size(); ++i) {
            const bool none = some[i].id.kind == OperationId::Kind::none;
            said[i] = none ? Outcome::applied : judged(verdict[0], verdict[1]);
            if (!none) verdict += 2;
          }
          return;
        }
        Split split(some, said, clients_.has_value());
        const auto judge = [](const auto& window) {
          return [&](auto ids, auto verdicts) { window.test(ids, verdicts); };
        };
        if (clients_) split.numbered.judge(said, judge(*clients_));
        if (window_) {
          split.others.judge(said, judge(*window_));
        } else {
          split.others.answer(said, Outcome::applied);
        }
      });
}

void Recogniser::test_and_insert(std::span<const Query> queries, std::span<Outcome> answers) {
  // A batch ends at the id that settles the under-count, so it settles as single calls do.
  const auto unsettled = [&] { return kSettled - unsettled_; };
  for_each_batch(queries, answers, unsettled, [&](auto some, auto said) {
    if (wants_content()) {
      take_exact(some, said);
      return;
    }
    Split split(some, said, clients_.has_value());
    const auto judge = [](auto& window) {
      return [&](auto ids, auto verdicts) { window.test_and_insert(ids, verdicts); };
    };
    if (clients_) split.numbered.judge(said, judge(*clients_));
    if (split.others.empty()) return;
    if (Window* const window = filter()) {
      count_new(split.others.judge(said, judge(*window)));
    } else {
      split.others.answer(said, Outcome::full);
    }
  });
}

namespace {

// Returns the number of new ids taken for retries, for each new id that was recognised as new.
double lost_for_each(double rate) { return rate / std::max(1 - rate, 0x1p-53); }

}  // namespace

// Computing a rate takes some microseconds, so it is done rarely.
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
  if (wants_content()) return window_->takes(2 * ids);
  if (clients_ && !clients_->takes(ids)) return false;
  return window_ ? window_->takes(ids) : goal_.ids < kFewIds;
}

void Recogniser::advance(TimeMs now_ms) {
  if (clients_) clients_->advance(now_ms);
  if (window_) window_->advance(now_ms);
}

TimeMs Recogniser::now() const { return clients_ ? clients_->now() : window_->now(); }

WindowPromise Recogniser::promise() const {
  std::optional<WindowPromise> weakest;
  for_each_window([&](const auto& window) {
    const WindowPromise promise = window.promise();
    if (!weakest) weakest = promise;
    weakest->kept_from_ms = std::max(weakest->kept_from_ms, promise.kept_from_ms);
    weakest->forgotten_before_ms =
        std::min(weakest->forgotten_before_ms, promise.forgotten_before_ms);
  });
  return *weakest;
}

WindowCounts Recogniser::counts() const {
  WindowCounts sum{.refused = refused_, .stale = stale_};
  for_each_window([&](const auto& window) {
    const WindowCounts counts = window.counts();
    sum.backward_steps = std::max(sum.backward_steps, counts.backward_steps);  // the same steps
    sum.refused += counts.refused;
    sum.stale += counts.stale;
    sum.forgotten_early += counts.forgotten_early;
  });
  sum.refused -= beyond_cap_;
  if (wants_content())
    sum.forgotten_early = divide_up(sum.forgotten_early, 2);  // an id and a content each
  return sum;
}

double Recogniser::false_positive_rate() const {
  return window_ ? window_->false_positive_rate() : 0;
}

std::uint64_t Recogniser::bytes() const {
  std::uint64_t sum = 0;
  for_each_window([&](const auto& window) { sum += window.bytes(); });
  return sum;
}

void write(Writer& w, const Recogniser::Goal& goal) {
  w.enumeration(goal.kind);
  w.enumeration(goal.on_full);
  write(w, goal.hash);
  w.i64(goal.window_ms);
  w.f64(goal.fpr);
  w.u64(goal.ids);
  w.u64(goal.max_bytes);
}

Recogniser::Goal read_recogniser_goal(Reader& r) {
  Recogniser::Goal goal{};
  goal.kind = r.enumeration(Kind::exact);
  goal.on_full = r.enumeration(OnFull::forget);
  goal.hash = read_hash_id(r);
  goal.window_ms = r.i64();
  goal.fpr = r.f64();
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  return goal;
}

void Recogniser::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, goal_);
    w.f64(undercount_);
    w.u64(unsettled_);
    w.boolean(window_.has_value());
    for_each_window([&](const auto& window) {
      w.u64(encoded_size(window));
      window.encode(w.sink());
    });
  });
}

namespace {

// Reads a window, after its size.
template <class W>
Result<W> read_window(Reader& r) {
  const std::uint64_t size = r.u64();
  if (!r.ok() || size > r.rest()) return corrupt(kFormat, "size of a window");
  return decoded_part(W::decode(r.view(size)));
}

}  // namespace

Result<Recogniser> Recogniser::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  Recogniser read(read_recogniser_goal(r));
  const Goal& goal = read.goal_;
  read.undercount_ = r.f64();
  read.unsettled_ = r.u64();
  const bool has_window = r.boolean();
  if (!r.ok() || !check(goal)) return corrupt(kFormat, "goal");
  if (!has_window && goal.kind != Kind::clients) return corrupt(kFormat, "no window");
  if (goal.kind == Kind::clients) {
    read.clients_ = SEMEL_TRY(read_window<ClientWindow>(r));
    if (read.clients_->goal() != goal_of_clients(goal)) {
      return corrupt(kFormat, "a window of another goal");
    }
  }
  if (has_window) {
    read.window_ = SEMEL_TRY(read_window<Window>(r));
    if (read.window_->goal() != goal_of_window(goal)) {
      return corrupt(kFormat, "a window of another goal");
    }
  }
  if (!r.at_end()) return corrupt(kFormat, "size");
  if (read.clients_ && read.window_ && read.clients_->now() != read.window_->now()) {
    return corrupt(kFormat, "two times");
  }
  const bool counted = std::isfinite(read.undercount_) && !std::signbit(read.undercount_);
  const bool empty = read.undercount_ == 0 && read.unsettled_ == 0;
  const bool errs = read.window_ && goal.kind != Kind::exact;
  if (!counted || read.unsettled_ >= kSettled || (!errs && !empty)) {
    return corrupt(kFormat, "under-count");
  }
  return read;
}

bool Recogniser::operator==(const Recogniser& other) const {
  return goal_ == other.goal_ && clients_ == other.clients_ && window_ == other.window_;
}

}  // namespace semel::tally::internal
