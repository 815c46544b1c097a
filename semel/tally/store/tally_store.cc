#include "semel/tally/store/tally_store.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "semel/core/assert.h"
#include "semel/index/indexed_store.h"
#include "semel/store/forwarding_store.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/overlay_merge.h"
#include "semel/tally/store/internal/store_batch.h"
#include "semel/tally/store/internal/store_restart.h"
#include "semel/tally/store/internal/store_shape.h"

namespace semel::tally {
namespace {

class CounterMerger final : public Merger {
 public:
  const char* name() const override { return "semel.tally.counter.v1"; }
  bool merge(std::string_view /*key*/, std::optional<std::string_view> now,
             std::string_view operand, std::string& merged) const override {
    Result<CounterState> added = CounterState::decode(bytes_of(operand));
    if (!added) return false;
    if (now) {
      const Result<CounterState> before = CounterState::decode(bytes_of(*now));
      if (!before) return false;
      added->add(*before);
    }
    Bytes out;
    added->encode(out);
    merged.assign(text_of(out));
    return true;
  }
};

int128 sum_of_record(std::string_view key, std::string_view value) {
  if (key.empty() || key.front() != kCounterPrefix) return 0;
  const Result<CounterState> state = CounterState::decode(bytes_of(value));
  return state ? state->sum() : 0;
}

const KeyRange& indexed_range() {
  static const KeyRange range{std::string(1, kCounterPrefix), std::string(kSharedEnd)};
  return range;
}

const KeyRange& shared_range() {
  static const KeyRange range{std::string(kSharedFirst), std::string(kSharedEnd)};
  return range;
}

KeyRange counter_range(const NameRange& range) {
  KeyRange keys{counter_key(range.first), std::string(1, kCounterPrefix + 1)};
  if (range.end) keys.end = counter_key(*range.end);
  return keys;
}

// What has digests of no secret can be read by everybody, and only counts.
Secret no_secret() { return Secret(std::array<std::uint8_t, Secret::kSize>{}); }

Bytes encoded(const auto& value) {
  Bytes out;
  value.encode(out);
  return out;
}

Result<void> agree(const TallyStore::Settings& settings, const StoreShape& shape) {
  if (!settings.recogniser || *settings.recogniser == shape.recogniser) return {};
  return Error{Errc::mismatch, "the table exists with another shape"};
}

// The ledger is ahead of the disk then, and says what may never have happened.
constexpr Error kBroken = {Errc::io, "an earlier write failed: the table must be opened again"};

// Journal records are removed once all of their ids have left the window, in so many steps a window.
constexpr TimeMs kForgettingSteps = 8;

}  // namespace

const Merger& TallyStore::merger() {
  static const CounterMerger merger;
  return merger;
}

class TallyStore::Body {
 public:
  Body(OrderedStore& store, const Settings& settings, Ledger ledger)
      : store_(store),
        settings_(settings),
        ledger_(std::move(ledger)),
        batch_(store, ledger_.recogniser().wants_content()),
        entries_(*this) {
    batch_.set_site(ledger_.log().site());
  }
  Body(OrderedStore& store, const Settings& settings, Restart restart)
      : Body(store, settings, std::move(restart.ledger)) {
    recalled_ = restart.recalled;
    next_number_ = restart.next_number;
    unshared_since_ms_ = restart.unshared_since_ms;
    shared_ = ledger_.log().held().at(ledger_.log().site()) - restart.unshared;
    written_ = 1;  // as far as is known: whoever wrote may have been killed before its sync
  }

  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms,
                   Values values);
  Result<Answer> change(Operation::Kind kind, std::string_view counter, const OperationId& id,
                        TimeMs now_ms);
  Result<void> tick(TimeMs now_ms);
  Result<void> sync();
  Result<void> publish();
  Result<void> checkpoint();
  Result<void> admit(SiteId site);
  Result<void> retire(SiteId site);
  Result<void> copy_to(OrderedStore& other);
  Result<void> become(SiteId site, TimeMs now_ms);
  Result<void> begin();  // writes a table that is new

