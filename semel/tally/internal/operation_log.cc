#include "semel/tally/internal/operation_log.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"

namespace semel::tally::internal {

OperationLog::OperationLog(SiteId site, const Limits& limits) : limits_(limits) {
  state_.site = site;
  state_.members.admit(site);
}

OperationLog::OperationLog(OperationLog&&) noexcept = default;
OperationLog& OperationLog::operator=(OperationLog&&) noexcept = default;
OperationLog::~OperationLog() = default;

Result<OperationLog> OperationLog::restore(const State& state,
                                           std::span<const Operation> operations,
                                           const std::map<SiteId, SiteView>& views,
                                           const Limits& limits) {
  if (!state.members.contains(state.site)) {
    return Error{Errc::corrupt, "operation log: its site is not a member"};
  }
  OperationLog log(state.site, limits);
  log.state_ = state;
  for (const Operation& operation : operations) {
    if (!state.held.contains(operation.dot)) {
      return Error{Errc::corrupt, "operation log: an operation is not held"};
    }
    if (log.entries_.contains(operation.dot)) {
      return Error{Errc::corrupt, "operation log: an operation is there twice"};
    }
    log.insert(operation, state.folded.contains(operation.dot));
  }
  std::uint64_t missing = 0;
  for (const VersionVector::Site& site : state.held.sites()) {
    missing += site.counter - std::min(site.counter, state.folded.at(site.site));
  }
  if (missing != log.unfolded_) {
    return Error{Errc::corrupt, "operation log: an operation is missing"};
  }
  for (Group& group : log.groups_) log.recount(group);
  for (const auto& [site, view] : views) {
    if (view.group != state.group) {
      return Error{Errc::corrupt, "operation log: a view of another table"};
    }
    log.compare(view);
    log.merge_view(site, view);
  }
  return log;
}

Result<void> OperationLog::in_force() const {
  if (superseded()) {
    return Error{
        Errc::forked,
        "others hold operations of this site that it does not: it was restored from an old "
        "backup, or another site has its id; it must go on under a new id"};
  }
  if (members().retired(site())) {
    return Error{Errc::outside, "this site is retired: its operations no longer count"};
  }
  if (!state_.ready) {
    return Error{Errc::gap, "this site is new, and does not yet hold what the others held"};
  }
  return {};
}

Result<void> OperationLog::may_take(std::uint64_t operations) const {
  if (Result<void> able = in_force(); !able) return able;
  if (operations > Dot::kLastCounter - held().at(site())) {
    return Error{Errc::limit, "the numbers of this site are used up"};
  }
  if (!alone() && operations > limits_.max_unfolded - std::min(unfolded_, limits_.max_unfolded)) {
    return Error{Errc::full, "too many operations that not all members hold"};
  }
  return {};
}

Dot OperationLog::count(std::uint64_t operations) {
  const std::uint64_t counted = held().at(site());
  SEMEL_ASSERT(alone() && operations <= Dot::kLastCounter - counted);
  const Dot last{site(), counted + operations};
  if (operations > 0) {
    state_.held.advance(last);
    state_.folded.advance(last);
    if (!state_.heads.empty()) state_.heads.set(site(), 0);  // operations in no log have no head
  }
  return last;
}

Dot OperationLog::append(Operation operation, Base& base) {
  SEMEL_ASSERT(may_take(1).has_value());
  operation.dot = {site(), held().at(site()) + 1};
  if (operation.kind != Operation::Kind::add) {
    operation.observed = held();
    // A removal undoes itself too, so nothing is left. A reset leaves a counter of zero.
    if (operation.kind == Operation::Kind::remove) operation.observed.advance(operation.dot);
  }
  for (const VersionVector::Site& log : held().sites()) {
    if (log.site != site()) operation.known.advance({log.site, log.counter});
  }
  operation.previous = state_.heads.at(site());
  const Dot dot = operation.dot;
  arrive(std::move(operation), base);
  return dot;
}

// Returns the head of a log at this number, if it is known here.
std::optional<std::uint64_t> OperationLog::head_at(Dot dot) const {
  std::uint64_t head = 0;
  if (dot.counter == held().at(dot.site)) {
    head = state_.heads.at(dot.site);
  } else if (const auto next = entries_.find({dot.site, dot.counter + 1}); next != entries_.end()) {
    head = next->second.operation.previous;
  }
  return head == 0 ? std::nullopt : std::optional(head);
}

// Returns true if a log with this head at this number differs from the log that is held here.
bool OperationLog::contradicts(Dot dot, std::uint64_t head) const {
  if (dot.site == site() && dot.counter > held().at(site())) return true;
  const std::optional<std::uint64_t> here = head_at(dot);
  return here && head != 0 && head != *here;
}

// Returns true if the operation can follow the part of its site's log that is held here. A site
// takes an operation after everything that it has said before. It also takes it after everything
// that is folded here, because nothing was folded before that site acknowledged it. Folded
// operations are remembered for ever, but the last view of a site may be that of a twin.
bool OperationLog::follows(const Operation& operation) const {
  const SiteId from = operation.dot.site;
  const std::uint64_t here = state_.heads.at(from);
  if (here != 0 && here != operation.previous) return false;
  const auto knew = [&](const VersionVector& before) {
    const auto logs = before.sites();
    return std::all_of(logs.begin(), logs.end(), [&](const VersionVector::Site& log) {
      return log.site == from || log.counter <= operation.known.at(log.site);
    });
  };
  const SiteView* said = view_of(from);
  const bool said_before = said != nullptr && !said->held.contains(operation.dot);
  return knew(state_.folded) && (!said_before || knew(said->held));
}

OperationLog::Arrival OperationLog::place(const Operation& operation) const {
  const Dot dot = operation.dot;
  const Arrival arrival = place(dot);
  if (arrival == Arrival::next) {
    return dot.site != site() && follows(operation) ? Arrival::next : Arrival::forked;
  }
  const bool another = dot.site == site() || held().contains(dot);
  return another && contradicts(dot, operation.head()) ? Arrival::forked : arrival;
}

void OperationLog::note_fork(Dot dot) {
  if (dot.site != site()) forked_.insert(dot.site);
}

void OperationLog::mark_forked(SiteId site) {
  if (site == this->site()) {
    state_.superseded = true;
  } else {
    forked_.insert(site);
  }
}

OperationLog::Arrival OperationLog::place(Dot dot) const {
  if (held().contains(dot) || !members().contains(dot.site) || dot.counter > last_of(dot.site)) {
    return Arrival::known;
  }
  return dot.counter == held().at(dot.site) + 1 ? Arrival::next : Arrival::waiting;
}

void OperationLog::arrive(Operation operation, Base& base) {
  const Dot dot = operation.dot;
  SEMEL_ASSERT(place(dot) == Arrival::next);
  state_.held.advance(dot);
  state_.heads.set(dot.site, operation.head());
  base.hold(operation);
  const bool reset = operation.kind != Operation::Kind::add;
  if (reset) base.clear(operation.counter);
  insert(std::move(operation), false);
  const Entry& entry = entries_.at(dot);
  recount(*entry.group);
  if (reset) {
    const std::string_view counter = entry.operation.counter;
    for (auto& [other, touched] : entries_) {
      if (touched.operation.counter == counter) recount(*touched.group);
    }
  }
  become_ready();
}

bool OperationLog::wait(Operation operation) {
  if (waiting_.size() >= limits_.max_unfolded) return false;
  const Dot dot = operation.dot;
  waiting_.emplace(dot, std::move(operation));
  return true;
}

std::optional<Operation> OperationLog::take_waiting() {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    const Arrival arrival = place(at->second);
    if (arrival == Arrival::waiting) {
      at = waiting_.upper_bound({at->first.site, Dot::kLastCounter});
      continue;
    }
    if (arrival == Arrival::forked) note_fork(at->first);
    Operation operation = std::move(at->second);
    at = waiting_.erase(at);
    if (arrival == Arrival::next) return operation;
  }
  return std::nullopt;
}

