// Histories: events at a few sites and messages between them, and an oracle that knows all of them.
//
// A message, once sent, may be delivered anywhere at any later step: never (it is lost), late, out
// of order, or again and again.
#pragma once

#include <bitset>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/crdt/dot.h"

namespace semel {

// The name of an add. In a series, dots are numbered in each link of each chain.
struct Name {
  Dot dot;
  SiteId chain = 0;
  std::uint8_t link = 0;
  auto operator<=>(const Name&) const = default;
};

// The order in which the entries of one key are removed: from the latest link, the least dot first.
inline bool is_removed_before(const Name& a, const Name& b) {
  return std::tuple(b.link, a.dot, a.chain) < std::tuple(a.link, b.dot, b.chain);
}

// The kinds of removals that a history has.
enum class Removals : std::uint8_t {
  named,  // of the dot of an add of that very key
  safe,   // unnamed, and causally safe
  any,    // unnamed: only the laws hold, and other keys may be lost
};

struct Step {
  enum class Kind : std::uint8_t { add, remove, send_state, send_delta, send_interval, deliver };
  Kind kind;
  std::uint32_t site;    // modulo the number of sites
  std::uint32_t key;     // modulo the number of keys
  std::uint32_t choice;  // modulo whatever there is to choose from
};

struct History {
  std::uint32_t sites;  // 2 to 5
  Removals removals;
  std::vector<Step> steps;
};

std::string to_string(const History& history);

// By chance alone, for the checks of the checks.
History random_history(Random& random);

// Runs many random histories; RapidCheck shrinks one that fails. `complaint` runs a history and
// returns what was wrong, nothing if all was well. Returns true if none failed.
bool check_histories(const std::function<std::string(const History&)>& complaint);

// The first law that was broken.
class Complaint {
 public:
  void expect(bool holds, const char* law) {
    if (!holds && text_.empty()) text_ = law;
  }
  bool none() const { return text_.empty(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

inline constexpr std::size_t kMostOperations = 256;
// Numbers of operations whose effect has come to a site, or travels in a message.
using Seen = std::bitset<kMostOperations>;

// Every add and removal of a history, and what its site had seen before it.
class Oracle {
 public:
  struct Operation {
    std::uint32_t key;
    bool removal;
    Name name;  // of the add; of what a removal took out
    Seen seen;
  };

  bool full() const { return operations_.size() == kMostOperations; }
  std::size_t note(const Operation& operation);  // its number
  std::span<const Operation> operations() const { return operations_; }

  // Returns the names that occur in these operations, and whether each is removed.
  std::map<Name, bool> names(const Seen& seen) const;
  // Returns the order of states that have seen this much: names become known, and then removed.
  static std::partial_ordering compare(const std::map<Name, bool>& a,
                                       const std::map<Name, bool>& b);
  // Returns true if all preceding dots are in the message or already here. Otherwise there is a
  // gap.
  static bool continues(const std::map<Name, bool>& here, const std::map<Name, bool>& next);

  // Returns true if some add of the key has arrived, and its own name has not been removed.
  bool live(std::uint32_t key, const Seen& seen) const;
  // Returns true if more adds than removals of the key have arrived.
  bool outnumbers(std::uint32_t key, const Seen& seen) const;
  // Returns true if every predecessor of the arrived updates has arrived.
  bool closed(const Seen& seen) const;
  // Returns true if a removal of the key, by a site that has seen this much, is causally safe and
  // leaves parallel removals safe (definition 3.1 of the thesis).
  bool safe(std::uint32_t key, const Seen& seen) const;

 private:
  std::vector<Operation> operations_;
};

}  // namespace semel