  Result<std::vector<std::optional<std::int64_t>>> many(
      std::span<const std::string_view> counters) const {
    const std::lock_guard lock(mutex_);
    if (broken_) return kBroken;
    return ledger_.many(counters, batch_);
  }
  Result<void> scan(const NameRange& range, const Counters::Visit& visit) const;
  Result<RangeSum> sum(const NameRange& range);
  Result<IndexedStore*> index();
  OrderedStore& entries() { return entries_; }
  Info info() const;
  void unfolded(const std::function<void(const Operation&)>& visit) const;
  std::uint64_t holders(Dot dot) const {
    const std::lock_guard lock(mutex_);
    return ledger_.log().holders(dot);
  }

 private:
  // The shared entries as a store: what is written to it arrives at the table.
  class Entries final : public ForwardingStore {
   public:
    explicit Entries(Body& body) : ForwardingStore(body.store_), body_(body) {}
    Result<void> write(std::span<const Write> writes) override { return body_.arrive(writes); }
    Result<void> remove_range(const KeyRange& /*range*/) override { return refuse_removal(); }
    Result<void> sync() override { return body_.sync(); }
    Result<void> update(std::span<const std::string_view> keys, const Become& become) override;

    static Error refuse_removal() {
      return {Errc::unsupported, "entries of a table are not removed: the table drops them itself"};
    }

   private:
    Body& body_;
  };

  struct Request {
    std::span<const Addition> additions;
    std::span<Answer> answers;
    TimeMs now_ms;
    Values values;
    Result<void> result = {};
    bool done = false;
  };

  Result<void> arrive(std::span<const Write> writes);
  Result<void> ready_to_write() const;
  Result<void> commit();
  Result<void> settle();
  Result<void> publish_locked();
  Result<void> sync_locked();
  bool unsynced() const { return synced_ != written_; }
  Result<void> run(std::span<Request* const> group);
  Result<void> forget_journal();

  OrderedStore& store_;
  Settings settings_;
  mutable std::mutex mutex_;  // of all that follows; after a view of the index, if both are held
  Ledger ledger_;
  mutable StoreBatch batch_;
  bool broken_ = false;
  std::uint64_t recalled_ = 0;
  std::uint64_t next_number_ = 0;            // of a record of the journal
  std::optional<TimeMs> unshared_since_ms_;  // the time of the first record that others cannot see
  std::uint64_t shared_ = 0;                 // operations of this site that others can see
  std::uint64_t folds_ = 0;                  // how often counters were written
  TimeMs synced_ms_ = 0;
  TimeMs forgot_ms_ = 0;
  std::uint64_t written_ = 0;  // writes
  std::uint64_t synced_ = 0;   // of these

  std::mutex queue_mutex_;
  std::condition_variable queue_moved_;
  std::vector<Request*> queue_;
  bool led_ = false;

  Entries entries_;
  std::mutex index_mutex_;  // of the pointer
  std::unique_ptr<IndexedStore> index_;
};

Result<void> TallyStore::Body::Entries::update(std::span<const std::string_view> keys,
                                               const Become& become) {
  std::vector<std::optional<std::string>> values(keys.size());
  std::vector<Write> writes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Result<std::optional<std::string>> now = get(keys[i]);
    if (!now) return now.error();
    values[i] = become(i, *now ? std::optional<std::string_view>(**now) : std::nullopt);
    if (values[i] == *now) continue;
    writes.push_back(
        {keys[i], values[i] ? std::optional<std::string_view>(*values[i]) : std::nullopt});
  }
  // What was written since the look is no matter: entries join what is there.
  return body_.arrive(writes);
}

Result<void> TallyStore::Body::ready_to_write() const {
  if (settings_.read_only) return Error{Errc::unsupported, "the table was opened to be read"};
  if (broken_) return kBroken;
  return {};
}

