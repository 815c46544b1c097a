// Frames: the messages between the two ends of a sync.
//
// Contract  Decoders take untrusted bytes. They return what an encoder wrote, or an error, and
//           allocate nothing on the word of an unchecked length.
// Format    docs/formats/sync_frames_v1.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/keyed_digest.h"
#include "semel/index/aggregate.h"
#include "semel/store/key_range.h"
#include "semel/sync/internal/frontier.h"
#include "semel/sync/internal/region.h"
#include "semel/sync/resolver.h"

namespace semel::sync_internal::frame {

enum class Kind : std::uint8_t { question = 1, answer = 2, refusal = 3 };
inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kChecksumBytes = 4;

struct Header {
  Kind kind = Kind::refusal;
  std::uint32_t number = 0;  // an answer has the number of its question
  std::uint32_t key = 0;     // names the secret
};

// Returns the name of a secret in headers. It reveals nothing about the secret.
std::uint32_t key_name(const Secret& secret);

// Writes the header, then takes the body, and seals the frame.
class Builder {
 public:
  explicit Builder(const Header& header);
  Writer& body() { return writer_; }
  std::size_t size() const { return bytes_->size(); }
  Bytes seal() &&;

 private:
  std::unique_ptr<Bytes> bytes_;  // on the heap, so that the writer stays valid after a move
  Writer writer_;
};

struct Opened {
  Header header;
  ByteView body;
};
// Reads the header without a check. REQUIRES: frame.size() >= kHeaderBytes.
Header header_of(ByteView frame);
// Checks a frame. Errc::truncated or corrupt if it is damaged, Errc::unsupported for another
// version.
Result<Opened> open(ByteView frame);

// The body of every question begins with its scope.
struct Scope {
  KeyRange range;
  std::uint16_t salt = 0;
};
void encode(const Scope& scope, Writer& out);
Result<Scope> decode_scope(Reader& in);

// The parts follow, up to the end of the frame. The answer has one for each, in the same order.
enum class Topic : std::uint8_t { hello = 1, compare = 2, scan = 3, fetch = 4, store = 5 };
struct Part {
  Topic topic;
  ByteView body;
};
inline constexpr std::size_t kMostParts = 64;
inline constexpr std::size_t kPartBytes = 6;  // the most bytes of a part besides its body
void encode_part(Topic topic, ByteView body, Writer& out);
Result<std::vector<Part>> decode_parts(Reader& in);

void encode(const Aggregate& sum, Writer& out);
Aggregate read_aggregate(Reader& in);

// Asks for the sum of the range, and sends this end's sum.
struct Hello {
  Aggregate sum;
  std::uint64_t unknown = 0;  // changes that the floret misses
  ByteView floret;
};
void encode(const Hello& hello, Writer& out);
Result<Hello> decode_hello(Reader& in);

// The answer. Unless the sums are equal, a frontier follows.
struct HelloReply {
  Aggregate sum;
  std::uint64_t unknown = 0;
  float total = 0;  // records that the two do not share, as estimated here
  float error = 0;  // its standard error
  bool reliable = true;
};
void encode(const HelloReply& reply, Writer& out);
Result<HelloReply> decode_hello_reply(Reader& in);

// Asks where the two ends differ, and in which records. A frontier follows.
struct Compare {
  std::uint64_t expected = 0;  // estimated records in question that the two do not share
  std::uint64_t detail = 0;    // slots with more records than this are not read
  bool list = false;           // no sketches
};
void encode(const Compare& compare, Writer& out);
Result<Compare> decode_compare(Reader& in);

// The answer for one slot of the frontier.
struct SlotAnswer {
  enum class Kind : std::uint8_t {
    sketch = 0,
    list = 1,
    none = 2,  // no records here; if the asker has none: all the records here differ
    big = 3,   // too many records to read
    equal = 4,
  };
  Kind kind = Kind::equal;
  std::vector<std::uint32_t> numbers;  // syndromes, or the numbers of the records
};
void encode(std::span<const SlotAnswer> answers, std::uint32_t capacity, Writer& out);
Result<std::vector<SlotAnswer>> decode_answers(Reader& in, std::size_t slots);

// Asks for the sketches of a partition by hash. The answer is the syndromes, one after another.
struct Scan {
  std::vector<BitPath> tops;
  std::uint32_t partitions = 0;
  std::uint32_t capacity = 0;
  std::vector<std::uint32_t> only;  // these partitions, in increasing order; empty: all
  std::uint64_t sketches() const { return only.empty() ? partitions : only.size(); }
};
void encode(const Scan& scan, Writer& out);
Result<Scan> decode_scan(Reader& in);

// Asks for the records with these numbers.
enum class Content : std::uint8_t { records = 0, keys = 1, digest = 2 };
struct Fetch {
  struct Item {
    Region region;
    bool all = false;
    std::vector<std::uint32_t> numbers;  // if not all; in increasing order
  };
  struct Part {
    std::uint32_t partition;
    std::vector<std::uint32_t> numbers;  // in increasing order
  };
  Content content = Content::records;
  bool wide = false;           // numbers have 32 bits; otherwise 16, which other records may share
  std::size_t first_item = 0;  // continue in this item
  std::string from;            // continue at this key
  std::vector<Item> items;
  // For a partition by hash the items are its tops, and the numbers are grouped by partition.
  std::uint32_t partitions = 0;
  std::vector<Part> parts;

