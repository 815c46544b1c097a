#include "tests/laws/fork_laws.h"

#include <rapidcheck.h>

#include <array>

namespace semel {
namespace {

using Kind = ForkStep::Kind;

// Each kind is drawn in proportion to its entries here.
constexpr std::array kKinds = {
    Kind::add,     Kind::add,     Kind::add,        Kind::add,          Kind::add,
    Kind::remove,  Kind::remove,  Kind::send_state, Kind::send_state,   Kind::send_delta,
    Kind::deliver, Kind::deliver, Kind::deliver,    Kind::deliver,      Kind::deliver,
    Kind::backup,  Kind::restore, Kind::clone,      Kind::send_interval};
constexpr std::array kKindNames = {"add",     "remove", "state",   "delta", "interval",
                                   "deliver", "backup", "restore", "clone"};
constexpr std::uint32_t kMostReplicas = 4;
constexpr std::uint32_t kChoices = 1 << 16;

}  // namespace

std::string to_string(const ForkHistory& history) {
  std::string text =
      std::to_string(history.replicas) + " replicas of " + std::to_string(history.ids) + " ids:";
  for (const ForkStep& step : history.steps) {
    text += std::string(" ") + kKindNames[static_cast<std::size_t>(step.kind)] + "(" +
            std::to_string(step.replica) + "," + std::to_string(step.key) + "," +
            std::to_string(step.choice) + ")";
  }
  return text;
}

ForkHistory random_fork_history(Random& random) {
  const auto below = [&](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random.below(bound));
  };
  const std::uint32_t replicas = 2 + below(kMostReplicas - 1);
  ForkHistory history{replicas, 1 + below(replicas), {}};
  for (std::uint32_t left = below(100); left > 0; --left) {
    history.steps.push_back(
        {kKinds[below(kKinds.size())], below(kChoices), below(kChoices), below(kChoices)});
  }
  return history;
}

bool check_fork_histories(const std::function<std::string(const ForkHistory&)>& complaint) {
  const auto number = rc::gen::inRange<std::uint32_t>(0, kChoices);
  const auto step =
      rc::gen::construct<ForkStep>(rc::gen::elementOf(kKinds), number, number, number);
  return rc::check([&] {
    const auto replicas = *rc::gen::inRange<std::uint32_t>(2, kMostReplicas + 1);
    const ForkHistory history{
        replicas, *rc::gen::inRange<std::uint32_t>(1, replicas + 1),
        *rc::gen::scale(2.0, rc::gen::container<std::vector<ForkStep>>(step))};
    const std::string wrong = complaint(history);
    if (!wrong.empty()) RC_FAIL(wrong + "\n" + to_string(history));
  });
}

}  // namespace semel
