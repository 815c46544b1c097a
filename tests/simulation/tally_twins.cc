#include "tests/simulation/tally_twins.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "semel/core/clock.h"
#include "semel/core/internal/arithmetic.h"
#include "semel/store/memory_store.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/store/counter_merger.h"
#include "tests/simulation/tally_checker.h"
#include "tests/simulation/tally_digits.h"

namespace semel::simulation {
namespace {

using tally::OperationId;
using tally::Outcome;
using tally::TallyStore;

constexpr int kRounds = 8;  // exchanges until sites come to rest
constexpr SiteId kStranger = 99;

using Records = std::vector<std::pair<std::string, std::string>>;

Records records_of(const OrderedStore& store, std::string_view first = {},
                   std::string_view end = "\xff") {
  Records records;
  const auto cursor = *store.cursor();
  for (cursor->seek(first); cursor->valid() && cursor->key() < end; cursor->next()) {
    records.emplace_back(cursor->key(), cursor->value());
  }
  return records;
}

Result<void> write_all(OrderedStore& store, const Records& records) {
  std::vector<RecordWrite> writes;
  for (const auto& [key, value] : records) writes.push_back({key, value});
  return store.write(writes);
}

class Twins {
 public:
  Twins(const TallyPlan& plan, std::ostream* trace)
      : plan_(plan),
        trace_(trace),
        random_(mix(plan.seed) ^ static_cast<std::uint64_t>(plan.sites)) {
    tally::Recognition goal;
    goal.kind = static_cast<tally::Recognition::Kind>(random_.below(3));
    goal.fpr = 1e-9;
    goal.ids = 64;
    settings_.recognition = goal;
    settings_.durability = tally::Durability::every_write;
    settings_.clock = &clock_;
  }

  TallyOutcome run() {
    TallyOutcome outcome;
    try {
      begin();
      const std::uint64_t steps = 40 + random_.below(80);
      for (std::uint64_t i = 0; i < steps; ++i) step();
      finish();
    } catch (const Violation& violation) {
      tell("VIOLATION: ", violation.text);
      outcome.violation = violation;
    }
    outcome.counts = counts_;
    return outcome;
  }

 private:
  // An open table. Several may have one id.
  struct Process {
    SiteId id;
    bool apart = false;  // made apart from the table of the others
    std::unique_ptr<MemoryStore> disk;
    std::unique_ptr<TallyStore> table = nullptr;
    std::optional<Records> backup = {};
  };
  struct Operation {
    std::string counter;
    std::int64_t delta;
    OperationId id;
    bool acknowledged = false;  // by the table of the others
    bool may_be_lost = false;
  };

  template <class... Words>
  void tell(const Words&... words) {
    if (trace_ != nullptr) (*trace_ << ... << words) << "\n";
  }

  // The beginning.

  static tally::internal::OperationLog::State log_state(const OrderedStore& disk) {
    const Result<std::optional<std::string>> bytes = disk.get(tally::internal::kStateKey);
    Reader reader(bytes_of(**bytes));
    return tally::internal::Ledger::State::decode(reader)->log;
  }

  std::unique_ptr<MemoryStore> new_disk() {
    return std::make_unique<MemoryStore>(4096, &tally::counter_merger());
  }

  void open(Process& process) {
    process.table.reset();
    TallyStore::Settings settings = settings_;
    settings.site = process.id;
    auto opened = TallyStore::open(*process.disk, settings, clock_.now_ms());
    require(opened, "a table cannot be opened");
    process.table = std::move(*opened);
  }

  void begin() {
    processes_.push_back({1, false, new_disk()});
    open(processes_.front());
    for (int i = 1; i < plan_.sites; ++i) add_site(static_cast<SiteId>(i + 1), 0);
    for (int round = 0; round < 3; ++round) exchange_all();
  }

  void add_site(SiteId id, std::size_t from) {
    Process process{id, false, new_disk()};
    TallyStore& member = *processes_[from].table;
    require(member.admit(id), "admit");
    require(member.copy_to(*process.disk), "a copy");
    auto opened = TallyStore::open_as(*process.disk, id, settings_, clock_.now_ms());
    require(opened, "a copy cannot be opened");
    process.table = std::move(*opened);
    processes_.push_back(std::move(process));
    exchange_all();
    exchange_all();
  }

  // The steps.

