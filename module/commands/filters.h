// Code that BF.* and CF.* share: it makes, tests, dumps, loads and merges filters.
//
// A family is a struct with
//
//   Value                        BloomValue or CuckooValue
//   kLoad, kMergeEvent           "BF.LOADCHUNK", and the keyspace event of a merge
//   kNotMade                     the error if a filter cannot be made
//   kFull, kNoMore               the errors if a filter does not grow, or cannot grow any more
//   kFirstDump, kBadDump         the least position of SCANDUMP, and the error for a bad one
//   kEndsInNull                  what SCANDUMP answers after the last chunk: null, or no bytes
//   kFirstLoad, kBadLoad         the same for LOADCHUNK
//   kTakenLoad                   the error for a header where the key holds a filter already
//   bad_header(), bad_chunk()    the errors for what cannot be loaded
//   begin(), tell()              begin a chain, and tell the replicas all that a filter consists of
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "module/commands/counts.h"
#include "module/commands/creation.h"
#include "module/commands/defaults.h"
#include "module/commands/digests.h"
#include "module/commands/families.h"
#include "module/commands/keys.h"
#include "module/host/call.h"
#include "module/host/job.h"
#include "module/types/chain_tags.h"
#include "semel/core/internal/parse.h"
#include "semel/core/limits.h"

namespace semel::module {

inline std::string filter_too_large() { return too_large("the filter"); }

// Returns a tag that no chain of the filter has.
inline std::uint64_t fresh_tag(const ChainTags& chains) {
  while (true) {
    std::array<std::uint8_t, 8> bytes;
    host::Call::random(bytes);
    const std::uint64_t tag = load_u64(bytes.data());
    if (!chains.find(tag)) return tag;
  }
}

inline constexpr const char* kItemExists = "ERR item exists";

// The chain and the life that an effect names. Bloom filters have no lives.
struct Tags {
  std::optional<std::uint64_t> chain = {};
  std::optional<std::uint64_t> life = {};
};

// Returns the answer for a filter that cannot be made. One that no filter can be as large as is
// larger than the limit, too.
template <class Family>
std::string not_made(const host::Call& call, const Error& error) {
  constexpr std::uint64_t kMostBytes = limits::kFilterBits / 8;
  if (error.code != Errc::limit) return Family::kNotMade;
  const std::uint64_t most = max_value_bytes(call);
  if (most != 0 && most <= kMostBytes) return filter_too_large();
  return std::string(Family::kNotMade) + ": it would need more than 2^46 bits";
}

// Makes the filter of a key. Returns null after an error.
template <class Family>
typename Family::Value* create(host::Call& call, const host::OpenKey& key,
                               const typename Family::Value::Goal& goal, const Secret& secret,
                               const Tags& tags = {}) {
  auto made = Family::Value::make(secret, goal);
  if (!made) {
    call.error(not_made<Family>(call, made.error()));
    return nullptr;
  }
  const std::uint64_t most = max_value_bytes(call);
  if (most != 0 && (*made)->first_bytes() > most) {
    call.error(filter_too_large());
    return nullptr;
  }
  Family::begin(call, **made, tags);
  (*made)->reserve();
  typename Family::Value& value = key.set(std::move(*made));
  Family::tell(call, value);
  return &value;
}

// Returns the filter of a key, and makes it if it is missing. Returns null after an error.
template <class Family>
typename Family::Value* filter_to_write(host::Call& call, const host::OpenKey& key,
                                        const typename Family::Value::Goal& goal) {
  return existing_or_made<typename Family::Value>(
      call, key, [&] { return create<Family>(call, key, goal, Secret::random()); });
}

// Returns the answer to an addition that failed.
template <class Family>
std::string refusal_of(const typename Family::Value& value, const Error& error) {
  if (error.code == Errc::full) return filter_too_large();
  ++counts.refused_full;
  return value.goal().expansion == 0 ? Family::kFull : Family::kNoMore;
}

// FAMILY.EXISTS key item
template <class Family>
void exists(host::Call& call) {
  const host::OpenKey key = call.open(1, host::Access::read);
  const auto* const value = key.get<typename Family::Value>();
  call.boolean(value != nullptr && value->contains(value->hasher()(call[2])));
}

// FAMILY.MEXISTS key item...
template <class Family>
void exist_many(host::Call& call) {
  const host::OpenKey key = call.open(1, host::Access::read);
  const auto* const value = key.get<typename Family::Value>();
  constexpr std::size_t kFirst = 2, kAtOnce = 16;
  call.array(call.size() - kFirst);
  std::array<Digest, kPiece> keys;
  std::array<bool, kPiece> found{};
  for (std::size_t at = kFirst; at < call.size(); at += kPiece) {
    const std::size_t some = std::min(kPiece, call.size() - at);
    if (value != nullptr) {
      // The cache lines of one group arrive while the next group is hashed.
      for (std::size_t done = 0; done < some; done += kAtOnce) {
        const auto group = std::span(keys).subspan(done, std::min(kAtOnce, some - done));
        digests(call, value->hasher(), at + done, group);
        value->prefetch(group);
      }
      value->contains(std::span(keys).first(some), std::span(found).first(some));
    }
    call.booleans(std::span(found).first(some));
  }
}

// FAMILY.SCANDUMP key iterator
template <class Family>
void dump(host::Call& call) {
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position || *position < Family::kFirstDump) return call.error(Family::kBadDump);
  const host::OpenKey key = call.open(1, host::Access::read);
  const auto* const value = existing<typename Family::Value>(call, key);
  if (value == nullptr) return;
  typename Family::Value::Chunk chunk{0, {}};
  if (*position >= 0) chunk = value->dump(static_cast<std::uint64_t>(*position));
  call.array(2);
  call.integer(static_cast<std::int64_t>(chunk.next));
  chunk.next == 0 && Family::kEndsInNull ? call.null() : call.bytes(chunk.bytes);
}

