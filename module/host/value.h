// Value: what a key of one of our types holds. It does not see the server.
//
// Contract  Its state follows from the calls that changed it and from the times that came with
//           them. It reads no clock, no random numbers and no configuration. A copy that is encoded
//           and decoded at any point evolves to the same bytes as the original, because replicas
//           join at any time. RDB, DUMP and AOF keep the encoding, and DEBUG DIGEST-VALUE compares
//           it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::host {

// The numbers of one value, for the sums of INFO (module/host/census.h).
struct Figures {
  std::uint64_t items = 0;     // ids, counters or members, as of the last change
  std::uint64_t capacity = 0;  // what it was made for, or has grown to
  std::uint64_t claims = 0;
  // Since the value was made or loaded.
  std::uint64_t claims_expired = 0;   // claims whose owner neither committed nor released
  std::uint64_t forgotten_early = 0;  // ids that left before their time
};

struct ErrorRate {
  double now = 0;
  double goal = 0;  // 0: the value makes no errors
};

// The part of a value that the census keeps.
struct Account {
  // The list of the census that the value is on.
  enum class Place : std::uint8_t { none, written, late };

  Place place = Place::none;
  bool counted = false;
  bool changed = false;                // since its error was compared
  std::uint8_t type = 0;               // and dataset
  std::uint16_t error = 0, share = 0;  // steps of Worst
  std::uint32_t claims_expired = 0, forgotten_early = 0;
  std::uint64_t bytes = 0, items = 0, capacity = 0, claims = 0;
  class Value* next = nullptr;
  class Value* previous = nullptr;
};

class Value {
 public:
  Value() = default;
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  virtual ~Value() = default;

  // Appends the encoding. Equal states give equal bytes. A sink may take it in pieces; the memory
  // for a few of them is enough, whatever the size of the value.
  virtual void encode(Sink out) const = 0;
  virtual std::uint64_t bytes() const = 0;  // all memory that it holds
  // Lets time pass. Returns false if the value has no time.
  virtual bool advance(TimeMs /*now_ms*/) { return false; }
  // A value may be promised memory when it is made. An encoding does not carry that memory.
  // unreserved_bytes() returns how much of it is missing; reserve() allocates it. The state stays.
  virtual std::uint64_t unreserved_bytes() const { return 0; }
  virtual void reserve() {}
  // Returns a copy that goes on as this value would. It lacks the memory of unreserved_bytes().
  virtual std::unique_ptr<Value> clone() const = 0;
  // Copies the value for COPY: both go on beside each other.
  virtual std::unique_ptr<Value> copy() const { return clone(); }
  // Allocates the small blocks of one section of a large value anew. The state stays, even if
  // memory runs out. Returns false if there is no such section.
  virtual bool renew(std::uint64_t /*section*/) { return false; }
  // Returns about how many allocations there are to free. Above 64 another thread frees them.
  virtual std::size_t parts() const { return 1; }
  // Figures take nanoseconds, the error may take microseconds.
  virtual Figures figures() const = 0;
  virtual ErrorRate error_rate() const = 0;

 private:
  friend class Census;
  Account account_;
};

// A type of values, as the server knows it.
struct TypeSpec {
  const char* name;  // nine letters, digits, - or _
  int version;       // of the RDB encoding; all versions up to this one can be read
  // Reads one value that fills `in` exactly. `in` is untrusted.
  Result<std::unique_ptr<Value>> (*decode)(ByteView in);
  const char* family;  // of its commands, in small letters: for the names of INFO
  bool has_claims = false;
  bool forgets = false;            // it may forget ids before their time
  mutable void* handle = nullptr;  // the server's, once it is loaded
  mutable std::size_t index = 0;   // among the types of the module, once it is loaded
};

}  // namespace semel::host
