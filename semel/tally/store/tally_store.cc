#include "semel/tally/store/tally_store.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <utility>

#include "semel/index/indexed_store.h"
#include "semel/store/ordered_store.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/internal/overlay_merge.h"
#include "semel/tally/store/internal/group_commit.h"
#include "semel/tally/store/internal/shared_entries.h"
#include "semel/tally/store/internal/store_restart.h"
#include "semel/tally/store/internal/store_shape.h"
#include "semel/tally/store/internal/store_writer.h"

namespace semel::tally {

using namespace internal;

namespace {

int128 sum_of_record(std::string_view key, std::string_view value) {
  if (key.empty() || key.front() != kCounterPrefix) return 0;
  const Result<CounterState> state = CounterState::decode(bytes_of(value));
  return state ? state->sum() : 0;
}

IndexedStore::Settings index_settings() {
  IndexedStore::Settings settings;
  settings.range = {std::string(1, kCounterPrefix), std::string(kSharedEnd)};
  settings.measure = sum_of_record;
  return settings;
}

KeyRange counter_range(const NameRange& range) {
  KeyRange keys{counter_key(range.first), std::string(1, kCounterPrefix + 1)};
  if (range.end) keys.end = counter_key(*range.end);
  return keys;
}

// Anybody can forge digests that are keyed by this.
Secret no_secret() { return Secret(std::array<std::uint8_t, Secret::kSize>{}); }

Bytes encoded(const auto& value) {
  Bytes out;
  value.encode(out);
  return out;
}

Result<void> check_agreement(const TallyStore::Settings& settings, const StoreShape& shape) {
  if (!settings.recognition || *settings.recognition == shape.recogniser) return {};
  return Error{Errc::mismatch, "the table exists with another shape"};
}

OperationLog::Limits limits_of(const TallyStore::Settings& settings) {
  return {settings.max_unfolded};
}

StoreWriter::Start start_of(const Restart& restart) {
  const OperationLog& log = restart.ledger.log();
  return {restart.next_number, log.held().at(log.site()) - restart.unshared,
          restart.unshared_since_ms, true};
}

}  // namespace

const TallyStore::SyncRule& TallyStore::sync_rule() {
  static const SyncRule rule{shared_range(), join_entries};
  return rule;
}

class TallyStore::Body {
 public:
  Body(OrderedStore& store, const Settings& settings, Ledger ledger,
       const StoreWriter::Start& start = {}, std::uint64_t recalled = 0)
      : store_(store),
        settings_(settings),
        recalled_(recalled),
        ledger_(std::move(ledger)),
        writer_(store, ledger_, start),
        entries_(
            store, [this](ArrivedEntries arrived) { return arrive(std::move(arrived)); },
            [this] { return sync(); }) {}
  Body(OrderedStore& store, const Settings& settings, Restart restart)
      : Body(store, settings, std::move(restart.ledger), start_of(restart), restart.recalled) {}

  Result<void> add(std::span<const Addition> additions, std::span<Answer> answers, TimeMs now_ms,
                   Values values) {
    Request request{additions, answers, now_ms, values == Values::yes};
    group_commit_.run(request, [this](std::span<Request* const> group) {
      const Changing changing(*this);
      const Result<void> ran = run(group);
      if (ran) return;
      for (Request* each : group) each->result = ran;
    });
    return request.result;
  }
  Result<Answer> change(Operation::Kind kind, std::string_view counter, const OperationId& id,
                        TimeMs now_ms);
  Result<void> tick(TimeMs now_ms);
  Result<void> checkpoint();
  Result<void> admit(SiteId site);
  Result<void> retire(SiteId site);
  Result<void> copy_to(OrderedStore& other);
  Result<void> sync() {
    const Changing changing(*this);
    SEMEL_TRY(ready_to_write());
    return writer_.sync();
  }
  Result<void> publish() {
    const Changing changing(*this);
    SEMEL_TRY(ready_to_write());
    return writer_.publish();
  }
  Result<void> become(SiteId site, TimeMs now_ms) {
    const Changing changing(*this);
    SEMEL_TRY(ready_to_write());
    return writer_.become(site, now_ms);
  }
  // Writes a table that is new.
  Result<void> begin() {
    const Changing changing(*this);
    writer_.batch().put(kShapeKey, encoded(StoreShape{ledger_.recogniser().goal()}));
    SEMEL_TRY(writer_.commit());
    return writer_.sync();
  }