// Iterators of LOADCHUNK in the effects of a merge.
inline constexpr const char* kFirstPiece = "2";
inline constexpr const char* kFurtherPiece = "3";
inline bool is_further_piece(const host::Call& load) {
  return load.replayed() && load[2] == kFurtherPiece;
}

// Ends the errors about bytes that another module has made.
inline constexpr const char* kForeign =
    ": another module made these bytes. Its filters cannot be converted, because the items are not "
    "in them. Add the items again: see 'Moving in' in docs/module.md";

// FAMILY.LOADCHUNK key iterator chunk
template <class Family>
void load(host::Call& call) {
  using Value = typename Family::Value;
  const std::optional<std::int64_t> position = parse_integer(call[2]);
  if (!position || *position < Family::kFirstLoad) return call.error(Family::kBadLoad);
  const host::OpenKey key = call.open(1, host::Access::write);
  Value* const value = key.get<Value>();
  if (value == nullptr && !key.empty()) return call.wrong_type();
  const ByteView bytes = bytes_of(call[3]);
  if (*position == 1) {
    if (value != nullptr) return call.error(Family::kTakenLoad);
    if (!Value::is_chunk(bytes)) {
      return call.foreign(std::string(Family::bad_header(Errc::unsupported)) + kForeign);
    }
    Result<std::unique_ptr<Value>> made = Value::load_header(bytes);
    if (!made) return call.error(Family::bad_header(made.error().code));
    key.set(std::move(*made));
    call.changed();
    return call.ok();
  }
  if (value == nullptr) return call.error(kNotFound);
  if (!Value::is_chunk(bytes)) {
    return call.foreign(std::string(Family::bad_chunk(Errc::unsupported)) + kForeign);
  }
  const Result<bool> changed = value->load(bytes, max_value_bytes(call));
  if (!changed) {
    const Errc why = changed.error().code;
    return why == Errc::full ? call.error(filter_too_large()) : call.error(Family::bad_chunk(why));
  }
  if (*changed) call.changed();
  if (is_further_piece(call)) call.silent();
  call.ok();
}

inline constexpr const char* kCannotMerge =
    "ERR filters merge only if they have the same error rate, capacity, expansion and secret, as "
    "those that LIKE, COPY and MERGE make";

// Merges the sources into the destination, one piece of a dump at a time. Each piece that changed
// something is an effect of its own: FAMILY.LOADCHUNK. Replicas publish an event only for the first
// (kFurtherPiece).
template <class Family>
class MergeJob final : public host::Job {
 public:
  MergeJob(std::string destination, std::vector<std::string> sources, bool made,
           std::uint64_t max_bytes)
      : destination_(std::move(destination)),
        sources_(std::move(sources)),
        changed_(made),
        max_bytes_(max_bytes) {}

  std::string_view key() const override { return destination_; }

  bool step(host::Call& call) override {
    if (source_ == sources_.size()) return false;
    const host::OpenKey from = call.open(sources_[source_], host::Access::read);
    const host::OpenKey to = call.open(destination_, host::Access::write);
    const auto* const source = from.get<typename Family::Value>();
    auto* const destination = to.get<typename Family::Value>();
    if (source == nullptr || destination == nullptr || !destination->matches(*source)) {
      return fail(
          "ERR a key was deleted or changed during the merge; the part merged so far stays");
    }
    if (!piece_) piece_ = source->piece(position_);
    if (!piece_) {
      ++source_;
      position_ = 1;
      return source_ < sources_.size();
    }
    const auto piece = piece_->cut();
    if (piece_->empty()) {
      position_ = piece_->next;
      piece_.reset();
    }
    const Result<bool> changed = destination->take(piece, max_bytes_);
    if (!changed) {
      return fail(changed.error().code == Errc::full ? filter_too_large()
                                                     : "ERR " + changed.error().message());
    }
    if (*changed) {
      const Bytes chunk = call.heard() ? source->encoded(piece) : Bytes();
      call.effect({Family::kLoad, destination_, changed_ ? kFurtherPiece : kFirstPiece,
                   semel::text_of(ByteView(chunk))});
      call.signal(destination_);
      changed_ = true;
    }
    return true;
  }

