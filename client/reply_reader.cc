#include "client/reply_reader.h"

#include <hiredis/hiredis.h>

#include <new>

namespace semel::client {

// Counts the elements that a reply may still have. hiredis makes every array by a function that can
// be replaced.
struct ReplyReader::Budget {
  explicit Budget(const redisReader& reader, std::size_t elements)
      : functions(*reader.fn), make_array(reader.fn->createArray), left(elements) {
    functions.createArray = counted;
  }

  // The type of the length differs between versions of hiredis.
  template <class Length>
  static void* counted(const redisReadTask* task, Length length) {
    auto& budget = *static_cast<Budget*>(task->privdata);
    if (static_cast<std::size_t>(length) > budget.left) {
      budget.exceeded = true;
      return nullptr;
    }
    budget.left -= static_cast<std::size_t>(length);
    return budget.make_array(task, length);
  }

  redisReplyObjectFunctions functions;
  decltype(redisReplyObjectFunctions::createArray) make_array;
  std::size_t left;
  bool exceeded = false;
};

void ReplyReader::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

ReplyReader::ReplyReader(ReplyLimits limits) : limits_(limits), reader_(redisReaderCreate()) {
  if (reader_ == nullptr) throw std::bad_alloc();
  budget_ = std::make_unique<Budget>(*reader_, limits.elements);
  reader_->fn = &budget_->functions;
  reader_->privdata = budget_.get();
}
ReplyReader::ReplyReader(ReplyReader&&) noexcept = default;
ReplyReader& ReplyReader::operator=(ReplyReader&& other) noexcept {
  reader_ = std::move(other.reader_);  // before the budget with which it frees its replies
  budget_ = std::move(other.budget_);
  limits_ = other.limits_;
  fed_ = other.fed_;
  taken_ = other.taken_;
  return *this;
}
ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes) {
  // A reader that has met an error takes nothing; next() reports the error.
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    if (reader_->err == REDIS_ERR_OOM) throw std::bad_alloc();
    return;
  }
  fed_ += bytes.size();
}

// Everything but the bytes of a bulk string is a line. A line without an end is searched again with
// every piece, so the time for a long one would grow with the square of its length.
bool ReplyReader::in_endless_line() const {
  constexpr std::size_t kLongestLine = std::size_t{16} << 10;
  constexpr std::size_t kLongestLength = 32;
  const std::string_view item(reader_->buf + reader_->pos, reader_->len - reader_->pos);
  if (item.size() <= kLongestLine) return false;
  return item[0] != '$' || item.substr(0, kLongestLength).find('\r') == std::string_view::npos;
}

Result<std::optional<Reply>> ReplyReader::next() {
  const Error too_long{Errc::limit, "the reply is longer than any answer can be"};
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    if (budget_->exceeded) return too_long;
    if (reader_->err == REDIS_ERR_OOM) throw std::bad_alloc();
    return Error{Errc::corrupt, "the reply is not in the protocol of Redis"};
  }
  if (reply == nullptr) {
    if (pending() > limits_.bytes || in_endless_line()) return too_long;
    return std::optional<Reply>();
  }
  Reply complete(static_cast<redisReply*>(reply));
  const std::size_t end = fed_ - (reader_->len - reader_->pos);
  const std::size_t size = end - taken_;
  taken_ = end;
  budget_->left = limits_.elements;
  if (size > limits_.bytes) return too_long;
  return std::optional<Reply>(std::move(complete));
}

}  // namespace semel::client
