// ReplyReader: reads replies from the bytes of a server that is not trusted.
//
// Contract  Bytes are fed as they come; next() gives one reply after another. Bytes that are no
//           reply, or exceed the limits, are an error, and the reader is of no use after it.
// Memory    Bytes are kept until their reply is complete: up to the limit of bytes and one piece
//           more. An array takes memory when its length is known, before its elements are there. So
//           the lengths of all arrays of a reply are added up, each before it takes memory.
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

// The limits of one reply. The module answers this client with at most one number, or one line of
// error, for each of kIdsPerCommand ids.
struct ReplyLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t elements = std::size_t{1} << 12;  // of all arrays together
};

class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ReplyReader(ReplyReader&&) noexcept;
  ReplyReader& operator=(ReplyReader&&) noexcept;
  ~ReplyReader();

  void feed(std::string_view bytes);
  // Returns the next reply; nullopt if more bytes are needed. Errc::corrupt, or Errc::limit.
  Result<std::optional<Reply>> next();
  // Returns how many bytes were fed and belong to no reply so far.
  std::size_t pending() const { return fed_ - taken_; }

 private:
  bool in_endless_line() const;

  struct Budget;
  struct Free {
    void operator()(redisReader* reader) const;
  };

  ReplyLimits limits_;
  std::unique_ptr<Budget> budget_;  // outlives the reader, which frees its replies with it
  std::unique_ptr<redisReader, Free> reader_;
  std::size_t fed_ = 0;
  std::size_t taken_ = 0;  // by replies that are complete
};

}  // namespace semel::client
