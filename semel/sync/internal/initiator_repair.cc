#include <algorithm>
#include <map>
#include <utility>

#include "semel/sync/internal/apply.h"
#include "semel/sync/internal/initiator_body.h"

namespace semel {
namespace {

using frame::Content;
using frame::Fetch;
using frame::Manner;

constexpr Error kNotAsked{Errc::corrupt, "sync: the other end answers what was not asked"};
constexpr Error kNoProgress{Errc::corrupt, "sync: the other end makes no progress"};
constexpr Error kTooMany{Errc::corrupt, "sync: the other end has more records than it said"};

// Beside other parts there may be no room for a record, but not so often.
constexpr int kMostBarren = 8;

Manner manner_of(Rule rule) {
  switch (rule) {
    case Rule::join:
      return Manner::join;
    case Rule::newest:
      return Manner::newest;
    case Rule::source:
      return Manner::overwrite;
    case Rule::destination:
      return Manner::if_absent;
    case Rule::callback:
      return Manner::exact;
  }
  return Manner::if_absent;
}

// Of a record as it came: from its value, or, with keys alone, what stands in its place.
std::optional<Digest> digest_of(const frame::Record& record, Content content, EntryDigest& digest) {
  if (content == Content::records) return digest(record.key, record.value);
  Reader in(bytes_of(record.value));
  const std::uint64_t lo = in.u64();
  const std::uint64_t hi = in.u64();
  if (!in.ok() || in.rest() != 0) return std::nullopt;
  return Digest{lo, hi};
}

std::optional<std::string_view> value_of(const frame::Record& record, Content content) {
  if (content != Content::records) return std::nullopt;
  return record.value;
}

}  // namespace

void Initiator::Body::take_ours(std::string_view key, std::string_view value,
                                const Digest& digest) {
  const std::size_t number = findings_.ours().size();
  findings_.add_ours(key, digest);
  if (!writes_there()) return;
  // In the order of the keys, and as many as fit.
  const bool fits =
      our_writer_ && our_writer_->size() + key.size() + value.size() <= room() && our_last_ < key;
  if (!fits) flush_ours();
  if (!our_writer_) {
    our_writer_.emplace(our_records_);
    our_first_ = number;
  }
  our_writer_->add(key, value);
  ++our_count_;
  our_last_ = key;
  report_.payload_bytes += key.size() + value.size();
}

void Initiator::Body::flush_ours() {
  if (!our_writer_) return;
  our_writer_->finish();
  our_writer_.reset();
  ask_store(manner_of(settings_.resolver.rule), our_records_, {our_first_, our_count_});
  our_records_.clear();
  our_count_ = 0;
}

void Initiator::Body::ask_store(Manner manner, ByteView records, const StoreAsk& ask) {
  Bytes body;
  Writer out(body);
  out.u8(static_cast<std::uint8_t>(manner));
  out.bytes(records);
  exchange_.ask(frame::Topic::store, std::move(body), ask);
}

Result<void> Initiator::Body::store_answered(const StoreAsk& ask, Reader in) {
  const Result<frame::StoreReply> reply = frame::decode_store_reply(in, ask.count);
  if (!reply) return reply.error();
  report_.written_there += reply->written;
  report_.removed_there += reply->removed;
  repaired_ += reply->written + reply->removed;
  for (std::size_t i = 0; i < ask.count; ++i) {
    const std::uint64_t key = KeyTally::hash(findings_.ours()[ask.first + i].key);
    tally_.note_met(key, KeyTally::here, reply->met[i]);
    if (reply->met[i] == frame::Met::other) met_there_.push_back(key);
  }
  return {};
}

void Initiator::Body::ask_fetch(FetchAsk fetch) {
  Bytes body;
  Writer out(body);
  frame::encode(fetch.fetch, out);
  exchange_.ask(frame::Topic::fetch, std::move(body), std::move(fetch));
}

// Asks for the records of these items, so many at a time that an answer is likely to fit a frame.
void Initiator::Body::ask_items(std::vector<Fetch::Item> items) {
  const double each =
      there_.count == 0 || content() == Content::digest
          ? 1
          : static_cast<double>(there_.volume) / static_cast<double>(there_.count) + 8;
  FetchAsk part;
  double bytes = 0;
  const auto flush = [&] {
    if (part.fetch.items.empty()) return;
    part.fetch.content = content();
    part.fetch.wide = part.fetch.content == Content::digest;
    for (Fetch::Item& item : part.fetch.items) {
      part.numbers.push_back(item.numbers);
      for (std::uint32_t& number : item.numbers) number = part.fetch.named(number);
      std::ranges::sort(item.numbers);
    }
    bytes = 0;
    ask_fetch(std::exchange(part, {}));
  };
  for (Fetch::Item& item : items) {
    bytes += 8 + (item.all ? each : each * static_cast<double>(item.numbers.size()));
    part.fetch.items.push_back(std::move(item));
    if (bytes > static_cast<double>(room()) / 2) {
      flush();
    }
  }
  flush();
}

Result<void> Initiator::Body::fetch_answered(FetchAsk ask, Reader in) {
  const Result<frame::FetchReply> reply = frame::decode_fetch_reply(in, ask.fetch.content);
  if (!reply) return reply.error();
  const bool forward =
      reply->complete ||
      (reply->next_item < ask.fetch.items.size() &&
       (reply->next_item > ask.fetch.first_item ||
        (reply->next_item == ask.fetch.first_item && reply->from > ask.fetch.from)));
  if (!forward) return kNoProgress;
  ++ask.barren;
  if (ask.fetch.content == Content::digest) {
    if (in.rest() != 0) return kNotAsked;
    findings_.add_theirs(reply->count, reply->digest);
  } else {
    const Result<std::vector<frame::Record>> records = frame::decode_records(in);
    if (!records) return records.error();
    if (!records->empty()) ask.barren = 0;
    for (const frame::Record& record : *records) {
      report_.payload_bytes += record.key.size();
      if (ask.fetch.content == Content::records) report_.payload_bytes += record.value.size();
    }
    const std::size_t end_item = reply->complete ? ask.fetch.items.size() : reply->next_item;
    const Result<void> taken = ask.copy ? compare_copy(ask, end_item, reply->from, *records)
                                        : take_fetched(ask, end_item, reply->from, *records);
    if (!taken) return taken;
  }
  // Some may have come since it said how many it has; but not without end.
  if (findings_.theirs_count() > there_.count + there_.count / 4 + 1'000'000) return kTooMany;
  if (reply->complete) return {};
  if (ask.barren > kMostBarren) return kNoProgress;
  ask.fetch.first_item = reply->next_item;
  ask.fetch.from = reply->from;
  ask_fetch(std::move(ask));
  return {};
}

// Records come in the order of the items, and within one in that of the keys.
Result<void> Initiator::Body::take_fetched(const FetchAsk& ask, std::size_t end_item,
                                           std::string_view end_key,
                                           std::span<const frame::Record> records) {
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  EntryDigest digest(index_.secret());
  std::vector<frame::Record> wanted;
  std::size_t item = ask.fetch.first_item;
  std::string_view last;
  for (const frame::Record& record : records) {
    if (!stretch_.contains(record.key)) return kNotAsked;
    while (item < ask.fetch.items.size() && !ask.fetch.items[item].region.contains(record.key)) {
      ++item;
      last = {};
    }
    if (item >= ask.fetch.items.size() || item > end_item ||
        (!last.empty() && record.key <= last)) {
      return kNotAsked;
    }
    if (item == end_item && record.key >= end_key) return kNotAsked;
    last = record.key;
    const std::optional<Digest> found = digest_of(record, ask.fetch.content, digest);
    if (!found) return kNotAsked;
    // A record may come along that only shares half of its number with one that was asked for.
    const RecordId id = RecordId::of(shorten_record, *found);
    if (ask.fetch.partitions > 0) {
      if (!ask.placed.contains(placed(id.partition(ask.fetch.partitions), id.number))) continue;
    } else if (!ask.fetch.items[item].all &&
               !std::ranges::binary_search(ask.numbers[item], id.number)) {
      continue;
    }
    findings_.add_theirs(record.key, value_of(record, ask.fetch.content), *found);
    wanted.push_back(record);
  }
  if (ask.fetch.content != Content::records) return {};
  std::ranges::sort(wanted, {}, &frame::Record::key);
  const auto same = [](const frame::Record& a, const frame::Record& b) { return a.key == b.key; };
  wanted.erase(std::unique(wanted.begin(), wanted.end(), same), wanted.end());
  return apply_here(wanted);
}

// All records of the items, up to where the answer ends, beside those that are here.
Result<void> Initiator::Body::compare_copy(const FetchAsk& ask, std::size_t end_item,
                                           std::string_view end_key,
                                           std::span<const frame::Record> records) {
  std::vector<frame::Record> wanted;
  {
    Result<IndexedStore::View> held = index_.view();
    if (!held) return held.error();
    const RangeView view(held->trie(), held->cursor(), stretch_);
    EntryDigest digest(index_.secret());
    bool sound = true;
    const auto digest_there = [&](const frame::Record& record) {
      const std::optional<Digest> found = digest_of(record, ask.fetch.content, digest);
      sound = sound && found;
      return found.value_or(Digest{0, 0});
    };
    std::size_t at = 0;
    const auto take_there = [&](const frame::Record& record, const Digest& found) {
      findings_.add_theirs(record.key, value_of(record, ask.fetch.content), found);
      wanted.push_back(record);
    };
    for (std::size_t item = ask.fetch.first_item; item < ask.fetch.items.size(); ++item) {
      if (item > end_item || (item == end_item && end_key.empty())) break;
      const Region& region = ask.fetch.items[item].region;
      const std::string_view from =
          item == ask.fetch.first_item ? std::string_view(ask.fetch.from) : std::string_view();
      const auto in_item = [&](const frame::Record& record) {
        return region.contains(record.key) && stretch_.contains(record.key);
      };
      const Result<void> read =
          view.read(region, from, [&](std::string_view key, std::string_view value) {
            if (item == end_item && key >= end_key) return false;
            for (; at < records.size() && in_item(records[at]) && records[at].key < key; ++at) {
              take_there(records[at], digest_there(records[at]));
            }
            const Digest here = digest(key, value);
            const bool both = at < records.size() && records[at].key == key;
            if (both) {
              const Digest there = digest_there(records[at]);
              if (there == here) {
                ++at;
                return true;
              }
              take_there(records[at], there);
              ++at;
            }
            take_ours(key, value, here);
            return true;
          });
      if (!read) return read;
      for (; at < records.size() && in_item(records[at]); ++at) {
        take_there(records[at], digest_there(records[at]));
      }
    }
    if (at != records.size() || !sound) return kNotAsked;
  }
  return ask.fetch.content == Content::records ? apply_here(wanted) : Result<void>{};
}

Result<void> Initiator::Body::apply_here(std::span<const frame::Record> records) {
  if (!writes_here()) return {};
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i - 1].key >= records[i].key) return kNotAsked;
  }
  frame::StoreReply applied;
  const Result<void> written =
      apply_records(index_.store(), manner_of(settings_.resolver.rule), settings_.resolver,
                    EntryDigest(index_.secret()), records, applied);
  report_.written_here += applied.written;
  repaired_ += applied.written;
  if (!written) return written;
  for (std::size_t i = 0; i < records.size(); ++i) {
    tally_.note_met(KeyTally::hash(records[i].key), KeyTally::there, applied.met[i]);
  }
  return {};
}