void OperationLog::fold(Base& base) {
  if (unfolded_ == 0 || superseded() || !fenced()) return;
  for (auto& [member, peer] : peers_) update_acknowledged(peer);
  for (const VersionVector::Site& log : state_.held.sites()) {
    const std::uint64_t last = acknowledged(log.site);
    for (std::uint64_t i = state_.folded.at(log.site) + 1; i <= last; ++i) {
      const Dot dot{log.site, i};
      state_.folded.advance(dot);
      fold(dot, base);
    }
  }
}

void OperationLog::fold(Dot dot, Base& base) {
  Entry& entry = entries_.at(dot);
  const Groups::iterator group = entry.group;
  const Operation& operation = entry.operation;
  if (group->counted && group->dots.front() == dot) {
    base.fold(operation.counter, {dot.site, dot.counter, 1, operation.delta});
  }
  entry.folded = true;
  --unfolded_;
  --group->unfolded;
  recount(*group);
  if (needed(*group)) {
    base.keep(operation);
  } else {
    drop(group, base);
  }
}

// Returns true if operations of the group are still needed: one of them is not folded, or one is a
// reset that undid something which is still here.
bool OperationLog::needed(const Group& group) const {
  if (group.unfolded > 0) return true;
  const Operation& first = entries_.at(group.dots.front()).operation;
  const std::vector<Reset>& resets = counters_.find(first.counter)->second.resets;
  return std::any_of(resets.begin(), resets.end(), [&](const Reset& reset) {
    return reset.dot == first.dot && reset.covered > 0;
  });
}

