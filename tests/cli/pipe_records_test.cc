// The byte stream of a sync over a pipe: what is sent comes out, and no damage goes unnoticed.
#include "cli/pipe_records.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/core/result.h"
#include "tests/golden/golden.h"

namespace semel {
namespace {

using cli::PipeDecoder;
using cli::PipeEncoder;
using cli::PipeRole;
using Item = PipeDecoder::Item;

constexpr std::uint32_t kMostBytes = 5000;
constexpr std::size_t kRecordSize = 7 + 1024 + 8;

Bytes frame_of(std::size_t size) {
  Bytes frame(size);
  Random random(size);
  for (std::uint8_t& byte : frame) byte = static_cast<std::uint8_t>(random());
  return frame;
}

struct Read {
  std::vector<Bytes> frames;
  Item last = Item::none;
  std::optional<Error> error = std::nullopt;  // how the stream is broken or foreign

  std::string problem() const { return error ? error->message() : ""; }
};

Read read(std::string_view stream, std::size_t piece = SIZE_MAX) {
  PipeDecoder decoder(PipeRole::asks, kMostBytes);
  Read result;
  while (!stream.empty() && result.last == Item::none && !result.error) {
    decoder.feed(stream.substr(0, piece));
    stream.remove_prefix(std::min(piece, stream.size()));
    for (;;) {
      Bytes frame;
      const Result<Item> next = decoder.next(frame);
      if (!next) {
        result.error = next.error();
        EXPECT_EQ(decoder.next(frame).error().message(), result.problem()) << "it does not stay";
        break;
      }
      const Item item = *next;
      if (item == Item::frame) result.frames.push_back(frame);
      if (item == Item::foreign) result.error = decoder.foreign();
      if (item == Item::none || item == Item::alive || item == Item::full || item == Item::frame) {
        if (item == Item::none) break;
        continue;
      }
      result.last = item;
      break;
    }
  }
  return result;
}

// A stream of some frames. `later` is what a live sender sends next.
struct Sent {
  std::vector<Bytes> frames = {frame_of(3), frame_of(0), frame_of(2500), frame_of(1024),
                               frame_of(100)};
  std::string bytes{cli::hello_of(PipeRole::asks)};
  std::string later;

  Sent() {
    PipeEncoder encoder;
    for (const Bytes& frame : frames) encoder.frame(frame, bytes);
    encoder.alive(false, later);
    encoder.alive(true, later);
  }
};

// A damaged stream gives frames that were sent, in order, and then an error.
void expect_noticed(const Sent& sent, const std::string& damaged, const std::string& how) {
  const Read result = read(damaged + sent.later);
  EXPECT_NE(result.problem(), "") << how;
  ASSERT_LE(result.frames.size(), sent.frames.size()) << how;
  EXPECT_TRUE(std::equal(result.frames.begin(), result.frames.end(), sent.frames.begin())) << how;
}

TEST(PipeRecords, ComeOutAsTheyWentInWhateverThePieces) {
  const Sent sent;
  std::string stream = sent.bytes;
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}, SIZE_MAX}) {
    const Read result = read(stream, piece);
    EXPECT_EQ(result.frames, sent.frames) << piece;
    EXPECT_EQ(result.last, Item::none) << result.problem();
  }
}

TEST(PipeRecords, OfLifeAreNoShorterThanAnyOther) {
  PipeEncoder encoder;
  for (const std::size_t size : {0, 1, 1023, 1024}) {
    std::string frame, alive, full;
    encoder.frame(frame_of(size), frame);
    encoder.alive(false, alive);
    encoder.alive(true, full);
    EXPECT_EQ(alive.size(), kRecordSize);
    EXPECT_EQ(full.size(), kRecordSize);
    EXPECT_LE(frame.size(), alive.size());
  }
}

TEST(PipeRecords, ShowEveryFlippedBit) {
  const Sent sent;
  for (std::size_t bit = 0; bit < 8 * sent.bytes.size(); ++bit) {
    std::string damaged = sent.bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    expect_noticed(sent, damaged, std::to_string(bit));
  }
}

TEST(PipeRecords, ShowEveryLoss) {
  const Sent sent;
  Random random(1);
  for (std::size_t at = 0; at < sent.bytes.size(); ++at) {
    const std::size_t most = sent.bytes.size() - at;
    for (const std::size_t length : {std::size_t{1}, 1 + random.below(most), most}) {
      std::string damaged = sent.bytes;
      damaged.erase(at, length);
      expect_noticed(sent, damaged, std::to_string(at) + ' ' + std::to_string(length));
    }
  }
}

