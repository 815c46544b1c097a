#include "semel/sync/internal/exchange.h"

#include <algorithm>

#include "semel/core/assert.h"

namespace semel::sync_internal {
namespace {

const Error kNotExpected{Errc::mismatch, "sync: an answer to no open question"};
const Error kOtherParts{Errc::corrupt, "sync: the other end answers what was not asked"};

// Parts up to this size together travel in one frame.
constexpr std::size_t kSmall = 32 << 10;

}  // namespace

void Exchange::ask(frame::Topic topic, Bytes body, AskContext context) {
  next_.push_back({topic, std::move(body), std::make_unique<AskContext>(std::move(context))});
}

Result<void> Exchange::begin_round(const frame::Scope& scope) {
  SEMEL_ASSERT(round_done());
  round_.clear();
  ++rounds_;
  std::vector<Draft> drafts = std::exchange(next_, {});
  // Fetches come first, so that they see what was there before anything is stored.
  std::stable_partition(drafts.begin(), drafts.end(),
                        [](const Draft& draft) { return draft.topic != frame::Topic::store; });
  const std::size_t others = frame::kHeaderBytes + frame::kChecksumBytes + frame::kPartBytes + 32 +
                             scope.range.first.size() + scope.range.end.value_or("").size();
  const std::size_t small =
      std::min<std::size_t>(kSmall, frame_bytes_ - std::min<std::size_t>(frame_bytes_, others));
  std::size_t first = 0;
  while (first < drafts.size()) {
    // Only the first part of a frame may have a large answer.
    std::size_t end = first + 1;
    std::size_t bytes = drafts[first].body.size();
    while (end < drafts.size() && drafts[end].topic == frame::Topic::store &&
           end - first < frame::kMostParts) {
      const std::size_t body = drafts[end].body.size();
      const std::size_t more = body + frame::kPartBytes + frame::most_store_reply(body);
      if (bytes + more > small) break;
      bytes += more;
      ++end;
    }
    const Result<void> sent = send(std::span(drafts).subspan(first, end - first), scope);
    if (!sent) return sent;
    first = end;
  }
  return {};
}

Result<void> Exchange::send(std::span<Draft> drafts, const frame::Scope& scope) {
  Question question{++number_, {}, {}};
  frame::Builder builder({frame::Kind::question, question.number, key_});
  frame::encode(scope, builder.body());
  for (Draft& draft : drafts) {
    frame::encode_part(draft.topic, draft.body, builder.body());
    question.parts.emplace_back(draft.topic, std::move(draft.context));
    draft.body = {};
  }
  question.bytes = std::move(builder).seal();
  if (question.bytes.size() > frame_bytes_) {
    return Error{Errc::limit, "sync: a record or a question is larger than a frame may be"};
  }
  bytes_sent_ += question.bytes.size();
  if (rounds_ == 1) first_bytes_ += question.bytes.size();
  round_.push_back(std::move(question));
  return {};
}

bool Exchange::round_done() const {
  return std::ranges::all_of(round_, [](const Question& question) { return question.answered; });
}

std::vector<ByteView> Exchange::outstanding() const {
  std::vector<ByteView> frames;
  for (const Question& question : round_) {
    if (!question.answered) frames.emplace_back(question.bytes);
  }
  return frames;
}

Result<Exchange::Answer> Exchange::take(ByteView bytes) {
  if (bytes.size() > frame_bytes_) {
    return Error{Errc::limit, "sync: the answer is larger than this end allows"};
  }
  const frame::Opened opened = SEMEL_TRY(frame::open(bytes));
  const auto question = std::ranges::find_if(round_, [&](const Question& each) {
    return !each.answered && each.number == opened.header.number;
  });
  if (question == round_.end() || opened.header.key != key_) return kNotExpected;
  Answer answer;
  Reader in(opened.body);
  if (opened.header.kind == frame::Kind::refusal) {
    frame::Refusal refusal = SEMEL_TRY(frame::decode_refusal(in));
    answer.fatal = Error{refusal.code, "the peer refuses", std::move(refusal.words)};
    answer.fatal->from_peer = true;
    return answer;
  }
  if (opened.header.kind != frame::Kind::answer) return kNotExpected;
  question->answered = true;
  question->bytes = {};
  bytes_received_ += bytes.size();
  if (rounds_ == 1) first_bytes_ += bytes.size();
  const Result<std::vector<frame::Part>> parts = frame::decode_parts(in);
  if (!parts || parts->size() != question->parts.size()) {
    answer.fatal = kOtherParts;
    return answer;
  }
  for (std::size_t i = 0; i < parts->size(); ++i) {
    auto& [topic, context] = question->parts[i];
    if ((*parts)[i].topic != topic) answer.fatal = kOtherParts;
    answer.parts.emplace_back(std::move(context), (*parts)[i].body);
  }
  return answer;
}

void Exchange::stop() {
  round_.clear();
  next_.clear();
}

}  // namespace semel::sync_internal