// REQUIRES: !needed().
void OperationLog::drop(Groups::iterator group, Base& base) {
  if (group->id) by_id_.erase(*group->id);
  const std::vector<Dot> dots = std::move(group->dots);
  groups_.erase(group);
  for (const Dot dot : dots) erase(dot, base);
}

void OperationLog::erase(Dot dot, Base& base) {
  const auto at = entries_.find(dot);
  const auto in = counters_.find(at->second.operation.counter);
  Counter& counter = in->second;
  std::vector<Dot> free;
  std::erase_if(counter.resets, [&](const Reset& reset) { return reset.dot == dot; });
  for (Reset& reset : counter.resets) {
    if (!covers(reset, dot) || --reset.covered > 0) continue;
    if (entries_.at(reset.dot).folded) free.push_back(reset.dot);
  }
  entries_.erase(at);
  base.drop(dot);
  if (--counter.entries == 0) counters_.erase(in);
  for (const Dot reset : free) {
    const Groups::iterator group = entries_.at(reset).group;
    if (!needed(*group)) drop(group, base);
  }
}

bool OperationLog::covers(const Reset& reset, Dot dot) const {
  return reset.dot != dot && entries_.at(reset.dot).operation.observed.contains(dot);
}

OperationLog::Groups::iterator OperationLog::group_of(const Operation& operation) {
  const bool known =
      operation.kind == Operation::Kind::add && operation.id.kind != OperationId::Kind::none;
  if (!known) return groups_.insert(groups_.end(), Group{});
  const auto [at, made] = by_id_.try_emplace(operation.id);
  if (made) {
    at->second = groups_.insert(groups_.end(), Group{});
    at->second->id = operation.id;
  }
  return at->second;
}