// Writes what the ledger has done. The ledger is ahead of the store until then: if it cannot be
// written, nothing that the ledger says is to be trusted.
Result<void> TallyStore::Body::commit() {
  if (batch_.empty()) return {};
  if (batch_.has_journal()) {
    const TimeMs now_ms = ledger_.recogniser().now();
    if (batch_.has_operations() && !unshared_since_ms_) {
      unshared_since_ms_ = now_ms;
    }
    batch_.close_journal(journal_key(now_ms, next_number_++));
  }
  if (batch_.folded()) ++folds_;
  batch_.put(kStateKey, encoded(ledger_.state()));
  ++written_;
  Result<void> written = batch_.write();
  if (written) written = settle();
  if (!written) broken_ = true;
  return written;
}

// Makes one record of a counter that has become a long list of merges.
Result<void> TallyStore::Body::settle() {
  for (const std::string& counter : batch_.take_heavy()) {
    const std::string key = counter_key(counter);
    const Result<std::optional<std::string>> value = store_.get(key);
    if (!value) return value.error();
    if (*value) batch_.put(key, bytes_of(**value));
  }
  if (batch_.empty()) return {};
  ++written_;
  return batch_.write();
}

Result<void> TallyStore::Body::sync_locked() {
  synced_ms_ = ledger_.recogniser().now();
  Result<void> synced = store_.sync();
  if (synced) {
    synced_ = written_;
  } else {
    broken_ = true;
  }
  return synced;
}

Result<void> TallyStore::Body::add(std::span<const Addition> additions, std::span<Answer> answers,
                                   TimeMs now_ms, Values values) {
  Request request{additions, answers, now_ms, values};
  std::unique_lock queue(queue_mutex_);
  queue_.push_back(&request);
  queue_moved_.wait(queue, [&] { return request.done || !led_; });
  if (request.done) return request.result;

  // Whoever finds nobody at work works for all that wait.
  led_ = true;
  const std::vector<Request*> group = std::move(queue_);
  queue_.clear();
  queue.unlock();
  {
    const std::lock_guard lock(mutex_);
    const Result<void> ran = run(group);
    for (Request* each : group) {
      if (!ran) each->result = ran;
    }
  }
  queue.lock();
  for (Request* each : group) each->done = true;
  led_ = false;
  queue_moved_.notify_all();
  return request.result;
}

// An error is that of the whole group; those of single requests are in them.
Result<void> TallyStore::Body::run(std::span<Request* const> group) {
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  for (Request* request : group) {
    ledger_.advance(request->now_ms);
    const bool values = request->values == Values::yes;
    if (values || ledger_.might_overflow(request->additions)) {
      // It reads, so all before it must be there.
      if (Result<void> written = commit(); !written) return written;
    }
    request->result = ledger_.add(request->additions, request->answers, values, batch_);
  }
  if (Result<void> written = commit(); !written) return written;
  return settings_.durability == Durability::every_write && unsynced() ? sync_locked()
                                                                       : Result<void>();
}

Result<Answer> TallyStore::Body::change(Operation::Kind kind, std::string_view counter,
                                        const OperationId& id, TimeMs now_ms) {
  const std::lock_guard lock(mutex_);
  if (const Result<void> ready = ready_to_write(); !ready) return ready.error();
  ledger_.advance(now_ms);
  Result<Answer> answer = ledger_.change(kind, counter, id, batch_);
  if (!answer) return answer;
  if (const Result<void> written = commit(); !written) return written.error();
  if (settings_.durability == Durability::every_write && unsynced()) {
    if (const Result<void> synced = sync_locked(); !synced) return synced.error();
  }
  return answer;
}

