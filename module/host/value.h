// Value: what a key of one of our types holds. It does not see the server.
//
// Contract  Its state follows from the calls that changed it and from the times that came with them:
//           no clock, no randomness, no configuration. A copy that was encoded and decoded at any
//           point goes on in the same way, to the same bytes: replicas begin in the middle.
//           encode() is what RDB, DUMP and AOF keep, and what DEBUG DIGEST-VALUE compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"

namespace semel::host {

class Value {
 public:
  Value() = default;
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  virtual ~Value() = default;

  // Appends the encoding, with its own magic, version and checksum. Equal states give equal bytes.
  // It may be written in pieces: no more memory than for a few of them, whatever the size of the
  // value.
  virtual void encode(Sink out) const = 0;
  virtual std::uint64_t bytes() const = 0;  // all memory that it holds
  // Lets time pass. False if the value has no time.
  virtual bool advance(TimeMs /*now_ms*/) { return false; }
  // Memory that was promised when the value was made, and that an encoding does not carry: how much
  // of it is not there, and a call that takes it. The state stays the same.
  virtual std::uint64_t unreserved_bytes() const { return 0; }
  virtual void reserve() {}
  // For COPY.
  virtual std::unique_ptr<Value> copy() const = 0;
  // How much there is to give back, in allocations, nearly: above 64 another thread does it.
  virtual std::size_t parts() const { return 1; }
};

// How the server knows a type of values.
struct TypeSpec {
  const char* name;  // nine letters, digits, - or _
  int version;       // of the RDB encoding; the encodings of all versions up to this can be read
  // Reads one value that fills `in` exactly. `in` may come from an enemy.
  Result<std::unique_ptr<Value>> (*decode)(ByteView in);
  mutable void* handle = nullptr;  // the server's, once it is loaded
};

}  // namespace semel::host
