#include "semel/tally/internal/log_heads.h"

#include <iterator>

namespace semel::tally::internal {

void LogHeads::encode(Sink out) const {
  Writer w(out);
  w.varint(heads_.size());
  for (const auto& [site, head] : heads_) {
    w.u16(site);
    w.u64(head);
  }
}

Result<LogHeads> LogHeads::decode(Reader& in) {
  constexpr std::size_t kEncodedHead = 10;
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.rest() / kEncodedHead) return Error{Errc::corrupt, "heads: too many"};
  LogHeads heads;
  for (std::uint64_t i = 0; i < count; ++i) {
    const SiteId site = in.u16();
    const std::uint64_t head = in.u64();
    const bool ascends = heads.heads_.empty() || std::prev(heads.heads_.end())->first < site;
    if (!ascends || head == 0) return Error{Errc::corrupt, "heads: not in order, or unknown"};
    heads.heads_.emplace_hint(heads.heads_.end(), site, head);
  }
  return heads;
}

}  // namespace semel::tally::internal
