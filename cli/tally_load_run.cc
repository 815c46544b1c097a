#include "cli/tally_load_run.h"

#include <poll.h>

#include <array>
#include <chrono>
#include <iomanip>
#include <sstream>
#include <utility>
#include <vector>

#include "cli/console.h"
#include "cli/escaped.h"
#include "cli/json_object.h"
#include "cli/sift_report.h"
#include "cli/stop_signal.h"
#include "semel/core/limits.h"

namespace semel::cli {
namespace {

using tally::Outcome;

constexpr const char* kName = "semel tally load";
constexpr std::size_t kBatch = 8192;  // operations that are applied together
constexpr std::chrono::milliseconds kProgressEvery{500};

class TallyLoad {
 public:
  TallyLoad(const TallyLoadPlan& plan, TallyTable& table, TallyLoadReport& report)
      : plan_(plan),
        table_(table),
        report_(report),
        reader_(
            plan.input, [this](int fd) { return ready(fd); },
            [this](const std::string& text) { console_.complain(text); }),
        fields_(plan.input.syntax, plan.input.questions.key),
        counters_(kBatch),
        console_(kName, plan.progress ? ProgressForm::terminal : ProgressForm::none,
                 kProgressEvery) {
    additions_.reserve(kBatch);
    lines_.reserve(kBatch);
    answers_.resize(kBatch);
  }

  TallyLoadEnd run() {
    Chunk chunk;
    while (sound_ && !stopped_ && reader_.next(chunk)) take(chunk);
    console_.end();
    report_.seconds = console_.seconds();
    const tally::TallyStore::Info info = table_->info();
    report_.window_ms = info.recognition.window_ms;
    if (plan_.ids != IdForm::none) report_.window = window_text(info, table_.now_ms());
    report_.expected_undercount = info.expected_undercount;
    report_.memory_bytes = info.recogniser_bytes;
    return {sound_, !reader_.failed() && !stopped_, stop_.received()};
  }