Result<void> TallyStore::Body::arrive(std::span<const Write> writes) {
  std::vector<Operation> operations;
  std::map<SiteId, SiteView> views;
  for (const Write& write : writes) {
    if (!write.value) return Entries::refuse_removal();
    if (write.merge || !shared_range().contains(write.key)) {
      return Error{Errc::outside, "not an entry that sites share"};
    }
    if (const std::optional<Dot> dot = dot_of_key(write.key)) {
      Result<Operation> operation = Operation::decode(*dot, bytes_of(*write.value));
      if (!operation) return operation.error();
      operations.push_back(std::move(*operation));
    } else if (const std::optional<SiteId> site = site_of_key(write.key)) {
      Result<SiteView> view = SiteView::decode(bytes_of(*write.value));
      if (!view) return view.error();
      views.insert_or_assign(*site, std::move(*view));
    } else {
      return Error{Errc::corrupt, "no entry of a table"};
    }
  }

  if (settings_.clock == nullptr) {
    return Error{Errc::unsupported, "a table without a clock takes nothing from other sites"};
  }
  const std::lock_guard lock(mutex_);
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  ledger_.advance(settings_.clock->now_ms());
  if (Result<void> forgot = forget_journal(); !forgot) return forgot;
  const OperationLog& log = ledger_.log();
  for (const auto& [site, view] : views) {
    if (Result<void> ours = log.concerns(view); !ours) return ours;
  }
  const bool superseded = log.superseded();
  ledger_.take(operations, batch_);
  for (const auto& [site, view] : views) {
    (void)ledger_.hear(site, view, batch_);
    if (site != log.site()) batch_.put(view_key(site), encoded(*log.heard(site)));
  }
  if (log.superseded() != superseded) batch_.put(kStateKey, encoded(ledger_.state()));
  return commit();
}

Result<void> TallyStore::Body::publish() {
  const std::lock_guard lock(mutex_);
  return publish_locked();
}

Result<void> TallyStore::Body::publish_locked() {
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  const OperationLog& log = ledger_.log();
  if (log.superseded()) return log.in_force();
  if (Result<void> written = commit(); !written) return written;
  if (unsynced()) {
    if (Result<void> synced = sync_locked(); !synced) return synced;
  }
  const SiteView view = log.view();
  const SiteView* said = log.heard(log.site());
  if (said != nullptr && *said == view) return {};
  log.operations_of(log.site(), shared_ + 1, [this](const Operation& operation) {
    batch_.put(operation_key(operation.dot), encoded(operation));
  });
  shared_ = log.held().at(log.site());
  unshared_since_ms_.reset();
  batch_.put(view_key(log.site()), encoded(view));
  ledger_.say(view, batch_);
  return commit();
}

Result<void> TallyStore::Body::sync() {
  const std::lock_guard lock(mutex_);
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  return sync_locked();
}

Result<void> TallyStore::Body::tick(TimeMs now_ms) {
  std::uint64_t written = 0;
  {
    const std::lock_guard lock(mutex_);
    if (Result<void> ready = ready_to_write(); !ready) return ready;
    ledger_.advance(now_ms);
    if (Result<void> forgot = forget_journal(); !forgot) return forgot;
    const TimeMs time_ms = ledger_.time_of(now_ms);
    const bool due = settings_.durability == Durability::periodic && unsynced() &&
                     time_ms >= later_by(synced_ms_, settings_.period_ms);
    if (!due) return {};
    written = written_;
    synced_ms_ = time_ms;
  }
  // Nobody waits for the disk meanwhile. Until it is done, whoever has to know syncs too.
  Result<void> synced = store_.sync();
  const std::lock_guard lock(mutex_);
  if (synced) {
    synced_ = std::max(synced_, written);
  } else {
    broken_ = true;
  }
  return synced;
}