  void end(host::Call& call) override {
    if (changed_) call.notify(destination_, Family::kMergeEvent);
  }

  void answer(host::Call& call) override { error_.empty() ? call.ok() : call.error(error_); }

 private:
  bool fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  std::string destination_;
  std::vector<std::string> sources_;
  bool changed_;  // the destination
  std::uint64_t max_bytes_;
  std::size_t source_ = 0;
  std::uint64_t position_ = 1;                          // after the header
  std::optional<typename Family::Value::Piece> piece_;  // what is left of the one at this position
  std::string error_;
};

// Makes an empty filter with the goal and the secret of another, so that both can merge. Returns
// null after an error.
template <class Family>
typename Family::Value* create_like(host::Call& call, const host::OpenKey& key,
                                    const typename Family::Value& source) {
  return create<Family>(call, key, source.goal(), source.secret());
}

// FAMILY.LIKE key source
template <class Family>
void like(host::Call& call) {
  using Value = typename Family::Value;
  const host::OpenKey key = call.open(1, host::Access::write);
  const host::OpenKey from = call.open(2, host::Access::read);
  const Value* const source = existing<Value>(call, from);
  if (source == nullptr || !is_free<Value>(call, key, kItemExists)) return;
  if (create_like<Family>(call, key, *source) != nullptr) made(call);
}

// FAMILY.MERGE destination source...: checks all keys, makes the destination if it is missing, and
// starts the job.
template <class Family>
void merge(host::Call& call) {
  using Value = typename Family::Value;
  std::vector<std::string> sources;
  const Value* first = nullptr;
  const host::OpenKey to = call.open(1, host::Access::write);
  const Value* const destination = to.get<Value>();
  if (destination == nullptr && !to.empty()) return call.wrong_type();
  for (std::size_t i = 2; i < call.size(); ++i) {
    if (call[i] == call[1]) {
      if (destination == nullptr) return call.error(kNotFound);
      continue;
    }
    const host::OpenKey from = call.open(i, host::Access::read);
    const Value* const source = existing<Value>(call, from);
    if (source == nullptr) return;
    if (first == nullptr) first = source;
    if (!source->matches(destination != nullptr ? *destination : *first)) {
      return call.error(kCannotMerge);
    }
    sources.emplace_back(call[i]);
  }
  const bool made = destination == nullptr;
  if (made && create_like<Family>(call, to, *first) == nullptr) return;
  call.start(std::make_unique<MergeJob<Family>>(std::string(call[1]), std::move(sources), made,
                                                max_value_bytes(call)));
}

// Rows that both families have.
template <class Family>
host::CommandRow exists_row(const char* name) {
  return host::command<exists<Family>>({
      .name = name,
      .syntax = "key item",
      .kind = host::CommandKind::reads,
      .summary = "Tells whether an item is in the filter; a false positive is possible",
      .reply = "1 or true, 0 or false",
  });
}

template <class Family>
host::CommandRow exist_many_row(const char* name) {
  return host::command<exist_many<Family>>({
      .name = name,
      .syntax = "key item ...",
      .kind = host::CommandKind::reads,
      .summary = "Tells for each of many items whether it is in the filter",
      .complexity = "O(N) with the number of items",
      .reply = "array of 1 or true, 0 or false",
  });
}

template <class Family>
host::CommandRow dump_row(const char* name, const char* complexity, const char* reply) {
  return host::command<dump<Family>>({
      .name = name,
      .syntax = "key iterator",
      .kind = host::CommandKind::reads,
      .pace = host::Pace::slow,
      .summary = "Returns a chunk of the filter, to be loaded elsewhere; begin with iterator 0",
      .complexity = complexity,
      .reply = reply,
  });
}

template <class Family>
host::CommandRow load_row(const char* name) {
  return host::command<load<Family>>({
      .name = name,
      .syntax = "key iterator chunk",
      .kind = host::CommandKind::writes,
      .pace = host::Pace::slow,
      .secret = true,
      .summary = "Loads a chunk of a dump, with the iterator that came with it, in order",
      .complexity = "O(N) with the size of the chunk",
      .reply = "OK",
  });
}

template <class Family>
host::CommandRow like_row(const char* name) {
  return host::command<like<Family>>({
      .name = name,
      .syntax = "key source",
      .kind = host::CommandKind::writes,
      .sources = {2, 2},
      .summary = "Makes an empty filter that can be merged with another: it has the same error "
                 "rate, capacity, expansion and secret",
      .reply = "OK",
  });
}

template <class Family>
host::CommandRow merge_row(const char* name, const char* summary) {
  return host::command<merge<Family>>({
      .name = name,
      .syntax = "destination source ...",
      .kind = host::CommandKind::writes,
      .pace = host::Pace::slow,
      .sources = {2, -1},
      .summary = summary,
      .complexity = "O(N) with the size of the sources, in steps between which other clients are "
                    "served",
      .reply = "OK",
  });
}

}  // namespace semel::module
