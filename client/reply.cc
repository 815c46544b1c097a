#include "client/reply.h"

#include <hiredis/hiredis.h>

#include "semel/core/assert.h"

namespace semel::client {

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  return std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "");
}

ReplyKind ReplyView::kind() const {
  switch (reply_->type) {
    case REDIS_REPLY_INTEGER:
      return ReplyKind::integer;
    case REDIS_REPLY_STRING:
      return ReplyKind::text;
    case REDIS_REPLY_STATUS:
      return ReplyKind::status;
    case REDIS_REPLY_ERROR:
      return ReplyKind::error;
    case REDIS_REPLY_ARRAY:
      return ReplyKind::array;
    default:
      return ReplyKind::nil;
  }
}

std::int64_t ReplyView::integer() const {
  return kind() == ReplyKind::integer ? reply_->integer : 0;
}

std::string_view ReplyView::text() const {
  const ReplyKind kind = this->kind();
  const bool has_text =
      kind == ReplyKind::text || kind == ReplyKind::status || kind == ReplyKind::error;
  return has_text ? std::string_view(reply_->str, reply_->len) : std::string_view();
}

std::string_view ReplyView::word() const { return is_error() ? std::string_view() : text(); }

std::size_t ReplyView::size() const { return kind() == ReplyKind::array ? reply_->elements : 0; }

ReplyView ReplyView::at(std::size_t index) const {
  SEMEL_ASSERT(index < size());
  return ReplyView(reply_->element[index]);
}

bool ReplyView::is_error(std::string_view word) const {
  if (!is_error() || !text().starts_with(word)) return false;
  return text().size() == word.size() || text()[word.size()] == ' ';
}

Reply::Reply(redisReply* reply) : reply_(reply) { SEMEL_ASSERT(reply != nullptr); }

void Reply::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

}  // namespace semel::client