// Drops the records of the journal whose ids have left the window. Of clients that stay, the highest
// sequence that is gone with them is kept: what is below it can no longer be judged.
Result<void> TallyStore::Body::forget_journal() {
  const Recogniser& recogniser = ledger_.recogniser();
  const TimeMs step = std::max<TimeMs>(1, recogniser.goal().window_ms / kForgettingSteps);
  if (recogniser.now() < later_by(forgot_ms_, step)) return {};
  forgot_ms_ = recogniser.now();

  TimeMs before_ms = recogniser.promise().forgotten_before_ms;
  if (unshared_since_ms_) before_ms = std::min(before_ms, *unshared_since_ms_);
  const KeyRange old{std::string(1, kJournalPrefix), journal_key(before_ms, 0)};
  const Result<std::unique_ptr<Cursor>> cursor = store_.cursor();
  if (!cursor) return cursor.error();
  Cursor& at = **cursor;
  for (at.seek(old.first); at.valid() && old.contains(at.key()); at.next()) {
    const Result<JournalRecord> record =
        JournalRecord::decode(bytes_of(at.value()), recogniser.wants_content());
    if (!record) return record.error();
    for (const Recogniser::Query& query : record->ids) {
      if (query.id.kind != OperationId::Kind::numbered) continue;
      const std::string key = forgotten_key(query.id.digest);
      if (const std::optional<std::uint64_t> highest = recogniser.forgotten(query.id.digest)) {
        Bytes value;
        Writer(value).varint(*highest);
        batch_.put(key, value);
      } else {
        batch_.remove(key);
      }
    }
    batch_.remove(at.key());
  }
  if (Result<void> status = at.status(); !status) return status;
  return commit();
}

Result<void> TallyStore::Body::checkpoint() {
  IndexedStore* index = nullptr;
  {
    const std::lock_guard lock(index_mutex_);
    index = index_.get();
  }
  return index == nullptr || settings_.read_only ? Result<void>() : index->checkpoint();
}

Result<void> TallyStore::Body::admit(SiteId site) {
  const std::lock_guard lock(mutex_);
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  if (Result<void> admitted = ledger_.admit(site); !admitted) return admitted;
  batch_.put(kStateKey, encoded(ledger_.state()));
  return publish_locked();
}

Result<void> TallyStore::Body::retire(SiteId site) {
  const std::lock_guard lock(mutex_);
  if (Result<void> ready = ready_to_write(); !ready) return ready;
  if (Result<void> retired = ledger_.retire(site, batch_); !retired) return retired;
  batch_.put(kStateKey, encoded(ledger_.state()));
  return publish_locked();
}

Result<void> TallyStore::Body::copy_to(OrderedStore& other) {
  constexpr std::size_t kCopied = 1 << 20;  // bytes in one write
  const std::lock_guard lock(mutex_);
  if (Result<void> able = ledger_.log().in_force(); !able) return able;
  if (Result<void> published = publish_locked(); !published) return published;
  const Result<std::unique_ptr<Cursor>> cursor = store_.cursor();
  if (!cursor) return cursor.error();
  Cursor& at = **cursor;
  StoreBatch copies(other, false);
  std::size_t bytes = 0;
  for (at.seek({}); at.valid(); at.next()) {
    copies.put(at.key(), bytes_of(at.value()));
    bytes += at.key().size() + at.value().size();
    if (bytes < kCopied) continue;
    bytes = 0;
    if (Result<void> written = copies.write(); !written) return written;
  }
  if (Result<void> status = at.status(); !status) return status;
  if (Result<void> written = copies.write(); !written) return written;
  return other.sync();
}

Result<void> TallyStore::Body::become(SiteId site, TimeMs now_ms) {
  const std::lock_guard lock(mutex_);
  const OperationLog& log = ledger_.log();
  const SiteId member = log.site();
  if (Result<void> became = ledger_.become(site, now_ms); !became) return became;
  // A copy that was made file by file may have operations of the member in its journal alone.
  log.operations_of(member, shared_ + 1, [this](const Operation& operation) {
    batch_.put(operation_key(operation.dot), encoded(operation));
  });
  shared_ = 0;
  unshared_since_ms_.reset();
  batch_.set_site(site);
  batch_.put(kStateKey, encoded(ledger_.state()));
  return publish_locked();
}

Result<void> TallyStore::Body::begin() {
  const std::lock_guard lock(mutex_);
  batch_.put(kShapeKey, encoded(StoreShape{ledger_.recogniser().goal()}));
  if (Result<void> written = commit(); !written) return written;
  return sync_locked();
}

