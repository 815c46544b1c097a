#include "semel/tally/table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/internal/overlay_merge.h"

namespace semel::tally {

using namespace internal;

namespace {

constexpr Format kFormat{"STT", 1, "table"};

// Counters in memory as the base of a ledger. The log holds the unfolded operations, so some calls
// do nothing.
class MemoryBase final : public Ledger::Base {
 public:
  // left() returns how many bytes the table may still take, nullopt if it uses too many already.
  using Left = std::function<std::optional<std::uint64_t>()>;
  MemoryBase(Counters& counters, Left left) : counters_(counters), left_(std::move(left)) {}

  std::optional<int128> fold(std::string_view counter, const Shard& shard) override {
    return counters_.add({counter, shard});
  }
  void clear(std::string_view counter) override { counters_.remove(counter); }
  void hold(const Operation& /*operation*/) override {}
  void keep(const Operation& /*operation*/) override {}
  void drop(Dot /*dot*/) override {}
  Result<void> sums_of(std::span<const std::string_view> counters,
                       std::span<std::optional<int128>> sums) const override {
    counters_.sums_of(counters, sums);
    return {};
  }
  void fold_all(std::span<const NamedShard> shards, std::span<int128> sums) override {
    counters_.add(shards, sums);
  }
  bool knows_sums() const override { return true; }
  bool has_room(std::string_view counter) const override {
    const std::optional<std::uint64_t> left = left_();
    return left && counters_.fits(counter, *left);
  }
  void make_room(std::string_view counter) override {
    counters_.make_room(counter, left_().value_or(0));
  }
  void prefetch(std::string_view counter) const override { counters_.prefetch(counter); }
  void reserve(std::span<const Addition> additions) override {
    std::size_t names = 0;
    for (const Addition& addition : additions) names += addition.counter.size();
    counters_.reserve(additions.size(), names);
  }
  void remember(const Recogniser::Query& /*query*/) override {}

 private:
  Counters& counters_;
  Left left_;
};

}  // namespace

class Table::Body {
 public:
  Body(Ledger made, const OperationLog::Limits& bounds) : ledger(std::move(made)), limits(bounds) {}

  Result<Answer> change(Operation::Kind kind, std::string_view counter, const OperationId& id,
                        TimeMs now_ms) {
    const Addition change{counter, 0, id};
    Answer answer;
    SEMEL_TRY(ledger.run({{&change, 1}, {&answer, 1}, now_ms, true, kind}, base));
    return answer;
  }

  // Returns true if the table stays within `max_bytes` even if all of these counters are new.
  bool has_room(std::size_t some, std::size_t name_bytes, std::uint64_t max_bytes) {
    const std::size_t bytes = Counters::most_used(some, name_bytes);
    if (bytes > room_ || max_bytes != max_bytes_) return measure(bytes, max_bytes);
    room_ -= bytes;
    return true;
  }

  std::uint64_t bytes() const { return counters.bytes() + ledger.bytes() + sizeof(Body); }

  Counters counters;
  Ledger ledger;
  MemoryBase base{counters, [this] { return bytes_left(); }};
  OperationLog::Limits limits;

 private:
  // Returns true if there is room for new counters of so many bytes. If there is more, the next
  // calls need not measure.
  [[gnu::noinline]] bool measure(std::size_t bytes, std::uint64_t max_bytes) {
    max_bytes_ = max_bytes;
    room_ = 0;
    const std::optional<std::uint64_t> left = bytes_left();
    if (!left) return false;
    for (const std::size_t more : {std::size_t{1} << 20, std::size_t{64} << 10}) {
      if (!counters.fit(bytes + more, *left)) continue;
      room_ = more;
      return true;
    }
    return counters.fit(bytes, *left);
  }

  std::optional<std::uint64_t> bytes_left() const {
    const std::uint64_t taken = bytes();
    if (taken - counters.unused_bytes() > max_bytes_) return std::nullopt;
    return max_bytes_ - std::min(max_bytes_, taken);
  }

