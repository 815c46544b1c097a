// OperationLog: ensures that an operation counts once at several sites, wherever it is retried.
//
// Contract  Each site appends the operations that it takes to its own log. The logs travel to all
//           sites, in any order, any number of times. The value of a counter is its base plus its
//           overlay(), the sum over the distinct ids of the operations that are not yet in the
//           base. If a site takes a retry before it has received the first attempt from another
//           site, the retry is an operation of its own in the log, and counts nothing. Sites that
//           hold the same logs have the same values.
// Folding   An operation leaves the log and enters the base (Base::fold) when
//             1. every member has said that it holds the operation, and
//             2. this site holds everything that each member held when it said so, and nothing that
//                contradicts it.
//           By 1, every site recognises the id when it comes again. By 2, all retries that were
//           taken are here. The one with the least dot counts, which is the same at every site.
// Reset     A reset undoes the operations on its counter that its site held. An operation is undone
//           if any operation with its id was. Operations that other sites take meanwhile stay. By 1
//           and 2, a reset that arrives undoes all that is folded of the counter (Base::clear). If
//           another site takes a retry of a reset before it has received the first one, that retry
//           is a reset of its own.
// Members   A new site starts from the state of a member. It takes operations once every member has
//           said that it knows the new site, and the new site holds what they held then (ready()).
//           A retired site is fenced: a member that hears of it takes nothing more of its log until
//           all others have said that they heard. The fence is the longest prefix that any of them
//           holds. Operations that only the retired site held are lost. A table has a group, which
//           the first admission makes; sites of other groups are refused. A site that is admitted
//           while another is retired may come too late for the fence. Then it is retired before it
//           takes anything, and needs another id.
// Forks     A site that was restored from an old backup, or whose id another site uses, would use
//           its numbers again. Heads (log_heads.h) reveal it. A site is superseded() if others know
//           more of its log than it does, or a different log. It then takes, folds and publishes
//           nothing more, and must go on under another id. If a member holds different operations
//           of a log than this site, its views do not count: nothing folds until that member, or
//           the site of that log, is retired (forked()).
// Bound     Beyond `max_unfolded` operations that are not folded, the site takes none (Errc::full),
//           until the member that it waits for (waiting_for()) is back or retired. Operations of
//           other sites are always accepted.
// Alone     A site without others folds at once and keeps no log.
// Restart   The whole state (restore()) consists of held(), folded(), members(), the views, and the
//           operations that Base was told to hold and not yet to drop.
// Cost      append, arrive: O(log operations). reset: O(operations).
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

#include "semel/core/internal/arithmetic.h"
#include "semel/core/result.h"
#include "semel/crdt/version_vector.h"
#include "semel/tally/counters/internal/counter_state.h"
#include "semel/tally/internal/logged_operation.h"
#include "semel/tally/internal/site_view.h"
#include "semel/tally/members.h"

namespace semel::tally::internal {

class OperationLog {
 public:
  // The store below the log. Operations are folded into it, and it keeps the state for a restart.
  class Base {
   public:
    virtual ~Base() = default;
    // Adds to the base. Returns the sum of the counter after it, if the base knows it.
    virtual std::optional<int128> fold(std::string_view counter, const Shard& shard) = 0;
    virtual void clear(std::string_view counter) = 0;  // removes the counter from the base
    virtual void hold(const Operation& operation) = 0;
    // Keeps an operation that is folded and still needed to judge others, for a restart.
    virtual void keep(const Operation& operation) = 0;
    virtual void drop(Dot dot) = 0;
  };

  struct Limits {
    std::uint64_t max_unfolded = 1 << 20;  // not folded; as many may wait for their turn
  };

  // The state that a restart needs.
  struct State {
    SiteId site = 1;
    Members members = {};
    VersionVector held = {};
    VersionVector folded = {};
    bool ready = true;
    bool superseded = false;
    std::uint64_t group = 0;  // 0: it never had other members
    LogHeads heads = {};      // of the held operations
    bool operator==(const State&) const = default;
  };

  // Makes the log of a site on its own, the first member.
  OperationLog(SiteId site, const Limits& limits);
  // Restores a log. `operations` are in any order.
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
  // Returns the sites of whose log another member holds different operations than this one, as far
  // as is known since the table was opened.
  const std::set<SiteId>& forked() const { return forked_; }
  std::uint64_t unfolded() const { return unfolded_; }
  // Returns true if an operation with this id is here. Its retries are recognised, however late.
  bool knows(const OperationId& id) const { return by_id_.contains(id); }

