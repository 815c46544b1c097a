// OperationLog: what several sites need so that an operation counts once, wherever it is retried.
//
// Contract  Each site appends the operations that it takes to its own log; the logs travel to all
//           sites, in any order, any number of times. The value of a counter is its base, and the sum
//           over the distinct ids of the operations that are not yet in the base (overlay()). A retry
//           that another site took before it had heard of the first is an operation of its own in
//           the log, and counts nothing. Sites that hold the same logs have the same values.
// Folding   An operation leaves the log and enters the base (Base::fold) when
//             1. every member has said that it holds it, and
//             2. this site holds all that the member held when it said so, and the same.
//           By 1 whoever sees its id again recognises it; by 2 all of its retries that were taken are
//           here. Of these the one with the least dot counts, at every site the same one.
// Reset     undoes the operations on its counter that its site held: an operation is undone if any of
//           those with its id was. What other sites take meanwhile stays. By 1 and 2 a reset that
//           arrives undoes all that is folded of the counter (Base::clear). A retry of a reset that
//           another site takes before it has heard of the first is a reset of its own.
// Members   A new site starts from the state of a member, and takes operations once every member has
//           said that it knows it, and it holds what they held then (ready()).
//           A site that is retired is fenced: who hears of it takes nothing more of its log until all
//           others have said that they heard; what the one of them has that holds most is the fence.
//           What only the retired site held is lost.
//           Sites of other tables are refused: a table has a group, which the first admission makes.
//           One that is admitted while another is retired may come too late for the fence: then it is
//           retired before it takes anything, and needs another id.
// Doubles   A site that was restored from an old backup, or whose id another one uses, would give its
//           numbers away again. Heads (log_heads.h) tell. A site that others know more of than it does
//           itself, or something else, is superseded(): it takes nothing, folds nothing and says
//           nothing any more, and goes on under another id. A member that holds other operations of a
//           log than this site is not heeded: nothing folds until it, or that site, is retired
//           (forked()).
// Bound     Beyond `most_operations` that are not folded the site takes none (Errc::full), until the
//           member that it waits for (waiting_for()) is back or retired. What others took is always
//           taken in.
// Alone     A site without others folds at once and keeps no log.
// Restart   held(), folded(), members(), views and the operations that Base was told to hold, and not
//           to drop, are the whole state (restore()).
// Cost      append, arrive: O(log operations). A reset: O(operations).
// Memory    About 350 bytes for an operation that is not folded, and its name.
// Threads   const members may run at once; any other call needs the object to itself.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/core/result.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/counters/internal/counter_state.h"
#include "semel/tally/internal/members.h"
#include "semel/tally/operation.h"

namespace semel::tally {

class OperationLog {
 public:
  // Where operations go, and what has to be kept for a restart.
  class Base {
   public:
    virtual ~Base() = default;
    virtual void fold(std::string_view counter, const Shard& shard) = 0;  // adds it to the base
    virtual void clear(std::string_view counter) = 0;                     // the base is no more
    virtual void hold(const Operation& operation) = 0;
    // It is folded, and is still needed to judge others: a restart must find it.
    virtual void keep(const Operation& operation) = 0;
    virtual void drop(Dot dot) = 0;
  };

  struct Limits {
    std::uint64_t most_operations = 1 << 20;  // not folded; and as many that came before their turn
  };

  // All that a restart needs.
  struct State {
    SiteId site = 1;
    Members members = {};
    VersionVector held = {};
    VersionVector folded = {};
    bool ready = true;
    bool superseded = false;
    std::uint64_t group = 0;  // 0: it never had other members
    LogHeads heads = {};      // of what is held
    bool operator==(const State&) const = default;
  };

  // A site on its own, the first member.
  OperationLog(SiteId site, const Limits& limits);
  // As it was. `operations` in any order.
  static Result<OperationLog> restore(const State& state, std::span<const Operation> operations,
                                      const std::map<SiteId, SiteView>& views,
                                      const Limits& limits);
  OperationLog(OperationLog&&) noexcept;
  OperationLog& operator=(OperationLog&&) noexcept;
  ~OperationLog();

  const State& state() const { return state_; }
  SiteId site() const { return state_.site; }
  const Members& members() const { return state_.members; }
  const VersionVector& held() const { return state_.held; }
  bool ready() const { return state_.ready; }
  bool alone() const { return entries_.empty() && members().active() == 1; }
  bool superseded() const { return state_.superseded; }
  // Sites of whose log another member holds other operations than this one; as far as is known since
  // the table was opened.
  const std::set<SiteId>& forked() const { return forked_; }
  std::uint64_t unfolded() const { return unfolded_; }
  // Whether an operation with this id is here: a retry of it is one, however long ago it was.
  bool knows(const OperationId& id) const { return by_id_.contains(id); }

  // Whether this site may do anything that others will have to know of. Errc::outside if it is retired;
  // Errc::forked if it is superseded(); Errc::gap if it is new, and not ready().
  Result<void> in_force() const;
  // Whether this site may take so many more. Errc::full, Errc::limit if its numbers are used up, and
  // what in_force() says.
  Result<void> may_take(std::uint64_t operations) const;
  // Takes an operation of a client, and gives it its dot and, for a reset, what it observed.
  // REQUIRES: may_take(1).
  Dot append(Operation operation, Base& base);
  // The same for so many additions that go to the base at once: the dots up to the one returned.
  // REQUIRES: alone(), may_take(operations).
  Dot count(std::uint64_t operations);
  // The same for one, in two steps: the dot, none unless alone() and may_take(1); and that it is
  // taken. REQUIRES: nothing was taken in between.
  std::optional<Dot> next_alone() const;
  void count_alone(Dot dot);

