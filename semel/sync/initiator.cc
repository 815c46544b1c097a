#include "semel/sync/initiator.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"
#include "semel/sync/internal/initiator_body.h"

namespace semel {

using frame::Content;

Initiator::Body::Body(IndexedStore& index, SyncSettings settings)
    : index_(index),
      settings_(std::move(settings)),
      salts_(settings_.seed),
      exchange_(frame::key_name(index.secret()), static_cast<std::uint32_t>(salts_()),
                settings_.limits.frame_bytes),
      findings_(keep()) {
  stretch_.first = settings_.range.first;
  const Result<void> begun = begin_stretch();
  if (!begun) fail(begun.error());
}

Content Initiator::Body::content() const {
  if (settings_.purpose == Purpose::diff) return Content::keys;
  if (takes() || calls_back()) return Content::records;
  return removes() ? Content::keys : Content::digest;
}

Findings::Keep Initiator::Body::keep() const {
  if (repairs() && calls_back()) return Findings::Keep::records;
  if (settings_.purpose == Purpose::diff || removes()) return Findings::Keep::keys;
  return Findings::Keep::nothing;
}

std::size_t Initiator::Body::room() const {
  const std::size_t scope = stretch_.first.size() + (stretch_.end ? stretch_.end->size() : 0);
  const std::size_t besides = frame::kHeaderBytes + frame::kChecksumBytes + frame::kPartBytes + 32;
  const std::size_t frame = settings_.limits.frame_bytes;
  return frame > scope + besides ? frame - scope - besides : 0;
}

void Initiator::Body::finish() {
  state_ = State::done;
  exchange_.stop();
}

void Initiator::Body::fail(const Error& error) {
  state_ = State::failed;
  error_ = error;
  exchange_.stop();
}

Result<void> Initiator::Body::begin_stretch() {
  if (settings_.range.empty()) return Error{Errc::invalid, "sync: the range is empty"};
  pass_ = 0;
  stretch_.end = settings_.range.end;
  last_stretch_ = true;
  return begin_pass();
}

// If more differs than is to be kept in mind at a time, makes the stretch shorter: by so many
// records as have their share of it, as far as containers allow.
Result<bool> Initiator::Body::cut_stretch() {
  const auto most = static_cast<double>(settings_.limits.stretch_records);
  if (looked_for_ <= most) return false;
  const auto records =
      static_cast<std::uint64_t>(static_cast<double>(here_.count) * most / looked_for_);
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  BitPath node;
  std::uint64_t before = 0;
  while (const std::optional<BitPath> at = view.branch(node)) {
    BitPath left = *at;
    left.push(false);
    const Result<Aggregate> sum = view.sum(left);
    if (!sum) return sum.error();
    const bool fits = before + sum->count <= records;
    if (fits) before += sum->count;
    node = *at;
    node.push(fits);
  }
  const KeyRange container = node.range();
  const std::optional<std::string> end = before > 0 ? container.first : container.end;
  if (!end || *end <= stretch_.first || (stretch_.end && *end >= *stretch_.end)) return false;
  stretch_.end = end;
  last_stretch_ = false;
  return true;
}

Result<void> Initiator::Body::begin_pass() {
  ++pass_;
  salt_ = static_cast<std::uint16_t>(salts_());
  met_there_.clear();
  repaired_ = 0;
  settled_ = false;
  const Result<void> asked = ask_hello();
  return asked ? begin_round() : asked;
}

Result<void> Initiator::Body::ask_hello() {
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  const Result<Aggregate> sum = view.sum(BitPath());
  if (!sum) return sum.error();
  here_ = *sum;
  const Result<IndexedStore::RangeFloret> floret =
      index_.floret(*held, stretch_, IndexedStore::Fresh::not_worn);
  if (!floret) return floret.error();
  unknown_ = floret->unknown;
  Bytes body;
  Writer out(body);
  frame::encode(frame::Hello{here_, floret->unknown, floret->floret.bytes()}, out);
  exchange_.ask(frame::Topic::hello, std::move(body), HelloAsk{});
  return {};
}

Result<void> Initiator::Body::end_round() {
  flush_ours();
  if (!exchange_.asks() && !settled_) {
    settled_ = true;
    // What is decided by the absence of a record waits for the proof that nothing was missed.
    if (findings_.explained() || is_last_pass()) {
      const Result<void> settling = settle();
      if (!settling) return settling;
    }
  }
  return exchange_.asks() ? begin_round() : end_pass();
}

Result<void> Initiator::Body::end_pass() {
  const bool proved = findings_.explained();
  ++report_.passes;
  if (!proved && !is_last_pass() && settings_.purpose != Purpose::plan) return begin_pass();
  count_stretch();
  all_proved_ = all_proved_ && proved;
  records_done_ += here_.count;
  if (last_stretch_) {
    report_.proved = all_proved_;
    finish();
    return {};
  }
  stretch_.first = *stretch_.end;
  return begin_stretch();
}

// What the last pass has found is all that differed when it began. What differed before, and is
// repaired, was noted when it was stored.
void Initiator::Body::count_stretch() {
  for (const Findings::Ours& one : findings_.ours()) {
    tally_.note(KeyTally::hash(one.key), KeyTally::here);
  }
  for (const std::uint64_t key : findings_.their_keys()) tally_.note(key, KeyTally::there);
  count(tally_.take());
  report_.only_responder += only_theirs_without_keys();
  if (settings_.purpose == Purpose::diff && settings_.on_difference) tell_differences();
}

// Of those that are known by their digests alone, some have met a record of ours under their key.
std::uint64_t Initiator::Body::only_theirs_without_keys() {
  const std::uint64_t keyless = findings_.theirs_count() - findings_.their_keys().size();
  std::vector<std::uint64_t> known = findings_.their_keys();
  std::ranges::sort(known);
  const auto met = static_cast<std::uint64_t>(std::ranges::count_if(
      met_there_, [&](std::uint64_t key) { return !std::ranges::binary_search(known, key); }));
  return keyless - std::min(keyless, met);
}

void Initiator::Body::count(const KeyTally::Counts& counts) {
  report_.only_initiator += counts.only_here;
  report_.only_responder += counts.only_there;
  report_.changed += counts.changed;
}

void Initiator::Body::tell_differences() const {
  std::vector<std::string_view> keys;
  for (const Findings::Ours& one : findings_.ours()) {
    keys.push_back(one.key);
    const bool changes = findings_.theirs().contains(one.key);
    settings_.on_difference(one.key, changes ? Where::both : Where::initiator);
  }
  std::ranges::sort(keys);
  for (const auto& [key, one] : findings_.theirs()) {
    if (!std::ranges::binary_search(keys, std::string_view(key))) {
      settings_.on_difference(key, Where::responder);
    }
  }
}

void Initiator::Body::cancel() {
  if (state_ != State::working) return;
  count(tally_.take());
  finish();
}

Result<void> Initiator::Body::receive(ByteView bytes) {
  if (state_ != State::working) return Error{Errc::mismatch, "sync: nothing was asked"};
  Result<Exchange::Answer> answer = exchange_.take(bytes);
  if (!answer) return answer.error();
  peer_words_ = std::move(answer->words);
  Result<void> taken;
  if (answer->fatal) taken = *answer->fatal;
  for (auto& [context, body] : answer->parts) {
    if (taken) taken = answered(*context, Reader(body));
  }
  if (taken && exchange_.round_done()) taken = end_round();
  if (!taken) fail(taken.error());
  return taken;
}

Result<void> Initiator::Body::answered(AskContext& context, Reader in) {
  if (std::holds_alternative<HelloAsk>(context)) return hello_answered(in);
  if (const auto* compare = std::get_if<CompareAsk>(&context)) {
    return compare_answered(*compare, in);
  }
  if (const auto* probe = std::get_if<ProbeAsk>(&context)) return probe_answered(*probe, in);
  if (const auto* scan = std::get_if<ScanAsk>(&context)) return scan_answered(*scan, in);
  if (auto* fetch = std::get_if<FetchAsk>(&context)) return fetch_answered(std::move(*fetch), in);
  return store_answered(std::get<StoreAsk>(context), in);
}

SyncReport Initiator::Body::report() const {
  SyncReport report = report_;
  report.bytes_sent = exchange_.bytes_sent();
  report.bytes_received = exchange_.bytes_received();
  report.first_bytes = exchange_.first_bytes();
  report.round_trips = exchange_.rounds();
  return report;
}

SyncProgress Initiator::Body::progress() const {
  SyncProgress progress;
  progress.records_done = records_done_;
  progress.records = std::max(range_records_, records_done_);
  progress.differences = static_cast<std::uint64_t>(estimate_.total.value);
  progress.found = findings_.ours().size() + findings_.theirs_count();
  progress.repaired = repaired_;
  const double share = progress.differences == 0
                           ? 0
                           : std::min(1.0, static_cast<double>(progress.found) /
                                               static_cast<double>(progress.differences));
  progress.seconds_left = predicted_.seconds.value * (1 - share);
  progress.resume_from = stretch_.first;
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
const std::string& Initiator::peer_words() const { return body_->peer_words(); }
void Initiator::cancel() { body_->cancel(); }
SyncReport Initiator::report() const { return body_->report(); }
SyncProgress Initiator::progress() const { return body_->progress(); }

}  // namespace semel
