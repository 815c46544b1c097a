// Seal: the checksum at the end of a format. It covers all the bytes since the Seal was made.
//
// Cost      A block is hashed as a whole when it is sealed. Pieces are hashed as they are handed
//           on. Seals nest.
// Example   Seal seal(out);
//           Writer(out).u32(kMagic);
//           ...
//           seal.close();
#pragma once

#include <cstdint>
#include <optional>

#include "semel/core/codec.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"

namespace semel {

class Seal {
 public:
  explicit Seal(Sink out) : out_(out) {
    if (out.block() != nullptr) {
      start_ = out.block()->size();
    } else if (!out.only_measures(0)) {
      running_.emplace(*out.pieces());
    }
  }
  Seal(const Seal&) = delete;
  Seal& operator=(const Seal&) = delete;
  ~Seal() = default;

  // Appends the checksum. REQUIRES: called once, and after close() of every Seal made later.
  void close() {
    std::uint64_t sum = 0;
    if (running_) sum = running_->value();
    if (out_.block() != nullptr) sum = checksum(ByteView(*out_.block()).subspan(start_));
    running_.reset();
    Writer(out_).u64(sum);
  }

 private:
  class Running final : public Pieces::Watch {
   public:
    using Pieces::Watch::Watch;
    ~Running() override = default;
    std::uint64_t value() {
      catch_up();
      return sum_.value();
    }

   private:
    void see(ByteView bytes) override { sum_.add(bytes); }
    RunningChecksum sum_;
  };

  Sink out_;
  std::size_t start_ = 0;           // if `out` is a block
  std::optional<Running> running_;  // if `out` is pieces
};

}  // namespace semel