  Result<std::vector<std::optional<std::int64_t>>> get(
      std::span<const std::string_view> counters) const {
    const std::lock_guard lock(mutex_);
    SEMEL_TRY(writer_.usable());
    return ledger_.get(counters, writer_.batch());
  }
  Result<void> scan(const NameRange& range, const VisitCounter& visit) const;
  Result<RangeSum> sum(const NameRange& range);
  Result<IndexedStore*> index();
  OrderedStore& entries() { return entries_; }
  Info info() const {
    const std::lock_guard lock(mutex_);
    return {ledger_.info(), recalled_};
  }
  std::vector<Operation> unfolded() const {
    const std::lock_guard lock(mutex_);
    std::vector<Operation> operations;
    ledger_.log().unfolded([&](const Operation& operation) { operations.push_back(operation); });
    return operations;
  }
  std::uint64_t holders(Dot dot) const {
    const std::lock_guard lock(mutex_);
    return ledger_.log().holders(dot);
  }

 private:
  struct Request {
    std::span<const Addition> additions;
    std::span<Answer> answers;
    TimeMs now_ms;
    bool values;
    Result<void> result = {};
  };

  // Holds the lock while the table changes. If an exception ends the change, the ledger may be
  // ahead of the store for good.
  class Changing {
   public:
    explicit Changing(Body& body) : body_(body), lock_(body.mutex_) {}
    ~Changing() {
      if (std::uncaught_exceptions() > before_) body_.writer_.give_up();
    }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    Body& body_;
    std::lock_guard<std::mutex> lock_;
    int before_ = std::uncaught_exceptions();
  };

  // The caller of these holds the lock.
  Result<void> ready_to_write() const {
    if (settings_.read_only)
      return Error{Errc::unsupported, "the table was opened for reading only"};
    return writer_.usable();
  }
  Result<void> run(std::span<Request* const> group);
  Result<void> run(const Ledger::Call& call);
  Result<void> commit_durably();

  Result<void> arrive(ArrivedEntries arrived);

