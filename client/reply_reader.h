// ReplyReader: replies out of the bytes of a server that is not trusted.
//
// Contract  Bytes are fed as they come, next() gives one reply after another. Whatever is no reply,
//           or is more than the limits allow, is an error, and the reader is of no use after it.
// Memory    What is fed is kept until its reply is complete: up to the limit of bytes and one piece
//           more. An array takes memory when its length is known, before its elements are there; so
//           the lengths of all arrays of a reply are counted together, each before it takes
//           anything.
// Threads   A call needs the object to itself.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "client/reply.h"
#include "semel/core/result.h"

struct redisReader;

namespace semel::client {

// What one reply may take. An answer of the module to this client is at most one number, or a line
// of error, for each of kIdsPerCommand ids.
struct ReplyLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t elements = std::size_t{1} << 12;  // of all arrays in it
};

class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ReplyReader(ReplyReader&&) noexcept;
  ReplyReader& operator=(ReplyReader&&) noexcept;
  ~ReplyReader();

  void feed(std::string_view bytes);
  // The next reply; none if more bytes are needed. Errc::corrupt, or Errc::limit.
  Result<std::optional<Reply>> next();
  // Bytes that were fed and belong to no reply so far.
  std::size_t pending() const { return fed_ - taken_; }

 private:
  bool in_endless_line() const;

  struct Budget;
  struct Free {
    void operator()(redisReader* reader) const;
  };

  ReplyLimits limits_;
  std::unique_ptr<Budget> budget_;  // outlives the reader, which frees its replies by it
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t fed_ = 0;
  std::size_t taken_ = 0;  // by replies that are complete
};

}  // namespace semel::client
