#include "semel/sync/internal/frame.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "semel/core/internal/bit_codec.h"
#include "semel/hash/internal/checksum.h"
#include "semel/hash/internal/sealed.h"
#include "semel/sync/internal/path_codec.h"
#include "semel/sync/internal/set_sketch.h"

namespace semel::sync_internal::frame {
namespace {

constexpr std::uint8_t kMagic0 = 'S';
constexpr std::uint8_t kMagic1 = 'y';
constexpr std::uint8_t kVersion = 1;

const Error kNoFrame{Errc::corrupt, "sync frame: not a frame"};
const Error kShort{Errc::truncated, "sync frame: cut short"};
const Error kOtherVersion{Errc::unsupported, "sync frame: of another version"};
const Error kBadBody{Errc::corrupt, "sync frame: the body makes no sense"};

// Writes increasing numbers, each as its distance from the previous one.
void put_increasing(std::span<const std::uint32_t> numbers, Writer& out) {
  out.varint(numbers.size());
  std::uint64_t before = 0;
  for (const std::uint32_t number : numbers) {
    out.varint(number - before);
    before = number;
  }
}
bool take_increasing(Reader& in, std::vector<std::uint32_t>& numbers) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.rest()) return false;
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t step = in.varint();
    if (!in.ok() || step > UINT32_MAX - before || (i > 0 && step == 0)) return false;
    before += step;
    numbers.push_back(static_cast<std::uint32_t>(before));
  }
  return true;
}

bool take_u32s(Reader& in, std::uint64_t count, std::vector<std::uint32_t>& out) {
  if (!in.ok() || count > in.rest() / 4) return false;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) out.push_back(in.u32());
  return in.ok();
}

}  // namespace

std::uint32_t key_name(const Secret& secret) {
  return static_cast<std::uint32_t>(DigestKey(secret, KeyPurpose::entry).id().seed);
}

Builder::Builder(const Header& header) : bytes_(std::make_unique<Bytes>()), writer_(*bytes_) {
  writer_.u8(kMagic0);
  writer_.u8(kMagic1);
  writer_.u8(kVersion);
  writer_.enumeration(header.kind);
  writer_.u32(header.number);
  writer_.u32(header.key);
}

Bytes Builder::seal() && {
  writer_.u32(static_cast<std::uint32_t>(checksum(*bytes_)));
  return std::move(*bytes_);
}

Header header_of(ByteView frame) {
  Reader in(frame);
  in.skip(3);
  Header header;
  header.kind = static_cast<Kind>(in.u8());
  header.number = in.u32();
  header.key = in.u32();
  return header;
}

Result<Opened> open(ByteView frame) {
  if (frame.size() < kHeaderBytes + kChecksumBytes) return kShort;
  if (frame[0] != kMagic0 || frame[1] != kMagic1) return kNoFrame;
  const ByteView sealed = frame.first(frame.size() - kChecksumBytes);
  Reader tail(frame.last(kChecksumBytes));
  if (tail.u32() != static_cast<std::uint32_t>(checksum(sealed))) return kNoFrame;
  // Header and checksum are the same in every version, so damage cannot look like another version.
  if (frame[2] != kVersion) return kOtherVersion;
  Opened opened;
  opened.header = header_of(frame);
  if (opened.header.kind < Kind::question || opened.header.kind > Kind::refusal) return kNoFrame;
  opened.body = sealed.subspan(kHeaderBytes);
  return opened;
}

void encode(const Scope& scope, Writer& out) {
  out.u16(scope.salt);
  out.boolean(scope.range.end.has_value());
  out.text(scope.range.first);
  if (scope.range.end) out.text(*scope.range.end);
}

Result<Scope> decode_scope(Reader& in) {
  Scope scope;
  scope.salt = in.u16();
  const bool bounded = in.boolean();
  scope.range.first = in.text();
  if (bounded) scope.range.end = std::string(in.text());
  if (!in.ok()) return kBadBody;
  return scope;
}

void encode_part(Topic topic, ByteView body, Writer& out) {
  out.enumeration(topic);
  out.varint(body.size());
  out.bytes(body);
}

Result<std::vector<Part>> decode_parts(Reader& in) {
  std::vector<Part> parts;
  while (in.ok() && in.rest() > 0) {
    const auto topic = in.enumeration(Topic::store);
    const ByteView body = in.view(in.varint());
    if (!in.ok() || topic < Topic::hello || parts.size() == kMostParts) return kBadBody;
    parts.push_back({topic, body});
  }
  if (parts.empty()) return kBadBody;
  return parts;
}

void encode(const Aggregate& sum, Writer& out) {
  out.varint(sum.count);
  out.varint(sum.volume);
  write(out, sum.digest);
}

Aggregate read_aggregate(Reader& in) {
  Aggregate sum;
  sum.count = in.varint();
  sum.volume = in.varint();
  sum.digest = read_digest(in);
  return sum;
}

