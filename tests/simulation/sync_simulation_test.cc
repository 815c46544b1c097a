// Simulates two and three stores that sync over a network that loses, doubles, cuts, corrupts and
// reorders frames, while both ends are written to and initiators crash.
//
// A seed names a run: SEMEL_SYNC_SEED=n runs that one alone, SEMEL_SYNC_RUNS=n runs that many.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "tests/simulation/sync_network.h"
#include "tests/support/index.h"
#include "tests/support/setting.h"

namespace semel::simulation {
namespace {

using End = Network::Outcome::End;

// The inputs of a run.
struct Scenario {
  std::uint64_t seed = 0;
  std::uint64_t keys = 100;
  std::optional<SyncWay> way;
  SyncRule rule = SyncRule::join;
  SyncRole role = SyncRole::initiator_is_source;
  bool remove_extra = false;
  NetworkFaults faults;
  double writes = 0;   // probability before a delivery
  double crashes = 0;  // the same
  std::uint32_t frame_bytes = 1U << 20;
  std::uint64_t stretch_records = 1000;
  std::uint32_t burst_bytes = 256;
};

std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << "seed " << scenario.seed << ", " << scenario.keys << " keys, way "
             << (scenario.way ? kSyncWayNames[static_cast<std::size_t>(*scenario.way)]
                              : "of the plan")
             << ", rule " << static_cast<int>(scenario.rule) << ", role "
             << static_cast<int>(scenario.role) << (scenario.remove_extra ? ", removes" : "")
             << ", lost " << scenario.faults.lost << ", doubled " << scenario.faults.doubled
             << ", cut " << scenario.faults.cut << ", corrupt " << scenario.faults.corrupt
             << ", reorder " << scenario.faults.reorder << ", writes " << scenario.writes
             << ", crashes " << scenario.crashes << ", frames of " << scenario.frame_bytes
             << ", stretches of " << scenario.stretch_records << ", bursts at "
             << scenario.burst_bytes;
}

Scenario drawn(std::uint64_t seed) {
  Random random(seed);
  // Rates are often zero, so that each fault is also seen alone.
  const auto rate = [&](double most) { return random.below(2) == 0 ? 0 : most * random.unit(); };
  Scenario scenario;
  scenario.seed = seed;
  scenario.keys = 1 + random.below(random.below(4) == 0 ? 2000 : 200);
  if (random.below(2) == 0) scenario.way = static_cast<SyncWay>(1 + random.below(4));
  scenario.faults = {rate(0.3), rate(0.3), rate(0.1), rate(0.1), rate(1)};
  scenario.writes = rate(0.3);
  scenario.crashes = rate(0.02);
  scenario.frame_bytes = static_cast<std::uint32_t>(2048U << random.below(8));
  scenario.stretch_records = 1 + random.below(random.below(2) == 0 ? 50 : 5000);
  scenario.burst_bytes = static_cast<std::uint32_t>(256U << random.below(5));
  scenario.role = static_cast<SyncRole>(random.below(2));
  scenario.remove_extra = random.below(2) == 0;
  return scenario;
}

// Draws keys and values of several kinds.
class Data {
 public:
  explicit Data(Random& random) : random_(random), manner_(random.below(4)) {}

