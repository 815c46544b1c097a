#include "semel/sync/responder.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"
#include "semel/sync/internal/apply.h"
#include "semel/sync/internal/budget.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/partition_sketch.h"
#include "semel/sync/internal/set_sketch.h"

namespace semel {

using namespace sync_internal;

namespace {

using frame::SlotAnswer;

const Error kOtherKey{Errc::mismatch, "sync: the other end has another secret"};
const Error kOutside{Errc::outside, "sync: the range is not all answered for here"};
const Error kEmptyRange{Errc::invalid, "sync: the range is empty"};
const Error kReadOnly{Errc::unsupported, "sync: this end does not write"};
const Error kUnknownKind{Errc::unsupported, "sync: a question of an unknown kind"};
const Error kTooMuch{Errc::limit, "sync: the answer would be larger than a frame may be"};
const Error kOtherFloret{Errc::mismatch, "sync: the florets differ in their number of counters"};

// One question and its answer.
class Answer {
 public:
  Answer(IndexedStore& index, const Responder::Terms& terms, const frame::Opened& question)
      : index_(index), terms_(terms), question_(question) {}

  Result<Bytes> make();

 private:
  // These each answer one part of the question.
  Result<Bytes> answer_to(const frame::Part& part);
  Result<Bytes> hello(Reader in);
  Result<Bytes> compare(Reader in);
  Result<Bytes> scan(Reader in);
  Result<Bytes> fetch(Reader in);
  Result<Bytes> store(Reader in);

  Result<void> fill(SlotAnswer& answer, const Region& region, std::uint64_t records,
                    std::uint32_t capacity, bool list, const RangeView& view);
  ShortDigest shorten(ShortDigest::Of of) const { return {index_.secret(), of, scope_.salt}; }

  IndexedStore& index_;
  const Responder::Terms& terms_;
  const frame::Opened& question_;
  frame::Scope scope_;
  std::size_t room_ = 0;  // bytes that the answer to the present part may have
};

Result<Bytes> Answer::make() {
  if (question_.header.key != frame::key_name(index_.secret())) return kOtherKey;
  Reader in(question_.body);
  scope_ = SEMEL_TRY(frame::decode_scope(in));
  if (scope_.range.empty()) return kEmptyRange;
  if (!terms_.range.covers(scope_.range)) return kOutside;
  const std::vector<frame::Part> parts = SEMEL_TRY(frame::decode_parts(in));
  frame::Builder builder({frame::Kind::answer, question_.header.number, question_.header.key});
  // Later parts need some bytes to say that they found no room, or what happened to records.
  const auto least = [](const frame::Part& part) {
    const bool stores = part.topic == frame::Topic::store;
    return frame::kPartBytes + frame::most_store_reply(stores ? part.body.size() : 0);
  };
  std::size_t later = 0;
  for (const frame::Part& part : parts) later += least(part);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    later -= least(parts[i]);
    const std::size_t taken = builder.size() + frame::kChecksumBytes + frame::kPartBytes + later;
    if (taken >= terms_.limits.frame_bytes) return kTooMuch;
    room_ = terms_.limits.frame_bytes - taken;
    const Bytes answer = SEMEL_TRY(answer_to(parts[i]));
    frame::encode_part(parts[i].topic, answer, builder.body());
  }
  return std::move(builder).seal();
}

Result<Bytes> Answer::answer_to(const frame::Part& part) {
  const Reader in(part.body);
  switch (part.topic) {
    case frame::Topic::hello:
      return hello(in);
    case frame::Topic::compare:
      return compare(in);
    case frame::Topic::scan:
      return scan(in);
    case frame::Topic::fetch:
      return fetch(in);
    case frame::Topic::store:
      return store(in);
  }
  return kUnknownKind;
}

Result<Bytes> Answer::hello(Reader in) {
  const frame::Hello hello = SEMEL_TRY(frame::decode_hello(in));
  const Floret theirs = SEMEL_TRY(Floret::of_bytes(hello.floret));
  IndexedStore::View held = SEMEL_TRY(index_.view());
  const RangeView view(held.trie(), held.cursor(), scope_.range);
  const Aggregate sum = SEMEL_TRY(view.sum(BitPath()));

  frame::HelloReply reply;
  reply.sum = sum;
  Bytes answer;
  Writer out(answer);
  if (sum == hello.sum) {
    frame::encode(reply, out);
    return answer;
  }
  const IndexedStore::RangeFloret ours =
      SEMEL_TRY(index_.floret(held, scope_.range, IndexedStore::Fresh::not_worn));
  if (ours.floret.bytes().size() != theirs.bytes().size()) return kOtherFloret;
  const DifferenceEstimate difference = estimate(theirs, hello.sum.count, ours.floret, sum.count);
  reply.unknown = ours.unknown;
  reply.total = static_cast<float>(difference.total.value);
  reply.error = static_cast<float>(difference.total.error);
  reply.reliable = difference.reliable;
  frame::encode(reply, out);
  const BitPath root;
  const Frontier frontier =
      SEMEL_TRY(Frontier::grow(view, {&root, 1}, budget::kFirstSlots, budget::kFirstEnough));
  frontier.encode(shorten(ShortDigest::Of::node), out);
  if (answer.size() > room_) return kTooMuch;
  return answer;
}

Result<Bytes> Answer::compare(Reader in) {
  const frame::Compare compare = SEMEL_TRY(frame::decode_compare(in));
  const std::vector<PeerSlot> slots = SEMEL_TRY(decode_frontier(in));
  IndexedStore::View held = SEMEL_TRY(index_.view());
  const RangeView view(held.trie(), held.cursor(), scope_.range);
  const ShortDigest node = shorten(ShortDigest::Of::node);

  std::vector<SlotAnswer> answers(slots.size());
  std::vector<std::uint64_t> records(slots.size());
  std::uint64_t differing = 0;  // slots that differ and are empty at neither end
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const PeerSlot& slot = slots[i];
    const Aggregate sum = SEMEL_TRY(view.sum(slot.region));
    records[i] = sum.count;
    SlotAnswer& answer = answers[i];
    if (slot.empty) {
      if (sum.count > 0) answer.kind = SlotAnswer::Kind::none;
    } else if (node_bits(node, sum) != slot.digest) {
      answer.kind = sum.count == 0 ? SlotAnswer::Kind::none : SlotAnswer::Kind::big;
      if (sum.count > 0) ++differing;
    }
  }

