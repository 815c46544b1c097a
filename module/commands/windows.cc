#include "module/commands/windows.h"

#include <algorithm>

#include "module/host/counters.h"
#include "module/host/value_limit.h"

namespace semel::module {

bool take_on_full(Options& options, OnFull& out) {
  const std::optional<std::string_view> text = options.value("ONFULL");
  if (!text) return false;
  if (is_word(*text, "REFUSE")) {
    out = OnFull::refuse;
  } else if (is_word(*text, "FORGET")) {
    out = OnFull::forget;
  } else {
    options.refuse("ERR ONFULL is refuse or forget");
  }
  return true;
}

bool take_max_bytes(Options& options, std::uint64_t least, std::uint64_t& out) {
  return options.memory("MAXBYTES", least, out);
}

bool take_limit(host::Call& call, std::uint64_t& max_bytes) {
  const std::uint64_t limit = max_value_bytes(call);
  if (limit == 0) return true;
  if (max_bytes == kNoCap) max_bytes = limit;
  if (max_bytes <= limit) return true;
  ++host::counters.refused_limit;
  call.error("ERR MAXBYTES is more than semel.max-value-bytes, " + std::to_string(limit));
  return false;
}

void refuse_creation(host::Call& call, const char* what, const Error& error) {
  if (error.code == Errc::limit) ++host::counters.refused_limit;
  std::string text = std::string("ERR could not create ").append(what).append(": ");
  text += error.message();
  if (error.code == Errc::limit) text += "; see CAPACITY and MAXBYTES";
  const std::uint64_t limit = max_value_bytes(call);
  if (limit != 0) text += " (semel.max-value-bytes is " + std::to_string(limit) + ")";
  call.error(text);
}

bool may_fit(host::Call& call, const char* what, std::uint64_t ids, std::uint64_t least_bytes,
             std::uint64_t max_bytes) {
  const std::uint64_t limit = max_value_bytes(call);
  const std::uint64_t most = limit == 0 ? max_bytes : std::min(limit, max_bytes);
  if (ids <= most / least_bytes) return true;
  refuse_creation(call, what,
                  {Errc::limit, "CAPACITY takes more memory than allowed",
                   std::to_string(ids * least_bytes) + " bytes or more"});
  return false;
}

void warn_of_eviction(const host::Call& call, const char* what) {
  if (call.replayed() || !host::eviction_is_news()) return;
  call.warn(std::string("the server may evict any key (maxmemory-policy), including ")
                .append(what)
                .append(" just made. An evicted key recognises nothing: retries count again, and "
                        "events are accepted again. Use noeviction or a "
                        "volatile- policy. INFO semel counts evicted keys"));
}

}  // namespace semel::module
