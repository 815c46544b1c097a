#include "client/sift_calls.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

namespace semel::client {
namespace {

std::string text_of(double number) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  out << number;
  return out.str();
}

// Numbers come as integers, or as texts where they are not whole.
double number_in(ReplyView value) {
  if (value.kind() == ReplyKind::integer) return static_cast<double>(value.integer());
  double number = 0;
  const std::string_view text = value.text();
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string duration(TimeMs ms) { return std::to_string(ms) + "ms"; }

bool has_no_such_commands(ReplyView reply) {
  return reply.is_error("ERR") && reply.text().starts_with("ERR unknown command");
}

std::optional<bool> read_flag(ReplyView reply) {
  const bool flag = reply.kind() == ReplyKind::integer && (reply.integer() | 1) == 1;
  return flag ? std::optional(reply.integer() == 1) : std::nullopt;
}

std::string slices_key(const std::string& name) { return name + ":slices"; }

// Returns an error unless nothing, or the same number, is there.
Result<void> agree_on_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                             Command command) {
  const std::string key = slices_key(name);
  const Reply reply = SEMEL_TRY(cluster.call(key, std::move(command), Repeat::safe));
  if (reply.is_nil() || reply.view().word() == std::to_string(slices)) return {};
  if (reply.kind() != ReplyKind::text) return refusal(reply.view(), key);
  return Error{Errc::mismatch, name + " has " + reply.excerpt() + " slices at the server, not " +
                                   std::to_string(slices) +
                                   "; allowed: the same number, or another name"};
}

// Returns the fields that a window is known by; nullopt if one of them is not there.
std::optional<SiftInfo> info_in(ReplyView reply) {
  SiftInfo info;
  bool sized = false;
  for (std::size_t field = 0; field + 1 < reply.size(); field += 2) {
    const std::string_view name = reply.at(field).text();
    const ReplyView value = reply.at(field + 1);
    if (name == "Window") info.window_ms = value.integer();
    if (name == "Structure") info.structure = value.excerpt();
    if (name == "Error rate") info.error = number_in(value);
    if (name == "Error rate now") info.error_now = number_in(value);
    if (name == "Size" && value.integer() >= 0) {
      info.bytes = static_cast<std::uint64_t>(value.integer());
      sized = true;
    }
  }
  if (info.window_ms <= 0 || info.structure.empty() || !sized) return std::nullopt;
  return info;
}

// Returns how the key's shape differs from this one; nullopt if it does not.
std::optional<std::string> difference(const SiftInfo& info, const SiftShape& shape) {
  if (info.window_ms != shape.window_ms) {
    return "a window of " + duration(info.window_ms) + ", not " + duration(shape.window_ms);
  }
  if ((info.structure == "exact") != shape.exact) {
    return "the structure " + info.structure + ", not " + (shape.exact ? "exact" : "forgetful");
  }
  if (!shape.exact && std::abs(info.error - shape.error) > 1e-6 * shape.error) {
    return "an error of " + text_of(info.error) + ", not " + text_of(shape.error);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ClaimAnswer> read_claim(ReplyView reply) {
  if (reply.word() == "fresh") return ClaimAnswer::fresh;
  if (reply.word() == "pending") return ClaimAnswer::pending;
  if (reply.word() == "seen") return ClaimAnswer::seen;
  if (reply.is_error("FULL")) return ClaimAnswer::full;
  return std::nullopt;
}

std::optional<ClaimAnswer> read_commit(ReplyView reply) {
  if (reply.word() == "done") return ClaimAnswer::done;
  if (reply.word() == "seen") return ClaimAnswer::seen;
  if (reply.word() == "lost") return ClaimAnswer::lost;
  if (reply.is_error("FULL")) return ClaimAnswer::full;
  return std::nullopt;
}

std::optional<ClaimAnswer> read_release(ReplyView reply) {
  const auto released = read_flag(reply);
  if (!released) return std::nullopt;
  return *released ? ClaimAnswer::done : ClaimAnswer::lost;
}

std::optional<Verdict> read_test(ReplyView reply) {
  const auto known = read_flag(reply);
  if (!known) return std::nullopt;
  return *known ? Verdict::duplicate : Verdict::fresh;
}

std::optional<Verdict> read_insert(ReplyView reply) {
  if (reply.is_error("FULL")) return Verdict::full;
  if (reply.is_error("STALE")) return Verdict::stale;
  const auto fresh = read_flag(reply);
  if (!fresh) return std::nullopt;
  return *fresh ? Verdict::fresh : Verdict::duplicate;
}

ListWords claim_by(std::string_view owner, TimeMs claim_ms) {
  return {"SIFT.MCLAIM", {std::string(owner), std::to_string(claim_ms)}};
}
ListWords commit_by(std::string_view owner) { return {"SIFT.MCOMMIT", {std::string(owner)}}; }
ListWords release_by(std::string_view owner) { return {"SIFT.MRELEASE", {std::string(owner)}}; }

Error no_room(std::string_view key) {
  return {Errc::mismatch, "the server has no room for more in key " + std::string(key)};
}

Error refusal(ReplyView reply, std::string_view key) {
  const std::string name(key);
  if (has_no_such_commands(reply)) {
    return {Errc::unsupported,
            "the server has no SIFT commands; load the module: redis-server --loadmodule semel.so"};
  }
  if (reply.is_error("WRONGTYPE")) {
    return {Errc::mismatch,
            "key " + name + " holds something else; allowed: another name, or DEL it"};
  }
  if (reply.is_error("NOAUTH")) {
    return {Errc::mismatch,
            "the server wants a password; allowed: SEMEL_PASSWORD, --password-file or "
            "redis://user:password@host"};
  }
  if (reply.is_error("FULL")) return no_room(key);
  if (!reply.is_error()) {
    return {Errc::mismatch, "the server gives an answer that makes no sense for key " + name};
  }
  return {Errc::mismatch, "the server refuses key " + name + ": " + reply.excerpt()};
}

Result<std::vector<SiftInfo>> read_info(Cluster& cluster, std::span<const SiftKey> keys) {
  Calls<SiftInfo> calls(cluster);
  for (const SiftKey& key : keys) calls.add(key, {"SIFT.INFO", key.name}, info_in);
  return calls.finish();
}

Result<void> expect_slices(Cluster& cluster, const std::string& name, std::uint32_t slices) {
  return agree_on_slices(cluster, name, slices, {"GET", slices_key(name)});
}

Result<void> record_slices(Cluster& cluster, const std::string& name, std::uint32_t slices) {
  Command command{"SET", slices_key(name)};
  return agree_on_slices(cluster, name, slices,
                         command.add(std::int64_t{slices}).add("NX").add("GET"));
}

Result<void> reserve(Cluster& cluster, std::span<const SiftKey> keys, const SiftShape& shape) {
  // Another producer, or an earlier run, may have made a key. Then its shape must be the same.
  const auto made = [](ReplyView reply) {
    const bool there =
        reply.is_error("ERR") && reply.text().find("exists") != std::string_view::npos;
    return reply.word() == "OK" || there ? std::optional(true) : std::nullopt;
  };
  Calls<bool> calls(cluster);
  for (const SiftKey& key : keys) {
    Command command{"SIFT.RESERVE", key.name, "WINDOW"};
    command.add(shape.window_ms);
    if (shape.exact) {
      command.add("EXACT");
    } else {
      command.add("ERROR").add(text_of(shape.error));
    }
    command.add("CAPACITY").add(static_cast<std::int64_t>(shape.capacity));
    calls.add(key, std::move(command), made);
  }
  SEMEL_TRY(calls.finish());
  const std::vector<SiftInfo> infos = SEMEL_TRY(read_info(cluster, keys));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto differs = difference(infos[i], shape);
    if (differs) {
      return Error{Errc::mismatch, "key " + keys[i].name + " was made for " + *differs};
    }
  }
  return {};
}

}  // namespace semel::client
