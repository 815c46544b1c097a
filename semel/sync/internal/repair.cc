#include "semel/sync/internal/repair.h"

#include <algorithm>
#include <map>
#include <utility>

#include "semel/sync/internal/apply.h"

namespace semel::sync_internal {
namespace {

using frame::Content;
using frame::Fetch;
using frame::Manner;

const Error kNoProgress{Errc::corrupt, "sync: the other end makes no progress"};
const Error kTooMany{Errc::corrupt, "sync: the other end has more records than it said"};

// A record may not fit into an answer beside other parts, but at most this many times in a row.
constexpr int kMostBarren = 8;

Manner manner_of(SyncRule rule) {
  switch (rule) {
    case SyncRule::join:
      return Manner::join;
    case SyncRule::newest:
      return Manner::newest;
    case SyncRule::source:
      return Manner::overwrite;
    case SyncRule::destination:
      return Manner::if_absent;
    case SyncRule::callback:
      return Manner::exact;
  }
  return Manner::if_absent;
}

// Returns the digest of a record as it came. If only keys travel, the digest is in the place of the
// value.
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

void Repair::begin_pass() {
  met_there_.clear();
  repaired_ = 0;
}

void Repair::take_ours(std::string_view key, std::string_view value, const Digest& digest) {
  const std::size_t number = s_.findings.ours().size();
  s_.findings.add_ours(key, digest);
  if (!s_.writes_there()) return;
  // One frame holds as many records as fit, in the order of their keys.
  const bool fits = our_writer_ && our_writer_->size() + key.size() + value.size() <= s_.room() &&
                    our_last_ < key;
  if (!fits) flush_ours();
  if (!our_writer_) {
    our_writer_.emplace(our_records_);
    our_first_ = number;
  }
  our_writer_->add(key, value);
  ++our_count_;
  our_last_ = key;
  s_.report.payload_bytes += key.size() + value.size();
}

void Repair::flush_ours() {
  if (!our_writer_) return;
  our_writer_->finish();
  our_writer_.reset();
  ask_store(manner_of(s_.settings.resolver.rule), our_records_, {our_first_, our_count_});
  our_records_.clear();
  our_count_ = 0;
}

void Repair::ask_store(Manner manner, ByteView records, const StoreAsk& ask) {
  Bytes body;
  Writer out(body);
  out.u8(static_cast<std::uint8_t>(manner));
  out.bytes(records);
  s_.exchange.ask(frame::Topic::store, std::move(body), ask);
}

Result<void> Repair::store_answered(const StoreAsk& ask, Reader in) {
  const frame::StoreReply reply = SEMEL_TRY(frame::decode_store_reply(in, ask.count));
  s_.report.written_there += reply.written;
  s_.report.removed_there += reply.removed;
  repaired_ += reply.written + reply.removed;
  for (std::size_t i = 0; i < ask.count; ++i) {
    const std::uint64_t key = KeyTally::hash(s_.findings.ours()[ask.first + i].key);
    s_.tally.note_met(key, KeyTally::here, reply.met[i]);
    if (reply.met[i] == frame::Met::other) met_there_.push_back(key);
  }
  return {};
}

void Repair::ask_copy(std::span<const BitPath> tops) {
  if (tops.empty()) return;
  FetchAsk all;
  for (const BitPath& top : tops) {
    all.fetch.items.push_back({{top, {}}, true, {}});
    all.numbers.emplace_back();
  }
  all.fetch.content = s_.content() == Content::digest ? Content::keys : s_.content();
  all.copy = true;
  ask_fetch(std::move(all));
}

void Repair::ask_fetch(FetchAsk fetch) {
  Bytes body;
  Writer out(body);
  frame::encode(fetch.fetch, out);
  s_.exchange.ask(frame::Topic::fetch, std::move(body), std::move(fetch));
}

// Asks for the records of these items, in portions whose answers are likely to fit a frame.
void Repair::ask_items(std::vector<Fetch::Item> items) {
  const double each =
      s_.there.count == 0 || s_.content() == Content::digest
          ? 1
          : static_cast<double>(s_.there.volume) / static_cast<double>(s_.there.count) + 8;
  FetchAsk part;
  double bytes = 0;
  const auto flush = [&] {
    if (part.fetch.items.empty()) return;
    part.fetch.content = s_.content();
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
    if (bytes > static_cast<double>(s_.room()) / 2) {
      flush();
    }
  }
  flush();
}

Result<void> Repair::fetch_answered(FetchAsk ask, Reader in) {
  const frame::FetchReply reply = SEMEL_TRY(frame::decode_fetch_reply(in, ask.fetch.content));
  const bool forward = reply.complete ||
                       (reply.next_item < ask.fetch.items.size() &&
                        (reply.next_item > ask.fetch.first_item ||
                         (reply.next_item == ask.fetch.first_item && reply.from > ask.fetch.from)));
  if (!forward) return kNoProgress;
  ++ask.barren;
  if (ask.fetch.content == Content::digest) {
    if (in.rest() != 0) return kNotAsked;
    s_.findings.add_theirs(reply.count, reply.digest);
  } else {
    const std::vector<frame::Record> records = SEMEL_TRY(frame::decode_records(in));
    if (!records.empty()) ask.barren = 0;
    for (const frame::Record& record : records) {
      s_.report.payload_bytes += record.key.size();
      if (ask.fetch.content == Content::records) s_.report.payload_bytes += record.value.size();
    }
    const std::size_t end_item = reply.complete ? ask.fetch.items.size() : reply.next_item;
    SEMEL_TRY(ask.copy ? compare_copy(ask, end_item, reply.from, records)
                       : take_fetched(ask, end_item, reply.from, records));
  }
  // Records may have been added since the other end counted them, but only so many.
  if (s_.findings.theirs_count() > s_.there.count + s_.there.count / 4 + 1'000'000) return kTooMany;
  if (reply.complete) return {};
  if (ask.barren > kMostBarren) return kNoProgress;
  ask.fetch.first_item = reply.next_item;
  ask.fetch.from = reply.from;
  ask_fetch(std::move(ask));
  return {};
}

// Takes records. They come in the order of the items, and within an item in the order of the keys.
Result<void> Repair::take_fetched(const FetchAsk& ask, std::size_t end_item,
                                  std::string_view end_key,
                                  std::span<const frame::Record> records) {
  const ShortDigest shorten_record = s_.shorten(ShortDigest::Of::record);
  EntryDigest digest(s_.index.secret());
  std::vector<frame::Record> wanted;
  std::size_t item = ask.fetch.first_item;
  std::string_view last;
  for (const frame::Record& record : records) {
    if (!s_.stretch.contains(record.key)) return kNotAsked;
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
    // The answer may have a record that shares only half of its number with a requested one.
    const RecordId id = RecordId::of(shorten_record, *found);
    if (ask.fetch.partitions > 0) {
      if (!ask.placed.contains(placed(id.partition(ask.fetch.partitions), id.number))) continue;
    } else if (!ask.fetch.items[item].all &&
               !std::ranges::binary_search(ask.numbers[item], id.number)) {
      continue;
    }
    s_.findings.add_theirs(record.key, value_of(record, ask.fetch.content), *found);
    wanted.push_back(record);
  }
  if (ask.fetch.content != Content::records) return {};
  std::ranges::sort(wanted, {}, &frame::Record::key);
  const auto same = [](const frame::Record& a, const frame::Record& b) { return a.key == b.key; };
  wanted.erase(std::unique(wanted.begin(), wanted.end(), same), wanted.end());
  return apply_here(wanted);
}

// Compares all records of the items, up to where the answer ends, with those that are here.
Result<void> Repair::compare_copy(const FetchAsk& ask, std::size_t end_item,
                                  std::string_view end_key,
                                  std::span<const frame::Record> records) {
  std::vector<frame::Record> wanted;
  {
    IndexedStore::View held = SEMEL_TRY(s_.index.view());
    const RangeView view(held.trie(), held.cursor(), s_.stretch);
    EntryDigest digest(s_.index.secret());
    bool sound = true;
    const auto digest_there = [&](const frame::Record& record) {
      const std::optional<Digest> found = digest_of(record, ask.fetch.content, digest);
      sound = sound && found;
      return found.value_or(Digest{0, 0});
    };
    std::size_t at = 0;
    const auto take_there = [&](const frame::Record& record, const Digest& found) {
      s_.findings.add_theirs(record.key, value_of(record, ask.fetch.content), found);
      wanted.push_back(record);
    };
    for (std::size_t item = ask.fetch.first_item; item < ask.fetch.items.size(); ++item) {
      if (item > end_item || (item == end_item && end_key.empty())) break;
      const Region& region = ask.fetch.items[item].region;
      const std::string_view from =
          item == ask.fetch.first_item ? std::string_view(ask.fetch.from) : std::string_view();
      const auto in_item = [&](const frame::Record& record) {
        return region.contains(record.key) && s_.stretch.contains(record.key);
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

Result<void> Repair::apply_here(std::span<const frame::Record> records) {
  if (!s_.writes_here()) return {};
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i - 1].key >= records[i].key) return kNotAsked;
  }
  frame::StoreReply applied;
  const Result<void> written =
      apply_records(s_.index.store(), manner_of(s_.settings.resolver.rule), s_.settings.resolver,
                    EntryDigest(s_.index.secret()), records, applied);
  s_.report.written_here += applied.written;
  repaired_ += applied.written;
  if (!written) return written;
  for (std::size_t i = 0; i < records.size(); ++i) {
    s_.tally.note_met(KeyTally::hash(records[i].key), KeyTally::there, applied.met[i]);
  }
  return {};
}

// Changes a record only if it is still the one that this end saw.
class Repair::ExactChanges {
 public:
  explicit ExactChanges(Repair& repair) : repair_(repair), there_writer_(there_) {}

  // Keys come in increasing order. nullopt: no record is expected, or no record should be there.
  void here(const std::string& key, std::optional<Digest> expected,
            std::optional<std::string_view> value) {
    here_.emplace_back(key, coded(expected, value));
  }
  void there(const std::string& key, std::optional<Digest> expected,
             std::optional<std::string_view> value) {
    const std::string change = coded(expected, value);
    if (there_writer_.size() + key.size() + change.size() > repair_.s_.room()) flush();
    there_writer_.add(key, change);
    repair_.s_.report.payload_bytes += key.size() + (value ? value->size() : 0);
  }
  Result<void> make() {
    flush();
    std::vector<frame::Record> records;
    records.reserve(here_.size());
    for (const auto& [key, change] : here_) records.push_back({key, change});
    frame::StoreReply applied;
    Result<void> written =
        apply_records(repair_.s_.index.store(), Manner::exact, repair_.s_.settings.resolver,
                      EntryDigest(repair_.s_.index.secret()), records, applied);
    repair_.s_.report.written_here += applied.written;
    repair_.s_.report.removed_here += applied.removed;
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
    if (!there_.empty()) repair_.ask_store(Manner::exact, there_, {});
    there_.clear();
  }

  Repair& repair_;
  std::vector<std::pair<std::string, std::string>> here_;
  Bytes there_;
  frame::RecordWriter there_writer_;
};

// Makes the decisions that need both sides of every difference.
Result<void> Repair::settle() {
  if (!s_.repairs()) return {};
  if (s_.removes()) return settle_removals();
  if (s_.calls_back()) return settle_by_callback();
  return {};
}

Result<void> Repair::settle_removals() {
  ExactChanges changes(*this);
  if (s_.here_is_source()) {
    for (const auto& [key, theirs] : s_.findings.theirs()) {
      const std::optional<std::string> now = SEMEL_TRY(s_.index.store().get(key));
      if (!now) changes.there(key, theirs.digest, std::nullopt);
    }
    return changes.make();
  }
  std::map<std::string, Digest, std::less<>> ours;
  for (const Findings::Ours& one : s_.findings.ours()) ours.emplace(one.key, one.digest);
  for (const auto& [key, digest] : ours) {
    if (!s_.findings.theirs().contains(key)) changes.here(key, digest, std::nullopt);
  }
  return changes.make();
}

Result<void> Repair::settle_by_callback() {
  ExactChanges changes(*this);
  EntryDigest digest(s_.index.secret());
  std::map<std::string, const Findings::Theirs*, std::less<>> keys;
  for (const Findings::Ours& one : s_.findings.ours()) keys.emplace(one.key, nullptr);
  for (const auto& [key, theirs] : s_.findings.theirs()) keys.insert_or_assign(key, &theirs);
  for (const auto& [key, theirs] : keys) {
    const std::optional<std::string> now = SEMEL_TRY(s_.index.store().get(key));
    std::optional<std::string_view> here;
    std::optional<Digest> here_digest;
    if (now) {
      here = *now;
      here_digest = digest(key, *here);
    }
    std::optional<std::string_view> there;
    std::optional<Digest> there_digest;
    if (theirs != nullptr) {
      there = *theirs->value;
      there_digest = theirs->digest;
    }
    const std::optional<std::string> result = s_.here_is_source()
                                                  ? s_.settings.resolver.callback(key, here, there)
                                                  : s_.settings.resolver.callback(key, there, here);
    if (result != here) changes.here(key, here_digest, result);
    if (result != there) changes.there(key, there_digest, result);
  }
  return changes.make();
}

}  // namespace semel::sync_internal