  void step() {
    clock_.set(clock_.now_ms() + static_cast<TimeMs>(random_.below(500)));
    Process& any = processes_[random_.below(processes_.size())];
    const std::uint64_t what = random_.below(100);
    if (what < 45) {
      ask(any, begin_operation());
    } else if (what < 60) {
      if (!operations_.empty()) ask(any, random_.below(operations_.size()));
    } else if (what < 88) {
      exchange(any, processes_[random_.below(processes_.size())]);
    } else if (what < 92) {
      tell("site ", any.id, " is killed");
      open(any);
    } else if (what < 95) {
      back_up(any);
    } else if (what < 98) {
      restore(any);
    } else if (random_.below(2) == 0) {
      make_twin(any);
    } else {
      make_stranger();
    }
  }

  std::size_t begin_operation() {
    const std::size_t number = operations_.size();
    const Digits::Place place = digits_.next(number, random_.below(4) == 0, false);
    const OperationId id = random_.below(3) == 0 ? OperationId::numbered({7, 7}, number + 1)
                                                 : OperationId::opaque({mix(number), mix(~number)});
    operations_.push_back({place.counter, place.delta, id});
    ++counts_.operations;
    return number;
  }

  void ask(Process& at, std::size_t number) {
    Operation& operation = operations_[number];
    const Result<tally::Answer> answer =
        at.table->add({operation.counter, operation.delta, operation.id}, clock_.now_ms());
    if (!answer) {
      const Errc code = answer.error().code;
      require(code == Errc::forked || code == Errc::gap, answer.error().message());
      note_told("site " + std::to_string(at.id) + " refuses operations");
      return;
    }
    tell("site ", at.id, at.apart ? " (apart)" : "", " answers operation ", number, ": ",
         static_cast<int>(answer->outcome));
    require(answer->outcome == Outcome::applied || answer->outcome == Outcome::duplicate,
            "a refusal without a reason");
    if (!at.apart) operation.acknowledged = true;
    check_never_twice(at);
  }

  void exchange(Process& from, Process& to) {
    if (&from == &to) return;
    ++counts_.messages;
    if (const Result<void> said = from.table->publish(); !said) {
      require(said.error().code == Errc::forked, said.error().message());
      note_told("site " + std::to_string(from.id) + " says nothing more");
    }
    const Records entries = records_of(from.table->entries(), tally::internal::kSharedFirst,
                                       tally::internal::kSharedEnd);
    const bool believes = plan_.fault == TallyFault::doubles_unnoticed;
    const Result<void> taken =
        write_all(to.table->entries(), believes ? believed(entries, log_state(*to.disk)) : entries);
    tell("site ", to.id, to.apart ? " (apart)" : "", " takes ", entries.size(), " entries of site ",
         from.id, from.apart ? " (apart)" : "", taken ? "" : ": refused");
    if (!taken) {
      require(taken.error().code == Errc::mismatch, taken.error().message());
      require(from.apart || to.apart, "sites of one table refuse each other");
      note_told("tables that were made apart refuse each other");
    }
    check_never_twice(to);
  }

  void exchange_all() {
    for (Process& from : processes_) {
      for (Process& to : processes_) exchange(from, to);
    }
  }

  // Only one id at a time may be false: its first process may be the last to hold operations that a
  // second loses.
  bool may_be_false(SiteId id) {
    if (!false_) false_ = id;
    return *false_ == id;
  }

  void back_up(Process& at) {
    tell("site ", at.id, " is backed up");
    at.backup = records_of(*at.disk);
  }

  void restore(Process& at) {
    if (!at.backup || !may_be_false(at.id)) return;
    tell("site ", at.id, " is restored from its backup");
    ++counts_.restored;
    const std::set<std::size_t> before = counted();
    at.table.reset();
    at.disk = new_disk();
    require(write_all(*at.disk, *at.backup), "a backup");
    open(at);
    const std::set<std::size_t> after = counted();
    for (const std::size_t number : before) {
      if (!after.contains(number)) operations_[number].may_be_lost = true;
    }
  }

  // Returns the operations that some site counts.
  std::set<std::size_t> counted() {
    std::set<std::size_t> counted;
    for (Process& each : processes_) {
      for (std::size_t i = 0; i < operations_.size() && !each.apart; ++i) {
        if (times(each, i) > 0) counted.insert(i);
      }
    }
    return counted;
  }

  // Starts another process with the same id, from a backup or the present state.
  void make_twin(const Process& of) {
    if (processes_.size() > 8 || !may_be_false(of.id)) return;
    tell("site ", of.id, " has a twin");
    ++counts_.twins;
    Process twin{of.id, of.apart, new_disk()};
    require(write_all(*twin.disk,
                      of.backup && random_.below(2) == 0 ? *of.backup : records_of(*of.disk)),
            "a twin");
    open(twin);
    processes_.push_back(std::move(twin));
  }