  std::string key(std::uint64_t universe) {
    Random named(random_.below(universe) * 4 + manner_);  // the same number, the same key
    std::string key;
    switch (manner_) {
      case 0:  // short keys, many of which begin others
        for (std::uint64_t size = named.below(7); size > 0; --size) {
          key.push_back("\0\1a\xff"[named.below(4)]);
        }
        return key;
      case 1:
        return "user/" + std::to_string(100'000 + named.below(universe));
      case 2:
        for (int i = 0; i < 8; ++i) key.push_back(static_cast<char>(named()));
        return key;
      default:
        return std::string(40, 'p') + std::to_string(named.below(universe));
    }
  }

  std::string value() {
    const std::uint64_t size = random_.below(10) == 0 ? random_.below(200) : random_.below(20);
    std::string value;
    for (std::uint64_t i = 0; i < size; ++i) value.push_back(static_cast<char>(random_.below(3)));
    return value;
  }

  KeyRange range(std::uint64_t universe) {
    KeyRange range;
    if (random_.below(3) != 0) range.first = key(universe);
    if (random_.below(3) != 0) range.end = key(universe);
    return range.empty() ? KeyRange::all() : range;
  }

 private:
  Random& random_;
  std::uint64_t manner_;
};

Records within(const Records& records, const KeyRange& range) {
  Records inside = records;
  std::erase_if(inside, [&](const auto& record) { return !range.contains(record.first); });
  return inside;
}
Records outside(const Records& records, const KeyRange& range) {
  Records others = records;
  std::erase_if(others, [&](const auto& record) { return range.contains(record.first); });
  return others;
}

void join_into(Records& records, const std::string& key, const std::string& value,
               const Resolver& resolver) {
  const auto [found, is_new] = records.emplace(key, value);
  if (!is_new) found->second = resolver.merged(key, found->second, value);
}

class World {
 public:
  World(const Scenario& scenario, std::size_t sites)
      : scenario_(scenario), random_(scenario.seed), data_(random_) {
    resolver_.rule = scenario.rule;
    resolver_.role = scenario.role;
    resolver_.remove_extra = scenario.remove_extra && scenario.rule == SyncRule::source;
    for (std::size_t i = 0; i < sites; ++i) {
      // Containers need not be the same at both ends.
      const std::uint32_t burst = scenario.burst_bytes << (i == 1 ? random_.below(2) : 0);
      sites_.push_back(std::make_unique<SyncSite>(numbered_secret(9), burst));
    }
    range_ = data_.range(scenario.keys);
    fill();
  }

  SyncSite& site(std::size_t i) { return *sites_[i]; }
  const KeyRange& range() const { return range_; }
  Resolver& resolver() { return resolver_; }
  Random& random() { return random_; }

  SyncSettings settings() {
    SyncSettings settings;
    settings.range = range_;
    settings.resolver = resolver_;
    settings.way = scenario_.way;
    settings.limits.frame_bytes = scenario_.frame_bytes;
    settings.limits.stretch_records = scenario_.stretch_records;
    settings.seed = random_();
    return settings;
  }
  Responder responder(std::size_t i) {
    Responder::Terms terms;
    terms.range = range_;
    terms.resolver = resolver_;
    terms.limits.frame_bytes = scenario_.frame_bytes;
    return {site(i).index(), terms};
  }

  // Lets a client write anywhere.
  void write() {
    const std::size_t at = random_.below(sites_.size());
    const std::string key = data_.key(scenario_.keys);
    const std::string value = data_.value();
    site(at).join(key, value, resolver_);
    join_into(range_.contains(key) ? expected_ : others_[at], key, value, resolver_);
  }

  // Returns a key that no site has.
  std::string new_key() { return data_.key(scenario_.keys) + " that is new"; }

  // These return the records that all sites must hold in the range, under a join, and the records
  // that each holds besides.
  const Records& expected() const { return expected_; }
  const Records& others(std::size_t i) { return others_[i]; }

 private:
  void fill() {
    const double shared = random_.unit();
    // Now and then one site has almost nothing.
    const std::size_t poor = random_.below(4 * sites_.size());
    const std::uint64_t records = random_.below(scenario_.keys + 1);
    for (std::uint64_t n = 0; n < records; ++n) {
      const std::string key = data_.key(scenario_.keys);
      std::string value = data_.value();
      const bool same = random_.unit() < shared;
      const std::size_t only = random_.below(sites_.size() + 1);
      for (std::size_t i = 0; i < sites_.size(); ++i) {
        if (i == poor && random_.below(100) != 0) continue;
        if (!same) {
          if (only == i) continue;
          value = data_.value();
        }
        site(i).put(key, value);
      }
    }
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      for (const auto& [key, value] : site(i).records()) {
        join_into(range_.contains(key) ? expected_ : others_[i], key, value, resolver_);
      }
    }
  }