// Changes that are made only where their record is still what this end saw of it.
class Initiator::Body::ExactChanges {
 public:
  explicit ExactChanges(Body& body) : body_(body), there_writer_(there_) {}

  // In increasing order of keys. nullopt: no record is expected, or none shall be.
  void here(const std::string& key, std::optional<Digest> expected,
            std::optional<std::string_view> value) {
    here_.emplace_back(key, coded(expected, value));
  }
  void there(const std::string& key, std::optional<Digest> expected,
             std::optional<std::string_view> value) {
    const std::string change = coded(expected, value);
    if (there_writer_.size() + key.size() + change.size() > body_.room()) flush();
    there_writer_.add(key, change);
    body_.report_.payload_bytes += key.size() + (value ? value->size() : 0);
  }
  Result<void> make() {
    flush();
    std::vector<frame::Record> records;
    records.reserve(here_.size());
    for (const auto& [key, change] : here_) records.push_back({key, change});
    frame::StoreReply applied;
    Result<void> written =
        apply_records(body_.index_.store(), Manner::exact, body_.settings_.resolver,
                      EntryDigest(body_.index_.secret()), records, applied);
    body_.report_.written_here += applied.written;
    body_.report_.removed_here += applied.removed;
    return written;
  }

 private:
  static std::string coded(std::optional<Digest> expected, std::optional<std::string_view> value) {
    Bytes bytes;
    frame::encode(frame::Exact{expected, value}, bytes);
    return {bytes.begin(), bytes.end()};
  }
  void flush() {
    there_writer_.finish();
    if (!there_.empty()) body_.ask_store(Manner::exact, there_, {});
    there_.clear();
  }

