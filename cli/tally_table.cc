#include "cli/tally_table.h"

#include <algorithm>
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
using tally::Recognition;
using tally::TallyDirectory;
using tally::TallyStore;

static_assert(limits::kCounterNameBytes == 2048 && limits::kOperationIdBytes == 1024,
              "kCounterAllowed and kIdAllowed say so");

const std::vector<std::pair<std::string, Recognition::Kind>> kKinds = {
    {"clients", Recognition::Kind::clients},
    {"filter", Recognition::Kind::filter},
    {"exact", Recognition::Kind::exact}};
const std::vector<std::pair<std::string, OnFull>> kOnFull = {{"refuse", OnFull::refuse},
                                                             {"forget", OnFull::forget}};
const std::vector<std::pair<std::string, Durability>> kDurabilities = {
    {"none", Durability::none},
    {"periodic", Durability::periodic},
    {"every-write", Durability::every_write}};

std::string number(double x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

std::string cap_text(std::uint64_t bytes) {
  return bytes == kNoCap ? "without --max-bytes" : "--max-bytes " + std::to_string(bytes);
}

std::optional<Recognition::Kind> kind_asked_for(const ShapeOptions& shape) {
  if (shape.exact) return Recognition::Kind::exact;
  if (shape.filter) return Recognition::Kind::filter;
  return std::nullopt;
}

std::string kind_text(Recognition::Kind kind) {
  return kind == Recognition::Kind::clients ? "neither --exact nor --filter" : "--" + word_of(kind);
}

Recognition goal_of(const ShapeOptions& shape, HashId hash) {
  Recognition goal;
  goal.kind = kind_asked_for(shape).value_or(goal.kind);
  goal.window_ms = shape.window_ms.value_or(goal.window_ms);
  goal.fpr = shape.error.value_or(goal.fpr);
  goal.ids = shape.capacity.value_or(goal.ids);
  goal.max_bytes = shape.max_bytes.value_or(goal.max_bytes);
  goal.on_full = shape.on_full.value_or(goal.on_full);
  goal.hash = hash;
  return goal;
}

// Refuses options that do not agree with what the table has.
Result<void> check_shape(const Recognition& has, const ShapeOptions& asked) {
  const auto differs = [](const std::string& is, const std::string& wanted) {
    return usage_error("it was made with " + is + ", and cannot go on with " + wanted);
  };
  if (const auto kind = kind_asked_for(asked); kind && *kind != has.kind) {
    return differs(kind_text(has.kind), kind_text(*kind));
  }
  if (asked.window_ms && *asked.window_ms != has.window_ms) {
    return differs("--window " + duration_text(has.window_ms),
                   "--window " + duration_text(*asked.window_ms));
  }
  if (asked.error && *asked.error != has.fpr) {
    return differs("--error " + number(has.fpr), "--error " + number(*asked.error));
  }
  if (asked.capacity && *asked.capacity != has.ids) {
    return differs("--capacity " + std::to_string(has.ids),
                   "--capacity " + std::to_string(*asked.capacity));
  }
  if (asked.max_bytes && *asked.max_bytes != has.max_bytes) {
    return differs(cap_text(has.max_bytes), cap_text(*asked.max_bytes));
  }
  if (asked.on_full && *asked.on_full != has.on_full) {
    return differs("--on-full " + word_of(has.on_full), "--on-full " + word_of(*asked.on_full));
  }
  return {};
}

// Refuses a key file that does not agree with how the table hashes its ids.
Result<void> check_secret(HashId has, bool key_file, HashId asked) {
  const bool keyed = has.kind == HashKind::keyed;
  if (keyed && !key_file) {
    return usage_error("its ids are hashed with a secret; allowed: with --key-file");
  }
  if (!key_file || has == asked) return {};
  return usage_error(
      keyed ? "its ids are hashed with another secret; allowed: the --key-file it was made with"
            : "its ids are hashed without a secret; allowed: without --key-file");
}

// Refuses options that contradict each other.
Result<void> check_options(const ShapeOptions& shape, const DurabilityOptions& durability) {
  if (shape.exact && shape.filter) return exclusive("--exact", "--filter");
  if (shape.error && shape.exact) return exclusive("--error", "--exact");
  if (shape.window_ms == TimeMs{0}) {
    return usage_error("--window cannot be '0'; allowed: 1ms or more");
  }
  if (durability.period_ms && durability.durability != Durability::periodic) {
    return usage_error("--period is for --durability periodic; allowed: both");
  }
  if (durability.period_ms == TimeMs{0}) {
    return usage_error("--period cannot be '0'; allowed: 1ms or more");
  }
  return {};
}

// Turns the error into one that is not a usage error: the directory is named on the command line,
// but a missing table is not a mistake in it.
Error cannot_open(const std::string& path, const Error& error) {
  return {error.code == Errc::invalid ? Errc::io : error.code,
          "cannot open " + quoted(path) + ": " +
              (error.code == Errc::busy ? "it is in use by another process" : error.message())};
}

}  // namespace

