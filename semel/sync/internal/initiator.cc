#include "semel/sync/internal/initiator.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"
#include "semel/sync/internal/estimator.h"
#include "semel/sync/internal/repair.h"
#include "semel/sync/internal/search.h"
#include "semel/sync/internal/session.h"

namespace semel::sync_internal {

class Initiator::Body {
 public:
  Body(IndexedStore& index, SyncSettings settings);

  std::vector<ByteView> outstanding() const { return s_.exchange.outstanding(); }
  Result<void> receive(ByteView bytes);

  bool done() const { return state_ == State::done; }
  bool failed() const { return state_ == State::failed; }
  const Error& error() const { return error_; }
  void cancel();
  SyncReport report() const;
  SyncProgress progress() const;

 private:
  enum class State : std::uint8_t { working, done, failed };

  Result<void> begin_stretch();
  Result<bool> cut_stretch();
  Result<void> begin_pass();
  Result<void> begin_round() { return s_.exchange.begin_round({s_.stretch, s_.salt}); }
  Result<void> end_round();
  Result<void> end_pass();
  Result<void> answered(AskContext& context, Reader in);
  Result<void> estimated(const Estimator::Answer& total);
  void count_stretch();
  std::uint64_t only_theirs_without_keys();
  void count(const KeyTally::Counts& counts);
  void tell_differences() const;
  bool is_last_pass() const { return s_.pass >= s_.settings.limits.most_passes; }
  void finish();
  void fail(const Error& error);

  Session s_;
  Estimator estimator_{s_};
  Repair repair_{s_};
  Search search_{s_, repair_};