TEST(PipeRecords, ShowEveryRepetition) {
  const Sent sent;
  Random random(2);
  for (std::size_t at = 0; at < sent.bytes.size(); ++at) {
    const std::size_t most = sent.bytes.size() - at;
    for (const std::size_t length : {1 + random.below(most), most}) {
      std::string damaged = sent.bytes;
      damaged.insert(at, sent.bytes.substr(at, length));
      expect_noticed(sent, damaged, std::to_string(at) + ' ' + std::to_string(length));
    }
  }
}

TEST(PipeRecords, ShowEveryExchange) {
  const Sent sent;
  Random random(3);
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t size = sent.bytes.size();
    const std::size_t first = random.below(size - 1);
    const std::size_t middle = first + 1 + random.below(size - first - 1);
    const std::size_t end = middle + 1 + random.below(size - middle);
    if (end > size) continue;
    std::string damaged = sent.bytes;
    std::rotate(damaged.begin() + static_cast<long>(first),
                damaged.begin() + static_cast<long>(middle),
                damaged.begin() + static_cast<long>(end));
    if (damaged != sent.bytes) expect_noticed(sent, damaged, std::to_string(round));
  }
}

TEST(PipeRecords, EndOnlyBehindAWholeFrame) {
  PipeEncoder encoder;
  std::string stream(cli::hello_of(PipeRole::asks));
  encoder.frame(frame_of(2000), stream);
  encoder.end(stream);
  EXPECT_EQ(read(stream).last, Item::end);

  // The first piece of a frame, and then the end under its number.
  PipeEncoder liar;
  std::string piece, last, end;
  liar.frame(frame_of(2000), piece);
  PipeEncoder second;
  second.frame({}, last);
  second.end(end);
  const std::string cut = std::string(cli::hello_of(PipeRole::asks)) + piece.substr(0, kRecordSize);
  EXPECT_EQ(read(cut + end).problem(), "the peer ended in the middle of a frame");
}

TEST(PipeRecords, RefuseAFrameThatGrowsBeyondTheLimit) {
  PipeEncoder encoder;
  std::string stream(cli::hello_of(PipeRole::asks));
  encoder.frame(frame_of(kMostBytes), stream);
  encoder.frame(frame_of(kMostBytes + 1), stream);
  const Read result = read(stream);
  EXPECT_EQ(result.frames.size(), 1u);
  EXPECT_EQ(result.problem(),
            "the peer sends a frame of more than 5000 bytes; allowed: up to that, see "
            "--frame-bytes");
}

TEST(PipeRecords, NameWhatIsNoHello) {
  EXPECT_EQ(read("Welcome\nto host\n").problem(),
            "the peer does not speak semel's sync: it said 'Welcome'");
  EXPECT_EQ(read("semel-sync 2\n").problem(),
            "the peer speaks another version, or has the same role as this end: it said "
            "'semel-sync 2', not 'semel-sync 1 asks'");
  EXPECT_EQ(read(cli::hello_of(PipeRole::answers)).problem(),
            "the peer speaks another version, or has the same role as this end: it said "
            "'semel-sync 1 answers', not 'semel-sync 1 asks'");
}

// A whole stream, as the golden file has it.
struct Stream {
  std::vector<Bytes> frames;

  void encode(Bytes& out) const {
    std::string text(cli::hello_of(PipeRole::asks));
    PipeEncoder encoder;
    for (const Bytes& frame : frames) {
      encoder.frame(frame, text);
      encoder.alive(frame.size() % 2 == 1, text);
    }
    encoder.end(text);
    out.insert(out.end(), text.begin(), text.end());
  }
  static Result<Stream> decode(ByteView bytes) {
    Read result = read(text_of(bytes));
    if (result.last != Item::end) return Error{Errc::corrupt, "no stream"};
    return Stream{std::move(result.frames)};
  }
  bool operator==(const Stream&) const = default;
};

struct GoldenStream {
  using Type = Stream;
  static constexpr const char* kFile = "sync_pipe_v1.bin";
  static Stream make() {
    Bytes counted(1500);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<std::uint8_t>(i);
    return {{{1, 2, 3}, {}, counted}};
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PipeRecords, Golden, GoldenStream);

}  // namespace
}  // namespace semel
