#include "cli/pipe_records.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/options.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"

namespace semel::cli {
namespace {

// docs/formats/sync_pipe_v1.md
constexpr std::string_view kHelloName = "semel-sync ";
constexpr std::string_view kAsks = "semel-sync 1 asks\n";
constexpr std::string_view kAnswers = "semel-sync 1 answers\n";
constexpr std::size_t kHeaderSize = 7;
constexpr std::size_t kMostContent = 1024;
constexpr std::size_t kChecksumSize = 8;
enum Kind : std::uint8_t { kPiece = 1, kLastPiece = 2, kAlive = 3, kFull = 4, kEnd = 5 };

constexpr std::array<std::uint8_t, kMostContent> kPadding{};
constexpr std::size_t kLongestLine = 80;  // of a foreign greeting that is shown

constexpr const char* kDamaged =
    "what came from the peer is damaged: bytes were changed, lost or added on the way";
constexpr const char* kOutOfOrder =
    "what came from the peer is not in order: bytes were lost, repeated or swapped on the way";

}  // namespace

std::string_view hello_of(PipeRole role) { return role == PipeRole::asks ? kAsks : kAnswers; }

void PipeEncoder::frame(ByteView frame, std::string& out) {
  while (frame.size() > kMostContent) {
    record(kPiece, frame.first(kMostContent), out);
    frame = frame.subspan(kMostContent);
  }
  record(kLastPiece, frame, out);
}

void PipeEncoder::alive(bool full, std::string& out) {
  record(full ? kFull : kAlive, kPadding, out);
}

void PipeEncoder::end(std::string& out) { record(kEnd, {}, out); }

void PipeEncoder::record(std::uint8_t kind, ByteView content, std::string& out) {
  Bytes bytes;
  bytes.reserve(kHeaderSize + content.size() + kChecksumSize);
  Writer writer(bytes);
  writer.u16(static_cast<std::uint16_t>(content.size()));
  writer.u8(kind);
  writer.u32(number_++);
  writer.bytes(content);
  writer.u64(checksum(bytes));
  out.append(text_of(bytes));
}

Result<PipeDecoder::Item> PipeDecoder::next(Bytes& frame) {
  if (SEMEL_TRY(last_) != Item::none) return last_;
  if (!greeted_) {
    const Item item = SEMEL_TRY(greet());
    if (!greeted_) return item;
  }
  for (;;) {
    const std::size_t before = at_;
    if (const Item item = SEMEL_TRY(record(frame)); item != Item::none || at_ == before) {
      if (item == Item::none) bytes_.erase(0, std::exchange(at_, 0));
      return item;
    }
  }
}

Result<PipeDecoder::Item> PipeDecoder::greet() {
  const std::string_view hello = hello_of(peer_);
  const std::string_view got = std::string_view(bytes_).substr(0, hello.size());
  if (got != hello.substr(0, got.size())) return settle(Item::foreign);
  greeted_ = got.size() == hello.size();
  if (greeted_) at_ = hello.size();
  return Item::none;
}

// Returns none if the record is not all there, or was a piece of a frame.
Result<PipeDecoder::Item> PipeDecoder::record(Bytes& frame) {
  const ByteView bytes = bytes_of(bytes_).subspan(at_);
  if (bytes.size() < kHeaderSize) return Item::none;
  Reader header(bytes);
  const std::size_t length = header.u16();
  const std::uint8_t kind = header.u8();
  const std::uint32_t number = header.u32();
  if (length > kMostContent || kind < kPiece || kind > kEnd)
    return settle(Error{Errc::corrupt, kDamaged});
  if (bytes.size() < kHeaderSize + length + kChecksumSize) return Item::none;
  const ByteView summed = bytes.first(kHeaderSize + length);
  if (load_u64(bytes.data() + summed.size()) != checksum(summed)) {
    return settle(Error{Errc::corrupt, kDamaged});
  }
  if (number != number_) return settle(Error{Errc::corrupt, kOutOfOrder});
  ++number_;
  at_ += summed.size() + kChecksumSize;
  if (kind == kAlive) return Item::alive;
  if (kind == kFull) return Item::full;
  if (kind == kEnd) {
    return frame_.empty() ? settle(Item::end)
                          : settle(Error{Errc::corrupt, "the peer ended in the middle of a frame"});
  }
  if (frame_.size() + length > most_bytes_) {
    return settle(Error{Errc::limit, "the peer sends a frame of more than " +
                                         std::to_string(most_bytes_) +
                                         " bytes; allowed: up to that, see --frame-bytes"});
  }
  const ByteView content = summed.subspan(kHeaderSize);
  frame_.insert(frame_.end(), content.begin(), content.end());
  if (kind == kPiece) return Item::none;
  frame = std::exchange(frame_, {});
  return Item::frame;
}

Result<PipeDecoder::Item> PipeDecoder::settle(Result<Item> last) { return last_ = std::move(last); }

bool PipeDecoder::line_is_whole() const {
  return bytes_.size() >= kLongestLine || bytes_.find('\n') != std::string::npos;
}

Error PipeDecoder::foreign() const {
  const std::string said = quoted(bytes_.substr(0, std::min(bytes_.find('\n'), kLongestLine)));
  const std::string_view hello = hello_of(peer_);
  if (!bytes_.starts_with(kHelloName)) {
    return {Errc::unsupported, "the peer does not speak semel's sync: it said " + said};
  }
  return {Errc::unsupported,
          "the peer speaks another version, or has the same role as this end: it said " + said +
              ", not " + quoted(hello.substr(0, hello.size() - 1))};
}

}  // namespace semel::cli
