#include "semel/sync/replica.h"

#include <mutex>
#include <utility>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/hash/keyed_digest.h"
#include "semel/store/internal/responsible_store.h"
#include "semel/sync/internal/frame.h"

namespace semel {

using namespace store_internal;
using namespace sync_internal;

namespace {

const Error kNeedsJoin{Errc::invalid, "replica: only join and newest lose no write"};
const Error kStillAnswers{Errc::invalid, "replica: it still answers for keys of the range"};
const Error kNobodyAnswers{Errc::invalid, "replica: the other does not answer for the range"};
const Error kNotStored{Errc::corrupt, "replica: the other end does not say that it stored"};
const Error kStopped{Errc::io, "replica: the peer has stopped"};
const Error kTooLarge{Errc::limit, "replica: a record is larger than a frame may be"};

bool loses_nothing(const Resolver& resolver) {
  return resolver.rule == SyncRule::join || resolver.rule == SyncRule::newest;
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

struct Replica::Body {
  Body(OrderedStore& all, std::unique_ptr<IndexedStore> indexed, Settings chosen)
      : store(all),
        clients(store, chosen.responsibility),
        index(std::move(indexed)),
        settings(std::move(chosen)),
        responder(*index, terms_of(settings)) {}

  Result<SyncReport> sync_set(SyncPeer& destination, const KeyRange& range,
                              const Resolver& resolver);
  Result<void> hand_over(SyncPeer& destination, const KeyRange& range, const Resolver& resolver);
  Result<std::optional<std::string>> middle_of(const KeyRange& range);
  Result<void> send_all(SyncPeer& destination, const KeyRange& range, SyncRule rule);
  Result<void> send(SyncPeer& destination, const KeyRange& range, frame::Manner manner,
                    const Bytes& records);
  std::uint64_t next_seed();

  OrderedStore& store;       // all records
  ResponsibleStore clients;  // the records that the replica answers for
  std::unique_ptr<IndexedStore> index;
  Settings settings;
  Responder responder;
  std::mutex policy;  // held to change the responsibility and to remove records outside
  std::mutex seed_mutex;
};

Result<std::unique_ptr<Replica>> Replica::open(OrderedStore& store, const Secret& secret,
                                               Settings settings) {
  std::unique_ptr<IndexedStore> index =
      SEMEL_TRY(IndexedStore::open(store, secret, settings.index));
  auto body = std::make_unique<Body>(store, std::move(index), std::move(settings));
  return std::unique_ptr<Replica>(new Replica(std::move(body)));
}

Replica::Replica(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Replica::~Replica() = default;

RangeSet Replica::responsibility() const { return body_->clients.responsibility(); }
Responder& Replica::responder() { return body_->responder; }
IndexedStore& Replica::index() { return *body_->index; }

Result<std::optional<std::string>> Replica::get(std::string_view key) const {
  return body_->clients.get(key);
}

Result<void> Replica::write(std::span<const RecordWrite> writes) {
  return body_->clients.write(writes);
}

Result<void> Replica::update(std::span<const std::string_view> keys,
                             const OrderedStore::Become& become) {
  return body_->clients.update(keys, become);
}

void Replica::set_responsibility(RangeSet responsibility) {
  const std::lock_guard lock(body_->policy);
  body_->clients.set_responsibility(std::move(responsibility));
}

void Replica::take_over(const KeyRange& range) {
  const std::lock_guard lock(body_->policy);
  RangeSet responsibility = body_->clients.responsibility();
  responsibility.add(range);
  body_->clients.set_responsibility(std::move(responsibility));
}

void Replica::give_up(const KeyRange& range) {
  const std::lock_guard lock(body_->policy);
  RangeSet responsibility = body_->clients.responsibility();
  responsibility.remove(range);
  body_->clients.set_responsibility(std::move(responsibility));
}

Result<SyncReport> Replica::copy_set(SyncPeer& destination, const KeyRange& range) {
  Resolver resolver;
  resolver.rule = SyncRule::destination;
  return sync_set(destination, range, resolver);
}

Result<SyncReport> Replica::sync_set(SyncPeer& destination, const KeyRange& range,
                                     const Resolver& resolver) {
  return body_->sync_set(destination, range, resolver);
}

Result<SyncReport> Replica::Body::sync_set(SyncPeer& destination, const KeyRange& range,
                                           const Resolver& resolver) {
  SyncSettings how;
  how.range = range;
  how.resolver = resolver;
  how.resolver.join = settings.resolver.join;
  how.resolver.time_of = settings.resolver.time_of;
  how.link = settings.link;
  how.limits = settings.limits;
  how.seed = next_seed();
  Result<SyncReport> report = sync(*index, destination, how);
  if (report && report->stopped) return kStopped;
  return report;
}

Result<void> Replica::hand_over(SyncPeer& destination, const KeyRange& range,
                                const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  if (meets(responsibility(), range)) return kStillAnswers;
  return body_->hand_over(destination, range, resolver);
}

Result<void> Replica::Body::hand_over(SyncPeer& destination, const KeyRange& range,
                                      const Resolver& resolver) {
  const SyncReport synced = SEMEL_TRY(sync_set(destination, range, resolver));
  if (synced.proved) return {};
  // The other end is written to meanwhile. A part of the range has fewer writes, and its sync is
  // shorter.
  const std::optional<std::string> middle = SEMEL_TRY(middle_of(range));
  if (!middle) return send_all(destination, range, resolver.rule);
  SEMEL_TRY(hand_over(destination, {range.first, *middle}, resolver));
  return hand_over(destination, {*middle, range.end}, resolver);
}

// Returns the key that halves the containers of the range; nullopt if there is only one container.
Result<std::optional<std::string>> Replica::Body::middle_of(const KeyRange& range) {
  const IndexedStore::View view = SEMEL_TRY(index->view());
  const std::vector<NyeTrie::Container> containers = view.trie().containers(range);
  if (containers.size() < 2) return std::optional<std::string>();
  return std::optional(containers[containers.size() / 2].path.range().first);
}

// Sends records to be stored, and waits until they are stored.
Result<void> Replica::Body::send(SyncPeer& destination, const KeyRange& range, frame::Manner manner,
                                 const Bytes& records) {
  Bytes body;
  Writer(body).u8(static_cast<std::uint8_t>(manner));
  Writer(body).bytes(records);
  const frame::Header header{frame::Kind::question, static_cast<std::uint32_t>(next_seed()),
                             frame::key_name(index->secret())};
  frame::Builder question(header);
  frame::encode(frame::Scope{range, 0}, question.body());
  frame::encode_part(frame::Topic::store, body, question.body());
  const Bytes sealed = std::move(question).seal();
  if (sealed.size() > settings.limits.frame_bytes) return kTooLarge;
  SEMEL_TRY(destination.send(sealed));
  const std::optional<Bytes> answer = SEMEL_TRY(destination.receive());
  if (!answer) return kStopped;
  const frame::Opened opened = SEMEL_TRY(frame::open(*answer));
  const bool stored = opened.header.kind == frame::Kind::answer &&
                      opened.header.number == header.number && opened.header.key == header.key;
  return stored ? Result<void>() : kNotStored;
}

Result<void> Replica::Body::send_all(SyncPeer& destination, const KeyRange& range, SyncRule rule) {
  const auto manner = rule == SyncRule::join ? frame::Manner::join : frame::Manner::newest;
  const std::unique_ptr<Cursor> cursor = SEMEL_TRY(store.cursor());
  // Besides the records: the bounds of the range, and some bytes of the frame.
  const std::size_t others = range.first.size() + (range.end ? range.end->size() : 0) + 128;
  Bytes records;
  std::optional<frame::RecordWriter> writer;
  const auto flush = [&]() -> Result<void> {
    if (!writer) return {};
    writer->finish();
    writer.reset();
    return send(destination, range, manner, std::exchange(records, {}));
  };
  Cursor& at = *cursor;
  for (at.seek(range.first); at.valid() && range.contains(at.key()); at.next()) {
    const std::size_t more = at.key().size() + at.value().size() + others;
    if (writer && writer->size() + more > settings.limits.frame_bytes) {
      SEMEL_TRY(flush());
    }
    if (!writer) writer.emplace(records);
    writer->add(at.key(), at.value());
  }
  SEMEL_TRY(at.status());
  return flush();
}

Result<void> Replica::remove_set(const KeyRange& range) {
  const std::lock_guard lock(body_->policy);
  if (meets(body_->clients.responsibility(), range)) return kStillAnswers;
  return body_->store.remove_range(range);
}

std::uint64_t Replica::Body::next_seed() {
  const std::lock_guard lock(seed_mutex);
  return mix(settings.seed++);
}

Result<void> migrate(Replica& source, Replica& destination, SyncPeer& to_destination,
                     const KeyRange& range, const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  SEMEL_TRY(source.copy_set(to_destination, range));
  destination.take_over(range);
  source.give_up(range);
  SEMEL_TRY(source.hand_over(to_destination, range, resolver));
  return source.remove_set(range);
}

Result<SyncReport> replicate(Replica& source, Replica& destination, SyncPeer& to_destination,
                             const KeyRange& range, const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  const Result<SyncReport> copied = source.copy_set(to_destination, range);
  if (!copied) return copied;
  destination.take_over(range);
  return source.sync_set(to_destination, range, resolver);
}

Result<void> scale_down(Replica& leaving, Replica& staying, SyncPeer& to_staying,
                        const KeyRange& range, const Resolver& resolver) {
  if (!loses_nothing(resolver)) return kNeedsJoin;
  if (!staying.responsibility().covers(range)) return kNobodyAnswers;
  leaving.give_up(range);
  return leaving.hand_over(to_staying, range, resolver);
}

}  // namespace semel