void encode(const Hello& hello, Writer& out) {
  encode(hello.sum, out);
  out.varint(hello.unknown);
  out.varint(hello.floret.size());
  out.bytes(hello.floret);
}

Result<Hello> decode_hello(Reader& in) {
  Hello hello;
  hello.sum = read_aggregate(in);
  hello.unknown = in.varint();
  hello.floret = in.view(in.varint());
  if (!in.ok() || in.rest() != 0) return kBadBody;
  return hello;
}

void encode(const HelloReply& reply, Writer& out) {
  encode(reply.sum, out);
  out.varint(reply.unknown);
  out.u32(std::bit_cast<std::uint32_t>(reply.total));
  out.u32(std::bit_cast<std::uint32_t>(reply.error));
  out.boolean(reply.reliable);
}

Result<HelloReply> decode_hello_reply(Reader& in) {
  HelloReply reply;
  reply.sum = read_aggregate(in);
  reply.unknown = in.varint();
  reply.total = std::bit_cast<float>(in.u32());
  reply.error = std::bit_cast<float>(in.u32());
  reply.reliable = in.boolean();
  const bool numbers = reply.total >= 0 && reply.total < 1e19F && reply.error >= 0 &&
                       reply.error < 1e19F;  // false for NaN
  if (!in.ok() || !numbers) return kBadBody;
  return reply;
}

void encode(const Compare& compare, Writer& out) {
  out.boolean(compare.list);
  out.varint(compare.expected);
  out.varint(compare.detail);
}

Result<Compare> decode_compare(Reader& in) {
  Compare compare;
  compare.list = in.boolean();
  compare.expected = in.varint();
  compare.detail = in.varint();
  if (!in.ok()) return kBadBody;
  return compare;
}

void encode(std::span<const SlotAnswer> answers, std::uint32_t capacity, Writer& out) {
  Bytes kinds;
  BitWriter bits(kinds);
  for (const SlotAnswer& answer : answers) {
    bits.put_bit(answer.kind != SlotAnswer::Kind::equal);
    if (answer.kind != SlotAnswer::Kind::equal) {
      bits.put(static_cast<std::uint8_t>(answer.kind), 2);
    }
  }
  out.varint(capacity);
  out.varint(kinds.size());
  out.bytes(kinds);
  for (const SlotAnswer& answer : answers) {
    if (answer.kind == SlotAnswer::Kind::list) out.varint(answer.numbers.size());
    for (const std::uint32_t number : answer.numbers) out.u32(number);
  }
}

Result<std::vector<SlotAnswer>> decode_answers(Reader& in, std::size_t slots) {
  const std::uint64_t capacity = in.varint();
  const std::uint64_t size = in.varint();
  const ByteView kinds = in.view(size);
  if (!in.ok() || capacity > SetSketch::kMostCapacity) return kBadBody;
  BitReader bits(kinds);
  std::vector<SlotAnswer> answers(slots);
  for (SlotAnswer& answer : answers) {
    if (bits.get_bit()) answer.kind = static_cast<SlotAnswer::Kind>(bits.get(2));
  }
  if (!bits.ok() || !bits.at_end()) return kBadBody;
  for (SlotAnswer& answer : answers) {
    if (answer.kind == SlotAnswer::Kind::sketch) {
      if (capacity == 0 || !take_u32s(in, capacity, answer.numbers)) return kBadBody;
    } else if (answer.kind == SlotAnswer::Kind::list) {
      const std::uint64_t count = in.varint();
      if (!take_u32s(in, count, answer.numbers)) return kBadBody;
    }
  }
  if (!in.ok() || in.rest() != 0) return kBadBody;
  return answers;
}

void encode(const Scan& scan, Writer& out) {
  encode_paths(scan.tops, out);
  out.varint(scan.partitions);
  out.varint(scan.capacity);
  put_increasing(scan.only, out);
}

Result<Scan> decode_scan(Reader& in) {
  Scan scan;
  scan.tops = SEMEL_TRY(decode_paths(in));
  const std::uint64_t partitions = in.varint();
  const std::uint64_t capacity = in.varint();
  if (!in.ok() || partitions == 0 || partitions > UINT32_MAX || capacity == 0 ||
      capacity > SetSketch::kMostCapacity || !take_increasing(in, scan.only) || in.rest() != 0) {
    return kBadBody;
  }
  scan.partitions = static_cast<std::uint32_t>(partitions);
  scan.capacity = static_cast<std::uint32_t>(capacity);
  if (!scan.only.empty() && scan.only.back() >= partitions) return kBadBody;
  return scan;
}

