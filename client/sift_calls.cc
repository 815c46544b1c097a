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

Error refused(ReplyView reply) {
  if (reply.is_error("ERR") && reply.text().starts_with("ERR unknown command")) {
    return {Errc::unsupported, "the server has no SIFT commands"};
  }
  return {Errc::mismatch, "the server refuses"};
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
  if (reply.text() == "fresh") return Claimed::fresh;
  if (reply.text() == "pending") return Claimed::pending;
  if (reply.text() == "seen") return Claimed::seen;
  if (reply.is_error("FULL")) return Claimed::full;
  return refused(reply);
}

Result<Committed> read_commit(ReplyView reply) {
  if (reply.text() == "done") return Committed::done;
  if (reply.text() == "seen") return Committed::seen;
  if (reply.text() == "lost") return Committed::lost;
  if (reply.is_error("FULL")) return Committed::full;
  return refused(reply);
}

Result<Verdict> read_added(ReplyView reply) {
  if (reply.kind() == ReplyKind::integer) {
    return reply.integer() == 1 ? Verdict::fresh : Verdict::duplicate;
  }
  if (reply.is_error("FULL")) return Verdict::full;
  if (reply.is_error("STALE")) return Verdict::stale;
  return refused(reply);
}

std::string explain(ReplyView reply, std::string_view key) {
  const std::string text(reply.text());
  if (refused(reply).code == Errc::unsupported) {
    return "the server has no SIFT commands; load the module: redis-server --loadmodule semel.so";
  }
  if (reply.is_error("WRONGTYPE")) {
    return "key " + std::string(key) + " holds something else; allowed: another name, or DEL it";
  }
  if (reply.is_error("NOAUTH")) {
    return "the server wants a password; allowed: redis://user:password@host";
  }
  if (reply.is_error("FULL")) return "the server has no room for more in key " + std::string(key);
  return "the server refuses key " + std::string(key) + ": " + text;
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
    } else if (reply->is_error()) {
      problem = explain(reply->view(), keys[i].name);
      error = refused(reply->view());
    } else {
      for (std::size_t field = 0; field + 1 < reply->size(); field += 2) {
        const std::string_view name = reply->at(field).text();
        const ReplyView value = reply->at(field + 1);
        if (name == "Window") infos[i].window_ms = value.integer();
        if (name == "Structure") infos[i].structure = value.text();
        if (name == "Error rate") infos[i].error = number_in(value);
        if (name == "Error rate now") infos[i].error_now = number_in(value);
        if (name == "Size") infos[i].bytes = static_cast<std::uint64_t>(value.integer());
      }
    }
  }
  if (error) return *error;
  return infos;
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
    } else if (reply->is_error() && reply->text().find("exists") == std::string_view::npos) {
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
