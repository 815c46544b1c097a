#include "semel/store/internal/rocksdb_log.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "semel/store/internal/rocksdb_checksum.h"

namespace semel::store_internal {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{32} << 10;
constexpr std::size_t kHeaderBytes = 7;
constexpr std::size_t kTypeAt = 6;          // in a header; the checksum begins here
constexpr std::size_t kLogNumberBytes = 4;  // extra bytes in the headers of recyclable logs
constexpr std::size_t kSequenceBytes = 8;   // at the start of a record of a write-ahead log
constexpr std::uint8_t kFull = 1;
constexpr std::uint8_t kFirst = 2;
constexpr std::uint8_t kMiddle = 3;
constexpr std::uint8_t kLast = 4;
constexpr std::uint8_t kRecyclable = 5;   // four types, like those from kFull to kLast
constexpr std::uint8_t kCompression = 9;  // how the records are compressed

bool recyclable(std::uint8_t type) { return type >= kRecyclable && type < kCompression; }

struct Header {
  std::uint32_t sum = 0;
  std::size_t bytes = kHeaderBytes;
  std::size_t payload = 0;
  std::uint8_t type = 0;

  std::size_t record_bytes() const { return bytes + payload; }
};

// REQUIRES: `in` holds a header.
Header header_at(ByteView in) {
  Reader r(in);
  Header header;
  header.sum = r.u32();
  header.payload = r.u16();
  header.type = r.u8();
  if (recyclable(header.type)) header.bytes += kLogNumberBytes;
  return header;
}

// RocksDB masks checksums, because a checksum of bytes that hold checksums is weak.
std::uint32_t masked(std::uint32_t sum) {
  constexpr std::uint32_t kDelta = 0xa282ead8;
  return (sum >> 15 | sum << 17) + kDelta;
}

bool sums_up(ByteView record, const Header& header) {
  return header.sum == masked(crc32c(record.subspan(kTypeAt)));
}

// Returns the header of the record at the beginning of `in`; nullopt if the record is not sound.
std::optional<Header> sound_record(ByteView in) {
  if (in.size() < kHeaderBytes) return std::nullopt;
  const Header header = header_at(in);
  if (header.type == 0 || header.record_bytes() > in.size()) return std::nullopt;
  if (!sums_up(in.first(header.record_bytes()), header)) return std::nullopt;
  return header;
}

bool all_zero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

// Returns true if the rest of a log, which begins with no sound record, may be a record whose end
// was never written. `room`: the bytes left for it in its block. The existing part must look as
// RocksDB writes it; otherwise any bytes would pass.
bool cut_short(ByteView rest, std::size_t room) {
  if (rest.size() < kHeaderBytes) return true;
  const Header header = header_at(rest);
  if (kHeaderBytes + header.payload <= rest.size() || header.record_bytes() > room) return false;
  // A record goes on in the next block only if it fills this one.
  const bool goes_on = header.type == kFirst || header.type == kMiddle;
  if (header.type > kCompression || (goes_on && header.record_bytes() != room)) return false;
  if (sums_up(rest, header)) return false;  // the record is complete, so its length is wrong
  for (std::size_t at = 1; at + kHeaderBytes <= rest.size(); ++at) {
    const std::uint8_t type = rest[at + kTypeAt];
    if (type < kFull || type > kLast) continue;        // true of nearly all bytes; sums take time
    if (sound_record(rest.subspan(at))) return false;  // it hides another one
  }
  return true;
}

class Checker {
 public:
  Checker(LogKind kind, const std::function<void(const LogPiece&)>& take)
      : kind_(kind), take_piece_(take) {}

