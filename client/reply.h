// Reply: the answer of a server to one command.
//
// Contract  A view is valid as long as the Reply that it came from. Asking for a type that the
//           reply is not gives the neutral value: 0, "", no elements. So a reader asks for what it
//           expects, and checks kind() where it matters.
// Threads   const members may run at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct redisReply;

namespace semel::client {

enum class ReplyKind : std::uint8_t { nil, integer, text, status, error, array };

// Returns the part of a text that a message to the user shows.
std::string excerpt(std::string_view text);

class ReplyView {
 public:
  explicit ReplyView(const redisReply* reply) : reply_(reply) {}

  ReplyKind kind() const;
  bool is_error() const { return kind() == ReplyKind::error; }
  bool is_nil() const { return kind() == ReplyKind::nil; }

  std::int64_t integer() const;
  std::string_view text() const;  // the bytes of a text, a status or an error
  std::string excerpt() const { return client::excerpt(text()); }
  std::string_view word() const;          // the same, but "" for an error
  std::size_t size() const;               // the elements of an array
  ReplyView at(std::size_t index) const;  // REQUIRES: index < size().

  // Returns true if it is an error whose first word is this.
  bool is_error(std::string_view word) const;

 private:
  const redisReply* reply_;
};

class Reply {
 public:
  // Takes ownership. REQUIRES: reply != nullptr.
  explicit Reply(redisReply* reply);

  ReplyView view() const { return ReplyView(reply_.get()); }
  ReplyKind kind() const { return view().kind(); }
  bool is_error() const { return view().is_error(); }
  bool is_error(std::string_view word) const { return view().is_error(word); }
  bool is_nil() const { return view().is_nil(); }
  std::int64_t integer() const { return view().integer(); }
  std::string_view text() const { return view().text(); }
  std::string excerpt() const { return view().excerpt(); }
  std::size_t size() const { return view().size(); }
  ReplyView at(std::size_t index) const { return view().at(index); }

 private:
  struct Free {
    void operator()(redisReply* reply) const;
  };
  std::unique_ptr<redisReply, Free> reply_;
};

}  // namespace semel::client