  Scenario scenario_;
  Random random_;
  Data data_;
  Resolver resolver_;
  std::vector<std::unique_ptr<SyncSite>> sites_;
  KeyRange range_;
  Records expected_;
  std::map<std::size_t, Records> others_;
};

std::string failure(const char* what, const Network::Outcome& outcome) {
  std::string text = what;
  if (outcome.end == End::failed)
    text += std::string(": ") + outcome.error.message() + ": " + outcome.words;
  if (outcome.end == End::endless) text += ": without end";
  return text;
}

// Each of these returns a description of the failure, or nothing if all is well.

// With join or newest, writes and crashes, all sites become equal and nothing is lost.
std::string converges(const Scenario& scenario, std::size_t sites) {
  World world(scenario, sites);
  Random& random = world.random();
  std::vector<Network> networks;
  for (std::size_t i = 0; i < sites * sites; ++i) networks.emplace_back(random(), scenario.faults);
  int writes_left = 200;
  bool resumes_forward = true;
  const auto sync = [&](std::size_t here, std::size_t there, bool quiet) {
    Responder responder = world.responder(there);
    std::string resume_from = world.range().first;
    return networks[here * sites + there].run(
        world.site(here).index(), world.settings(), responder, [&](Initiator& running) {
          const std::string next = running.progress().resume_from;
          resumes_forward = resumes_forward && resume_from <= next;
          resume_from = next;
          if (quiet) return true;
          if (writes_left > 0 && random.unit() < scenario.writes) {
            world.write();
            --writes_left;
          }
          if (random.unit() >= scenario.crashes) return true;
          if (random.below(2) == 0) return false;
          running.cancel();
          return true;
        });
  };
  for (int round = 0; round < 3; ++round) {
    const std::size_t here = random.below(sites);
    const std::size_t there = (here + 1 + random.below(sites - 1)) % sites;
    const Network::Outcome outcome = sync(here, there, false);
    if (outcome.end == End::failed || outcome.end == End::endless) {
      return failure("a sync under writes", outcome);
    }
  }
  // Syncs all pairs until nothing more is found. Late messages may still come, so it may take a few
  // rounds.
  constexpr int kMostRounds = 8;
  for (int round = 0;; ++round) {
    if (round == kMostRounds) return "does not come to rest";
    bool at_rest = true;
    for (std::size_t here = 0; here < sites; ++here) {
      for (std::size_t there = 0; there < sites; ++there) {
        if (here == there) continue;
        const Network::Outcome outcome = sync(here, there, true);
        if (outcome.end != End::done) return failure("a quiet sync", outcome);
        at_rest = at_rest && outcome.report.proved && outcome.report.differences() == 0;
      }
    }
    if (at_rest) break;
  }
  for (std::size_t i = 0; i < sites; ++i) {
    const Records records = world.site(i).records();
    if (within(records, world.range()) != world.expected()) return "a write was lost or made up";
    if (outside(records, world.range()) != world.others(i)) return "touched outside the range";
  }
  return resumes_forward ? "" : "went back to an earlier stretch";
}

std::optional<std::string> called_back(std::string_view key, std::optional<std::string_view> source,
                                       std::optional<std::string_view> destination) {
  switch (digest(key, 1).lo % 4) {
    case 0:
      return std::nullopt;
    case 1:
      return source ? std::optional(std::string(*source)) : std::nullopt;
    case 2:
      return destination ? std::optional(std::string(*destination)) : std::nullopt;
    default:
      return std::string(source.value_or("-")) + std::string(destination.value_or("-"));
  }
}

// Changes two stores as the description of the rule says.
void apply_rule(const Resolver& resolver, const KeyRange& range, Records& source,
                Records& destination) {
  Records keys = within(source, range);
  keys.merge(within(destination, range));
  for (const auto& [key, value] : keys) {
    const auto at_source = source.find(key);
    const auto at_destination = destination.find(key);
    const bool here = at_source != source.end();
    const bool there = at_destination != destination.end();
    if (here && there && at_source->second == at_destination->second) continue;
    if (resolver.rule == SyncRule::source) {
      if (here) destination[key] = at_source->second;
      if (!here && resolver.remove_extra) destination.erase(key);
    } else if (resolver.rule == SyncRule::destination) {
      if (!there) destination[key] = at_source->second;
    } else {
      std::optional<std::string_view> a, b;
      if (here) a = at_source->second;
      if (there) b = at_destination->second;
      const std::optional<std::string> result = called_back(key, a, b);
      for (Records* records : {&source, &destination}) {
        if (result) {
          (*records)[key] = *result;
        } else {
          records->erase(key);
        }
      }
    }
  }
}

std::string obeys_its_rule(const Scenario& scenario) {
  World world(scenario, 2);
  world.resolver().callback = called_back;
  Records here = world.site(0).records();
  Records there = world.site(1).records();
  const bool forward = scenario.role == SyncRole::initiator_is_source;
  apply_rule(world.resolver(), world.range(), forward ? here : there, forward ? there : here);
  Network network(world.random()(), scenario.faults);
  Responder responder = world.responder(1);
  const Network::Outcome outcome = network.run(world.site(0).index(), world.settings(), responder,
                                               [](Initiator&) { return true; });
  if (outcome.end != End::done) return failure("a sync", outcome);
  if (!outcome.report.proved) return "not proved";
  if (world.site(0).records() != here) return "the initiator has not what the rule says";
  if (world.site(1).records() != there) return "the responder has not what the rule says";
  return "";
}

// The differences in a range, and the number of keys of each kind.
struct Differing {
  std::map<std::string, DifferenceSide> keys;
  std::array<std::uint64_t, 3> counts{};  // by Where
};

Differing differing(const Records& here, const Records& there, const KeyRange& range) {
  Differing all;
  for (const auto& [key, value] : within(here, range)) {
    const auto found = there.find(key);
    if (found == there.end()) all.keys.emplace(key, DifferenceSide::initiator);
    if (found != there.end() && found->second != value) all.keys.emplace(key, DifferenceSide::both);
  }
  for (const auto& [key, value] : within(there, range)) {
    if (!here.contains(key)) all.keys.emplace(key, DifferenceSide::responder);
  }
  for (const auto& [key, where] : all.keys) ++all.counts[static_cast<std::size_t>(where)];
  return all;
}

std::array<std::uint64_t, 3> counts_of(const SyncReport& report) {
  return {report.only_initiator, report.only_responder, report.changed};
}

std::string text_of(const std::array<std::uint64_t, 3>& counts) {
  return std::to_string(counts[0]) + " only here, " + std::to_string(counts[1]) + " only there, " +
         std::to_string(counts[2]) + " changed";
}

// A repair reports each key that differed once, with its kind, however many passes it takes. If one
// end gets a new record meanwhile, the findings do not add up, and there is a second pass. The new
// record is counted once or, if it came too late, not at all.
std::string counts_each_once(const Scenario& scenario, bool second_pass) {
  World world(scenario, 2);
  Random& random = world.random();
  world.resolver().callback = called_back;
  const auto expected =
      differing(world.site(0).records(), world.site(1).records(), world.range()).counts;
  const std::size_t at = random.below(2);
  auto with_new = expected;
  ++with_new[at];
  std::uint64_t deliveries_left = 2 + random.below(6);
  Network network(random(), {});
  Responder responder = world.responder(1);
  const Network::Outcome outcome =
      network.run(world.site(0).index(), world.settings(), responder, [&](Initiator&) {
        if (second_pass && --deliveries_left == 0) world.site(at).put(world.new_key(), "new");
        return true;
      });
  if (outcome.end != End::done) return failure("a sync", outcome);
  if (!outcome.report.proved) return "not proved";
  const auto told = counts_of(outcome.report);
  if (told == expected || (second_pass && told == with_new)) return "";
  return "reports " + text_of(told) + " in " + std::to_string(outcome.report.passes) +
         " passes, but there are " + text_of(expected) +
         (second_pass ? at == 0 ? ", perhaps one more here" : ", perhaps one more there" : "");
}

std::string finds_what_differs(const Scenario& scenario) {
  World world(scenario, 2);
  const Records here = world.site(0).records();
  const Records there = world.site(1).records();
  const auto [expected, counts] = differing(here, there, world.range());

  Network network(world.random()(), scenario.faults);
  for (const SyncPurpose purpose : {SyncPurpose::plan, SyncPurpose::diff}) {
    SyncSettings settings = world.settings();
    settings.purpose = purpose;
    std::map<std::string, DifferenceSide> found;
    bool contradicts = false;
    settings.on_difference = [&](std::string_view key, DifferenceSide where) {
      const auto [at, is_new] = found.emplace(key, where);
      contradicts = contradicts || at->second != where;
    };
    Responder::Terms terms;
    terms.read_only = true;
    terms.limits.frame_bytes = scenario.frame_bytes;
    Responder responder(world.site(1).index(), terms);
    const Network::Outcome outcome =
        network.run(world.site(0).index(), settings, responder, [](Initiator&) { return true; });
    if (outcome.end != End::done) return failure("a diff", outcome);
    const SyncReport& report = outcome.report;
    if (report.initiator.count != within(here, world.range()).size()) return "counts wrong here";
    if (report.responder.count != within(there, world.range()).size()) return "counts wrong there";
    if (world.site(0).records() != here || world.site(1).records() != there) return "writes";
    if (purpose == SyncPurpose::plan) continue;
    if (contradicts) return "says two things of one key";
    if (!report.proved) return "not proved";
    if (found != expected) return "finds something else than what differs";
    if (counts_of(report) != counts) return "reports other numbers than it finds";
  }
  return "";
}

Scenario with_rule(Scenario scenario, std::uint64_t number) {
  constexpr std::array kRules = {SyncRule::source, SyncRule::destination, SyncRule::callback};
  scenario.rule = kRules[number % kRules.size()];
  return scenario;
}

// One run of each kind.
std::string anything_wrong(const Scenario& scenario) {
  Scenario newest = scenario;
  newest.rule = SyncRule::newest;
  if (std::string wrong = converges(scenario, 2); !wrong.empty()) return "join: " + wrong;
  if (std::string wrong = converges(newest, 2); !wrong.empty()) return "newest: " + wrong;
  if (scenario.seed % 4 == 0) {
    if (std::string wrong = converges(scenario, 3); !wrong.empty()) return "three: " + wrong;
  }
  if (std::string wrong = obeys_its_rule(with_rule(scenario, scenario.seed)); !wrong.empty()) {
    return "rule " + std::to_string(static_cast<int>(with_rule(scenario, scenario.seed).rule)) +
           ": " + wrong;
  }
  if (std::string wrong = finds_what_differs(scenario); !wrong.empty()) return "diff: " + wrong;
  return "";
}

TEST(SyncSimulation, EndsWithBothEndsEqualWhateverHappensOnTheWay) {
  const std::uint64_t runs = setting("SEMEL_SYNC_RUNS", 200);
  const std::uint64_t only = setting("SEMEL_SYNC_SEED", 0);
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= runs && failures < 5; ++seed) {
    if (only != 0 && seed != only) continue;
    const Scenario scenario = drawn(seed);
    const std::string wrong = anything_wrong(scenario);
    if (wrong.empty()) continue;
    ++failures;
    ADD_FAILURE() << wrong << "\n" << scenario;
  }
}