  std::uint64_t max_bytes_ = kNoCap;  // of the last call with a limit
  std::uint64_t room_ = 0;            // for new counters, as it was measured
};

Table::Table(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

Result<Table> Table::make(const Settings& settings, TimeMs now_ms) {
  const OperationLog::Limits limits{settings.max_unfolded};
  Recogniser recogniser = SEMEL_TRY(Recogniser::make(settings.recognition, now_ms));
  return Table(
      std::make_unique<Body>(Ledger(std::move(recogniser), settings.site, limits), limits));
}

Result<void> Table::add(std::span<const Addition> additions, std::span<Answer> answers,
                        TimeMs now_ms, std::uint64_t max_bytes) {
  const auto add_name = [](std::size_t sum, const Addition& one) {
    return sum + one.counter.size();
  };
  const std::size_t names =
      std::accumulate(additions.begin(), additions.end(), std::size_t{0}, add_name);
  const bool few = max_bytes != kNoCap && !body_->has_room(additions.size(), names, max_bytes);
  return body_->ledger.run({additions, answers, now_ms, true, Operation::Kind::add, few},
                           body_->base);
}

Result<Answer> Table::add(const Addition& addition, TimeMs now_ms, std::uint64_t max_bytes) {
  body_->counters.prefetch_place(addition.counter);
  Answer answer;
  const bool few = max_bytes != kNoCap && !body_->has_room(1, addition.counter.size(), max_bytes);
  SEMEL_TRY(body_->ledger.run(
      {{&addition, 1}, {&answer, 1}, now_ms, true, Operation::Kind::add, few}, body_->base));
  return answer;
}

Result<Answer> Table::reset(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::reset, counter, id, now_ms);
}

Result<Answer> Table::remove(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  return body_->change(Operation::Kind::remove, counter, id, now_ms);
}

Result<std::optional<std::int64_t>> Table::get(std::string_view counter) const {
  return SEMEL_TRY(body_->ledger.get({&counter, 1}, body_->base)).front();
}

Result<std::vector<std::optional<std::int64_t>>> Table::get(
    std::span<const std::string_view> counters) const {
  return body_->ledger.get(counters, body_->base);
}

void Table::scan(const NameRange& range, const VisitCounter& visit) const {
  OverlayMerge merge(body_->ledger.log(), range);
  bool more = true;
  body_->counters.scan(range, [&](std::string_view counter, int128 sum) {
    more = merge.folded(counter, sum, visit);
    return more;
  });
  if (more) merge.rest(visit);
}

RangeSum Table::sum(const NameRange& range) const {
  Result<RangeSum> sum =
      body_->ledger.with_overlays(body_->counters.sum(range), range, body_->base);
  SEMEL_ASSERT(sum.has_value());  // reading memory never fails
  return *sum;
}

Result<void> Table::admit(SiteId site) { return body_->ledger.admit(site); }
Result<void> Table::retire(SiteId site) { return body_->ledger.retire(site, body_->base); }
Result<void> Table::become(SiteId site, TimeMs now_ms) {
  return body_->ledger.become(site, now_ms);
}

void Table::publish(const VisitEntry& visit) {
  if (log().superseded()) return;
  body_->ledger.record_published(log().view(), body_->base);
  log().operations([&](const Operation& operation) {
    visit(operation_key(operation.dot), bytes_of(entry_of(operation)));
  });
  log().views([&](SiteId site, const SiteView& view) {
    visit(view_key(site), bytes_of(entry_of(site, view)));
  });
}

// Nothing changes, not even the time, before the entry is known to be sound and of this table.
Result<bool> Table::receive(std::string_view key, ByteView value, TimeMs now_ms) {
  const SharedEntry entry = SEMEL_TRY(decode_entry(key, value));
  if (const auto* const said = std::get_if<ViewOfSite>(&entry)) {
    SEMEL_TRY(log().check_group(said->view));
    body_->ledger.advance(now_ms);
    SEMEL_TRY(body_->ledger.receive_view(said->site, said->view, body_->base));
    return true;
  }
  body_->ledger.advance(now_ms);
  return body_->ledger.receive({&std::get<Operation>(entry), 1}, body_->base);
}

void Table::advance(TimeMs now_ms) {
  if (body_->ledger.time_of(now_ms) > recogniser().now()) body_->ledger.advance(now_ms);
}

TableInfo Table::info() const { return body_->ledger.info(); }
const Recognition& Table::recognition() const { return recogniser().goal(); }
WindowCounts Table::counts() const { return recogniser().counts(); }
double Table::false_positive_rate() const { return recogniser().false_positive_rate(); }
std::uint64_t Table::holders(Dot dot) const { return log().holders(dot); }
const Recogniser& Table::recogniser() const { return body_->ledger.recogniser(); }
const OperationLog& Table::log() const { return body_->ledger.log(); }

std::uint64_t Table::bytes() const { return body_->bytes(); }

namespace {

// Writes a part after its length.
void write_part(Writer& w, const auto& part, Bytes& buffer) {
  buffer.clear();
  part.encode(buffer);
  w.text(text_of(buffer));
}

std::uint64_t counted(const auto& for_each) {
  std::uint64_t count = 0;
  for_each([&](const auto&...) { ++count; });
  return count;
}

Result<std::vector<Operation>> read_operations(Reader& r) {
  std::vector<Operation> operations;
  const std::uint64_t count = r.varint();
  for (std::uint64_t i = 0; i < count; ++i) {
    const Dot dot = Dot::unpacked(r.u64());
    const std::string_view value = r.text();
    if (!r.ok() || dot.counter == 0) return corrupt(kFormat, "an operation");
    if (i > 0 && !(operations.back().dot < dot)) return corrupt(kFormat, "order of operations");
    operations.push_back(SEMEL_TRY(Operation::decode(dot, bytes_of(value))));
  }
  return operations;
}

Result<std::map<SiteId, SiteView>> read_views(Reader& r) {
  std::map<SiteId, SiteView> views;
  const std::uint64_t sites = r.varint();
  for (std::uint64_t i = 0; i < sites; ++i) {
    const SiteId site = r.u16();
    const std::string_view value = r.text();
    const bool ascends = views.empty() || views.rbegin()->first < site;
    if (!r.ok() || !ascends) return corrupt(kFormat, "order of views");
    views.emplace(site, SEMEL_TRY(SiteView::decode(bytes_of(value))));
  }
  return views;
}

// Returns true if the site published more than its state has. A state only grows, so no table
// writes that.
bool published_more(const OperationLog::State& state, const std::map<SiteId, SiteView>& views) {
  const auto published = views.find(state.site);
  if (published == views.end()) return false;
  VersionVector held = state.held;
  Members members = state.members;
  return held.merge(published->second.held) || members.merge(published->second.members);
}

// The table takes no more memory than the one that was encoded, so that it has room wherever that
// one had room. So the last blocks are at most as large as the counters that are still to come.
Result<void> read_counters(Reader& r, const VersionVector& folded, Counters& counters) {
  constexpr std::uint64_t kOfCounter = 64, kAtOnce = 64;
  const std::uint64_t count = r.varint();
  std::string before;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i % kAtOnce == 0)
      counters.expect(std::min(count - i, r.rest()) * kOfCounter + r.rest() / 2);
    const std::string_view name = r.text();
    const std::string_view value = r.text();
    if (!r.ok() || (i > 0 && name <= before)) return corrupt(kFormat, "order of counters");
    const CounterState counter = SEMEL_TRY(CounterState::decode(bytes_of(value)));
    if (counter.empty()) return corrupt(kFormat, "an empty counter");
    for (const Shard& shard : counter.shards()) {
      if (!folded.contains({shard.site, shard.clock})) {
        return corrupt(kFormat, "a counter ahead of the state");
      }
      counters.add({name, shard});
    }
    before = name;
  }
  counters.expect(std::nullopt);
  return {};
}

}  // namespace

