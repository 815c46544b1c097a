// Reply: what a server answered to one command.
//
// Contract  A view is valid as long as the Reply that it came from. Asking for a type that it is not
//           gives the neutral value: 0, "", no elements. So a reader asks for what it expects and checks
//           kind() where it matters.
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

// What a message to the user shows of a text: not all of a long one.
std::string excerpt(std::string_view text);

class ReplyView {
 public:
  explicit ReplyView(const redisReply* reply) : reply_(reply) {}

  ReplyKind kind() const;
  bool is_error() const { return kind() == ReplyKind::error; }
  bool is_nil() const { return kind() == ReplyKind::nil; }

  std::int64_t integer() const;
  std::string_view text() const;  // of a text, a status or an error
  std::string excerpt() const { return client::excerpt(text()); }
  std::string_view word() const;          // of a text or a status; an error is no answer
  std::size_t size() const;               // of an array
  ReplyView at(std::size_t index) const;  // REQUIRES: index < size().

  // Whether it is an error of this kind: its first word.
  bool is_error(std::string_view word) const;

 private:
  const redisReply* reply_;
};

class Reply {
 public:
  // Owns it. REQUIRES: there is one.
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