 private:
  // Called before every read. False if nothing more is to be read.
  bool ready(int fd) const {
    for (;;) {
      if (stop_.received() != 0) return false;
      std::array<pollfd, 2> polled = {pollfd{fd, POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
      if (::poll(polled.data(), polled.size(), -1) < 0) continue;
      // A signal that comes with the end of the input leaves half a line, which is not a record.
      if (polled[1].revents != 0 || stop_.received() != 0) return false;
      if (polled[0].revents != 0) return true;
    }
  }

  void take(const Chunk& chunk) {
    if (std::exchange(input_, chunk.input) != chunk.input) line_ = 0;
    line_ += chunk.header_lines;
    for (std::string_view rest = chunk.text(); !rest.empty() && sound_ && !stopped_;) {
      const Cut cut = cut_record(plan_.input.syntax, rest, true);
      const Result<void> done = cut.unclosed ? Error{Errc::invalid, "a quote is not closed"}
                                             : read(rest.substr(0, cut.size), *chunk.columns);
      ++report_.records;
      if (!done) unreadable(done.error().message());
      line_ += cut.lines;
      rest.remove_prefix(cut.size);
      if (additions_.size() == kBatch) apply();
    }
    apply();
    if (!console_.due()) return;
    report_.seconds = console_.seconds();
    console_.show(report_.progress());
  }

  // Reads a record, which becomes the next addition.
  Result<void> read(std::string_view record, const Columns& columns) {
    if (const auto fields = fields_.read(record, columns); !fields) {
      const std::string problem = fields.error().message();
      const bool missing = problem.starts_with("there is no ") && plan_.ids == IdForm::opaque;
      if (!missing) return fields;
      return unreadable_record(problem + "; allowed: counter, delta and id, or --no-id");
    }
    const auto& texts = fields_.texts();
    std::string& counter = counters_[additions_.size()];
    if (!bytes_of(texts[0], counter)) return unreadable_record(kBackslash);
    if (counter.size() > limits::kCounterNameBytes) {
      return unreadable_record("the name of the counter has " + std::to_string(counter.size()) +
                               " bytes; allowed: at most 2048");
    }
    const auto delta = parse_delta(texts[1]);
    if (!delta) {
      return unreadable_record("the delta cannot be " + cli::quoted(texts[1]) +
                               "; allowed: " + kDeltaAllowed);
    }
    const tally::OperationId id = SEMEL_TRY(read_id(texts));
    additions_.push_back({counter, *delta, id});
    lines_.push_back(line_);
    return {};
  }

  Result<tally::OperationId> read_id(const std::vector<std::string_view>& texts) {
    if (plan_.ids == IdForm::none) return tally::OperationId::none();
    if (!bytes_of(texts[2], id_text_)) return unreadable_record(kBackslash);
    const bool numbered = plan_.ids == IdForm::numbered;
    const std::string name = numbered ? "the client" : "the id";
    if (id_text_.empty()) return unreadable_record(name + " is empty; allowed: 1 to 1024 bytes");
    if (id_text_.size() > limits::kOperationIdBytes) {
      return unreadable_record(name + " has " + std::to_string(id_text_.size()) +
                               " bytes; allowed: at most 1024");
    }
    if (!numbered) return *tally::opaque_id(table_.hasher(), id_text_);
    const auto sequence = parse_unsigned(texts[3]);
    if (!sequence) {
      return unreadable_record("the sequence cannot be " + cli::quoted(texts[3]) +
                               "; allowed: " + kSequenceAllowed);
    }
    return *tally::numbered_id(table_.hasher(), id_text_, *sequence);
  }

  static Error unreadable_record(std::string why) { return {Errc::invalid, std::move(why)}; }

  // Unescapes a text in TSV, which has no other way to write a tab or a newline.
  bool bytes_of(std::string_view text, std::string& to) const {
    if (plan_.input.syntax.format != Format::tsv || text.find('\\') == std::string_view::npos) {
      to.assign(text);
      return true;
    }
    auto bytes = unescaped(text);
    if (!bytes) return false;
    to = *std::move(bytes);
    return true;
  }

  void unreadable(const std::string& problem) {
    apply();  // the records before it
    if (!sound_) return;
    ++report_.unreadable;
    stopped_ = !plan_.skip_unreadable;
    tell_line(line_, problem + (stopped_ ? "; the lines before it are done" : ""));
  }

  void apply() {
    if (additions_.empty() || !sound_) return;
    const std::span<tally::Answer> answers(answers_.data(), additions_.size());
    const Result<void> added = table_->add(additions_, answers, table_.now_ms());
    if (!added) {
      const std::string place = input_name(plan_.input.inputs[input_]) + " line " +
                                std::to_string(lines_.front() + 1) + " on";
      const std::string what = "add to " + cli::quoted(table_.path()) + " from " + place;
      console_.complain(table_.cannot(what, added.error()).message());
      sound_ = false;
    }
    for (std::size_t i = 0; sound_ && i < answers.size(); ++i) count(answers[i].outcome, lines_[i]);
    additions_.clear();
    lines_.clear();
  }

  void count(Outcome outcome, std::uint64_t line) {
    switch (outcome) {
      case Outcome::applied:
        ++report_.applied;
        return;
      case Outcome::duplicate:
        ++report_.duplicates;
        return;
      case Outcome::stale:
        ++report_.stale;
        break;
      case Outcome::conflict:
        ++report_.conflicts;
        break;
      case Outcome::overflow:
        ++report_.overflows;
        break;
      case Outcome::full:
        ++report_.full;
        break;
    }
    tell_line(line, "not counted: " + reason_of(outcome));
  }

  // The line that ends the run is always reported.
  void tell_line(std::uint64_t line, const std::string& text) {
    console_.report(plan_.input.inputs[input_], line, text, stopped_);
  }

  static constexpr const char* kBackslash = "a backslash; allowed: \\\\ and \\xNN";

  const TallyLoadPlan& plan_;
  TallyTable& table_;
  TallyLoadReport& report_;
  StopSignal stop_;
  ChunkReader reader_;
  FieldReader fields_;

  std::vector<tally::Addition> additions_;  // read, and not yet applied
  std::vector<std::uint64_t> lines_;        // of these, from 0 on
  std::vector<std::string> counters_;       // to which they point
  std::vector<tally::Answer> answers_;
  std::string id_text_;

  std::size_t input_ = 0;
  std::uint64_t line_ = 0;  // the next line of the input
  bool sound_ = true;
  bool stopped_ = false;  // by a record that could not be read
  Console console_;
};

std::uint64_t records_per_second(const TallyLoadReport& report) {
  if (report.seconds <= 0) return 0;
  return static_cast<std::uint64_t>(static_cast<double>(report.records) / report.seconds);
}

}  // namespace

std::string TallyLoadReport::summary() const {
  std::ostringstream out;
  out << "records          " << grouped(records) << "\napplied          " << grouped(applied)
      << "\nduplicates       " << grouped(duplicates) << "\nstale            " << grouped(stale)
      << "\nrefused          " << grouped(refused());
  const char* separator = ": ";
  for (const auto& [number, what] :
       {std::pair(conflicts, "conflict"), {overflows, "overflow"}, {full, "full"}}) {
    if (number == 0) continue;
    out << separator << grouped(number) << ' ' << what;
    separator = ", ";
  }
  out << '\n';
  if (unreadable > 0) out << "unreadable       " << grouped(unreadable) << '\n';
  if (!window.empty())
    out << "window           " << window << ", for which a retry is recognised\n";
  out << "under-count      " << std::setprecision(2) << expected_undercount
      << " expected, of new operations taken for retries\nmemory           "
      << in_units(memory_bytes) << " for ids\ntime             " << std::fixed
      << std::setprecision(3) << seconds << " s, " << grouped(records_per_second(*this))
      << " records a second\n";
  return out.str();
}

std::string TallyLoadReport::json() const {
  return JsonObject()
             .add("records", records)
             .add("applied", applied)
             .add("duplicates", duplicates)
             .add("stale", stale)
             .add("refused", refused())
             .add("conflicts", conflicts)
             .add("overflows", overflows)
             .add("full", full)
             .add("unreadable", unreadable)
             .add("window_ms", window_ms)
             .add("expected_undercount", expected_undercount)
             .add("memory_bytes", memory_bytes)
             .add("seconds", seconds)
             .add("records_per_second", records_per_second(*this))
             .end() +
         '\n';
}

std::string TallyLoadReport::progress() const {
  return grouped(records) + " records, " + grouped(records_per_second(*this)) + " a second, " +
         grouped(duplicates) + " duplicates, " + in_units(memory_bytes);
}

TallyLoadEnd run_tally_load(const TallyLoadPlan& plan, TallyTable& table, TallyLoadReport& report) {
  return TallyLoad(plan, table, report).run();
}

}  // namespace semel::cli
