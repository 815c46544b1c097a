// semel sift: the first of each line, in input order and byte for byte.
//
// Contract  The key of a line is what stands before its newline. A line whose key came before is
//           dropped, always. A line whose key is new is kept, except with a probability of at most
//           the error (BloomSeries), or with --exact only if its digest equals another (DigestSet).
//           Lines decided are written before the next wait for input, so that `tail -f | semel sift`
//           shows them at once.
//           An input that cannot be read is reported and the others are still sifted; an output that
//           cannot be written ends the run. Both exit with 1.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <variant>

#include "cli/commands.h"
#include "cli/digest_set.h"
#include "cli/files.h"
#include "cli/line_reader.h"
#include "cli/line_writer.h"
#include "cli/sift_report.h"
#include "semel/filter/bloom_series.h"
#include "semel/hash/hasher.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel sift";
constexpr double kDefaultError = 1e-6;
// The first filter: 4 MiB at the default error. Fewer lines would save little, and a longer series
// costs bits: at ten million lines 68 MiB in 4 filters, where 1 << 16 takes 80 MiB in 8.
constexpr std::uint64_t kFirstKeys = 1 << 20;
constexpr std::size_t kBatch = 512;  // lines decided together, so that their cache misses overlap

struct Settings {
  std::vector<std::string> files;
  std::optional<double> error;
  bool exact = false;
  bool count = false;
  bool quiet = false;
  bool json = false;
  std::uint64_t seed = 0;
  std::optional<std::string> duplicates_to;
};

using Seen = std::variant<BloomSeries, DigestSet>;

std::string_view key_of(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

class Sift {
 public:
  Sift(const Settings& settings, Seen seen, std::optional<LineWriter> first,
       std::optional<LineWriter> duplicates)
      : settings_(settings),
        hasher_(Hasher::fast(settings.seed)),
        seen_(std::move(seen)),
        first_(std::move(first)),
        duplicates_(std::move(duplicates)) {}

  Exit run() {
    const auto start = std::chrono::steady_clock::now();
    for (const std::string& name : settings_.files) {
      if (!sift_file(name)) break;
    }
    // Whatever went wrong: what is decided is written, where that is possible.
    if (first_) first_->finish();
    if (duplicates_) duplicates_->finish();
    if (!sound_ || !outputs_sound()) return Exit::failure;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return report(elapsed.count()) == Exit::success ? exit_ : Exit::failure;
  }

 private:
  // False if there is no use in going on.
  bool sift_file(const std::string& name) {
    std::error_code error;
    const bool standard = name == "-";
    const File file = standard ? File::borrow(STDIN_FILENO) : File::open_to_read(name, error);
    if (!error) error = sift_lines(file.fd());
    if (error) {
      complain(kName, cannot("read", standard ? "standard input" : quoted(name), error));
      exit_ = Exit::failure;
    }
    return sound_;
  }

  std::error_code sift_lines(int fd) {
    LineReader reader(fd);
    std::array<std::string_view, kBatch> lines;
    while (sound_ && !reader.ended()) {
      if (must_wait(fd) && !flush()) break;
      if (const std::error_code error = reader.read()) return error;
      while (sound_) {
        const auto batch = reader.cut(lines);
        if (batch.empty()) break;
        sound_ = decide(batch) && outputs_sound();
      }
    }
    return {};
  }

  bool decide(std::span<const std::string_view> lines) {
    std::array<Digest, kBatch> digests;
    std::array<bool, kBatch> is_first;
    for (std::size_t i = 0; i < lines.size(); ++i) digests[i] = hasher_(key_of(lines[i]));
    const auto added = add({digests.data(), lines.size()}, {is_first.data(), lines.size()});
    if (!added) {
      complain(kName, std::string("cannot recognise more lines: ") + added.error().what);
      return false;
    }
    report_.lines += lines.size();
    // Neighbours of the same fate go out in one piece: they are adjacent in memory.
    for (std::size_t i = 0; i < lines.size();) {
      const char* const start = lines[i].data();
      const bool fate = is_first[i];
      std::size_t end = i + 1;
      while (end < lines.size() && is_first[end] == fate) ++end;
      if (fate) report_.first += end - i;
      std::optional<LineWriter>& to = fate ? first_ : duplicates_;
      const char* const stop = lines[end - 1].data() + lines[end - 1].size();
      if (to) to->append({start, static_cast<std::size_t>(stop - start)});
      i = end;
    }
    return true;
  }

  Result<void> add(std::span<const Digest> keys, std::span<bool> added) {
    if (auto* series = std::get_if<BloomSeries>(&seen_)) return series->add(keys, added);
    std::get<DigestSet>(seen_).add(keys, added);
    return {};
  }

  bool flush() {
    if (first_) first_->flush();
    if (duplicates_) duplicates_->flush();
    return sound_ = outputs_sound();
  }

  bool outputs_sound() {
    for (const std::optional<LineWriter>* writer : {&first_, &duplicates_}) {
      if (!*writer || !(*writer)->error()) continue;
      complain(kName, cannot("write", (*writer)->name(), (*writer)->error()));
      return false;
    }
    return true;
  }

  Exit report(double seconds) {
    report_.seconds = seconds;
    if (const auto* series = std::get_if<BloomSeries>(&seen_)) {
      report_.error_bound = series->fpr();
      report_.error_now = series->live_fpr();
      report_.filters = series->filters();
      report_.bytes = series->bytes();
    } else {
      // n keys make n^2 / 2 pairs, each of equal digests with probability 2^-128.
      report_.exact = true;
      report_.error_bound = report_.error_now = static_cast<double>(report_.first) * 0x1p-129;
      report_.bytes = std::get<DigestSet>(seen_).bytes();
    }
    if (!settings_.quiet) {
      (void)write_all(STDERR_FILENO, settings_.json ? report_.json() : report_.summary());
    }
    return settings_.count ? print(kName, report_.counts()) : Exit::success;
  }

  const Settings& settings_;
  Hasher hasher_;
  Seen seen_;
  std::optional<LineWriter> first_;       // none: they are only counted
  std::optional<LineWriter> duplicates_;  // none: they are dropped
  SiftReport report_;
  bool sound_ = true;  // lines can be recognised and written
  Exit exit_ = Exit::success;
};

// True if writing to the file would change what is read, or mix with what else is written.
bool in_use(const Settings& settings, const FileId& file) {
  const auto is_file = [&](const std::string& input) {
    return file == (input == "-" ? file_id(STDIN_FILENO) : file_id(input));
  };
  return file == file_id(STDOUT_FILENO) ||
         std::any_of(settings.files.begin(), settings.files.end(), is_file);
}

// The file for the duplicates, emptied; on failure none, and the reason is reported.
std::optional<LineWriter> open_duplicates(const Settings& settings, Exit& exit) {
  const std::string name = quoted(*settings.duplicates_to);
  std::error_code error;
  File file = File::open_to_write(*settings.duplicates_to, error);
  if (const auto id = file_id(file.fd()); id && in_use(settings, *id)) {
    complain(kName, "--duplicates-to cannot be " + name +
                        ", which is also read or written; allowed: a file of its own");
    exit = Exit::usage;
    return std::nullopt;
  }
  if (!error) error = empty(file.fd());
  if (error) {
    complain(kName, cannot("write", name, error));
    exit = Exit::failure;
    return std::nullopt;
  }
  return LineWriter(std::move(file), name);
}

Exit sift(Settings settings) {
  if (settings.exact && settings.error) {
    complain(kName, "--error and --exact exclude each other; allowed: one of them");
    return Exit::usage;
  }
  if (settings.quiet && settings.json) {
    complain(kName, "--quiet and --json exclude each other; allowed: one of them");
    return Exit::usage;
  }
  if (settings.files.empty()) settings.files.emplace_back("-");

  Seen seen = DigestSet();
  if (!settings.exact) {
    const HashId hash = Hasher::fast(settings.seed).id();
    const double error = settings.error.value_or(kDefaultError);
    auto series = BloomSeries::make({.fpr = error, .first_keys = kFirstKeys, .hash = hash});
    if (!series) {
      complain(kName, std::string("cannot make the filter: ") + series.error().what);
      return Exit::failure;
    }
    seen = *std::move(series);
  }
  std::optional<LineWriter> first;
  std::optional<LineWriter> duplicates;
  if (!settings.count) first.emplace(File::borrow(STDOUT_FILENO), "standard output");
  if (settings.duplicates_to) {
    Exit exit = Exit::success;
    duplicates = open_duplicates(settings, exit);
    if (!duplicates) return exit;
  }
  return Sift(settings, std::move(seen), std::move(first), std::move(duplicates)).run();
}

}  // namespace