  // Returns a number as it is written above.
  std::uint32_t named(std::uint32_t number) const { return wide ? number : number & 0xffff; }
};
void encode(const Fetch& fetch, Writer& out);
Result<Fetch> decode_fetch(Reader& in);

// The answer. Records follow, up to the end of the part.
struct FetchReply {
  bool complete = true;
  std::size_t next_item = 0;  // if not complete: continue there
  std::string from;
  // Only for Content::digest: how many records were found, and the XOR of their digests.
  std::uint64_t count = 0;
  Digest digest = {0, 0};
};
void encode(const FetchReply& reply, Content content, Writer& out);
Result<FetchReply> decode_fetch_reply(Reader& in, Content content);

// Asks to store records. They follow, up to the end of the part.
enum class Manner : std::uint8_t {
  join = 0,
  newest = 1,
  overwrite = 2,
  if_absent = 3,
  exact = 4,  // each only if the record there is still the one that its writer saw
};
// The record that was there before another was stored under its key. other: with another value.
enum class Met : std::uint8_t { nothing = 0, other = 1, same = 2 };
struct StoreReply {
  std::uint64_t written = 0;
  std::uint64_t removed = 0;
  std::vector<Met> met;  // for each record, in order; empty under Manner::exact
};
// Returns the most bytes of a reply to a question of this many bytes.
constexpr std::size_t most_store_reply(std::size_t question) { return 32 + question / 4; }
void encode(const StoreReply& reply, Writer& out);
// `records`: how many were sent; 0 under Manner::exact.
Result<StoreReply> decode_store_reply(Reader& in, std::size_t records);

// Writes records one after another. Neighbours of equal lengths share the fields for lengths.
class RecordWriter {
 public:
  explicit RecordWriter(Bytes& out) : out_(out) {}
  void add(std::string_view key, std::string_view value);
  std::size_t size() const { return out_.size() + run_.size() + 12; }
  void finish();

 private:
  Bytes& out_;
  Bytes run_;
  std::uint64_t count_ = 0;
  std::size_t key_size_ = 0;
  std::size_t value_size_ = 0;
};

struct Record {
  std::string_view key;
  std::string_view value;
};
// Reads to the end of the part. The views are valid as long as the frame.
Result<std::vector<Record>> decode_records(Reader& in);

// Under Manner::exact, this is in place of the value of a record.
struct Exact {
  std::optional<Digest> expected;         // digest of the record there; nullopt: none is there
  std::optional<std::string_view> value;  // nullopt: remove
};
void encode(const Exact& exact, Bytes& value);
Result<Exact> decode_exact(std::string_view value);

// A refusal. The words are those of error.message().
struct Refusal {
  Errc code = Errc::invalid;
  std::string words;
};
Bytes refusal(const Header& question, const Error& error);
Result<Refusal> decode_refusal(Reader& in);

}  // namespace semel::sync_internal::frame