  const std::uint32_t capacity =
      compare.list ? 0 : budget::slot_capacity(compare.expected, differing);
  // The kinds of the slots, and the other bytes of a frame.
  std::size_t size = 32 + answers.size() / 2;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].kind != SlotAnswer::Kind::big || records[i] > compare.detail) continue;
    const bool list = capacity == 0 || records[i] <= capacity;
    const std::size_t more = 10 + 4 * (list ? records[i] : capacity);
    if (size + more > room_) continue;
    SEMEL_TRY(fill(answers[i], slots[i].region, records[i], capacity, list, view));
    size += more;
  }
  Bytes answer;
  Writer out(answer);
  frame::encode(answers, capacity, out);
  if (answer.size() > room_) return kTooMuch;
  return answer;
}

Result<void> Answer::fill(SlotAnswer& answer, const Region& region, std::uint64_t records,
                          std::uint32_t capacity, bool list, const RangeView& view) {
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  EntryDigest digest = view.trie().entry_digest();
  std::vector<std::uint32_t> numbers;
  const Result<void> read =
      view.read(region, "", [&](std::string_view key, std::string_view value) {
        numbers.push_back(RecordId::of(shorten_record, digest(key, value)).number);
        // Records that were added after the trie was refreshed must not enlarge the answer.
        return numbers.size() < records;
      });
  if (!read) return read;
  if (list) {
    answer.kind = SlotAnswer::Kind::list;
    answer.numbers = std::move(numbers);
    return {};
  }
  answer.kind = SlotAnswer::Kind::sketch;
  answer.numbers.assign(capacity, 0);
  SetSketch::toggle_many(answer.numbers, numbers);
  return {};
}

Result<Bytes> Answer::scan(Reader in) {
  const frame::Scan scan = SEMEL_TRY(frame::decode_scan(in));
  const std::uint64_t words = scan.sketches() * scan.capacity;
  if (words * 4 > room_) return kTooMuch;
  IndexedStore::View held = SEMEL_TRY(index_.view());
  const RangeView view(held.trie(), held.cursor(), scope_.range);
  const std::vector<std::uint32_t> syndromes =
      SEMEL_TRY(sketch_partitions(view, scan, shorten(ShortDigest::Of::record)));
  Bytes answer;
  answer.reserve(words * 4);
  Writer out(answer);
  for (const std::uint32_t word : syndromes) out.u32(word);
  return answer;
}