  // Checks that this site may do something that others will have to know about. Errc::outside if it
  // is retired; Errc::forked if it is superseded(); Errc::gap if it is new, and not ready().
  Result<void> in_force() const;
  // Checks that this site may take this many more operations. Errors: Errc::full; Errc::limit if
  // its numbers are used up; and the errors of in_force().
  Result<void> may_take(std::uint64_t operations) const;
  // Takes an operation of a client, and gives it its dot and, if it is a reset, what it observed.
  // REQUIRES: may_take(1).
  Dot append(Operation operation, Base& base);
  // Takes this many additions, which the caller adds to the base at once. Returns the last of their
  // dots. REQUIRES: alone(), may_take(operations).
  Dot count(std::uint64_t operations);

  enum class Arrival : std::uint8_t {
    known,    // already held, of no member, or beyond the fence: nothing to do
    next,     // the next of its log
    waiting,  // an earlier one of its log is missing
    forked,   // of a log that contradicts the log held here
  };
  Arrival place(const Operation& operation) const;
  // Notes an operation that is `forked`. It is no evidence about this site itself, because an
  // operation does not name its table; a view does.
  void note_fork(Dot dot);
  // REQUIRES: place(operation) is `next`.
  void arrive(Operation operation, Base& base);
  // Keeps the operation until its turn comes. Returns false if there is no room. REQUIRES: place()
  // is `waiting`.
  bool wait(Operation operation);
  // Returns a waiting operation whose turn has come.
  std::optional<Operation> take_waiting();

  // Errc::mismatch if it is a view of another table.
  Result<void> check_group(const SiteView& view) const;
  // Takes in the view of a member, or what others know of this site. REQUIRES: check_group(view).
  void receive(SiteId from, const SiteView& view);
  // Folds everything that can be folded with what has arrived.
  void fold(Base& base);
  const SiteView* view_of(SiteId from) const;  // the last view of a site, or nullptr
  // Returns what this site may publish as soon as its present state is durable.
  SiteView view() const { return {held(), members(), state_.heads, state_.group}; }
  // Notes that this view was published. REQUIRES: its state is durable; not superseded().
  void record_published(const SiteView& view) { merge_view(site(), view); }

  // Errc::invalid for a site that is or was a member, and the errors of in_force(). The time is a
  // part of the group of a table that has none yet.
  Result<void> admit(SiteId site, TimeMs now_ms);
  // Errc::invalid for a site that is not a member, and for this site; and the errors of in_force().
  Result<void> retire(SiteId site);
  // Turns a copy of a member's log into that of a site which the member has admitted. Errc::invalid
  // if it has not, and the errors of in_force() of that member.
  Result<void> become(SiteId site);

  // Returns the member that prevents folding, if there is one.
  std::optional<SiteId> waiting_for() const;
  // Returns how many members have said that they hold the operation. Only members that all others
  // know count.
  std::uint64_t holders(Dot dot) const;

  struct Overlay {
    int128 sum = 0;
    std::uint64_t live = 0;  // number of operations that make the counter exist
  };
  std::optional<Overlay> overlay(std::string_view counter) const;
  // Visits the counters from `first` to before `end` in order, until `visit` returns false.
  void overlays(std::string_view first, std::optional<std::string_view> end,
                const std::function<bool(std::string_view, const Overlay&)>& visit) const;
  void operations(const std::function<void(const Operation&)>& visit) const;
  void unfolded(const std::function<void(const Operation&)>& visit) const;
  // Visits the operations of one log, starting at a number.
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
    std::uint64_t covered = 0;  // the number of entries that it undoes
  };
  struct Counter {
    Overlay overlay;
    std::uint64_t entries = 0;
    std::vector<Reset> resets;
  };
  // The views of a member: the last one, the one that counts as acknowledged (rule 2), and the next
  // one, which waits for that.
  struct Peer {
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
  void mark_forked(SiteId site);
  void compare(const SiteView& view);
  void merge_view(SiteId from, const SiteView& view);
  void learn_members(SiteId from, const Members& told);
  bool holds(const SiteView& view) const;
  void update_acknowledged(Peer& peer) const;
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
  std::map<SiteId, Peer> peers_;
  std::set<SiteId> forked_;
  std::map<Dot, Entry> entries_;  // held; folded ones decide about others
  std::uint64_t unfolded_ = 0;
  std::map<Dot, Operation> waiting_;
  Groups groups_;
  std::unordered_map<OperationId, Groups::iterator, IdHash> by_id_;
  std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace semel::tally::internal
