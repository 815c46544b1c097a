#include "semel/sync/internal/apply.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace semel::sync_internal {
namespace {

// The number of records in one step. Other writers wait meanwhile.
constexpr std::size_t kStep = 256;

std::optional<std::string> taken(std::string_view key, const frame::Exact& exact,
                                 std::optional<std::string_view> now, EntryDigest& digest,
                                 frame::StoreReply& done) {
  std::optional<std::string> kept;
  if (now) kept = std::string(*now);
  std::optional<Digest> present;
  if (now) present = digest(key, *now);
  if (present != exact.expected) return kept;
  if (!exact.value) {
    if (now) ++done.removed;
    return std::nullopt;
  }
  if (now != exact.value) ++done.written;
  return std::string(*exact.value);
}

std::optional<std::string> taken(const frame::Record& record, frame::Manner manner,
                                 std::optional<std::string_view> now, Resolver resolver,
                                 frame::StoreReply& done, frame::Met& met) {
  if (!now) {
    ++done.written;
    return std::string(record.value);
  }
  met = *now == record.value ? frame::Met::same : frame::Met::other;
  if (met == frame::Met::same) return std::string(*now);
  std::string after(*now);
  if (manner == frame::Manner::overwrite) {
    after = record.value;
  } else if (manner != frame::Manner::if_absent) {
    resolver.rule = manner == frame::Manner::join ? SyncRule::join : SyncRule::newest;
    after = resolver.merged(record.key, *now, record.value);
  }
  if (after != *now) ++done.written;
  return after;
}

}  // namespace

Result<void> apply_records(OrderedStore& store, frame::Manner manner, const Resolver& resolver,
                           EntryDigest digest, std::span<const frame::Record> records,
                           frame::StoreReply& done) {
  std::vector<frame::Exact> exact;
  if (manner == frame::Manner::exact) {
    exact.reserve(records.size());
    for (const frame::Record& record : records) {
      const frame::Exact one = SEMEL_TRY(frame::decode_exact(record.value));
      exact.push_back(one);
    }
  }
  const std::size_t before = done.met.size();
  if (manner != frame::Manner::exact) done.met.resize(before + records.size());
  std::vector<std::string_view> keys;
  for (std::size_t first = 0; first < records.size(); first += kStep) {
    const auto step = records.subspan(first, std::min(kStep, records.size() - first));
    keys.clear();
    for (const frame::Record& record : step) keys.push_back(record.key);
    const Result<void> written =
        store.update(keys, [&](std::size_t i, std::optional<std::string_view> now) {
          if (manner == frame::Manner::exact) {
            return taken(step[i].key, exact[first + i], now, digest, done);
          }
          return taken(step[i], manner, now, resolver, done, done.met[before + first + i]);
        });
    if (!written) return written;
  }
  return {};
}

}  // namespace semel::sync_internal