Result<Bytes> Answer::fetch(Reader in) {
  const frame::Fetch fetch = SEMEL_TRY(frame::decode_fetch(in));
  std::unordered_map<std::uint32_t, const std::vector<std::uint32_t>*> parts;
  for (const frame::Fetch::Part& part : fetch.parts) parts.emplace(part.partition, &part.numbers);
  IndexedStore::View held = SEMEL_TRY(index_.view());
  const RangeView view(held.trie(), held.cursor(), scope_.range);
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  EntryDigest digest = view.trie().entry_digest();

  frame::FetchReply reply;
  bool too_large = false;
  Bytes records;
  frame::RecordWriter writer(records);
  for (std::size_t i = fetch.first_item; i < fetch.items.size() && reply.complete; ++i) {
    const frame::Fetch::Item& item = fetch.items[i];
    const std::string_view from = i == fetch.first_item ? fetch.from : std::string_view();
    const auto wanted = [&](const Digest& found) {
      if (item.all) return true;
      const RecordId id = RecordId::of(shorten_record, found);
      const std::uint32_t number = fetch.named(id.number);
      if (fetch.partitions == 0) return std::ranges::binary_search(item.numbers, number);
      const auto part = parts.find(id.partition(fetch.partitions));
      return part != parts.end() && std::ranges::binary_search(*part->second, number);
    };
    SEMEL_TRY(view.read(item.region, from, [&](std::string_view key, std::string_view value) {
      const Digest found = digest(key, value);
      if (!wanted(found)) return true;
      std::size_t more = 0;
      if (fetch.content == frame::Content::records) more = key.size() + value.size() + 30;
      if (fetch.content == frame::Content::keys) more = key.size() + sizeof found + 30;
      if (more + key.size() + 200 > terms_.limits.frame_bytes) {
        too_large = true;
        return false;
      }
      if (writer.size() + key.size() + 64 + more > room_) {
        reply.complete = false;
        reply.next_item = i;
        reply.from = key;
        return false;
      }
      ++reply.count;
      reply.digest ^= found;
      if (fetch.content == frame::Content::records) {
        writer.add(key, value);
      } else if (fetch.content == frame::Content::keys) {
        Bytes bytes;
        Writer w(bytes);
        write(w, found);
        writer.add(key, text_of(bytes));
      }
      return true;
    }));
    if (too_large) return Error{Errc::limit, "sync: a record is larger than a frame may be"};
  }
  writer.finish();
  Bytes answer;
  Writer out(answer);
  frame::encode(reply, fetch.content, out);
  out.bytes(records);
  if (answer.size() > room_) return kTooMuch;
  return answer;
}

Result<Bytes> Answer::store(Reader in) {
  if (terms_.read_only) return kReadOnly;
  const auto manner = in.enumeration(frame::Manner::exact);
  if (!in.ok()) return kUnknownKind;
  const std::vector<frame::Record> records = SEMEL_TRY(frame::decode_records(in));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!scope_.range.contains(records[i].key)) return kOutside;
    if (i > 0 && records[i - 1].key >= records[i].key) {
      return Error{Errc::corrupt, "sync: records are not in the order of their keys"};
    }
  }
  frame::StoreReply reply;
  SEMEL_TRY(apply_records(index_.store(), manner, terms_.resolver, EntryDigest(index_.secret()),
                          records, reply));
  Bytes answer;
  Writer out(answer);
  frame::encode(reply, out);
  return answer;
}

}  // namespace

Responder::Responder(IndexedStore& index, Terms terms) : index_(index), terms_(std::move(terms)) {}

Bytes Responder::respond(ByteView bytes) {
  if (bytes.size() > terms_.limits.frame_bytes) {
    return frame::refusal({}, {Errc::limit, "sync: the frame is larger than this end allows"});
  }
  const Result<frame::Opened> question = frame::open(bytes);
  if (!question) {
    // Another version has the same header. Bytes that are no frame have none.
    const bool other = question.error().code == Errc::unsupported;
    return frame::refusal(other ? frame::header_of(bytes) : frame::Header{}, question.error());
  }
  if (question->header.kind != frame::Kind::question) {
    return frame::refusal(question->header, kUnknownKind);
  }
  Result<Bytes> answer = Answer(index_, terms_, *question).make();
  if (!answer) return frame::refusal(question->header, answer.error());
  return std::move(*answer);
}

Result<void> LocalPeer::send(ByteView frame) {
  frames_.emplace_back(frame.begin(), frame.end());
  return {};
}

Result<std::optional<Bytes>> LocalPeer::receive() {
  SEMEL_ASSERT(!frames_.empty());
  Bytes answer = responder_.respond(frames_.front());
  frames_.pop_front();
  return std::optional(std::move(answer));
}

}  // namespace semel
