#include "client/sift_calls.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

namespace semel::client {
namespace {

const std::string kNonsense = "the server gives an answer that makes no sense for key ";

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

Error refused(ReplyView reply) {
  if (reply.is_error("ERR") && reply.text().starts_with("ERR unknown command")) {
    return {Errc::unsupported, "the server has no SIFT commands"};
  }
  return {Errc::mismatch, "the server refuses"};
}

std::string slices_key(const std::string& name) { return name + ":slices"; }

// Nothing, or the same number, is there.
Result<void> agree_on_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                             Command command, std::string& problem) {
  const auto reply = cluster.call(slices_key(name), std::move(command), Repeat::safe);
  if (!reply) {
    problem = cluster.problem();
    return reply.error();
  }
  if (reply->is_nil() || reply->view().word() == std::to_string(slices)) return {};
  if (reply->kind() != ReplyKind::text) {
    problem = explain(reply->view(), slices_key(name));
    return refused(reply->view());
  }
  problem = name + " has " + reply->excerpt() + " slices at the server, not " +
            std::to_string(slices) + "; allowed: the same number, or another name";
  return Error{Errc::mismatch, "another number of slices"};
}

// The fields that a window is known by; nullopt if they are not all there.
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

// What of the shape the key was not made for; empty if nothing.
std::string difference(const SiftInfo& info, const SiftShape& shape) {
  if (info.window_ms != shape.window_ms) {
    return "a window of " + duration(info.window_ms) + ", not " + duration(shape.window_ms);
  }
  if ((info.structure == "exact") != shape.exact) {
    return "the structure " + info.structure + ", not " + (shape.exact ? "exact" : "forgetful");
  }
  if (!shape.exact && std::abs(info.error - shape.error) > 1e-6 * shape.error) {
    return "an error of " + text_of(info.error) + ", not " + text_of(shape.error);
  }
  return "";
}

}  // namespace

Command claim_command(const SiftKey& key, std::string_view id, std::string_view owner,
                      TimeMs claim_ms) {
  return Command{"SIFT.CLAIM", key.name, id, owner}.add(claim_ms);
}

Command commit_command(const SiftKey& key, std::string_view id, std::string_view owner) {
  return {"SIFT.COMMIT", key.name, id, owner};
}

Command release_command(const SiftKey& key, std::string_view id, std::string_view owner) {
  return {"SIFT.RELEASE", key.name, id, owner};
}

Result<Claimed> read_claim(ReplyView reply) {
  if (reply.word() == "fresh") return Claimed::fresh;
  if (reply.word() == "pending") return Claimed::pending;
  if (reply.word() == "seen") return Claimed::seen;
  if (reply.is_error("FULL")) return Claimed::full;
  return refused(reply);
}

Result<Committed> read_commit(ReplyView reply) {
  if (reply.word() == "done") return Committed::done;
  if (reply.word() == "seen") return Committed::seen;
  if (reply.word() == "lost") return Committed::lost;
  if (reply.is_error("FULL")) return Committed::full;
  return refused(reply);
}

Result<bool> read_flag(ReplyView reply) {
  const bool flag = reply.kind() == ReplyKind::integer && (reply.integer() | 1) == 1;
  if (!flag) return refused(reply);
  return reply.integer() == 1;
}

Result<Verdict> read_added(ReplyView reply) {
  if (reply.is_error("FULL")) return Verdict::full;
  if (reply.is_error("STALE")) return Verdict::stale;
  const auto fresh = read_flag(reply);
  if (!fresh) return fresh.error();
  return *fresh ? Verdict::fresh : Verdict::duplicate;
}

std::string explain(ReplyView reply, std::string_view key) {
  if (refused(reply).code == Errc::unsupported) {
    return "the server has no SIFT commands; load the module: redis-server --loadmodule semel.so";
  }
  if (reply.is_error("WRONGTYPE")) {
    return "key " + std::string(key) + " holds something else; allowed: another name, or DEL it";
  }
  if (reply.is_error("NOAUTH")) {
    return "the server wants a password; allowed: SEMEL_PASSWORD, --password-file or "
           "redis://user:password@host";
  }
  if (reply.is_error("FULL")) return "the server has no room for more in key " + std::string(key);
  if (!reply.is_error()) return kNonsense + std::string(key);
  return "the server refuses key " + std::string(key) + ": " + reply.excerpt();
}

Result<std::vector<SiftInfo>> read_info(Cluster& cluster, std::span<const SiftKey> keys,
                                        std::string& problem) {
  std::vector<Cluster::Ticket> tickets;
  for (const SiftKey& key : keys) {
    tickets.push_back(cluster.start(key.slot, {"SIFT.INFO", key.name}, Repeat::safe));
  }
  std::vector<SiftInfo> infos(keys.size());
  std::optional<Error> error;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto reply = cluster.finish(tickets[i]);
    if (error) continue;
    if (!reply) {
      problem = cluster.problem();
      error = reply.error();
    } else if (auto info = info_in(reply->view())) {
      infos[i] = *std::move(info);
    } else {
      problem = explain(reply->view(), keys[i].name);
      error = refused(reply->view());
    }
  }
  if (error) return *error;
  return infos;
}

Result<void> expect_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                           std::string& problem) {
  return agree_on_slices(cluster, name, slices, {"GET", slices_key(name)}, problem);
}

Result<void> record_slices(Cluster& cluster, const std::string& name, std::uint32_t slices,
                           std::string& problem) {
  Command command{"SET", slices_key(name)};
  return agree_on_slices(cluster, name, slices,
                         command.add(std::int64_t{slices}).add("NX").add("GET"), problem);
}

Result<void> reserve(Cluster& cluster, std::span<const SiftKey> keys, const SiftShape& shape,
                     std::string& problem) {
  std::vector<Cluster::Ticket> tickets;
  for (const SiftKey& key : keys) {
    Command command{"SIFT.RESERVE", key.name, "WINDOW"};
    command.add(shape.window_ms);
    if (shape.exact) {
      command.add("STRUCTURE").add("exact");
    } else {
      command.add("ERROR").add(text_of(shape.error));
    }
    command.add("CAPACITY").add(static_cast<std::int64_t>(shape.capacity));
    tickets.push_back(cluster.start(key.slot, std::move(command), Repeat::safe));
  }
  // Another producer, or an earlier run, may have made it: then only what it is counts.
  std::optional<Error> error;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto reply = cluster.finish(tickets[i]);
    if (error) continue;
    if (!reply) {
      problem = cluster.problem();
      error = reply.error();
    } else if (reply->view().word() != "OK" &&
               !(reply->is_error() && reply->text().find("exists") != std::string_view::npos)) {
      problem = explain(reply->view(), keys[i].name);
      error = refused(reply->view());
    }
  }
  if (error) return *error;
  const auto infos = read_info(cluster, keys, problem);
  if (!infos) return infos.error();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string differs = difference((*infos)[i], shape);
    if (differs.empty()) continue;
    problem = "key " + keys[i].name + " was made for " + differs;
    return Error{Errc::mismatch, "a key that was made for something else"};
  }
  return {};
}

}  // namespace semel::client
