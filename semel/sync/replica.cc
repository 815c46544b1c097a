#include "semel/sync/replica.h"

#include <utility>
#include <vector>

#include "semel/core/arithmetic.h"
#include "semel/hash/keyed_digest.h"
#include "semel/sync/initiator.h"
#include "semel/sync/internal/frame.h"

namespace semel {
namespace {

constexpr Error kNeedsJoin{Errc::invalid, "replica: only join and newest lose no write"};
constexpr Error kStillAnswers{Errc::invalid, "replica: it answers for keys of the range"};
constexpr Error kNobodyAnswers{Errc::invalid, "replica: the other does not answer for the range"};
constexpr Error kNotStored{Errc::corrupt, "replica: the other end does not say that it stored"};
constexpr Error kTooLarge{Errc::limit, "replica: a record is larger than a frame may be"};

bool loses_nothing(const Resolver& resolver) {
  return resolver.rule == Rule::join || resolver.rule == Rule::newest;
}

bool meets(const RangeSet& set, const KeyRange& range) {
  if (range.empty()) return false;
  const KeyRange* next = set.at_or_after(range.first);
  return next != nullptr && (!range.end || next->first < *range.end);
}

Responder::Terms terms_of(const Replica::Settings& settings) {
  Responder::Terms terms;
  terms.resolver = settings.resolver;
  terms.limits = settings.limits;
  return terms;
}

}  // namespace

Result<std::unique_ptr<Replica>> Replica::open(OrderedStore& store, const Secret& secret,
                                               Settings settings) {
  Result<std::unique_ptr<IndexedStore>> index = IndexedStore::open(store, secret, settings.index);
  if (!index) return index.error();
  return std::unique_ptr<Replica>(new Replica(store, *std::move(index), std::move(settings)));
}

Replica::Replica(OrderedStore& store, std::unique_ptr<IndexedStore> index, Settings settings)
    : store_(store),
      clients_(store, settings.responsibility),
      index_(std::move(index)),
      settings_(std::move(settings)),
      responder_(*index_, terms_of(settings_)) {}

Result<std::optional<std::string>> Replica::get(std::string_view key) const {
  return clients_.get(key);
}

Result<void> Replica::write(std::span<const Write> writes) { return clients_.write(writes); }

Result<void> Replica::update(std::span<const std::string_view> keys,
                             const OrderedStore::Become& become) {
  return clients_.update(keys, become);
}

void Replica::set_responsibility(RangeSet responsibility) {
  const std::lock_guard lock(policy_);
  clients_.set_responsibility(std::move(responsibility));
}

void Replica::take_over(const KeyRange& range) {
  const std::lock_guard lock(policy_);
  RangeSet responsibility = clients_.responsibility();
  responsibility.add(range);
  clients_.set_responsibility(std::move(responsibility));
}

void Replica::give_up(const KeyRange& range) {
  const std::lock_guard lock(policy_);
  RangeSet responsibility = clients_.responsibility();
  responsibility.remove(range);
  clients_.set_responsibility(std::move(responsibility));
}

Result<SyncReport> Replica::copy_set(Peer& destination, const KeyRange& range) {
  Resolver resolver;
  resolver.rule = Rule::destination;
  return sync_set(destination, range, resolver);
}

Result<SyncReport> Replica::sync_set(Peer& destination, const KeyRange& range,
                                     const Resolver& resolver) {
  SyncSettings settings;
  settings.range = range;
  settings.resolver = resolver;
  settings.resolver.join = settings_.resolver.join;
  settings.resolver.time_of = settings_.resolver.time_of;
  settings.link = settings_.link;
  settings.limits = settings_.limits;
  settings.seed = next_seed();
  Initiator sync(*index_, std::move(settings));
  while (!sync.done() && !sync.failed()) {
    // A frame stays where it is until the last one of its round trip is answered.
    for (const ByteView frame : sync.outstanding()) {
      const Result<Bytes> answer = destination.ask(frame);
      if (!answer) return answer.error();
      const Result<void> received = sync.receive(*answer);
      if (!received) return received.error();
    }
  }
  if (sync.failed()) return sync.error();
  return sync.report();
}

Result<void> Replica::hand_over(Peer& destination, const KeyRange& range,
                                const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  if (meets(responsibility(), range)) return kStillAnswers;
  return hand_over_part(destination, range, resolver);
}

Result<void> Replica::hand_over_part(Peer& destination, const KeyRange& range,
                                     const Resolver& resolver) {
  const Result<SyncReport> synced = sync_set(destination, range, resolver);
  if (!synced) return synced.error();
  if (synced->proved) return {};
  // The other end is written to. In a part there are fewer writes, and a sync of it is shorter.
  const Result<std::optional<std::string>> middle = middle_of(range);
  if (!middle) return middle.error();
  if (!*middle) return send_all(destination, range, resolver.rule);
  const Result<void> lower = hand_over_part(destination, {range.first, **middle}, resolver);
  if (!lower) return lower;
  return hand_over_part(destination, {**middle, range.end}, resolver);
}

// The key that halves the containers of the range; nullopt if there is but one.
Result<std::optional<std::string>> Replica::middle_of(const KeyRange& range) {
  const Result<IndexedStore::View> view = index_->view();
  if (!view) return view.error();
  const std::vector<NyeTrie::Container> containers = view->trie().containers(range);
  if (containers.size() < 2) return std::optional<std::string>();
  return std::optional(containers[containers.size() / 2].path.range().first);
}

Result<void> Replica::send_all(Peer& destination, const KeyRange& range, Rule rule) {
  const auto key =
      static_cast<std::uint32_t>(DigestKey(index_->secret(), KeyPurpose::entry).id().seed);
  const auto manner = rule == Rule::join ? frame::Manner::join : frame::Manner::newest;
  const auto send = [&](const Bytes& records) -> Result<void> {
    Bytes body;
    Writer(body).u8(static_cast<std::uint8_t>(manner));
    Writer(body).bytes(records);
    const frame::Header header{frame::Kind::question, static_cast<std::uint32_t>(next_seed()), key};
    frame::Builder question(header);
    frame::encode(frame::Scope{range, 0}, question.body());
    frame::encode_part(frame::Topic::store, body, question.body());
    const Bytes sealed = std::move(question).seal();
    if (sealed.size() > settings_.limits.frame_bytes) return kTooLarge;
    const Result<Bytes> answer = destination.ask(sealed);
    if (!answer) return answer.error();
    const Result<frame::Opened> opened = frame::open(*answer);
    if (!opened) return opened.error();
    const bool stored = opened->header.kind == frame::Kind::answer &&
                        opened->header.number == header.number && opened->header.key == key;
    return stored ? Result<void>() : kNotStored;
  };
  const Result<std::unique_ptr<Cursor>> cursor = store_.cursor();
  if (!cursor) return cursor.error();
  // Beside the records: the bounds of the range, and some bytes of the frame.
  const std::size_t others = range.first.size() + (range.end ? range.end->size() : 0) + 128;
  Bytes records;
  std::optional<frame::RecordWriter> writer;
  const auto flush = [&]() -> Result<void> {
    if (!writer) return {};
    writer->finish();
    writer.reset();
    return send(std::exchange(records, {}));
  };
  Cursor& at = **cursor;
  for (at.seek(range.first); at.valid() && range.contains(at.key()); at.next()) {
    const std::size_t more = at.key().size() + at.value().size() + others;
    if (writer && writer->size() + more > settings_.limits.frame_bytes) {
      const Result<void> sent = flush();
      if (!sent) return sent;
    }
    if (!writer) writer.emplace(records);
    writer->add(at.key(), at.value());
  }
  if (const Result<void> status = at.status(); !status) return status;
  return flush();
}

Result<void> Replica::remove_set(const KeyRange& range) {
  const std::lock_guard lock(policy_);
  if (meets(clients_.responsibility(), range)) return kStillAnswers;
  return store_.remove_range(range);
}

std::uint64_t Replica::next_seed() {
  const std::lock_guard lock(seed_mutex_);
  return mix(settings_.seed++);
}

Result<void> migrate(Replica& source, Replica& destination, Peer& to_destination,
                     const KeyRange& range, const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  const Result<SyncReport> copied = source.copy_set(to_destination, range);
  if (!copied) return copied.error();
  destination.take_over(range);
  source.give_up(range);
  const Result<void> handed = source.hand_over(to_destination, range, resolver);
  if (!handed) return handed;
  return source.remove_set(range);
}

Result<SyncReport> replicate(Replica& source, Replica& destination, Peer& to_destination,
                             const KeyRange& range, const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  const Result<SyncReport> copied = source.copy_set(to_destination, range);
  if (!copied) return copied;
  destination.take_over(range);
  return source.sync_set(to_destination, range, resolver);
}

Result<void> scale_down(Replica& leaving, Replica& staying, Peer& to_staying, const KeyRange& range,
                        const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  if (!staying.responsibility().covers(range)) return kNobodyAnswers;
  leaving.give_up(range);
  return leaving.hand_over(to_staying, range, resolver);
}

}  // namespace semel