void Table::encode(Sink out) const {
  seal(out, kFormat, [this](Writer& w) {
    Bytes buffer;
    w.u64(body_->limits.max_unfolded);
    body_->ledger.state().encode(w.sink());
    w.varint(encoded_size(recogniser()));
    recogniser().encode(w.sink());

    w.varint(counted([&](const auto& visit) { log().operations(visit); }));
    log().operations([&](const Operation& operation) {
      w.u64(operation.dot.packed());
      write_part(w, operation, buffer);
    });
    w.varint(counted([&](const auto& visit) { log().views(visit); }));
    log().views([&](SiteId site, const SiteView& view) {
      w.u16(site);
      write_part(w, view, buffer);
    });
    w.varint(body_->counters.size());
    body_->counters.scan_states({}, [&](std::string_view counter, const CounterState& state) {
      w.text(counter);
      write_part(w, state, buffer);
      return true;
    });
  });
}

bool Table::operator==(const Table& other) const {
  Bytes ours, theirs;
  encode(ours);
  other.encode(theirs);
  return ours == theirs;
}

Result<Table> Table::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const OperationLog::Limits limits{r.u64()};
  const Ledger::State state = SEMEL_TRY(Ledger::State::decode(r));
  const std::string_view encoded = r.text();
  if (!r.ok()) return corrupt(kFormat, "recogniser");
  Recogniser recogniser = SEMEL_TRY(Recogniser::decode(bytes_of(encoded)));
  const std::vector<Operation> operations = SEMEL_TRY(read_operations(r));
  const std::map<SiteId, SiteView> views = SEMEL_TRY(read_views(r));
  if (published_more(state.log, views)) return corrupt(kFormat, "a state behind its own view");
  OperationLog log = SEMEL_TRY(OperationLog::restore(state.log, operations, views, limits));
  if (log.state() != state.log) return corrupt(kFormat, "a state behind its views");
  auto made = std::make_unique<Body>(
      Ledger(std::move(recogniser), std::move(log), state.bound, state.lag_ms), limits);
  SEMEL_TRY(read_counters(r, state.log.folded, made->counters));
  if (!r.at_end()) return corrupt(kFormat, "size");
  return Table(std::move(made));
}

}  // namespace semel::tally