namespace {

constexpr std::uint8_t kWide = 4;  // a flag beside the content

void put_numbers(std::span<const std::uint32_t> numbers, bool wide, Writer& out) {
  for (const std::uint32_t number : numbers) {
    if (wide) {
      out.u32(number);
    } else {
      out.u16(static_cast<std::uint16_t>(number));
    }
  }
}

bool take_numbers(Reader& in, std::uint64_t count, bool wide, std::vector<std::uint32_t>& out) {
  if (!in.ok() || count > in.rest() / (wide ? 4 : 2)) return false;
  out.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t number = wide ? in.u32() : in.u16();
    if (!out.empty() && number < out.back()) return false;
    out.push_back(number);
  }
  return true;
}

}  // namespace

void encode(const Fetch& fetch, Writer& out) {
  out.u8(static_cast<std::uint8_t>(static_cast<std::uint8_t>(fetch.content) |
                                   (fetch.wide ? kWide : 0)));
  out.varint(fetch.first_item);
  out.text(fetch.from);
  out.varint(fetch.partitions);
  Bytes shape;
  PathWriter paths(shape);
  for (const Fetch::Item& item : fetch.items) {
    paths.add(item.region.top);
    paths.bits().put_bit(item.region.without.has_value());
    if (item.region.without) paths.add_below(*item.region.without);
    if (fetch.partitions == 0) paths.bits().gamma(item.all ? 1 : item.numbers.size() + 2);
  }
  out.varint(fetch.items.size());
  out.varint(shape.size());
  out.bytes(shape);
  for (const Fetch::Item& item : fetch.items) put_numbers(item.numbers, fetch.wide, out);
  if (fetch.partitions == 0) return;
  out.varint(fetch.parts.size());
  std::uint32_t last = 0;
  for (const Fetch::Part& part : fetch.parts) {
    out.varint(part.partition - last);
    last = part.partition;
    out.varint(part.numbers.size());
    put_numbers(part.numbers, fetch.wide, out);
  }
}

namespace {

// Writes the regions, and how many numbers each has.
bool take_items(Reader& in, Fetch& fetch, std::vector<std::uint64_t>& counts) {
  const std::uint64_t items = in.varint();
  const ByteView shape = in.view(in.varint());
  if (!in.ok() || items > shape.size() * 8) return false;
  PathReader paths(shape);
  for (std::uint64_t i = 0; i < items; ++i) {
    Fetch::Item item;
    std::optional<BitPath> top = paths.take();
    if (!top) return false;
    item.region.top = std::move(*top);
    if (paths.bits().get_bit()) {
      item.region.without = paths.take_below();
      if (!item.region.without) return false;
    }
    const std::uint64_t count = fetch.partitions > 0 ? 2 : paths.bits().gamma();
    if (!paths.bits().ok()) return false;
    item.all = count == 1;
    counts.push_back(item.all ? 0 : count - 2);
    fetch.items.push_back(std::move(item));
  }
  return paths.bits().at_end();
}

bool take_parts(Reader& in, Fetch& fetch) {
  const std::uint64_t parts = in.varint();
  if (!in.ok() || parts > in.rest() / 2) return false;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const std::uint64_t step = in.varint();
    const std::uint64_t numbers = in.varint();
    if (!in.ok() || step >= fetch.partitions || last + step >= fetch.partitions) return false;
    if (i > 0 && step == 0) return false;
    last += step;
    fetch.parts.push_back({static_cast<std::uint32_t>(last), {}});
    if (!take_numbers(in, numbers, fetch.wide, fetch.parts.back().numbers)) return false;
  }
  return true;
}

}  // namespace

Result<Fetch> decode_fetch(Reader& in) {
  Fetch fetch;
  const std::uint8_t content = in.u8();
  fetch.wide = (content & kWide) != 0;
  const std::uint8_t kind = content & static_cast<std::uint8_t>(~kWide);
  fetch.first_item = in.varint();
  fetch.from = in.text();
  const std::uint64_t partitions = in.varint();
  if (!in.ok() || kind > static_cast<std::uint8_t>(Content::digest) || partitions > UINT32_MAX) {
    return kBadBody;
  }
  fetch.content = static_cast<Content>(kind);
  fetch.partitions = static_cast<std::uint32_t>(partitions);
  std::vector<std::uint64_t> counts;
  if (!take_items(in, fetch, counts)) return kBadBody;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!take_numbers(in, counts[i], fetch.wide, fetch.items[i].numbers)) return kBadBody;
  }
  if (partitions > 0 && !take_parts(in, fetch)) return kBadBody;
  if (!in.ok() || in.rest() != 0 || fetch.first_item > fetch.items.size()) return kBadBody;
  return fetch;
}

void encode(const FetchReply& reply, Content content, Writer& out) {
  out.boolean(reply.complete);
  if (!reply.complete) {
    out.varint(reply.next_item);
    out.text(reply.from);
  }
  if (content != Content::digest) return;
  out.varint(reply.count);
  write(out, reply.digest);
}