Result<void> TallyStore::Body::scan(const NameRange& range, const Counters::Visit& visit) const {
  std::unique_lock lock(mutex_);
  if (broken_) return kBroken;
  const Result<std::unique_ptr<Cursor>> cursor = store_.cursor();
  if (!cursor) return cursor.error();
  OverlayMerge merge(ledger_.log(), range);
  lock.unlock();

  const KeyRange keys = counter_range(range);
  Cursor& at = **cursor;
  for (at.seek(keys.first); at.valid() && keys.contains(at.key()); at.next()) {
    const Result<CounterState> state = CounterState::decode(bytes_of(at.value()));
    if (!state) return state.error();
    if (!merge.folded(at.key().substr(1), state->sum(), visit)) return {};
  }
  if (Result<void> status = at.status(); !status) return status;
  merge.rest(visit);
  return {};
}

Result<IndexedStore*> TallyStore::Body::index() {
  const std::lock_guard lock(index_mutex_);
  if (!index_) {
    // A store is given its observer while nobody writes to it.
    const std::lock_guard writers(mutex_);
    IndexedStore::Settings settings;
    settings.range = indexed_range();
    settings.measure = sum_of_record;
    Result<std::unique_ptr<IndexedStore>> opened =
        IndexedStore::open(entries_, settings_.secret.value_or(no_secret()), settings);
    if (!opened) return opened.error();
    index_ = std::move(*opened);
  }
  return index_.get();
}

Result<RangeSum> TallyStore::Body::sum(const NameRange& range) {
  const Result<IndexedStore*> index = this->index();
  if (!index) return index.error();
  while (true) {
    std::uint64_t folds = 0;
    {
      const std::lock_guard lock(mutex_);
      folds = folds_;
    }
    const Result<IndexedStore::View> view = (*index)->view();
    if (!view) return view.error();
    const std::lock_guard lock(mutex_);
    if (broken_) return kBroken;
    // What is folded between the view and now would be missing in both, or in none.
    if (!ledger_.log().alone() && folds != folds_) continue;
    const Result<Aggregate> folded = view->trie().sum(counter_range(range), view->cursor());
    if (!folded) return folded.error();
    return ledger_.with_overlays({folded->count, folded->measure}, range, batch_);
  }
}

TallyStore::Info TallyStore::Body::info() const {
  const std::lock_guard lock(mutex_);
  const Recogniser& recogniser = ledger_.recogniser();
  Promise promise = recogniser.promise();
  promise.kept_from_ms = ledger_.clock_of(promise.kept_from_ms);
  promise.forgotten_before_ms = ledger_.clock_of(promise.forgotten_before_ms);
  return {recogniser.goal(),
          ledger_.log().state(),
          ledger_.log().unfolded(),
          ledger_.log().waiting_for(),
          promise,
          recogniser.counts(),
          recogniser.false_positive_rate(),
          recogniser.expected_undercount(),
          recogniser.bytes(),
          recalled_,
          {ledger_.log().forked().begin(), ledger_.log().forked().end()}};
}

void TallyStore::Body::unfolded(const std::function<void(const Operation&)>& visit) const {
  const std::lock_guard lock(mutex_);
  ledger_.log().unfolded(visit);
}

TallyStore::TallyStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}
TallyStore::~TallyStore() = default;

Result<std::unique_ptr<TallyStore>> TallyStore::open(OrderedStore& store, const Settings& settings,
                                                     TimeMs now_ms) {
  Result<std::optional<Restart>> restart = Restart::read(store, settings.log, now_ms);
  if (!restart) return restart.error();
  std::unique_ptr<Body> body;
  if (*restart) {
    if (const Result<void> fits = agree(settings, (*restart)->shape); !fits) return fits.error();
    body = std::make_unique<Body>(store, settings, std::move(**restart));
  } else {
    if (!settings.recogniser || settings.read_only) {
      return Error{Errc::invalid, "there is no table"};
    }
    Result<Recogniser> recogniser = Recogniser::make(*settings.recogniser, now_ms);
    if (!recogniser) return recogniser.error();
    body = std::make_unique<Body>(store, settings,
                                  Ledger(std::move(*recogniser), settings.site, settings.log));
    if (const Result<void> begun = body->begin(); !begun) return begun.error();
  }
  return std::unique_ptr<TallyStore>(new TallyStore(std::move(body)));
}

