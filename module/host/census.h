// Census: sums over all values of the server, for INFO. It does not see the server.
//
// Contract  A value is counted from admit() to dismiss(): from the moment when a key gets it until
//           its memory is free. So the sums agree with used_memory, whoever frees the value, and
//           when. A server may load a dataset beside the one that it serves. Values of the other
//           dataset, which is being loaded or freed, are in unserved_bytes() alone.
//           After settle() all sums are exact, except for the worst errors: those include a changed
//           value only after catch_up() has reached it. It takes the oldest change first.
// Cost      Nothing is ever scanned. The first write to a value puts it on a list; further writes
//           cost one comparison until the list is settled. While the list is full, a write to a
//           value that is not on it is summed at once, while the value is in the cache. An error
//           takes microseconds, so it is computed later, and only if the value has changed.
// Error     The worst error is kept as a histogram: a step is 1/32 of its value wide, and the
//           upper end of the highest step in use is shown.
// Threads   dismiss(): any. The others: the thread that runs commands.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "module/host/value.h"

namespace semel::host {

// The largest of many numbers that come and go.
class Worst {
 public:
  // Returns the step of a number: 0 for a number that is not above 0.
  static std::uint16_t step_of(double number);
  void move(std::uint16_t from, std::uint16_t to);
  // Returns the upper end of the highest step in use, or 0.
  double bound() const;

 private:
  static constexpr unsigned kBits = 5;                 // of a step, within a factor of two
  static constexpr std::size_t kSteps = 64U << kBits;  // from 2^-56 to 2^8
  std::array<std::uint32_t, kSteps> count_{};
};

// The sums of one type.
struct Sums {
  std::uint64_t keys = 0, bytes = 0, items = 0, capacity = 0, claims = 0;
  // Since the module was loaded.
  std::uint64_t claims_expired = 0, forgotten_early = 0, evicted = 0, expired = 0;
  double error_worst = 0;        // of a key, now
  double error_ratio_worst = 0;  // the same, as a multiple of the error that the key was made for
};

class Census {
  using Place = Account::Place;

 public:
  static constexpr std::size_t kTypes = 4;
  static constexpr std::size_t kWritten = 256;

  // A server may load a dataset beside the one that it serves.
  enum class Dataset : std::uint8_t { served, loading };

  // Counts a value. REQUIRES: type < kTypes, and the value is not counted yet.
  void admit(Value& value, std::size_t type, Dataset dataset = Dataset::served);
  // The dataset that was loaded is served from now on, in place of the other.
  void serve_loaded();
  // Ends the count of a value. Does nothing for one that was never counted.
  void dismiss(Value& value) noexcept;
  // Notes that a counted value may have changed.
  void written(Value& value) {
    if (value.account_.place != Place::written) note(value);
  }

  void settle();
  // Settles, and then computes errors that are due, for about this long, or until there is no
  // memory for one.
  void catch_up(std::chrono::microseconds budget);
  Sums sums(std::size_t type) const;
  // Returns the bytes of the dataset that is not served.
  std::uint64_t unserved_bytes() const;
  // Returns the sums for a crash report: without a lock, so numbers may be torn.
  Sums sums_unlocked(std::size_t type) const;

  // Count a key that the server has removed.
  void evicted(std::size_t type);
  void expired(std::size_t type);

 private:
  struct Type {
    Sums sums;
    Worst errors, shares;
  };
  struct List {
    Value* first = nullptr;
    Value* last = nullptr;
    std::size_t size = 0;
  };

  List& list_of(Place place) { return place == Place::written ? written_ : late_; }
  void put(Value& value, Place place);
  void note(Value& value);
  void sum(Value& value);
  void compare(Value& value);
  void settle_all();
  // Returns the index of a type in types_, which Account::type keeps.
  std::size_t index_of(std::size_t type, Dataset dataset) const {
    return type + (dataset == Dataset::served ? served_ : kTypes - served_);
  }

  mutable std::mutex mutex_;  // of all below, and of the accounts
  std::array<Type, 2 * kTypes> types_;
  std::size_t served_ = 0;  // where the types of the served dataset begin: 0 or kTypes
  List written_;            // to be summed
  List late_;               // summed, to be compared
};

// Counts the values of this server.
inline constinit Census census;

}  // namespace semel::host