Result<FetchReply> decode_fetch_reply(Reader& in, Content content) {
  FetchReply reply;
  reply.complete = in.boolean();
  if (!reply.complete) {
    reply.next_item = in.varint();
    reply.from = in.text();
  }
  if (content == Content::digest) {
    reply.count = in.varint();
    reply.digest = read_digest(in);
  }
  if (!in.ok()) return kBadBody;
  return reply;
}

namespace {
constexpr std::uint8_t kUnlike = 3;  // set if not all records met the same
}  // namespace

void encode(const StoreReply& reply, Writer& out) {
  out.varint(reply.written);
  out.varint(reply.removed);
  if (reply.met.empty()) return;
  // Usually all records met the same.
  const Met first = reply.met.front();
  const bool alike = std::ranges::all_of(reply.met, [&](Met one) { return one == first; });
  out.u8(alike ? static_cast<std::uint8_t>(first) : kUnlike);
  if (alike) return;
  Bytes met;
  BitWriter bits(met);
  for (const Met one : reply.met) {
    bits.put_bit(one != Met::nothing);
    if (one != Met::nothing) bits.put_bit(one == Met::same);
  }
  out.bytes(met);
}

Result<StoreReply> decode_store_reply(Reader& in, std::size_t records) {
  StoreReply reply;
  reply.written = in.varint();
  reply.removed = in.varint();
  const std::uint8_t alike = records == 0 ? 0 : in.u8();
  if (!in.ok() || alike > kUnlike) return kBadBody;
  if (alike != kUnlike) {
    if (in.rest() != 0) return kBadBody;
    reply.met.assign(records, static_cast<Met>(alike));
    return reply;
  }
  BitReader bits(in.view(in.rest()));
  reply.met.reserve(records);
  for (std::size_t i = 0; i < records; ++i) {
    const bool present = bits.get_bit();
    const bool same = present && bits.get_bit();
    reply.met.push_back(!present ? Met::nothing : same ? Met::same : Met::other);
  }
  if (!bits.ok() || !bits.at_end()) return kBadBody;
  return reply;
}

void RecordWriter::add(std::string_view key, std::string_view value) {
  if (count_ > 0 && (key.size() != key_size_ || value.size() != value_size_)) finish();
  key_size_ = key.size();
  value_size_ = value.size();
  ++count_;
  Writer run(run_);
  run.bytes(bytes_of(key));
  run.bytes(bytes_of(value));
}

void RecordWriter::finish() {
  if (count_ == 0) return;
  Writer out(out_);
  out.varint(count_);
  out.varint(key_size_);
  out.varint(value_size_);
  out.bytes(run_);
  run_.clear();
  count_ = 0;
}

Result<std::vector<Record>> decode_records(Reader& in) {
  std::vector<Record> records;
  while (in.ok() && in.rest() > 0) {
    const std::uint64_t count = in.varint();
    const std::uint64_t key_size = in.varint();
    const std::uint64_t value_size = in.varint();
    // Only one record can be empty.
    if (!in.ok() || count == 0 || key_size > in.rest() || value_size > in.rest()) return kBadBody;
    if (count > in.rest() / std::max<std::uint64_t>(key_size + value_size, 1) && count > 1) {
      return kBadBody;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view key = text_of(in.view(key_size));
      records.push_back({key, text_of(in.view(value_size))});
    }
  }
  if (!in.ok()) return kBadBody;
  return records;
}

void encode(const Exact& exact, Bytes& value) {
  Writer out(value);
  out.u8(static_cast<std::uint8_t>((exact.expected ? 1 : 0) | (exact.value ? 2 : 0)));
  if (exact.expected) write(out, *exact.expected);
  if (exact.value) out.bytes(bytes_of(*exact.value));
}

Result<Exact> decode_exact(std::string_view value) {
  Reader in(bytes_of(value));
  Exact exact;
  const std::uint8_t flags = in.u8();
  if ((flags & 1) != 0) exact.expected = read_digest(in);
  if ((flags & 2) != 0) exact.value = text_of(in.view(in.rest()));
  if (!in.ok() || in.rest() != 0 || flags > 3) return kBadBody;
  return exact;
}

Bytes refusal(const Header& question, const Error& error) {
  Builder answer({Kind::refusal, question.number, question.key});
  answer.body().enumeration(error.code);
  answer.body().bytes(bytes_of(error.without_detail()));
  return std::move(answer).seal();
}

Result<Refusal> decode_refusal(Reader& in) {
  Refusal refusal;
  refusal.code = in.enumeration(Errc::forked);
  if (!in.ok()) return kBadBody;
  refusal.words = text_of(in.view(std::min<std::size_t>(in.rest(), 200)));
  return refusal;
}

}  // namespace semel::sync_internal::frame
