#include "semel/tally/store/internal/shared_entries.h"

#include <optional>
#include <string>

#include "semel/tally/internal/entries.h"

namespace semel::tally::internal {
namespace {

Error removal_refused() {
  return {Errc::unsupported, "entries of a table are not removed: the table drops them itself"};
}

}  // namespace

const KeyRange& shared_range() {
  static const KeyRange range{std::string(kSharedFirst), std::string(kSharedEnd)};
  return range;
}

Result<ArrivedEntries> ArrivedEntries::decode(std::span<const RecordWrite> writes) {
  ArrivedEntries arrived;
  for (const RecordWrite& write : writes) {
    if (!write.value) return removal_refused();
    if (write.merge || !shared_range().contains(write.key)) {
      return Error{Errc::outside, "not an entry that sites share"};
    }
    SharedEntry entry = SEMEL_TRY(decode_entry(write.key, bytes_of(*write.value)));
    if (auto* const operation = std::get_if<Operation>(&entry)) {
      arrived.operations.push_back(std::move(*operation));
    } else {
      ViewOfSite& said = std::get<ViewOfSite>(entry);
      arrived.views.insert_or_assign(said.site, std::move(said.view));
    }
  }
  return arrived;
}

Result<void> SharedEntries::write(std::span<const RecordWrite> writes) {
  ArrivedEntries arrived = SEMEL_TRY(ArrivedEntries::decode(writes));
  return arrive_(std::move(arrived));
}

Result<void> SharedEntries::remove_range(const KeyRange& /*range*/) { return removal_refused(); }

Result<void> SharedEntries::update(std::span<const std::string_view> keys, const Become& become) {
  std::vector<std::optional<std::string>> values(keys.size());
  std::vector<RecordWrite> writes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::optional<std::string> now = SEMEL_TRY(get(keys[i]));
    values[i] = become(i, now ? std::optional<std::string_view>(*now) : std::nullopt);
    if (values[i] == now) continue;
    writes.push_back(
        {keys[i], values[i] ? std::optional<std::string_view>(*values[i]) : std::nullopt});
  }
  // Writes since the read do not matter: entries are joined with what is there.
  return write(writes);
}

}  // namespace semel::tally::internal