void OperationLog::insert(Operation operation, bool folded) {
  const Dot dot = operation.dot;
  const Groups::iterator group = group_of(operation);
  if (group->counted) {
    // The operation that counts from now on may no longer be the first of the group.
    group->counted = false;
    const Operation& first = entries_.at(group->dots.front()).operation;
    Overlay& overlay = counters_.find(first.counter)->second.overlay;
    overlay.sum -= first.delta;
    --overlay.live;
  }
  group->dots.insert(std::upper_bound(group->dots.begin(), group->dots.end(), dot), dot);
  if (!folded) {
    ++group->unfolded;
    ++unfolded_;
  }
  Counter& counter = counters_[operation.counter];
  ++counter.entries;
  const bool reset = operation.kind != Operation::Kind::add;
  const auto at = entries_.emplace(dot, Entry{std::move(operation), group, folded}).first;
  for (Reset& each : counter.resets) each.covered += covers(each, dot) ? 1 : 0;
  if (!reset) return;
  counter.resets.push_back({dot, 0});
  for (const auto& [other, entry] : entries_) {
    if (entry.operation.counter == at->second.operation.counter &&
        covers(counter.resets.back(), other)) {
      ++counter.resets.back().covered;
    }
  }
}

// Returns true if a reset undid the operation that counts, or one with its id on the same counter.
bool OperationLog::undone(const Group& group) const {
  const std::string& name = entries_.at(group.dots.front()).operation.counter;
  const Counter& counter = counters_.find(name)->second;
  for (const Reset& reset : counter.resets) {
    for (const Dot dot : group.dots) {
      if (covers(reset, dot) && entries_.at(dot).operation.counter == name) return true;
    }
  }
  return false;
}

void OperationLog::recount(Group& group) {
  const Entry& first = entries_.at(group.dots.front());
  const bool counts =
      !first.folded && first.operation.kind != Operation::Kind::remove && !undone(group);
  if (counts == group.counted) return;
  group.counted = counts;
  Overlay& overlay = counters_.find(first.operation.counter)->second.overlay;
  overlay.sum += counts ? first.operation.delta : -int128{first.operation.delta};
  overlay.live += counts ? 1 : -std::uint64_t{1};
}

std::optional<OperationLog::Overlay> OperationLog::overlay(std::string_view counter) const {
  const auto at = counters_.find(counter);
  if (at == counters_.end()) return std::nullopt;
  return at->second.overlay;
}

void OperationLog::overlays(
    std::string_view first, std::optional<std::string_view> end,
    const std::function<bool(std::string_view, const Overlay&)>& visit) const {
  for (auto at = counters_.lower_bound(first); at != counters_.end(); ++at) {
    if (end && at->first >= *end) return;
    if (!visit(at->first, at->second.overlay)) return;
  }
}

void OperationLog::operations(const std::function<void(const Operation&)>& visit) const {
  for (const auto& [dot, entry] : entries_) visit(entry.operation);
}

void OperationLog::unfolded(const std::function<void(const Operation&)>& visit) const {
  for (const auto& [dot, entry] : entries_) {
    if (!entry.folded) visit(entry.operation);
  }
}

void OperationLog::operations_of(SiteId site, std::uint64_t from,
                                 const std::function<void(const Operation&)>& visit) const {
  for (auto at = entries_.lower_bound({site, from}); at != entries_.end() && at->first.site == site;
       ++at) {
    visit(at->second.operation);
  }
}

void OperationLog::views(const std::function<void(SiteId, const SiteView&)>& visit) const {
  for (const auto& [site, peer] : peers_) visit(site, peer.latest);
}

std::uint64_t OperationLog::bytes() const {
  constexpr std::uint64_t kNode = 4 * sizeof(void*);  // of a map, a list or a hash table
  std::uint64_t bytes = sizeof *this;
  for (const auto& [dot, entry] : entries_) {
    bytes += kNode + sizeof dot + sizeof entry + entry.operation.counter.capacity() +
             entry.operation.observed.sites().size_bytes();
  }
  for (const auto& [dot, operation] : waiting_) {
    bytes += kNode + sizeof dot + sizeof operation + operation.counter.capacity();
  }
  for (const Group& group : groups_) {
    bytes += kNode + sizeof group + group.dots.capacity() * sizeof(Dot);
  }
  bytes += by_id_.size() * (kNode + sizeof(OperationId) + sizeof(Groups::iterator));
  for (const auto& [name, counter] : counters_) {
    bytes += kNode + sizeof name + name.capacity() + sizeof counter;
  }
  return bytes;
}

}  // namespace semel::tally::internal