Command sift_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel sift",
      "Writes the first of each line and drops the later ones, in input order",
      "Reads the FILEs, or standard input without any; - is standard input. A line is all bytes "
      "before a newline; a last line may lack it.\n"
      "A line that came before is always dropped. A new line is wrongly dropped with a probability "
      "of at most E, however many lines there are: lines are recognised by Bloom filters that grow "
      "with their number. A summary on standard error says how many that may have been.\n"
      "Exits with 0, with 1 if a file could not be read or written, with 2 if an option is wrong.",
      {{"error", 'e',
        number_value("E", settings->error, "a number from 1e-15 to 0.5",
                     [](double error) { return error >= 1e-15 && error <= 0.5; }),
        "the probability, at most, that a new line is wrongly dropped (default 1e-6)"},
       {"exact", 'x', flag_value(settings->exact),
        "keep a digest of 128 bits of each line instead, 21 to 43 bytes each: no new line is "
        "dropped "
        "unless its digest equals another, of which 1.5e-25 are expected in ten million lines that "
        "nobody chose to collide"},
       {"count", 'c', flag_value(settings->count), "write the counts instead of the lines"},
       {"duplicates-to", 'd', path_value("FILE", settings->duplicates_to),
        "write what is dropped to FILE, in input order"},
       {"seed", 's', count_value("N", settings->seed, 0, UINT64_MAX),
        "of the digests; with another seed other lines are wrongly dropped (default 0)"},
       {"quiet", 'q', flag_value(settings->quiet), "no summary; errors are still reported"},
       {"json", 'j', flag_value(settings->json), "the summary as a JSON object on one line"}}};
  syntax.operands = {paths_value("FILE", settings->files), 0, SIZE_MAX};
  syntax.examples = {
      {"semel sift access.log >once.log", "each line once"},
      {"tail -f events | semel sift -q", "new events as they come"},
      {"semel sift --exact --count *.log", "how many different lines there are"},
      {"semel sift -d repeated.txt ids.txt >first.txt", "both halves of the stream"}};
  return {"sift", std::move(syntax), [settings] { return sift(*settings); }};
}

}  // namespace semel::cli