// Every rule and every way, in one pass and in two.
TEST(SyncSimulation, CountsEachDifferenceOnceHoweverManyPassesItTakes) {
  constexpr std::array kRules = {SyncRule::join, SyncRule::newest, SyncRule::source,
                                 SyncRule::destination, SyncRule::callback};
  const std::uint64_t runs = setting("SEMEL_SYNC_RUNS", 40);
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= runs && failures < 5; ++seed) {
    for (const SyncRule rule : kRules) {
      for (std::uint64_t way = 0; way < kSyncWayNames.size(); ++way) {
        Scenario scenario = drawn(seed);
        scenario.rule = rule;
        scenario.way.reset();
        if (way > 0) scenario.way = static_cast<SyncWay>(way);
        for (const bool second_pass : {false, true}) {
          const std::string wrong = counts_each_once(scenario, second_pass);
          if (wrong.empty()) continue;
          ++failures;
          ADD_FAILURE() << wrong << "\n" << scenario;
        }
      }
    }
  }
}

// If one end has almost nothing in a slot, the other may have more records there than a frame can
// hold.
TEST(SyncSimulation, APoorEndAndARichOneMeetInSmallFrames) {
  constexpr std::uint64_t kRich = 60'000;
  for (const SyncWay way : {SyncWay::walk, SyncWay::sketch, SyncWay::list, SyncWay::copy}) {
    SCOPED_TRACE(kSyncWayNames[static_cast<std::size_t>(way)]);
    SyncSite poor(numbered_secret(9), 256), rich(numbered_secret(9), 256);
    for (std::uint64_t n = 0; n < kRich; ++n) {
      const std::string key = std::to_string(mix(n) % 100'000'000);
      rich.put(key, "v");
      if (n % 200 == 0) poor.put(key, n % 400 == 0 ? "v" : "w");
    }
    const Records expected = rich.records();
    SyncSettings settings;
    settings.way = way;
    settings.resolver.rule = SyncRule::source;
    settings.resolver.role = SyncRole::responder_is_source;
    settings.limits.frame_bytes = 2048;
    Responder::Terms terms;
    terms.limits = settings.limits;
    Responder responder(rich.index(), terms);
    Network network(1, {});
    const Network::Outcome outcome =
        network.run(poor.index(), settings, responder, [](Initiator&) { return true; });
    ASSERT_EQ(outcome.end, End::done) << outcome.error.message() << outcome.words;
    EXPECT_TRUE(outcome.report.proved);
    EXPECT_TRUE(poor.records() == expected);
  }
}