  State state_ = State::working;
  Error error_{};
  bool settled_ = false;       // in this pass
  bool last_stretch_ = false;  // the stretch reaches the end of the range
  bool all_proved_ = true;     // of the stretches before
  std::uint64_t records_done_ = 0;
  std::uint64_t range_records_ = 0;
};

Initiator::Body::Body(IndexedStore& index, SyncSettings settings) : s_(index, std::move(settings)) {
  s_.stretch.first = s_.settings.range.first;
  const Result<void> begun = begin_stretch();
  if (!begun) fail(begun.error());
}

void Initiator::Body::finish() {
  state_ = State::done;
  s_.exchange.stop();
}

void Initiator::Body::fail(const Error& error) {
  state_ = State::failed;
  error_ = error;
  s_.exchange.stop();
}

Result<void> Initiator::Body::begin_stretch() {
  if (s_.settings.range.empty()) return Error{Errc::invalid, "sync: the range is empty"};
  s_.pass = 0;
  s_.stretch.end = s_.settings.range.end;
  last_stretch_ = true;
  return begin_pass();
}

// Shortens the stretch if more differs than memory should hold. Its new share of the records is its
// share of the difference, as far as containers allow. Returns true if it did.
Result<bool> Initiator::Body::cut_stretch() {
  const auto most = static_cast<double>(s_.settings.limits.stretch_records);
  if (search_.looked_for() <= most) return false;
  const auto records =
      static_cast<std::uint64_t>(static_cast<double>(s_.here.count) * most / search_.looked_for());
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  BitPath node;
  std::uint64_t before = 0;
  while (const std::optional<BitPath> at = view.branch(node)) {
    BitPath left = *at;
    left.push(false);
    const Aggregate sum = SEMEL_TRY(view.sum(left));
    const bool fits = before + sum.count <= records;
    if (fits) before += sum.count;
    node = *at;
    node.push(fits);
  }
  const KeyRange container = node.range();
  const std::optional<std::string> end = before > 0 ? container.first : container.end;
  if (!end || *end <= s_.stretch.first || (s_.stretch.end && *end >= *s_.stretch.end)) return false;
  s_.stretch.end = end;
  last_stretch_ = false;
  return true;
}

Result<void> Initiator::Body::begin_pass() {
  ++s_.pass;
  s_.salt = static_cast<std::uint16_t>(s_.salts());
  repair_.begin_pass();
  settled_ = false;
  SEMEL_TRY(estimator_.begin());
  return begin_round();
}

Result<void> Initiator::Body::end_round() {
  repair_.flush_ours();
  if (!s_.exchange.asks() && !settled_) {
    settled_ = true;
    // A decision from the absence of a record waits for the proof that nothing was missed.
    if (s_.findings.explained() || is_last_pass()) {
      SEMEL_TRY(repair_.settle());
    }
  }
  return s_.exchange.asks() ? begin_round() : end_pass();
}

Result<void> Initiator::Body::end_pass() {
  const bool proved = s_.findings.explained();
  ++s_.report.passes;
  if (!proved && !is_last_pass() && s_.settings.purpose != SyncPurpose::plan) return begin_pass();
  count_stretch();
  all_proved_ = all_proved_ && proved;
  records_done_ += s_.here.count;
  if (last_stretch_) {
    s_.report.proved = all_proved_;
    finish();
    return {};
  }
  s_.stretch.first = *s_.stretch.end;
  return begin_stretch();
}

// Counts the keys that differed. The last pass has found everything that differed when it began.
// Earlier repairs were noted when they were stored.
void Initiator::Body::count_stretch() {
  for (const Findings::Ours& one : s_.findings.ours()) {
    s_.tally.note(KeyTally::hash(one.key), KeyTally::here);
  }
  for (const std::uint64_t key : s_.findings.their_keys()) s_.tally.note(key, KeyTally::there);
  count(s_.tally.take());
  s_.report.only_responder += only_theirs_without_keys();
  if (s_.settings.purpose == SyncPurpose::diff && s_.settings.on_difference) tell_differences();
}

// Counts records of the other end that are known only by their digests, except those that met a
// record of ours under their key.
std::uint64_t Initiator::Body::only_theirs_without_keys() {
  const std::uint64_t keyless = s_.findings.theirs_count() - s_.findings.their_keys().size();
  std::vector<std::uint64_t> known = s_.findings.their_keys();
  std::ranges::sort(known);
  const auto met =
      static_cast<std::uint64_t>(std::ranges::count_if(repair_.met_there(), [&](std::uint64_t key) {
        return !std::ranges::binary_search(known, key);
      }));
  return keyless - std::min(keyless, met);
}

void Initiator::Body::count(const KeyTally::Counts& counts) {
  s_.report.only_initiator += counts.only_here;
  s_.report.only_responder += counts.only_there;
  s_.report.changed += counts.changed;
}

void Initiator::Body::tell_differences() const {
  std::vector<std::string_view> keys;
  for (const Findings::Ours& one : s_.findings.ours()) {
    keys.push_back(one.key);
    const bool changes = s_.findings.theirs().contains(one.key);
    s_.settings.on_difference(one.key, changes ? DifferenceSide::both : DifferenceSide::initiator);
  }
  std::ranges::sort(keys);
  for (const auto& [key, one] : s_.findings.theirs()) {
    if (!std::ranges::binary_search(keys, std::string_view(key))) {
      s_.settings.on_difference(key, DifferenceSide::responder);
    }
  }
}

void Initiator::Body::cancel() {
  if (state_ != State::working) return;
  count(s_.tally.take());
  finish();
}

Result<void> Initiator::Body::receive(ByteView bytes) {
  if (state_ != State::working) return Error{Errc::mismatch, "sync: nothing was asked"};
  Exchange::Answer answer = SEMEL_TRY(s_.exchange.take(bytes));
  Result<void> taken;
  if (answer.fatal) taken = *answer.fatal;
  for (auto& [context, body] : answer.parts) {
    if (taken) taken = answered(*context, Reader(body));
  }
  if (taken && s_.exchange.round_done()) taken = end_round();
  if (!taken) fail(taken.error());
  return taken;
}

Result<void> Initiator::Body::answered(AskContext& context, Reader in) {
  if (std::holds_alternative<HelloAsk>(context)) {
    const Estimator::Answer total = SEMEL_TRY(estimator_.hello_answered(in));
    if (s_.pass == 1 && last_stretch_) range_records_ = records_done_ + s_.here.count;
    return estimated(total);
  }
  if (const auto* probe = std::get_if<ProbeAsk>(&context)) {
    return estimated(SEMEL_TRY(estimator_.probe_answered(*probe, in)));
  }
  if (const auto* compare = std::get_if<CompareAsk>(&context)) {
    return search_.compare_answered(*compare, in);
  }
  if (const auto* scan = std::get_if<ScanAsk>(&context)) return search_.scan_answered(*scan, in);
  if (auto* fetch = std::get_if<FetchAsk>(&context)) {
    return repair_.fetch_answered(std::move(*fetch), in);
  }
  return repair_.store_answered(std::get<StoreAsk>(context), in);
}

// Shortens the stretch if too much differs, or begins the search. Does nothing until the difference
// is estimated.
Result<void> Initiator::Body::estimated(const Estimator::Answer& total) {
  if (!total) return {};
  s_.estimate = estimate_of_total(*total, s_.here.count, s_.there.count);
  search_.expect(s_.here == s_.there ? 0 : looked_for(s_.estimate));
  Question question = estimator_.take_question();
  if (s_.pass == 1) {
    if (SEMEL_TRY(cut_stretch())) return estimator_.begin();
    s_.report.initiator += s_.here;
    s_.report.responder += s_.there;
  }
  if (s_.here != s_.there) return search_.find(std::move(question));
  search_.predict({});
  return {};
}

SyncReport Initiator::Body::report() const {
  SyncReport report = s_.report;
  report.bytes_sent = s_.exchange.bytes_sent();
  report.bytes_received = s_.exchange.bytes_received();
  report.first_bytes = s_.exchange.first_bytes();
  report.round_trips = s_.exchange.rounds();
  report.resume_from = s_.stretch.first;
  return report;
}

SyncProgress Initiator::Body::progress() const {
  SyncProgress progress;
  progress.records_done = records_done_;
  progress.records = std::max(range_records_, records_done_);
  progress.differences = static_cast<std::uint64_t>(s_.estimate.total.value);
  progress.found = s_.findings.ours().size() + s_.findings.theirs_count();
  progress.repaired = repair_.repaired();
  const double share = progress.differences == 0
                           ? 0
                           : std::min(1.0, static_cast<double>(progress.found) /
                                               static_cast<double>(progress.differences));
  progress.seconds_left = search_.predicted().seconds.value * (1 - share);
  progress.resume_from = s_.stretch.first;
  return progress;
}

Initiator::Initiator(IndexedStore& index, SyncSettings settings)
    : body_(std::make_unique<Body>(index, std::move(settings))) {}
Initiator::~Initiator() = default;
Initiator::Initiator(Initiator&&) noexcept = default;

std::vector<ByteView> Initiator::outstanding() const { return body_->outstanding(); }
Result<void> Initiator::receive(ByteView frame) { return body_->receive(frame); }
bool Initiator::done() const { return body_->done(); }
bool Initiator::failed() const { return body_->failed(); }
const Error& Initiator::error() const {
  SEMEL_ASSERT(failed());
  return body_->error();
}
void Initiator::cancel() { body_->cancel(); }
SyncReport Initiator::report() const { return body_->report(); }
SyncProgress Initiator::progress() const { return body_->progress(); }

}  // namespace semel::sync_internal
