// Sink: the destination of an encoder, either a block of memory or pieces of a fixed size.
//
// Contract  encode() appends the same bytes to any sink. A piece is handed on as soon as it is
//           full, so an encoding of any size needs the memory of one piece only.
//           Where a format has the size of a part before the part, encoded_size() runs the encoder
//           once more, into a sink that keeps nothing. An encoder of large data knows its size
//           beforehand and calls only_measures(), so this extra run costs almost nothing.
//           Every encoding ends with a checksum, which is computed on the way. A sink adds nothing.
// Example   class ToFile final : public Pieces {
//             using Pieces::Pieces;
//             void take(ByteView piece) override { ... }
//           };
//           ToFile file(buffer);
//           object.encode(file);
//           file.finish();
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "semel/core/api.h"
#include "semel/core/assert.h"

namespace semel {

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

class SEMEL_API Pieces {
 public:
  // For the checksums of encoders. Sees all the bytes that are written during its lifetime, in
  // pieces. The newest Watch sees them first.
  class Watch {
   public:
    explicit Watch(Pieces& pieces) : pieces_(pieces), from_(pieces.used_), before_(pieces.watch_) {
      pieces.watch_ = this;
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   protected:
    virtual ~Watch() { pieces_.watch_ = before_; }
    virtual void see(ByteView bytes) = 0;
    // Sees the bytes that are written but not yet handed on.
    void catch_up() { look(ByteView(pieces_.buffer_).first(pieces_.used_), pieces_.used_); }

   private:
    friend class Pieces;
    // Shows see() the part of `bytes` that it has not seen yet. Then counts the first `seen` bytes
    // of the buffer as seen.
    void look(ByteView bytes, std::size_t seen) {
      see(bytes.subspan(from_));
      from_ = seen;
    }

    Pieces& pieces_;
    std::size_t from_;  // bytes of the buffer already seen
    Watch* before_;
  };

  // Pieces are as large as the buffer. REQUIRES: the buffer is not empty and outlives the object.
  explicit Pieces(std::span<std::uint8_t> buffer) : buffer_(buffer) {
    SEMEL_ASSERT(!buffer.empty());
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  virtual ~Pieces() = default;

  void append(ByteView bytes) {
    if (bytes.size() >= buffer_.size() - used_) return append_across(bytes);
    if (!bytes.empty()) std::memcpy(buffer_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }
  // Hands on the remaining bytes, if any, as a last and shorter piece.
  void finish() {
    if (used_ > 0) hand_on(ByteView(buffer_).first(used_));
  }

 protected:
  virtual void take(ByteView piece) = 0;
  // Returns true if only the number of bytes matters. Then the sink has counted `bytes` more bytes
  // as written.
  virtual bool skips(std::uint64_t /*bytes*/) { return false; }

 private:
  friend class Sink;

  // Fills the current piece. Then hands on whole pieces straight from `bytes`, without a copy.
  void append_across(ByteView bytes) {
    if (skips(bytes.size())) return;
    while (bytes.size() >= buffer_.size() - used_) {
      const std::size_t taken = buffer_.size() - used_;
      if (used_ == 0) {
        hand_on(bytes.first(taken));
      } else {
        std::memcpy(buffer_.data() + used_, bytes.data(), taken);
        hand_on(buffer_);
      }
      bytes = bytes.subspan(taken);
    }
    append(bytes);
  }
  void hand_on(ByteView piece) {
    for (Watch* watch = watch_; watch != nullptr; watch = watch->before_) watch->look(piece, 0);
    used_ = 0;
    take(piece);
  }

  std::span<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  Watch* watch_ = nullptr;  // the newest
};

// A view of a block or of pieces. It is cheap to copy and converts from either.
class Sink {
 public:
  Sink(Bytes& block) : block_(&block) {}      // NOLINT(google-explicit-constructor)
  Sink(Pieces& pieces) : pieces_(&pieces) {}  // NOLINT(google-explicit-constructor)

  void append(ByteView bytes) const {
    if (pieces_ != nullptr) return pieces_->append(bytes);
    if (bytes.size() == 1) return block_->push_back(bytes.front());  // most varints
    block_->insert(block_->end(), bytes.begin(), bytes.end());
  }
  // Returns true if the caller wants only the size of the encoding. Then the sink has counted
  // `bytes` more bytes as written.
  bool only_measures(std::uint64_t bytes) const {
    return pieces_ != nullptr && pieces_->skips(bytes);
  }

  // Makes room for `bytes` more bytes at once, where that helps.
  void reserve(std::uint64_t bytes) const {
    if (block_ != nullptr) block_->reserve(block_->size() + bytes);
  }

  // One of these two is null.
  Bytes* block() const { return block_; }
  Pieces* pieces() const { return pieces_; }

 private:
  Bytes* block_ = nullptr;
  Pieces* pieces_ = nullptr;
};

// Returns the number of bytes that `encode` appends to its sink.
template <class Encode>
std::uint64_t measured(Encode encode) {
  class Measure final : public Pieces {
   public:
    Measure() : Pieces(room_) {}
    std::uint64_t total = 0;

   private:
    void take(ByteView piece) override { total += piece.size(); }
    bool skips(std::uint64_t bytes) override {
      total += bytes;
      return true;
    }
    std::array<std::uint8_t, 256> room_;
  };
  Measure measure;
  encode(Sink(measure));
  measure.finish();
  return measure.total;
}

// Returns the number of bytes that object.encode() appends.
template <class Type>
std::uint64_t encoded_size(const Type& object) {
  return measured([&](Sink out) { object.encode(out); });
}

}  // namespace semel