// RapidCheck draws the scenario, and shrinks counterexamples.
Scenario arbitrary_scenario() {
  const auto often_none = [](int most) {
    return *rc::gen::weightedOneOf<int>(
        {{1, rc::gen::just(0)}, {1, rc::gen::inRange(0, most + 1)}});
  };
  Scenario scenario;
  scenario.seed = *rc::gen::arbitrary<std::uint16_t>();
  scenario.keys = *rc::gen::inRange<std::uint64_t>(1, 300);
  const int way = *rc::gen::inRange(0, 5);
  if (way > 0) scenario.way = static_cast<SyncWay>(way);
  scenario.faults = {often_none(30) / 100.0, often_none(30) / 100.0, often_none(10) / 100.0,
                     often_none(10) / 100.0, often_none(100) / 100.0};
  scenario.writes = often_none(30) / 100.0;
  scenario.crashes = often_none(2) / 100.0;
  scenario.frame_bytes = 2048U << *rc::gen::inRange(0, 4);
  scenario.stretch_records = *rc::gen::inRange<std::uint64_t>(1, 400);
  scenario.role = *rc::gen::element(SyncRole::initiator_is_source, SyncRole::responder_is_source);
  scenario.remove_extra = *rc::gen::arbitrary<bool>();
  return scenario;
}

RC_GTEST_PROP(SyncProperty, JoinsLoseNothingAndEndEqual, ()) {
  const Scenario scenario = arbitrary_scenario();
  RC_ASSERT(converges(scenario, 2) == "");
}
RC_GTEST_PROP(SyncProperty, RulesDoAsTheySay, ()) {
  const Scenario scenario = with_rule(arbitrary_scenario(), *rc::gen::inRange<std::uint64_t>(0, 3));
  RC_ASSERT(obeys_its_rule(scenario) == "");
}
RC_GTEST_PROP(SyncProperty, ARepairCountsEachDifferenceOnce, ()) {
  Scenario scenario = arbitrary_scenario();
  scenario.rule = static_cast<SyncRule>(*rc::gen::inRange(0, 5));
  RC_ASSERT(counts_each_once(scenario, *rc::gen::arbitrary<bool>()) == "");
}
RC_GTEST_PROP(SyncProperty, ADiffFindsWhatDiffers, ()) {
  const Scenario scenario = arbitrary_scenario();
  RC_ASSERT(finds_what_differs(scenario) == "");
}

}  // namespace
}  // namespace semel::simulation