  OrderedStore& store_;
  Settings settings_;
  std::uint64_t recalled_;
  mutable std::mutex mutex_;  // for ledger and writer; taken after a view of the index
  Ledger ledger_;
  StoreWriter writer_;
  GroupCommit<Request> group_commit_;
  SharedEntries entries_;
  std::mutex index_mutex_;  // of the pointer
  std::unique_ptr<IndexedStore> index_;
};

Result<void> TallyStore::Body::commit_durably() {
  SEMEL_TRY(writer_.commit());
  if (settings_.durability != Durability::every_write || !writer_.unsynced()) return {};
  return writer_.sync();
}

// An error is one of the whole group; errors of single requests are in them.
Result<void> TallyStore::Body::run(std::span<Request* const> group) {
  SEMEL_TRY(ready_to_write());
  for (Request* request : group) {
    ledger_.advance(request->now_ms);
    const Ledger::Call call{request->additions, request->answers, request->now_ms, request->values};
    const Result<Ledger::Judged> judged = ledger_.judge(call, writer_.batch());
    if (!judged) {
      request->result = judged.error();
      continue;
    }
    // apply() reads the store, so all earlier changes must be there.
    if (judged->reads()) SEMEL_TRY(writer_.commit());
    request->result = ledger_.apply(*judged, writer_.batch());
  }
  return commit_durably();
}

Result<Answer> TallyStore::Body::change(Operation::Kind kind, std::string_view counter,
                                        const OperationId& id, TimeMs now_ms) {
  const Changing changing(*this);
  SEMEL_TRY(ready_to_write());
  ledger_.advance(now_ms);
  const Addition change{counter, 0, id};
  Answer answer;
  SEMEL_TRY(ledger_.run({{&change, 1}, {&answer, 1}, now_ms, true, kind}, writer_.batch()));
  SEMEL_TRY(commit_durably());
  return answer;
}

Result<void> TallyStore::Body::arrive(ArrivedEntries arrived) {
  if (settings_.clock == nullptr) {
    return Error{Errc::unsupported, "a table without a clock takes nothing from other sites"};
  }
  const Changing changing(*this);
  SEMEL_TRY(ready_to_write());
  // Entries of another table change nothing, not even the time.
  const OperationLog& log = ledger_.log();
  for (const auto& [site, view] : arrived.views) SEMEL_TRY(log.check_group(view));
  ledger_.advance(settings_.clock->now_ms());
  SEMEL_TRY(writer_.forget_old_ids());
  const bool superseded = log.superseded();
  ledger_.receive(arrived.operations, writer_.batch());
  for (const auto& [site, view] : arrived.views) {
    (void)ledger_.receive_view(site, view, writer_.batch());
    if (site != log.site()) {
      writer_.batch().put(view_key(site), bytes_of(entry_of(site, *log.view_of(site))));
    }
  }
  if (log.superseded() != superseded) writer_.put_state();
  return writer_.commit();
}

Result<void> TallyStore::Body::tick(TimeMs now_ms) {
  std::uint64_t begun = 0;
  {
    const Changing changing(*this);
    SEMEL_TRY(ready_to_write());
    ledger_.advance(now_ms);
    SEMEL_TRY(writer_.forget_old_ids());
    const TimeMs time_ms = ledger_.time_of(now_ms);
    const bool due = settings_.durability == Durability::periodic && writer_.unsynced() &&
                     time_ms >= later_by(writer_.synced_ms(), settings_.period_ms);
    if (!due) return {};
    begun = writer_.begin_sync(time_ms);
  }
  // The lock is free while the disk works. Until the sync is done, others that need it sync too.
  const Result<void> synced = store_.sync();
  const Changing changing(*this);
  return writer_.end_sync(begun, synced);
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
  const Changing changing(*this);
  SEMEL_TRY(ready_to_write());
  SEMEL_TRY(ledger_.admit(site));
  writer_.put_state();
  return writer_.publish();
}

Result<void> TallyStore::Body::retire(SiteId site) {
  const Changing changing(*this);
  SEMEL_TRY(ready_to_write());
  SEMEL_TRY(ledger_.retire(site, writer_.batch()));
  writer_.put_state();
  return writer_.publish();
}

Result<void> TallyStore::Body::copy_to(OrderedStore& other) {
  constexpr std::size_t kCopied = 1 << 20;  // bytes in one write
  const Changing changing(*this);
  SEMEL_TRY(ledger_.log().in_force());
  SEMEL_TRY(ready_to_write());
  SEMEL_TRY(writer_.publish());
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store_.cursor());
  Cursor& at = *cursor;
  StoreBatch copies(other, false);
  std::size_t bytes = 0;
  for (at.seek({}); at.valid(); at.next()) {
    copies.put(at.key(), bytes_of(at.value()));
    bytes += at.key().size() + at.value().size();
    if (bytes < kCopied) continue;
    bytes = 0;
    SEMEL_TRY(copies.write());
  }
  SEMEL_TRY(at.status());
  SEMEL_TRY(copies.write());
  return other.sync();
}

Result<void> TallyStore::Body::scan(const NameRange& range, const VisitCounter& visit) const {
  std::unique_lock lock(mutex_);
  SEMEL_TRY(writer_.usable());
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store_.cursor());
  OverlayMerge merge(ledger_.log(), range);
  lock.unlock();

  const KeyRange keys = counter_range(range);
  Cursor& at = *cursor;
  for (at.seek(keys.first); at.valid() && keys.contains(at.key()); at.next()) {
    const CounterState state = SEMEL_TRY(CounterState::decode(bytes_of(at.value())));
    if (!merge.folded(at.key().substr(1), state.sum(), visit)) return {};
  }
  SEMEL_TRY(at.status());
  merge.rest(visit);
  return {};
}

Result<IndexedStore*> TallyStore::Body::index() {
  const std::lock_guard lock(index_mutex_);
  if (!index_) {
    // A store may get its observer only while nobody writes to it.
    const std::lock_guard writers(mutex_);
    index_ = SEMEL_TRY(
        IndexedStore::open(entries_, settings_.secret.value_or(no_secret()), index_settings()));
  }
  return index_.get();
}

