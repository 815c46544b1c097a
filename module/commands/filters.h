// What BF.* and CF.* have in common: fresh chains, filters like others, and the job of a merge.
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

#include "module/commands/arguments.h"
#include "module/commands/creation.h"
#include "module/commands/defaults.h"
#include "module/commands/digests.h"
#include "module/host/call.h"
#include "module/host/job.h"
#include "module/types/chain_tags.h"

namespace semel::module {

inline std::string filter_too_large() { return too_large("the filter"); }

// A tag that no chain of the filter has.
inline std::uint64_t fresh_tag(const ChainTags& chains) {
  while (true) {
    std::array<std::uint8_t, 8> bytes;
    host::Call::random(bytes);
    const std::uint64_t tag = load_u64(bytes.data());
    if (!chains.find(tag)) return tag;
  }
}

inline constexpr const char* kTooManyChains =
    "ERR the filter has 4096 chains, and cannot begin another";

inline constexpr const char* kTooManyLives =
    "ERR the filter was loaded and added to 65535 times, and cannot begin another life: merge it "
    "into a filter made by CF.LIKE";

// FAMILY.MEXISTS key item...
template <class Value>
void exist_many(host::Call& call) {
  const host::OpenKey key = call.open(1, host::Access::read);
  const Value* const value = key.get<Value>();
  constexpr std::size_t kFirst = 2, kAtOnce = 16;
  call.array(call.size() - kFirst);
  std::array<Digest, kPiece> keys;
  std::array<bool, kPiece> found{};
  for (std::size_t at = kFirst; at < call.size(); at += kPiece) {
    const std::size_t some = std::min(kPiece, call.size() - at);
    if (value != nullptr) {
      // While others are hashed, the lines of these come.
      for (std::size_t done = 0; done < some; done += kAtOnce) {
        const auto group = std::span(keys).subspan(done, std::min(kAtOnce, some - done));
        digests(call, value->hasher(), at + done, group);
        value->prefetch(group);
      }
      value->contains(std::span(keys).first(some), std::span(found).first(some));
    }
    for (std::size_t i = 0; i < some; ++i) call.boolean(found[i]);
  }
}

// As the iterator of LOADCHUNK in effects of a merge.
inline constexpr const char* kFirstPiece = "2";
inline constexpr const char* kFurtherPiece = "3";
inline bool is_further_piece(const host::Call& load) {
  return load.replayed() && load[2] == kFurtherPiece;
}

inline constexpr const char* kCannotMerge =
    "ERR filters merge if they have the same error rate, capacity, expansion and secret, as those "
    "have that LIKE, COPY and MERGE make";

// Loads dumps of the sources into the destination, a piece at a time. Every piece that changed
// something is an effect of its own: FAMILY.LOADCHUNK, of which the first alone is told as an event
// at replicas (kFurtherPiece).
template <class Value>
class MergeJob final : public host::Job {
 public:
  MergeJob(std::string destination, std::vector<std::string> sources, const char* load_command,
           const char* event, bool made, std::uint64_t max_bytes)
      : destination_(std::move(destination)),
        sources_(std::move(sources)),
        load_command_(load_command),
        event_(event),
        changed_(made),
        max_bytes_(max_bytes) {}

  std::string_view key() const override { return destination_; }

  bool step(host::Call& call) override {
    if (source_ == sources_.size()) return false;
    const host::OpenKey from = call.open(sources_[source_], host::Access::read);
    const host::OpenKey to = call.open(destination_, host::Access::write);
    const Value* const source = from.get<Value>();
    Value* const destination = to.get<Value>();
    if (source == nullptr || destination == nullptr || !destination->matches(*source)) {
      return fail("ERR a key was deleted or changed during the merge; what was merged stays");
    }
    const auto chunk = source->dump(position_);
    if (chunk.next == 0) {
      ++source_;
      position_ = 1;
      return source_ < sources_.size();
    }
    position_ = chunk.next;
    const Result<bool> changed = destination->load(chunk.bytes, max_bytes_);
    if (!changed) {
      return fail(changed.error().code == Errc::full
                      ? filter_too_large()
                      : std::string("ERR ").append(changed.error().what));
    }
    if (*changed) {
      call.effect({load_command_, destination_, changed_ ? kFurtherPiece : kFirstPiece,
                   semel::text_of(ByteView(chunk.bytes))});
      call.signal(destination_);
      changed_ = true;
    }
    return true;
  }

  void end(host::Call& call) override {
    if (changed_) call.notify(destination_, event_);
  }

  void answer(host::Call& call) override { error_.empty() ? call.ok() : call.error(error_); }

 private:
  bool fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  std::string destination_;
  std::vector<std::string> sources_;
  const char* load_command_;
  const char* event_;
  bool changed_;  // the destination, until now
  std::uint64_t max_bytes_;
  std::size_t source_ = 0;
  std::uint64_t position_ = 1;  // behind the header
  std::string error_;
};

// FAMILY.LIKE key source. make(key, source) makes the filter, and answers and gives null if it
// cannot.
template <class Value, class Make>
void make_like(host::Call& call, Make make) {
  const host::OpenKey key = call.open(1, host::Access::write);
  const host::OpenKey from = call.open(2, host::Access::read);
  const Value* const source = from.get<Value>();
  if (source == nullptr) return from.empty() ? call.error("ERR not found") : call.wrong_type();
  if (!key.empty()) {
    return key.get<Value>() != nullptr ? call.error("ERR item exists") : call.wrong_type();
  }
  if (make(call, key, *source) == nullptr) return;
  call.changed();
  call.only_effects();
  call.ok();
}

// FAMILY.MERGE destination source...: checks all keys, makes the destination if it is missing, and
// starts the job. make() is as above.
template <class Value, class Make>
void merge_filters(host::Call& call, const char* load_command, const char* event, Make make) {
  std::vector<std::string> sources;
  const Value* first = nullptr;
  const host::OpenKey to = call.open(1, host::Access::write);
  const Value* destination = to.get<Value>();
  if (destination == nullptr && !to.empty()) return call.wrong_type();
  for (std::size_t i = 2; i < call.size(); ++i) {
    if (call[i] == call[1]) {
      if (destination == nullptr) return call.error("ERR not found");
      continue;
    }
    const host::OpenKey from = call.open(i, host::Access::read);
    const Value* const source = from.get<Value>();
    if (source == nullptr) return from.empty() ? call.error("ERR not found") : call.wrong_type();
    if (first == nullptr) first = source;
    if (!source->matches(destination != nullptr ? *destination : *first)) {
      return call.error(kCannotMerge);
    }
    sources.emplace_back(call[i]);
  }
  const bool made = destination == nullptr;
  if (made && make(call, to, *first) == nullptr) return;
  call.start(std::make_unique<MergeJob<Value>>(std::string(call[1]), std::move(sources),
                                               load_command, event, made, max_value_bytes(call)));
}

}  // namespace semel::module