Result<std::unique_ptr<TallyStore>> TallyStore::open_as(OrderedStore& store, SiteId site,
                                                        const Settings& settings, TimeMs now_ms) {
  Result<std::optional<Restart>> restart =
      Restart::read(store, settings.log, now_ms, Restart::Time::copied);
  if (!restart) return restart.error();
  if (!*restart) return Error{Errc::invalid, "there is no table"};
  if (const Result<void> fits = agree(settings, (*restart)->shape); !fits) return fits.error();
  auto body = std::make_unique<Body>(store, settings, std::move(**restart));
  if (const Result<void> became = body->become(site, now_ms); !became) return became.error();
  return std::unique_ptr<TallyStore>(new TallyStore(std::move(body)));
}

Result<TallyStore::TakenOver> TallyStore::take_over(const TallyStore& superseded, TimeMs now_ms) {
  const Info info = superseded.info();
  TakenOver taken;
  std::vector<Operation> operations;
  superseded.body_->unfolded([&](const Operation& operation) {
    const SiteId site = operation.dot.site;
    const bool wanted = site == info.log.site || std::find(info.forked.begin(), info.forked.end(),
                                                           site) != info.forked.end();
    if (!wanted) return;
    if (operation.kind == Operation::Kind::add) {
      operations.push_back(operation);
    } else {
      ++taken.resets;
    }
  });
  std::vector<Addition> additions;
  for (const Operation& operation : operations) {
    additions.push_back({operation.counter, operation.delta, operation.id});
  }
  std::vector<Answer> answers(additions.size());
  if (const Result<void> added = add(additions, answers, now_ms); !added) return added.error();
  for (const Answer& answer : answers) {
    const bool known = answer.outcome == Outcome::duplicate;
    ++(answer.outcome == Outcome::applied ? taken.applied : known ? taken.known : taken.refused);
  }
  return taken;
}

Result<void> TallyStore::add(std::span<const Addition> additions, std::span<Answer> answers,
                             TimeMs now_ms, Values values) {
  return body_->add(additions, answers, now_ms, values);
}

Result<Answer> TallyStore::add(const Addition& addition, TimeMs now_ms, Values values) {
  Answer answer;
  const Result<void> added = body_->add({&addition, 1}, {&answer, 1}, now_ms, values);
  if (!added) return added.error();
  return answer;
}

Result<Answer> TallyStore::reset(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::reset, counter, id, now_ms);
}

Result<Answer> TallyStore::remove(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::remove, counter, id, now_ms);
}

Result<std::optional<std::int64_t>> TallyStore::get(std::string_view counter) const {
  const Result<std::vector<std::optional<std::int64_t>>> values = body_->many({&counter, 1});
  if (!values) return values.error();
  return values->front();
}

Result<std::vector<std::optional<std::int64_t>>> TallyStore::many(
    std::span<const std::string_view> counters) const {
  return body_->many(counters);
}

Result<void> TallyStore::scan(const NameRange& range, const Counters::Visit& visit) const {
  return body_->scan(range, visit);
}

Result<RangeSum> TallyStore::sum(const NameRange& range) { return body_->sum(range); }
Result<void> TallyStore::tick(TimeMs now_ms) { return body_->tick(now_ms); }
Result<void> TallyStore::sync() { return body_->sync(); }
Result<void> TallyStore::publish() { return body_->publish(); }
Result<void> TallyStore::checkpoint() { return body_->checkpoint(); }
Result<void> TallyStore::admit(SiteId site) { return body_->admit(site); }
Result<void> TallyStore::retire(SiteId site) { return body_->retire(site); }
Result<void> TallyStore::copy_to(OrderedStore& other) const { return body_->copy_to(other); }
OrderedStore& TallyStore::entries() { return body_->entries(); }
Result<IndexedStore*> TallyStore::index() { return body_->index(); }
TallyStore::Info TallyStore::info() const { return body_->info(); }
std::uint64_t TallyStore::holders(Dot dot) const { return body_->holders(dot); }

}  // namespace semel::tally
