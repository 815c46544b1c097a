// semel tally info: describes a table, and how far it can be trusted.
#include <filesystem>
#include <iomanip>
#include <memory>
#include <sstream>

#include "cli/commands.h"
#include "cli/json_object.h"
#include "cli/sift_report.h"
#include "cli/store_options.h"
#include "cli/tally_table.h"

namespace semel::cli {
namespace {

constexpr const char* kName = "semel tally info";

struct Settings {
  std::string directory;
  bool json = false;
};

struct Facts {
  tally::TallyStore::Info info;
  tally::RangeSum counters;
  std::uint64_t disk_bytes = 0;
  TimeMs now_ms = 0;

  // Returns the expected number of new operations that were taken for retries, if all ids in the
  // window met the filter as it is now.
  double undercount() const {
    return info.false_positive_rate * static_cast<double>(info.recalled);
  }
  bool keyed() const { return info.recognition.hash.kind == HashKind::keyed; }
};

// Adds up the files of a directory that may be in use: a file that vanishes meanwhile counts as 0.
std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::uint64_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += size;
  }
  return bytes;
}

std::string members_text(const tally::Members& members) {
  std::string text;
  for (const auto& member : members.all()) {
    text += (text.empty() ? "" : ", ") + std::to_string(member.site) +
            (member.retired ? " (retired)" : "");
  }
  return text;
}

std::string text_of(const Facts& facts) {
  const auto& info = facts.info;
  const auto& goal = info.recognition;
  std::ostringstream out;
  out << std::setprecision(2);
  out << "counters         " << grouped(facts.counters.count) << "\nsum              "
      << decimal(facts.counters.sum) << "\nrecognition      " << word_of(goal.kind)
      << "\nwindow           " << window_text(info, facts.now_ms) << "\nids              "
      << grouped(info.recalled) << " in the window, capacity " << grouped(goal.ids) << "\n";
  if (goal.kind != tally::Recognition::Kind::exact) {
    out << "error            " << info.false_positive_rate << " now, at most " << goal.fpr
        << "\nunder-count      " << facts.undercount() << " expected of the ids in the window\n";
  }
  out << "hash             " << (facts.keyed() ? "keyed" : "fast") << "\nmemory           "
      << in_units(info.recogniser_bytes) << " for ids, "
      << (goal.max_bytes == kNoCap
              ? std::string("no limit")
              : "at most " + in_units(goal.max_bytes) + ", then " + word_of(goal.on_full))
      << "\ndisk             " << in_units(facts.disk_bytes) << "\nsite             " << info.site
      << "\nmembers          " << members_text(info.members) << "\nnot folded       "
      << grouped(info.unfolded) << " operations";
  if (info.waiting_for) out << ", waiting for site " << *info.waiting_for;
  out << '\n';
  if (info.superseded) {
    out << "superseded       others hold operations of this site that it does not: it was restored "
           "from a backup, or its id is used twice\n";
  }
  for (const SiteId site : info.forked) {
    out << "forked           members hold different operations of site " << site << '\n';
  }
  return out.str();
}

std::string json_of(const Facts& facts) {
  const auto& info = facts.info;
  const auto& goal = info.recognition;
  const auto json_of_member = [](const auto& member) {
    return JsonObject().add("site", member.site).add("retired", member.retired).end();
  };
  std::optional<std::uint64_t> limit;
  if (goal.max_bytes != kNoCap) limit = goal.max_bytes;
  return JsonObject()
             .add("counters", facts.counters.count)
             // As text: most readers would round a number of up to 128 bits.
             .text("sum", decimal(facts.counters.sum))
             .text("recognition", word_of(goal.kind))
             .add("window_ms", goal.window_ms)
             .add("kept_from_ms", info.promise.kept_from_ms)
             .add("forgotten_early", info.counts.forgotten_early)
             .add("ids_in_window", info.recalled)
             .add("capacity", goal.ids)
             .add("error_bound", goal.kind == tally::Recognition::Kind::exact ? 0.0 : goal.fpr)
             .add("error_now", info.false_positive_rate)
             .add("expected_undercount", facts.undercount())
             .text("hash", facts.keyed() ? "keyed" : "fast")
             .add("memory_bytes", info.recogniser_bytes)
             .add("max_bytes", limit)
             .text("on_full", word_of(goal.on_full))
             .add("disk_bytes", facts.disk_bytes)
             .add("site", info.site)
             .add("members", json_array(info.members.all(), json_of_member))
             .add("not_folded", info.unfolded)
             .add("waiting_for", info.waiting_for)
             .add("superseded", info.superseded)
             .add("forked", json_array(info.forked, [](SiteId s) { return std::to_string(s); }))
             .end() +
         '\n';
}

Result<Exit> info(const Settings& settings) {
  const auto table = SEMEL_TRY(TallyTable::open_to_read(settings.directory));
  const Result<tally::RangeSum> counters = table->sum({});
  if (!counters) return table->cannot("read " + cli::quoted(settings.directory), counters.error());
  const Facts facts{(*table)->info(), *counters, bytes_in(settings.directory), table->now_ms()};
  return print(kName, settings.json ? json_of(facts) : text_of(facts));
}

}  // namespace

Command tally_info_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{"semel tally info",
                "Tells what a table is made for, what it holds, and its error",
                "The table is read as of this moment, also while another process writes to it.",
                {{"json", 'j', flag_value(settings->json), "a JSON object on one line"}}};
  syntax.operands = {directory_value("DIRECTORY", settings->directory), 1, 1};
  syntax.examples = {{"semel tally info DIR", "all of it"}};
  return {"tally info", std::move(syntax), [settings] { return info(*settings); }};
}

}  // namespace semel::cli
