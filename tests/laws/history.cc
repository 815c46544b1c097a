#include "tests/laws/history.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>

#include "semel/core/assert.h"

namespace semel {
namespace {

using Kind = Step::Kind;

// Each kind is drawn in proportion to its entries here.
constexpr std::array kKinds = {
    Kind::add,     Kind::add,           Kind::add,        Kind::add,        Kind::remove,
    Kind::remove,  Kind::remove,        Kind::send_state, Kind::send_delta, Kind::send_delta,
    Kind::deliver, Kind::send_interval, Kind::deliver,    Kind::deliver,    Kind::deliver};
constexpr std::array kKindNames = {"add", "remove", "state", "delta", "interval", "deliver"};
constexpr std::array kRemovalNames = {"named", "safe", "any"};
constexpr std::uint32_t kMostSites = 5;
constexpr std::uint32_t kChoices = 1 << 16;

}  // namespace

std::string to_string(const History& history) {
  std::string text = std::to_string(history.sites) + " sites, removals " +
                     kRemovalNames[static_cast<std::size_t>(history.removals)] + ":";
  for (const Step& step : history.steps) {
    text += std::string(" ") + kKindNames[static_cast<std::size_t>(step.kind)] + "(" +
            std::to_string(step.site) + "," + std::to_string(step.key) + "," +
            std::to_string(step.choice) + ")";
  }
  return text;
}

History random_history(Random& random) {
  const auto below = [&](std::uint64_t bound) {
    return static_cast<std::uint32_t>(random.below(bound));
  };
  History history{2 + below(kMostSites - 1), static_cast<Removals>(random.below(3)), {}};
  for (std::uint32_t left = below(100); left > 0; --left) {
    history.steps.push_back(
        {kKinds[below(kKinds.size())], below(kChoices), below(kChoices), below(kChoices)});
  }
  return history;
}

bool check_histories(const std::function<std::string(const History&)>& complaint) {
  const auto number = rc::gen::inRange<std::uint32_t>(0, kChoices);
  const auto step = rc::gen::construct<Step>(rc::gen::elementOf(kKinds), number, number, number);
  return rc::check([&] {
    const History history{
        *rc::gen::inRange<std::uint32_t>(2, kMostSites + 1),
        *rc::gen::element(Removals::named, Removals::safe, Removals::any),
        *rc::gen::scale(2.0, rc::gen::container<std::vector<Step>>(step)),
    };
    const std::string wrong = complaint(history);
    if (!wrong.empty()) RC_FAIL(wrong + "\n" + to_string(history));
  });
}

std::size_t Oracle::note(const Operation& operation) {
  SEMEL_ASSERT(!full());
  operations_.push_back(operation);
  return operations_.size() - 1;
}

std::map<Name, bool> Oracle::names(const Seen& seen) const {
  std::map<Name, bool> names;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (seen[i]) {
      bool& removed = names.try_emplace(operations_[i].name, false).first->second;
      removed = removed || operations_[i].removal;
    }
  }
  return names;
}

std::partial_ordering Oracle::compare(const std::map<Name, bool>& a,
                                      const std::map<Name, bool>& b) {
  const auto within = [](const std::map<Name, bool>& less, const std::map<Name, bool>& more) {
    return std::all_of(less.begin(), less.end(), [&](const auto& known) {
      const auto there = more.find(known.first);
      return there != more.end() && (there->second || !known.second);
    });
  };
  if (a == b) return std::partial_ordering::equivalent;
  if (within(a, b)) return std::partial_ordering::less;
  if (within(b, a)) return std::partial_ordering::greater;
  return std::partial_ordering::unordered;
}

bool Oracle::continues(const std::map<Name, bool>& here, const std::map<Name, bool>& next) {
  return std::all_of(next.begin(), next.end(), [&](const auto& known) {
    Name before = known.first;
    --before.dot.counter;
    return before.dot.counter == 0 || here.contains(before) || next.contains(before);
  });
}

bool Oracle::live(std::uint32_t key, const Seen& seen) const {
  const std::map<Name, bool> known = names(seen);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (seen[i] && !operation.removal && operation.key == key && !known.at(operation.name)) {
      return true;
    }
  }
  return false;
}

bool Oracle::outnumbers(std::uint32_t key, const Seen& seen) const {
  std::int64_t balance = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (seen[i] && operations_[i].key == key) balance += operations_[i].removal ? -1 : 1;
  }
  return balance > 0;
}

bool Oracle::closed(const Seen& seen) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (seen[i] && (operations_[i].seen & ~seen).any()) return false;
  }
  return true;
}

bool Oracle::safe(std::uint32_t key, const Seen& seen) const {
  // Nothing comes after the removal in question yet. So every other removal of this key is before
  // it or parallel to it.
  // it or parallel to it.
  const auto adds_seen = [&](const Seen& by) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      count += by[i] && operations_[i].key == key && !operations_[i].removal;
    }
    return count;
  };
  const auto removal = [&](std::size_t i) {
    return operations_[i].removal && operations_[i].key == key;
  };
  std::size_t others = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) others += removal(i);
  if (others >= adds_seen(seen)) return false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (!removal(i) || seen[i]) continue;
    std::size_t not_after = 1;  // the one in question
    for (std::size_t j = 0; j < operations_.size(); ++j) {
      not_after += removal(j) && j != i && !operations_[j].seen[i];
    }
    if (not_after >= adds_seen(operations_[i].seen)) return false;
  }
  return true;
}

}  // namespace semel