  enum class Arrival : std::uint8_t {
    known,    // held already, or of no member, or beyond the fence: nothing to do
    next,     // the next of its log
    waiting,  // an earlier one of its log is missing
    forked,   // of another log of its site than the one that is held here
  };
  Arrival place(const Operation& operation) const;
  // Takes note of an operation that is `forked`. Only a view can tell this site of itself: an operation
  // does not say of which table it is.
  void note_fork(Dot dot);
  // REQUIRES: place(operation) is `next`.
  void arrive(Operation operation, Base& base);
  // Kept until its turn comes; false if there is no room. REQUIRES: place() is `waiting`.
  bool wait(Operation operation);
  // One that waited, and whose turn it is.
  std::optional<Operation> take_waiting();

  // Errc::mismatch if it is a view of another table.
  Result<void> concerns(const SiteView& view) const;
  // What a member says, or what others know of this site. REQUIRES: concerns(view).
  void hear(SiteId from, const SiteView& view);
  // Folds what can be folded, by all that has arrived and was heard.
  void fold(Base& base);
  const SiteView* heard(SiteId from) const;  // nullptr: nothing
  // What this site may say as soon as its present state is durable.
  SiteView view() const { return {held(), members(), state_.heads, state_.group}; }
  // That it was said; REQUIRES: durable, and not superseded().
  void say(const SiteView& view) { listen(site(), view); }

  // Errc::invalid for a site that is or was a member, and what in_force() says. The time makes the
  // group of a table that has none.
  Result<void> admit(SiteId site, TimeMs now_ms);
  // Errc::invalid for one that is not a member, and for this one; the others as admit().
  Result<void> retire(SiteId site);
  // A site that starts from a copy of the state of a member, which has admitted it: Errc::invalid if
  // it has not. A copy of a member that is not in_force() is refused as that says.
  Result<void> become(SiteId site);

  // The member because of which nothing is folded, if it is one.
  std::optional<SiteId> waiting_for() const;
  std::uint64_t holders(Dot dot) const;  // how many have said it, of those that all members know

  struct Overlay {
    int128 sum = 0;
    std::uint64_t live = 0;  // operations that make the counter exist
  };
  std::optional<Overlay> overlay(std::string_view counter) const;
  // Of the counters from `first` to before `end`, in order, until `visit` says false.
  void overlays(std::string_view first, std::optional<std::string_view> end,
                const std::function<bool(std::string_view, const Overlay&)>& visit) const;
  void operations(const std::function<void(const Operation&)>& visit) const;  // that are held here
  void unfolded(const std::function<void(const Operation&)>& visit) const;    // but for the folded
  // Of one log, from a number on.
  void operations_of(SiteId site, std::uint64_t from,
                     const std::function<void(const Operation&)>& visit) const;
  void views(const std::function<void(SiteId, const SiteView&)>& visit) const;
  std::uint64_t bytes() const;  // of memory, nearly

 private:
  // The operations with one id, or one without.
  struct Group {
    std::vector<Dot> dots;  // ascending: the first counts
    std::uint64_t unfolded = 0;
    bool counted = false;  // in the overlay of its counter
    std::optional<OperationId> id;
  };
  using Groups = std::list<Group>;
  struct Entry {
    Operation operation;
    Groups::iterator group;
    bool folded = false;
  };
  struct Reset {
    Dot dot;
    std::uint64_t covered = 0;  // entries that it undoes
  };
  struct Counter {
    Overlay overlay;
    std::uint64_t entries = 0;
    std::vector<Reset> resets;
  };
  // What a member said; the last of it for which rule 2 holds; and what waits for that.
  struct Heard {
    SiteView latest;
    VersionVector acknowledged;
    std::optional<SiteView> next;
  };
  struct IdHash {
    std::size_t operator()(const OperationId& id) const noexcept {
      return id.digest.lo ^ id.sequence * 0x9e3779b97f4a7c15;
    }
  };

  void insert(Operation operation, bool folded);
  Groups::iterator group_of(const Operation& operation);
  bool covers(const Reset& reset, Dot dot) const;
  bool undone(const Group& group) const;
  void recount(Group& group);
  std::uint64_t new_group(TimeMs now_ms) const;
  Arrival place(Dot dot) const;
  std::optional<std::uint64_t> head_at(Dot dot) const;
  bool contradicts(Dot dot, std::uint64_t head) const;
  bool follows(const Operation& operation) const;
  void distrust(SiteId site);
  void compare(const SiteView& view);
  void listen(SiteId from, const SiteView& view);
  void adopt(SiteId from, const Members& told);
  bool holds(const SiteView& view) const;
  void heed(Heard& heard) const;
  std::optional<std::uint64_t> fence(SiteId site) const;
  std::uint64_t last_of(SiteId site) const;
  bool fenced() const;
  std::uint64_t acknowledged(SiteId log) const;
  void fold(Dot dot, Base& base);
  bool needed(const Group& group) const;
  void drop(Groups::iterator group, Base& base);
  void erase(Dot dot, Base& base);
  void become_ready();
  bool known_to_all(SiteId member) const;

  State state_;
  Limits limits_;
  std::map<SiteId, Heard> heard_;
  std::set<SiteId> forked_;
  std::map<Dot, Entry> entries_;  // held; the folded among them still tell of others
  std::uint64_t unfolded_ = 0;
  std::map<Dot, Operation> waiting_;
  Groups groups_;
  std::unordered_map<OperationId, Groups::iterator, IdHash> by_id_;
  std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace semel::tally
