#include "cli/tally_table.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "cli/directory.h"
#include "cli/escaped.h"
#include "cli/sift_report.h"
#include "semel/core/limits.h"
#include "semel/store/rocksdb_store.h"

namespace semel::cli {
namespace {

using tally::Durability;
using tally::Recogniser;
using tally::TallyDirectory;
using tally::TallyStore;

static_assert(limits::kCounterNameBytes == 2048 && limits::kOperationIdBytes == 1024,
              "kCounterAllowed and kIdAllowed say so");

const std::vector<std::pair<std::string, Recogniser::Kind>> kKinds = {
    {"clients", Recogniser::Kind::clients},
    {"filter", Recogniser::Kind::filter},
    {"exact", Recogniser::Kind::exact}};
const std::vector<std::pair<std::string, WhenFull>> kWhenFull = {{"refuse", WhenFull::refuse},
                                                                 {"forget", WhenFull::forget}};
const std::vector<std::pair<std::string, Durability>> kDurabilities = {
    {"none", Durability::none},
    {"periodic", Durability::periodic},
    {"every-write", Durability::every_write}};

template <class Enum>
std::string word_in(const std::vector<std::pair<std::string, Enum>>& words, Enum value) {
  return std::find_if(words.begin(), words.end(), [&](auto& word) { return word.second == value; })
      ->first;
}

std::string number(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

std::string memory_text(std::uint64_t bytes) {
  return bytes == kNoCap ? "without --memory" : "--memory " + std::to_string(bytes);
}

Recogniser::Goal goal_of(const ShapeOptions& shape, HashId hash) {
  Recogniser::Goal goal;
  goal.kind = shape.recognise.value_or(goal.kind);
  goal.window_ms = shape.window_ms.value_or(goal.window_ms);
  goal.fpr = shape.error.value_or(goal.fpr);
  goal.ids = shape.ids.value_or(goal.ids);
  goal.max_bytes = shape.memory_bytes.value_or(goal.max_bytes);
  goal.when_full = shape.when_full.value_or(goal.when_full);
  goal.hash = hash;
  return goal;
}

// What the table has and what is asked for beside, where they differ; empty if they do not.
std::string difference(const Recogniser::Goal& has, const ShapeOptions& asked) {
  const auto differs = [](const std::string& is, const std::string& wanted) {
    return "it was made with " + is + ", and cannot go on with " + wanted;
  };
  if (asked.recognise && *asked.recognise != has.kind) {
    return differs("--recognise " + word_of(has.kind), "--recognise " + word_of(*asked.recognise));
  }
  if (asked.window_ms && *asked.window_ms != has.window_ms) {
    return differs("--window " + duration_text(has.window_ms),
                   "--window " + duration_text(*asked.window_ms));
  }
  if (asked.error && *asked.error != has.fpr) {
    return differs("--error " + number(has.fpr), "--error " + number(*asked.error));
  }
  if (asked.ids && *asked.ids != has.ids) {
    return differs("--ids " + std::to_string(has.ids), "--ids " + std::to_string(*asked.ids));
  }
  if (asked.memory_bytes && *asked.memory_bytes != has.max_bytes) {
    return differs(memory_text(has.max_bytes), memory_text(*asked.memory_bytes));
  }
  if (asked.when_full && *asked.when_full != has.when_full) {
    return differs("--when-full " + word_of(has.when_full),
                   "--when-full " + word_of(*asked.when_full));
  }
  return "";
}

// What is wrong with the options taken together; empty if nothing.
std::string contradiction(const ShapeOptions& shape, const DurabilityOptions& durability) {
  if (shape.error && shape.recognise == Recogniser::Kind::exact) {
    return "--error and --recognise exact exclude each other; allowed: one of them";
  }
  if (shape.window_ms == TimeMs{0}) return "--window cannot be '0'; allowed: 1ms or more";
  if (durability.period_ms && durability.durability != Durability::periodic) {
    return "--period is for --durability periodic; allowed: both";
  }
  if (durability.period_ms == TimeMs{0}) return "--period cannot be '0'; allowed: 1ms or more";
  return "";
}

std::string cannot_open(const std::string& path, const Error& error, const std::string& why) {
  return "cannot open " + quoted(path) + ": " +
         (error.code == Errc::busy ? "it is in use by another process"
          : why.empty()            ? error.what
                                   : why);
}

}  // namespace

std::string word_of(Recogniser::Kind kind) { return word_in(kKinds, kind); }
std::string word_of(WhenFull when_full) { return word_in(kWhenFull, when_full); }

std::string word_of(tally::Outcome outcome) {
  switch (outcome) {
    case tally::Outcome::applied:
      return "applied";
    case tally::Outcome::duplicate:
      return "duplicate";
    case tally::Outcome::stale:
      return "stale";
    case tally::Outcome::conflict:
      return "conflict";
    case tally::Outcome::overflow:
      return "overflow";
    case tally::Outcome::full:
      return "full";
  }
  return "";
}

std::string reason_of(tally::Outcome outcome) {
  switch (outcome) {
    case tally::Outcome::stale:
      return "too old to tell whether it was counted before";
    case tally::Outcome::conflict:
      return "its id came before, with another counter or delta";
    case tally::Outcome::overflow:
      return "the counter would leave 64 bits";
    case tally::Outcome::full:
      return "no memory is left to remember its id";
    case tally::Outcome::applied:
    case tally::Outcome::duplicate:
      break;
  }
  return "";
}

std::vector<Option> options_of(ShapeOptions& to) {
  return {
      {"recognise", 'r', choice_value("KIND", to.recognise, kKinds),
       "of a new table: how retries are recognised: clients (numbered operations exactly, other "
       "ids by a filter), filter (all ids by a filter) or exact (a digest of each) (default "
       "clients)"},
      {"window", 'w', duration_value("TIME", to.window_ms),
       "of a new table: for how long an id is recognised; it may be up to twice as long (default "
       "10m)"},
      {"error", 'e', error_rate_value(to.error),
       "of a new table: the probability, at most, that a filter takes a new id for a retry "
       "(default 1e-6)"},
      {"ids", 'n', count_value("N", to.ids, 1, std::uint64_t{1} << 39),
       "of a new table: how many ids are expected in a window; more may come (default 65536)"},
      {"memory", 'm', bytes_value("SIZE", to.memory_bytes, 8192, kNoCap - 1),
       "of a new table: the most that ids may take (default: no limit)"},
      {"when-full", 'W', choice_value("ACTION", to.when_full, kWhenFull),
       "of a new table: what to do when they take as much: refuse new ones, or forget the oldest "
       "before their time (default refuse)"},
      {"key-file", 'k', path_value("FILE", to.key_file),
       "the secret of the digests of ids, for ids that somebody may forge: 32 bytes, or 64 "
       "hexadecimal digits; always the same for one table (default: digests without a secret)"}};
}

std::vector<Option> options_of(DurabilityOptions& to, const std::string& default_durability) {
  return {{"durability", 'd', choice_value("KIND", to.durability, kDurabilities),
           "when operations are on the disk: every-write (before they are answered), periodic, or "
           "none (when the system pleases) (default " +
               default_durability + ")"},
          {"period", 'P', duration_value("TIME", to.period_ms),
           "of --durability periodic (default 1s)"}};
}

std::unique_ptr<TallyTable> TallyTable::open_to_write(const std::string& path,
                                                      const ShapeOptions& shape,
                                                      const DurabilityOptions& durability,
                                                      TallyProblem& problem) {
  if (std::string wrong = contradiction(shape, durability); !wrong.empty()) {
    problem = {std::move(wrong), Exit::usage};
    return nullptr;
  }
  Hasher hasher = Hasher::fast(0);
  if (shape.key_file) {
    const std::optional<Secret> secret = read_secret(shape.key_file, problem.text);
    if (!secret) return nullptr;
    hasher = Hasher::keyed(DigestKey(*secret, KeyPurpose::key));
  }
  TallyStore::Settings settings;
  settings.durability = durability.durability;
  settings.period_ms = durability.period_ms.value_or(settings.period_ms);
  std::string why;
  auto directory = TallyDirectory::open(path, settings, &why);
  if (!directory && directory.error().code == Errc::invalid) {  // there is none
    settings.recogniser = goal_of(shape, hasher.id());
    why.clear();
    directory = TallyDirectory::open(path, settings, &why);
  }
  if (!directory) {
    problem.text = cannot_open(path, directory.error(), why);
    return nullptr;
  }
  const Recogniser::Goal goal = (*directory)->table().info().recogniser;
  std::string wrong = difference(goal, shape);
  const bool keyed = goal.hash.kind == HashKind::keyed;
  if (wrong.empty() && keyed && !shape.key_file) {
    wrong = "its ids are hashed with a secret; allowed: with --key-file";
  } else if (wrong.empty() && shape.key_file && goal.hash != hasher.id()) {
    wrong = keyed
                ? "its ids are hashed with another secret; allowed: the --key-file it was made with"
                : "its ids are hashed without a secret; allowed: without --key-file";
  }
  if (!wrong.empty()) {
    problem = {"cannot use " + quoted(path) + ": " + wrong, Exit::usage};
    return nullptr;
  }
  if (!keyed) hasher = Hasher::fast(goal.hash.seed);
  return std::unique_ptr<TallyTable>(
      new TallyTable(path, *std::move(directory), std::move(hasher)));
}

std::unique_ptr<TallyTable> TallyTable::open_to_read(const std::string& path,
                                                     TallyProblem& problem) {
  TallyStore::Settings settings;
  settings.read_only = true;
  std::string why;
  auto directory = TallyDirectory::open(path, settings, &why);
  if (!directory) {
    problem.text = cannot_open(path, directory.error(), why);
    return nullptr;
  }
  return std::unique_ptr<TallyTable>(new TallyTable(path, *std::move(directory), Hasher::fast(0)));
}

Result<tally::RangeSum> TallyTable::sum(const tally::NameRange& range) const {
  tally::RangeSum sum;
  const Result<void> scanned =
      directory_->table().scan(range, [&](std::string_view /*counter*/, int128 value) {
        ++sum.count;
        sum.sum += value;
        return true;
      });
  if (!scanned) return scanned.error();
  return sum;
}

Result<bool> TallyTable::has_forgotten_all() const {
  const TallyStore::Info info = directory_->table().info();
  if (info.recalled > 0) return false;
  bool has_counters = false;
  const auto stop = [&](std::string_view /*counter*/, int128 /*value*/) {
    has_counters = true;
    return false;
  };
  if (const Result<void> scanned = directory_->table().scan({}, stop); !scanned) {
    return scanned.error();
  }
  return has_counters;
}

std::string window_text(const TallyStore::Info& info, TimeMs now_ms) {
  std::string text = duration_text(info.recogniser.window_ms);
  if (info.counts.forgotten_early > 0) {
    text += ", of which " + duration_text(now_ms - info.promise.kept_from_ms) + " are kept";
  }
  return text;
}

std::string TallyTable::why(const Error& error) const {
  const std::string words = error.code == Errc::io ? directory_->store().problem() : "";
  return words.empty() ? error.what : words;
}

std::string TallyTable::close() const {
  const Result<void> closed = directory_->close();
  return closed ? "" : "cannot write " + quoted(path_) + ": " + closed.error().what;
}

std::optional<std::string> parse_counter(std::string_view text) {
  auto name = unescaped(text);
  return name && name->size() <= limits::kCounterNameBytes ? name : std::nullopt;
}

std::optional<std::string> parse_id(std::string_view text) {
  auto id = unescaped(text);
  return id && !id->empty() && id->size() <= limits::kOperationIdBytes ? id : std::nullopt;
}

std::optional<std::int64_t> parse_delta(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t delta = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), delta);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return delta;
}

std::optional<std::uint64_t> parse_sequence(std::string_view text) {
  std::uint64_t sequence = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), sequence);
  if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return sequence;
}

std::string decimal(int128 number) {
  // The smallest number has no positive twin.
  uint128 rest =
      number < 0 ? uint128{0} - static_cast<uint128>(number) : static_cast<uint128>(number);
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest > 0);
  if (number < 0) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace semel::cli