  // Reads the next block. All but the last have kBlockBytes. Returns false at the end.
  bool take(ByteView block, bool last) {
    std::size_t at = 0;
    while (at < block.size()) {
      const ByteView rest = block.subspan(at);
      if (block.size() == kBlockBytes && rest.size() < kHeaderBytes) {  // no record begins here
        if (!all_zero(rest)) return end(LogCheck::State::damaged, at);
        break;
      }
      const std::optional<Header> header = sound_record(rest);
      if (!header) {
        const bool cut = last && cut_short(rest, kBlockBytes - at) && may_follow(rest);
        return end(cut ? LogCheck::State::torn : LogCheck::State::damaged, at);
      }
      // A recycled log has its former bytes after its end, so damage cannot be detected.
      if (recyclable(header->type)) {
        told_ = false;
        return end(LogCheck::State::torn, at);
      }
      if (!follows(*header)) return end(LogCheck::State::damaged, at);
      if (const auto number = sequence_in(*header, rest)) sequence_ = *number;
      tell(*header, rest);
      if (!within_) sound_ = start_ + at;
      at += header->record_bytes();
      within_ = header->type == kFirst || (within_ && header->type != kLast);
      if (!within_) sound_ = start_ + at;
    }
    start_ += block.size();
    return true;
  }

  LogCheck result() const {
    if (ended_) return {*ended_, sound_, told_};
    return {within_ ? LogCheck::State::torn : LogCheck::State::whole, sound_, told_};
  }

 private:
  bool end(LogCheck::State state, std::size_t at) {
    ended_ = state;
    if (!within_) sound_ = start_ + at;
    return false;
  }

  bool follows(const Header& header) const {
    const bool begins = header.type == kFull || header.type == kFirst || header.type > kLast;
    return begins != within_;
  }

  // Notes the number of the first change in a record of a write-ahead log, if this is its
  // beginning.
  std::optional<std::uint64_t> sequence_in(const Header& header, ByteView rest) const {
    const bool tells =
        kind_ == LogKind::writes && (header.type == kFull || header.type == kFirst) &&
        header.payload >= kSequenceBytes && rest.size() >= header.bytes + kSequenceBytes;
    return tells ? std::optional(load_u64(rest.data() + header.bytes)) : std::nullopt;
  }

  // Returns true if a record that was cut short may follow the last one, judged by the numbers of
  // the changes.
  bool may_follow(ByteView rest) const {
    constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 56;
    constexpr std::uint64_t kFarAhead = std::uint64_t{1} << 40;
    if (rest.size() < kHeaderBytes) return true;
    const Header header = header_at(rest);
    if (!recyclable(header.type) && !follows(header)) return false;
    const std::optional<std::uint64_t> number = sequence_in(header, rest);
    if (!number) return true;
    if (sequence_ == 0) return *number > 0 && *number < kMostNumbers;
    return *number >= sequence_ && *number - sequence_ < kFarAhead;
  }

  void tell(const Header& header, ByteView rest) {
    if (header.type > kLast) {
      told_ = false;  // the rest is compressed
      return;
    }
    if (!take_piece_ || !told_) return;
    take_piece_({rest.subspan(header.bytes, header.payload),
                 header.type == kFull || header.type == kFirst,
                 header.type == kFull || header.type == kLast});
  }

  LogKind kind_;
  const std::function<void(const LogPiece&)>& take_piece_;
  std::uint64_t start_ = 0;  // of the block
  std::uint64_t sound_ = 0;
  bool within_ = false;  // inside a record that began in an earlier piece
  bool told_ = true;
  std::uint64_t sequence_ = 0;  // of the last record; 0: none yet
  std::optional<LogCheck::State> ended_;
};

}  // namespace

LogCheck check_log(const std::string& path, LogKind kind,
                   const std::function<void(const LogPiece&)>& take) {
  constexpr LogCheck kUnreadable = {LogCheck::State::unreadable, 0, false};
  std::ifstream in(path, std::ios::binary);
  if (!in) return kUnreadable;
  // Only the next block shows whether a block is the last.
  const auto read_block = [&in](Bytes& block) {
    block.resize(kBlockBytes);
    in.read(reinterpret_cast<char*>(block.data()), static_cast<std::streamsize>(block.size()));
    block.resize(static_cast<std::size_t>(in.gcount()));
    return !in.bad();
  };
  Checker checker(kind, take);
  Bytes block;
  Bytes next;
  if (!read_block(block)) return kUnreadable;
  while (!block.empty()) {
    if (!read_block(next)) return kUnreadable;
    if (!checker.take(block, next.empty())) break;
    block.swap(next);
  }
  return checker.result();
}

}  // namespace semel::store_internal