  Body& body_;
  std::vector<std::pair<std::string, std::string>> here_;
  Bytes there_;
  frame::RecordWriter there_writer_;
};

// What can be decided only when both sides of every difference are known.
Result<void> Initiator::Body::settle() {
  if (!repairs()) return {};
  if (removes()) return settle_removals();
  if (calls_back()) return settle_by_callback();
  return {};
}

Result<void> Initiator::Body::settle_removals() {
  ExactChanges changes(*this);
  if (here_is_source()) {
    for (const auto& [key, theirs] : findings_.theirs()) {
      const Result<std::optional<std::string>> now = index_.store().get(key);
      if (!now) return now.error();
      if (!*now) changes.there(key, theirs.digest, std::nullopt);
    }
    return changes.make();
  }
  std::map<std::string, Digest, std::less<>> ours;
  for (const Findings::Ours& one : findings_.ours()) ours.emplace(one.key, one.digest);
  for (const auto& [key, digest] : ours) {
    if (!findings_.theirs().contains(key)) changes.here(key, digest, std::nullopt);
  }
  return changes.make();
}

Result<void> Initiator::Body::settle_by_callback() {
  ExactChanges changes(*this);
  EntryDigest digest(index_.secret());
  std::map<std::string, const Findings::Theirs*, std::less<>> keys;
  for (const Findings::Ours& one : findings_.ours()) keys.emplace(one.key, nullptr);
  for (const auto& [key, theirs] : findings_.theirs()) keys.insert_or_assign(key, &theirs);
  for (const auto& [key, theirs] : keys) {
    const Result<std::optional<std::string>> now = index_.store().get(key);
    if (!now) return now.error();
    std::optional<std::string_view> here;
    std::optional<Digest> here_digest;
    if (*now) {
      here = **now;
      here_digest = digest(key, *here);
    }
    std::optional<std::string_view> there;
    std::optional<Digest> there_digest;
    if (theirs != nullptr) {
      there = *theirs->value;
      there_digest = theirs->digest;
    }
    const std::optional<std::string> result = here_is_source()
                                                  ? settings_.resolver.callback(key, here, there)
                                                  : settings_.resolver.callback(key, there, here);
    if (result != here) changes.here(key, here_digest, result);
    if (result != there) changes.there(key, there_digest, result);
  }
  return changes.make();
}

}  // namespace semel