  // Makes a separate table, with or without operations. It and the others list each other as
  // members.
  void make_stranger() {
    const bool has_one = std::any_of(processes_.begin(), processes_.end(),
                                     [](const Process& each) { return each.apart; });
    if (has_one) return;
    ++counts_.strangers;
    const SiteId id = random_.below(2) == 0 ? kStranger : SiteId{1};
    tell("a table is made apart, as site ", id);
    Process stranger{id, true, new_disk()};
    open(stranger);
    processes_.push_back(std::move(stranger));
    for (std::uint64_t i = random_.below(4); i > 0; --i) ask(processes_.back(), begin_operation());
    if (id != kStranger) return;
    (void)processes_.front().table->admit(id);
    (void)processes_.back().table->admit(1);
  }

  void note_told(const std::string& what) {
    if (!std::exchange(told_, true)) tell("it is told: ", what);
  }

  // The end.

  bool superseded(const Process& process) const { return process.table->info().superseded; }

  void finish() {
    for (int round = 0; round < kRounds; ++round) exchange_all();
    for (const Process& each : processes_) {
      if (superseded(each) || !each.table->info().forked.empty()) note_told("a site is found out");
    }
    if (told_) {
      ++counts_.found_out;
      std::optional<Process> main = leave_one();
      if (!main) return;  // all refuse
      processes_.clear();
      processes_.push_back(std::move(*main));
    }
    check_end();
  }

  // One valid site continues. The others are retired, and it takes over their operations. That is
  // not needed for sites that agree with it, but it does no harm.
  std::optional<Process> leave_one() {
    const auto main =
        std::find_if(processes_.begin(), processes_.end(),
                     [this](const Process& each) { return !each.apart && !superseded(each); });
    if (main == processes_.end()) return std::nullopt;
    tell("site ", main->id, " goes on");
    for (const Process& each : processes_) {
      if (main->table->info().members.active(each.id) && each.id != main->id) {
        require(main->table->retire(each.id), "retire");
      }
    }
    // A site that was admitted and also made separately is a member too.
    for (const SiteId site : {kStranger}) {
      if (main->table->info().members.active(site)) {
        require(main->table->retire(site), "retire");
      }
    }
    for (const Process& each : processes_) {
      if (&each == &*main || each.apart) continue;
      const Result<TallyStore::TakenOver> taken =
          main->table->take_over(*each.table, clock_.now_ms());
      require(taken, "take over");
      tell("it takes over ", taken->applied, " operations of site ", each.id, ", and knew ",
           taken->known);
      require(taken->refused == 0, "operations of a site that is taken over are refused");
    }
    return std::move(*main);
  }

  void check_end() {
    for (Process& each : processes_) {
      require(each.apart || each.table->info().unfolded == 0, "the sites do not come to rest");
      for (std::size_t i = 0; i < operations_.size(); ++i) {
        const Operation& operation = operations_[i];
        if (each.apart || !operation.acknowledged || operation.may_be_lost) continue;
        require(times(each, i) == 1,
                "operation " + std::to_string(i) + " was acknowledged, and site " +
                    std::to_string(each.id) + " counts it " + std::to_string(times(each, i)) +
                    " times",
                Violation::Kind::lost);
      }
    }
  }

  // Returns how often a process counts an operation.
  int times(Process& process, std::size_t number) const {
    const std::string& counter = operations_[number].counter;
    const Result<std::optional<std::int64_t>> value = process.table->get(counter);
    require(value, "get");
    const auto counts = digits_.counts(counter, value->value_or(0));
    require(counts.has_value(), "no operations add up to a value");
    return counts->at(number);
  }

  void check_never_twice(Process& process) const {
    for (const std::string& counter : digits_.counters()) {
      const Result<std::optional<std::int64_t>> value = process.table->get(counter);
      require(value, "get");
      const auto counts = digits_.counts(counter, value->value_or(0));
      require(counts.has_value(), "no operations add up to a value");
      for (const auto& [number, times] : *counts) {
        require(times == 0 || times == 1,
                "site " + std::to_string(process.id) + " counts operation " +
                    std::to_string(number) + " " + std::to_string(times) + " times",
                Violation::Kind::doubled);
      }
    }
  }

  TallyPlan plan_;
  std::ostream* trace_;
  Random random_;
  ManualClock clock_{1'000'000'000};
  TallyStore::Settings settings_;
  std::vector<Process> processes_;
  std::vector<Operation> operations_;
  Digits digits_;
  TallyCounts counts_;
  bool told_ = false;
  std::optional<SiteId> false_;  // the id with more than one site, or with an older one
};

}  // namespace

TallyOutcome simulate_twins(const TallyPlan& plan, std::ostream* trace) {
  return Twins(plan, trace).run();
}

}  // namespace semel::simulation
