#include "semel/tally/table.h"

#include <string>
#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/seal.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/overlay_merge.h"

namespace semel::tally {
namespace {

constexpr std::uint32_t kMagic = 0x32544d53;  // "SMT2"
constexpr std::size_t kTrailerSize = 8;

// Counters in memory as the base of a ledger. What is not folded, the log holds: nothing to do.
class MemoryBase final : public Ledger::Base {
 public:
  explicit MemoryBase(Counters& counters) : counters_(counters) {}

  void fold(std::string_view counter, const Shard& shard) override {
    counters_.add({counter, shard});
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
  void fold_all(std::span<const Counters::Addition> additions, std::span<int128> sums) override {
    counters_.add(additions, sums);
  }
  bool tells_sums() const override { return true; }
  void reserve(std::span<const Addition> additions) override {
    std::size_t names = 0;
    for (const Addition& addition : additions) names += addition.counter.size();
    counters_.reserve(additions.size(), names);
  }
  void remember(const Recogniser::Query& /*query*/) override {}

 private:
  Counters& counters_;
};

}  // namespace

class Table::Body {
 public:
  Body(Ledger made, const OperationLog::Limits& bounds) : ledger(std::move(made)), limits(bounds) {}

  Counters counters;
  Ledger ledger;
  MemoryBase base{counters};
  OperationLog::Limits limits;
};

Table::Table(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;
Table::~Table() = default;

Result<Table> Table::make(const Settings& settings, TimeMs now_ms) {
  Result<Recogniser> recogniser = Recogniser::make(settings.recogniser, now_ms);
  if (!recogniser) return recogniser.error();
  return Table(std::make_unique<Body>(Ledger(std::move(*recogniser), settings.site, settings.log),
                                      settings.log));
}

Result<void> Table::add(std::span<const Addition> additions, std::span<Answer> answers,
                        TimeMs now_ms) {
  const Result<bool> refused =
      body_->ledger.answer_refused(additions, answers, now_ms, body_->base);
  if (!refused) return refused.error();
  if (*refused) return {};
  for (Answer& answer : answers) answer.outcome = kUnanswered;
  body_->ledger.advance(now_ms);
  return body_->ledger.add(additions, answers, true, body_->base);
}

Counters::Seek Table::seek(std::string_view counter) const { return body_->counters.seek(counter); }

Result<Answer> Table::add(const Addition& addition, Counters::Seek seek, TimeMs now_ms) {
  Counters& counters = body_->counters;
  Ledger& ledger = body_->ledger;
  if (const std::optional<Dot> dot = ledger.alone(addition)) {
    // A counter is two misses of the cache away, the bits of an id one: they overlap.
    ledger.begin(addition);
    counters.approach(seek);
    // Where time stands still, what is refused leaves no trace anyway.
    const bool stands = ledger.time_of(now_ms) <= ledger.recogniser().now();
    Outcome outcome = stands ? Outcome::applied : ledger.test_alone(addition, now_ms);
    if (outcome == Outcome::applied) {
      ledger.advance(now_ms);
      counters.reserve(1, addition.counter.size());
      outcome = ledger.add_alone(addition, *dot);
    }
    const std::optional<int128> sum =
        outcome == Outcome::applied
            ? counters.add({addition.counter, {dot->site, dot->counter, 1, addition.delta}}, seek)
            : counters.sum_of(addition.counter, seek);
    return Answer{outcome, narrowed(sum)};
  }
  Answer answer;
  const Result<void> added = add({&addition, 1}, {&answer, 1}, now_ms);
  if (!added) return added.error();
  return answer;
}

Result<Answer> Table::reset(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  body_->ledger.advance(now_ms);
  return body_->ledger.change(Operation::Kind::reset, counter, id, body_->base);
}

Result<Answer> Table::remove(std::string_view counter, const OperationId& id, TimeMs now_ms) {
  body_->ledger.advance(now_ms);
  return body_->ledger.change(Operation::Kind::remove, counter, id, body_->base);
}

Result<std::optional<std::int64_t>> Table::get(std::string_view counter) const {
  return body_->ledger.get(counter, body_->base);
}

Result<std::vector<std::optional<std::int64_t>>> Table::many(
    std::span<const std::string_view> counters) const {
  return body_->ledger.many(counters, body_->base);
}

void Table::scan(const NameRange& range, const Counters::Visit& visit) const {
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
  SEMEL_ASSERT(sum.has_value());  // memory does not fail to read
  return *sum;
}

Result<void> Table::admit(SiteId site) { return body_->ledger.admit(site); }
Result<void> Table::retire(SiteId site) { return body_->ledger.retire(site, body_->base); }
Result<void> Table::become(SiteId site, TimeMs now_ms) {
  return body_->ledger.become(site, now_ms);
}

void Table::entries(const VisitEntry& visit) {
  if (log().superseded()) return;
  body_->ledger.say(log().view(), body_->base);
  Bytes value;
  log().operations([&](const Operation& operation) {
    value.clear();
    operation.encode(value);
    visit(operation_key(operation.dot), value);
  });
  log().views([&](SiteId site, const SiteView& view) {
    value.clear();
    view.encode(value);
    visit(view_key(site), value);
  });
}

Result<bool> Table::take(std::string_view key, ByteView value, TimeMs now_ms) {
  body_->ledger.advance(now_ms);
  if (const std::optional<Dot> dot = dot_of_key(key)) {
    const Result<Operation> operation = Operation::decode(*dot, value);
    if (!operation) return operation.error();
    return body_->ledger.take({&*operation, 1}, body_->base);
  }
  if (const std::optional<SiteId> site = site_of_key(key)) {
    const Result<SiteView> view = SiteView::decode(value);
    if (!view) return view.error();
    const Result<void> heard = body_->ledger.hear(*site, *view, body_->base);
    if (!heard) return heard.error();
    return true;
  }
  return Error{Errc::corrupt, "no entry of a table"};
}

void Table::advance(TimeMs now_ms) {
  if (body_->ledger.time_of(now_ms) > recogniser().now()) body_->ledger.advance(now_ms);
}

const Recogniser& Table::recogniser() const { return body_->ledger.recogniser(); }
const OperationLog& Table::log() const { return body_->ledger.log(); }

std::uint64_t Table::bytes() const {
  return body_->counters.bytes() + body_->ledger.bytes() + sizeof(Body);
}

void Table::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u64(body_->limits.most_operations);
  body_->ledger.state().encode(out);

  w.varint(encoded_size(recogniser()));
  recogniser().encode(out);

  Bytes part;  // a small one
  std::uint64_t count = 0;
  log().operations([&](const Operation& /*operation*/) { ++count; });
  w.varint(count);
  log().operations([&](const Operation& operation) {
    part.clear();
    operation.encode(part);
    w.u64(operation.dot.packed());
    w.text(text_of(part));
  });
  count = 0;
  log().views([&](SiteId /*site*/, const SiteView& /*view*/) { ++count; });
  w.varint(count);
  log().views([&](SiteId site, const SiteView& view) {
    part.clear();
    view.encode(part);
    w.u16(site);
    w.text(text_of(part));
  });
  w.varint(body_->counters.size());
  body_->counters.scan_states({}, [&](std::string_view counter, const CounterState& state) {
    part.clear();
    state.encode(part);
    w.text(counter);
    w.text(text_of(part));
    return true;
  });
  seal.close();
}

bool Table::operator==(const Table& other) const {
  Bytes ours, theirs;
  encode(ours);
  other.encode(theirs);
  return ours == theirs;
}

Result<Table> Table::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  OperationLog::Limits limits;
  limits.most_operations = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "table: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "table: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "table: checksum"};
  }
  const Result<Ledger::State> state = Ledger::State::decode(r);
  if (!state) return state.error();
  const std::string_view encoded = r.text();
  if (!r.ok()) return Error{Errc::corrupt, "table: recogniser"};
  Result<Recogniser> recogniser = Recogniser::decode(bytes_of(encoded));
  if (!recogniser) return recogniser.error();

  std::vector<Operation> operations;
  const std::uint64_t count = r.varint();
  for (std::uint64_t i = 0; i < count && r.ok(); ++i) {
    const Dot dot = Dot::unpacked(r.u64());
    const std::string_view value = r.text();
    if (!r.ok() || dot.counter == 0) return Error{Errc::corrupt, "table: an operation"};
    if (i > 0 && !(operations.back().dot < dot)) {
      return Error{Errc::corrupt, "table: order of operations"};
    }
    Result<Operation> operation = Operation::decode(dot, bytes_of(value));
    if (!operation) return operation.error();
    operations.push_back(std::move(*operation));
  }
  std::map<SiteId, SiteView> views;
  const std::uint64_t sites = r.varint();
  for (std::uint64_t i = 0; i < sites && r.ok(); ++i) {
    const SiteId site = r.u16();
    const std::string_view value = r.text();
    if (!r.ok() || (!views.empty() && views.rbegin()->first >= site)) {
      return Error{Errc::corrupt, "table: order of views"};
    }
    Result<SiteView> view = SiteView::decode(bytes_of(value));
    if (!view) return view.error();
    views.emplace(site, std::move(*view));
  }
  if (!r.ok()) return Error{Errc::corrupt, "table: views"};
  Result<OperationLog> log = OperationLog::restore(state->log, operations, views, limits);
  if (!log) return log.error();
  if (log->state() != state->log) return Error{Errc::corrupt, "table: a state behind its views"};

  auto made = std::make_unique<Body>(
      Ledger(std::move(*recogniser), std::move(*log), state->bound, state->lag_ms), limits);
  const std::uint64_t counters = r.varint();
  std::string before;
  for (std::uint64_t i = 0; i < counters && r.ok(); ++i) {
    const std::string_view name = r.text();
    const std::string_view value = r.text();
    if (!r.ok() || (i > 0 && name <= before))
      return Error{Errc::corrupt, "table: order of counters"};
    const Result<CounterState> counter = CounterState::decode(bytes_of(value));
    if (!counter) return counter.error();
    if (counter->empty()) return Error{Errc::corrupt, "table: an empty counter"};
    for (const Shard& shard : counter->shards()) {
      if (!state->log.folded.contains({shard.site, shard.clock})) {
        return Error{Errc::corrupt, "table: a counter ahead of the state"};
      }
      made->counters.add({name, shard});
    }
    before = name;
  }
  if (!r.ok() || r.rest() != kTrailerSize) return Error{Errc::corrupt, "table: size"};
  return Table(std::move(made));
}

}  // namespace semel::tally
