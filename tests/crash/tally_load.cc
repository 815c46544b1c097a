#include "tests/crash/tally_load.h"

#include <algorithm>

#include "semel/core/assert.h"
#include "semel/core/internal/random.h"

namespace semel::crash {
namespace {

constexpr std::uint64_t kMostAdditions = 40;
constexpr std::uint64_t kSharedCounters = 50;
constexpr std::uint64_t kOwnCounters = 10;

std::string numbered(std::string name, std::uint64_t number) {
  return name.append(std::to_string(number));
}

// Half of them opaque, half counted up by the client.
tally::OperationId id_of(std::uint64_t client, std::uint64_t number, std::uint64_t place) {
  const std::uint64_t sequence = number * (kMostAdditions + 1) + place;
  const std::string name = numbered("client/", client);
  if (sequence % 2 == 0) return tally::OperationId::numbered(digest(name, 0), sequence);
  return tally::OperationId::opaque(digest(numbered(name + "/", sequence), 0));
}

Step without_retries(std::uint64_t seed, std::uint64_t client, std::uint64_t number) {
  Random random(mix(seed ^ mix(client)) ^ mix(number));
  Step step;
  const std::uint64_t draw = random.below(100);
  if (draw < 8) {
    step.kind = draw < 4 ? Step::Kind::reset : Step::Kind::remove;
    step.counter = numbered(own_prefix(client), random.below(kOwnCounters));
    step.id = id_of(client, number, 0);
    return step;
  }
  step.values = draw < 16 ? tally::TallyStore::Values::yes : tally::TallyStore::Values::no;
  step.additions.push_back({own_prefix(client) + "steps", 1, id_of(client, number, 0)});
  const std::uint64_t more = draw < 60 ? random.below(4) : random.below(kMostAdditions);
  for (std::uint64_t place = 1; place <= more; ++place) {
    std::string counter = random.below(3) == 0
                              ? numbered(own_prefix(client), random.below(kOwnCounters))
                              : numbered("shared/", random.below(kSharedCounters));
    const auto delta = static_cast<std::int64_t>(random.below(2001)) - 1000;
    step.additions.push_back({std::move(counter), delta, id_of(client, number, place)});
  }
  return step;
}

}  // namespace

Step step(std::uint64_t seed, std::uint64_t client, std::uint64_t number) {
  Step step = without_retries(seed, client, number);
  if (step.kind == Step::Kind::add && number > 0 && number % 4 == 0) {
    step.again = without_retries(seed, client, number - 1).additions;
  }
  return step;
}

std::string own_prefix(std::uint64_t client) { return numbered("own/", client) + "/"; }

void carry_out(const Step& step, Values& values) {
  if (step.kind == Step::Kind::reset) values[step.counter] = 0;
  if (step.kind == Step::Kind::remove) values.erase(step.counter);
  for (const Step::Addition& addition : step.additions) values[addition.counter] += addition.delta;
}

Values values_in(const tally::TallyStore& table) {
  Values values;
  const Result<void> scanned = table.scan({}, [&](std::string_view counter, int128 value) {
    SEMEL_ASSERT(value == static_cast<std::int64_t>(value));
    values.emplace(counter, static_cast<std::int64_t>(value));
    return true;
  });
  SEMEL_ASSERT(scanned.has_value());
  return values;
}

Result<Sent> send(const Step& step, tally::TallyStore& table, TimeMs now_ms) {
  using tally::Answer, tally::Outcome;
  std::vector<Answer> answers;
  if (step.kind == Step::Kind::add) {
    std::vector<tally::Addition> additions;
    for (const std::vector<Step::Addition>* part : {&step.additions, &step.again}) {
      for (const Step::Addition& addition : *part) {
        additions.push_back({addition.counter, addition.delta, addition.id});
      }
    }
    answers.resize(additions.size());
    const Result<void> added = table.add(additions, answers, now_ms, step.values);
    if (!added) return added.error();
  } else {
    const Result<Answer> changed = step.kind == Step::Kind::reset
                                       ? table.reset(step.counter, step.id, now_ms)
                                       : table.remove(step.counter, step.id, now_ms);
    if (!changed) return changed.error();
    answers.push_back(*changed);
  }
  const auto again = answers.end() - static_cast<std::ptrdiff_t>(step.again.size());
  const auto is = [](Outcome outcome) {
    return [outcome](const Answer& answer) { return answer.outcome == outcome; };
  };
  if (!std::all_of(again, answers.end(), is(Outcome::duplicate))) return Sent::wrong;
  if (std::all_of(answers.begin(), again, is(Outcome::applied))) return Sent::counted;
  return std::all_of(answers.begin(), again, is(Outcome::duplicate)) ? Sent::known : Sent::wrong;
}

tally::TallyStore::Settings tally_settings(tally::Durability durability) {
  using Kind = tally::Recognition::Kind;
  tally::TallyStore::Settings settings;
  settings.recognition = {.kind = durability == tally::Durability::every_write ? Kind::clients
                                  : durability == tally::Durability::periodic  ? Kind::exact
                                                                               : Kind::filter,
                          .window_ms = 24 * 3'600'000,  // no test takes as long
                          .fpr = 1e-12,                 // none of a million is taken for a retry
                          .ids = 1 << 12};
  settings.durability = durability;
  settings.period_ms = 20;
  return settings;
}

}  // namespace semel::crash