std::string word_of(Recognition::Kind kind) { return word_of(kKinds, kind); }
std::string word_of(OnFull on_full) { return word_of(kOnFull, on_full); }

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
      return "the counter would not fit into 64 bits";
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
      {"exact", 'x', flag_value(to.exact),
       "for a new table: recognise retries by a digest of each id (default: numbered operations "
       "exactly, other ids by a filter)"},
      {"filter", 'F', flag_value(to.filter), "for a new table: recognise all ids by a filter"},
      {"window", 'w', duration_value("TIME", to.window_ms),
       "for a new table: how long an id is recognised; it may be up to twice as long (default "
       "10m)"},
      {"error", 'e', error_rate_value(to.error),
       "for a new table: the probability, at most, that a filter takes a new id for a retry "
       "(default 1e-6)"},
      {"capacity", 'n', count_value("N", to.capacity, 1, std::uint64_t{1} << 39),
       "for a new table: how many ids are expected in a window; more may come (default 65536)"},
      {"max-bytes", 'm', bytes_value("SIZE", to.max_bytes, 8192, kNoCap - 1),
       "for a new table: the most memory that ids may take (default: no limit)"},
      {"on-full", 'O', choice_value("ACTION", to.on_full, kOnFull),
       "for a new table: what to do at that limit: refuse new ids, or forget the oldest before "
       "their time (default refuse)"},
      {"key-file", 'k', path_value("FILE", to.key_file),
       "the secret of the digests of ids, for ids that somebody may forge: 32 bytes, or 64 "
       "hexadecimal digits; always the same for one table (default: digests without a secret)"}};
}

std::vector<Option> options_of(DurabilityOptions& to, const std::string& default_durability) {
  return {{"durability", 'd', choice_value("KIND", to.durability, kDurabilities),
           "when operations are on the disk: every-write (before they are answered), periodic, or "
           "none (whenever the system writes them) (default " +
               default_durability + ")"},
          {"period", 'P', duration_value("TIME", to.period_ms),
           "the period of --durability periodic (default 1s)"}};
}

Result<std::unique_ptr<TallyTable>> TallyTable::open_to_write(const std::string& path,
                                                              const ShapeOptions& shape,
                                                              const DurabilityOptions& durability) {
  SEMEL_TRY(check_options(shape, durability));
  Hasher hasher = Hasher::fast(0);
  if (shape.key_file) {
    const Secret secret = SEMEL_TRY(read_secret(shape.key_file));
    hasher = Hasher::keyed(DigestKey(secret, KeyPurpose::key));
  }
  TallyStore::Settings settings;
  settings.durability = durability.durability;
  settings.period_ms = durability.period_ms.value_or(settings.period_ms);
  auto directory = TallyDirectory::open(path, settings);
  if (!directory && directory.error().code == Errc::invalid) {  // there is none
    settings.recognition = goal_of(shape, hasher.id());
    directory = TallyDirectory::open(path, settings);
  }
  if (!directory) return cannot_open(path, directory.error());
  const Recognition goal = (*directory)->table().info().recognition;
  Result<void> fits = check_shape(goal, shape);
  if (fits) fits = check_secret(goal.hash, shape.key_file.has_value(), hasher.id());
  if (!fits) return fits.error().about("cannot use " + quoted(path));
  if (goal.hash.kind == HashKind::fast) hasher = Hasher::fast(goal.hash.seed);
  return std::unique_ptr<TallyTable>(
      new TallyTable(path, *std::move(directory), std::move(hasher)));
}

Result<std::unique_ptr<TallyTable>> TallyTable::open_to_read(const std::string& path) {
  TallyStore::Settings settings;
  settings.read_only = true;
  auto directory = TallyDirectory::open(path, settings);
  if (!directory) return cannot_open(path, directory.error());
  return std::unique_ptr<TallyTable>(new TallyTable(path, *std::move(directory), Hasher::fast(0)));
}

Result<tally::RangeSum> TallyTable::sum(const tally::NameRange& range) const {
  tally::RangeSum sum;
  SEMEL_TRY(directory_->table().scan(range, [&](std::string_view /*counter*/, int128 value) {
    ++sum.count;
    sum.sum += value;
    return true;
  }));
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
  SEMEL_TRY(directory_->table().scan({}, stop));
  return has_counters;
}

std::string window_text(const TallyStore::Info& info, TimeMs now_ms) {
  std::string text = duration_text(info.recognition.window_ms);
  if (info.counts.forgotten_early > 0) {
    text += ", of which " + duration_text(now_ms - info.promise.kept_from_ms) + " are kept";
  }
  return text;
}

Error TallyTable::cannot(const std::string& what, const Error& error) const {
  // No error of a table is a usage error.
  return {error.code == Errc::invalid ? Errc::mismatch : error.code,
          "cannot " + what + ": " + error.message()};
}

Result<void> TallyTable::close() const {
  const Result<void> closed = directory_->close();
  if (!closed) return closed.error().about("cannot write " + quoted(path_));
  return {};
}

Result<void> check_id_options(bool id, bool client, bool sequence) {
  if (id && (client || sequence)) return exclusive("--id", "--client with --sequence");
  if (client == sequence) return {};
  return usage_error(client ? "--client needs --sequence; allowed: both"
                            : "--sequence needs --client; allowed: both");
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
  return parse_integer(text);
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