Result<RangeSum> TallyStore::Body::sum(const NameRange& range) {
  IndexedStore* const index = SEMEL_TRY(this->index());
  while (true) {
    std::uint64_t folds = 0;
    {
      const std::lock_guard lock(mutex_);
      folds = writer_.folds();
    }
    const IndexedStore::View view = SEMEL_TRY(index->view());
    const std::lock_guard lock(mutex_);
    SEMEL_TRY(writer_.usable());
    // An operation that is folded between the view and now would be missing in both, or count
    // twice.
    if (!ledger_.log().alone() && folds != writer_.folds()) continue;
    const Aggregate folded = SEMEL_TRY(view.trie().sum(counter_range(range), view.cursor()));
    return ledger_.with_overlays({folded.count, folded.measure}, range, writer_.batch());
  }
}

TallyStore::TallyStore(std::unique_ptr<Body> body) : body_(std::move(body)) {}
TallyStore::~TallyStore() = default;

Result<std::unique_ptr<TallyStore>> TallyStore::open(OrderedStore& store, const Settings& settings,
                                                     TimeMs now_ms) {
  std::optional<Restart> restart = SEMEL_TRY(Restart::read(store, limits_of(settings), now_ms));
  std::unique_ptr<Body> body;
  if (restart) {
    SEMEL_TRY(check_agreement(settings, restart->shape));
    body = std::make_unique<Body>(store, settings, std::move(*restart));
  } else {
    if (!settings.recognition || settings.read_only) {
      return Error{Errc::invalid, "there is no table"};
    }
    Recogniser recogniser = SEMEL_TRY(Recogniser::make(*settings.recognition, now_ms));
    body = std::make_unique<Body>(
        store, settings, Ledger(std::move(recogniser), settings.site, limits_of(settings)));
    SEMEL_TRY(body->begin());
  }
  return std::unique_ptr<TallyStore>(new TallyStore(std::move(body)));
}

Result<std::unique_ptr<TallyStore>> TallyStore::open_as(OrderedStore& store, SiteId site,
                                                        const Settings& settings, TimeMs now_ms) {
  std::optional<Restart> restart =
      SEMEL_TRY(Restart::read(store, limits_of(settings), now_ms, Restart::Time::copied));
  if (!restart) return Error{Errc::invalid, "there is no table"};
  SEMEL_TRY(check_agreement(settings, restart->shape));
  auto body = std::make_unique<Body>(store, settings, std::move(*restart));
  SEMEL_TRY(body->become(site, now_ms));
  return std::unique_ptr<TallyStore>(new TallyStore(std::move(body)));
}

Result<TallyStore::TakenOver> TallyStore::take_over(const TallyStore& superseded, TimeMs now_ms) {
  const Info info = superseded.info();
  const std::vector<Operation> operations = superseded.body_->unfolded();
  TakenOver taken;
  std::vector<Addition> additions;
  for (const Operation& operation : operations) {
    const SiteId site = operation.dot.site;
    const bool wanted = site == info.site || std::find(info.forked.begin(), info.forked.end(),
                                                       site) != info.forked.end();
    if (!wanted) continue;
    if (operation.kind == Operation::Kind::add) {
      additions.push_back({operation.counter, operation.delta, operation.id});
    } else {
      ++taken.resets;
    }
  }
  std::vector<Answer> answers(additions.size());
  SEMEL_TRY(add(additions, answers, now_ms));
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
  SEMEL_TRY(body_->add({&addition, 1}, {&answer, 1}, now_ms, values));
  return answer;
}

Result<Answer> TallyStore::reset(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::reset, counter, id, now_ms);
}

Result<Answer> TallyStore::remove(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::remove, counter, id, now_ms);
}

Result<std::optional<std::int64_t>> TallyStore::get(std::string_view counter) const {
  return SEMEL_TRY(body_->get({&counter, 1})).front();
}

Result<std::vector<std::optional<std::int64_t>>> TallyStore::get(
    std::span<const std::string_view> counters) const {
  return body_->get(counters);
}

Result<IndexedStore*> TallyStore::ready_to_sync() {
  SEMEL_TRY(body_->publish());
  return body_->index();
}

Result<void> TallyStore::scan(const NameRange& range, const VisitCounter& visit) const {
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
