#include "cli/sift_run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "cli/console.h"
#include "cli/files.h"
#include "cli/remote_id.h"
#include "cli/stop_signal.h"
#include "cli/turnstile.h"
#include "semel/hash/hasher.h"

namespace semel::cli {
namespace {

using std::chrono::steady_clock;

constexpr const char* kName = "semel sift";
constexpr std::chrono::milliseconds kProgressEvery{500};
// A save takes at most one part in this many of the time, however large the state is.
constexpr int kSaveShare = 10;

class SiftRun {
 public:
  SiftRun(const SiftPlan& plan, Judge& judge, SiftOutputs& outputs, StateFile* state,
          const StateOptions& options, SiftReport& report)
      : plan_(plan),
        judge_(judge),
        outputs_(outputs),
        state_(state),
        options_(options),
        report_(report),
        hasher_(Hasher::fast(plan.seed)),
        reader_(
            plan.input, [this](int fd) { return ready(fd); },
            [](const std::string& text) { complain(kName, text); }),
        next_save_(steady_clock::now() + std::chrono::milliseconds(plan.checkpoint_ms)),
        now_ms_(judge.now()),
        console_(kName, plan.progress ? ProgressForm::terminal : ProgressForm::none,
                 kProgressEvery) {}

  SiftEnd run() {
    std::vector<std::thread> others;
    try {
      for (std::size_t i = 1; i < plan_.threads; ++i) others.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system has no more threads for us: fewer do the same.
    }
    work();
    for (std::thread& other : others) other.join();
    console_.end();
    if (sound_ && state_) save();
    for (auto* output : {&outputs_.first, &outputs_.duplicates}) {
      if (*output) (*output)->finish();
    }
    if (sound_) sound_ = outputs_sound();
    report_.seconds = console_.seconds();
    return {sound_, !reader_.failed() && !stopped_, stop_.received()};
  }

 private:
  // Runs one thread until there is nothing more to do.
  void work() {
    try {
      Chunk chunk;
      RecordReader records(plan_.input.syntax, plan_.input.questions, hasher_);
      while (read(chunk)) {
        parse(chunk, records);
        sequence(chunk);
        const Result<void> judged = judge_.judge(chunk);
        assemble(chunk);
        write(chunk, judged);
      }
    } catch (const std::bad_alloc&) {
      // The others wait for this thread's turn, which will not come.
      complain(kName, "out of memory");
      std::_Exit(static_cast<int>(Exit::failure));
    }
  }

  bool read(Chunk& chunk) {
    std::unique_lock lock(reading_, std::defer_lock);
    if (!spin_until([&] { return lock.try_lock(); })) lock.lock();
    if (!sound_ || stopped_ || !reader_.next(chunk)) return false;
    chunk.read_ms = clock_.now_ms();
    ++chunks_;
    return true;
  }

  // Called before every read. False if nothing more is to be read.
  bool ready(int fd) {
    for (;;) {
      if (!sound_ || stopped_ || stop_.received() != 0) return false;
      if (state_ && chunks_ > saved_chunks_ && steady_clock::now() >= next_save_) {
        written_.wait(chunks_);
        if (sound_) save();
        continue;
      }
      std::array<pollfd, 2> polled = {pollfd{fd, POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
      if (::poll(polled.data(), polled.size(), wait_ms()) < 0) continue;
      if (polled[1].revents != 0) return false;
      if (polled[0].revents != 0) return true;
    }
  }

  // Returns how long to wait for input before something else is due; -1: for ever.
  int wait_ms() const {
    if (!state_ || chunks_ == saved_chunks_) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_save_ - steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
  }

  void parse(Chunk& chunk, RecordReader& records) {
    chunk.records.clear();
    chunk.keys.clear();
    chunk.times_ms.clear();
    chunk.now_ms.clear();
    chunk.places.clear();
    chunk.ids.clear();
    chunk.id_ends.clear();
    chunk.problems.clear();
    chunk.fates.clear();
    chunk.lines = 0;
    const Fate unreadable = plan_.on_error == OnError::pass ? Fate::passed : Fate::skipped;
    chunk.timed = plan_.input.questions.time.has_value();
    const bool placed = !plan_.input.questions.places.empty();
    RecordReader::Answers answers{};
    for (std::string_view rest = chunk.text(); !rest.empty();) {
      const Cut cut = cut_record(plan_.input.syntax, rest, true);
      const std::string_view record = rest.substr(0, cut.size);
      rest.remove_prefix(cut.size);
      const Result<void> read = cut.unclosed ? Error{Errc::invalid, "a quote is not closed"}
                                             : records.read(record, *chunk.columns, answers);
      const bool readable = read.has_value();
      chunk.fates.push_back(readable ? Fate::unknown : unreadable);
      if (!readable) {
        chunk.problems.push_back({chunk.records.size(), chunk.lines, read.error().message()});
      }
      chunk.records.push_back(record);
      chunk.keys.push_back(answers.key);
      if (chunk.timed) chunk.times_ms.push_back(answers.time_ms);
      if (placed) chunk.places.push_back(answers.places);
      if (plan_.ids) {
        if (readable) append_remote_id(answers.key_text, answers.key, chunk.ids);
        chunk.id_ends.push_back(chunk.ids.size());
      }
      chunk.lines += cut.lines;
    }
  }

  // Does what depends on the order of chunks: the time, and where the run stops.
  void sequence(Chunk& chunk) {
    sequenced_.wait(chunk.number);
    if (chunk.timed && !stopped_) tell_time(chunk);
    if (stopped_) {
      chunk.problems.clear();
      cut_off(chunk, 0);
    } else if (plan_.on_error == OnError::stop && !chunk.problems.empty()) {
      chunk.problems.resize(1);
      cut_off(chunk, chunk.problems.front().record);
      stopped_ = true;
      stop_.wake();
    }
    sequenced_.pass();
  }

  // Sets the time at each record: the latest seen until then. A record that is older than the
  // window cannot be judged.
  void tell_time(Chunk& chunk) {
    chunk.now_ms.resize(chunk.records.size());
    std::vector<Problem> late;
    std::uint64_t line = 0;  // of the last one that is late
    const char* counted = chunk.buffer.data();
    for (std::size_t i = 0; i < chunk.records.size(); ++i) {
      if (chunk.fates[i] == Fate::unknown) {
        const TimeMs at_ms = chunk.times_ms[i];
        now_ms_ = std::max(now_ms_, at_ms);
        if (plan_.window_ms && older_than(at_ms, *plan_.window_ms, now_ms_)) {
          chunk.fates[i] = plan_.on_error == OnError::pass ? Fate::passed : Fate::skipped;
          const char* const begin = chunk.records[i].data();
          line += static_cast<std::uint64_t>(std::count(counted, begin, '\n'));
          counted = begin;
          late.push_back({i, line, "its time is older than the window, and cannot be judged"});
        }
      }
      chunk.now_ms[i] = now_ms_;
    }
    if (late.empty()) return;
    std::vector<Problem> all;
    std::merge(std::make_move_iterator(chunk.problems.begin()),
               std::make_move_iterator(chunk.problems.end()), std::make_move_iterator(late.begin()),
               std::make_move_iterator(late.end()), std::back_inserter(all),
               [](const Problem& a, const Problem& b) { return a.record < b.record; });
    chunk.problems = std::move(all);
  }

  // Drops the records from this one on.
  static void cut_off(Chunk& chunk, std::size_t record) {
    chunk.records.resize(record);
    chunk.fates.resize(record);
    chunk.keys.resize(record);
    if (chunk.timed) chunk.times_ms.resize(record);
    if (!chunk.places.empty()) chunk.places.resize(record);
    if (!chunk.id_ends.empty()) chunk.id_ends.resize(record);
  }

  // Joins the records by their fate. Neighbours of one fate are copied in one piece.
  void assemble(Chunk& chunk) const {
    chunk.first.clear();
    chunk.duplicates.clear();
    chunk.first_count = 0;
    chunk.duplicate_count = 0;
    const std::vector<Fate>& fates = chunk.fates;
    for (std::size_t i = 0; i < fates.size();) {
      const Fate fate = fates[i];
      std::size_t end = i + 1;
      while (end < fates.size() && fates[end] == fate) ++end;
      if (fate == Fate::first) chunk.first_count += end - i;
      if (fate == Fate::duplicate) chunk.duplicate_count += end - i;
      const bool kept = fate == Fate::first || fate == Fate::passed;
      if (kept ? outputs_.first.has_value()
               : fate == Fate::duplicate && outputs_.duplicates.has_value()) {
        const char* const start = chunk.records[i].data();
        const char* const stop = chunk.records[end - 1].data() + chunk.records[end - 1].size();
        (kept ? chunk.first : chunk.duplicates).append(start, stop);
      }
      i = end;
    }
  }

  void write(const Chunk& chunk, const Result<void>& judged) {
    written_.wait(chunk.number);
    if (sound_) end_unless(judged);
    if (sound_) {
      tell_problems(chunk);
      put(outputs_.first, chunk.header, chunk.first);
      put(outputs_.duplicates, chunk.header, chunk.duplicates);
      report_.lines += chunk.records.size();
      report_.first += chunk.first_count;
      report_.duplicates += chunk.duplicate_count;
      sound_ = outputs_sound();
      if (sound_) end_unless(judge_.written(chunk));
      if (console_.due()) show_progress();
    }
    if (!sound_) stop_.wake();
    written_.pass();
  }

  void end_unless(const Result<void>& done) {
    if (done) return;
    complain(kName, done.error().message());
    sound_ = false;
  }

  void tell_problems(const Chunk& chunk) {
    if (std::exchange(input_, chunk.input) != chunk.input) input_lines_ = 0;
    input_lines_ += chunk.header_lines;
    for (const Problem& problem : chunk.problems) {
      console_.report(plan_.input.inputs[chunk.input], input_lines_ + problem.line, problem.text);
    }
    report_.unreadable += chunk.problems.size();
    input_lines_ += chunk.lines;
  }

  static void put(std::optional<LineWriter>& output, std::string_view header,
                  std::string_view records) {
    if (!output) return;
    output->append(header);
    output->append(records);
    output->flush();
  }

  bool outputs_sound() {
    for (const auto* output : {&outputs_.first, &outputs_.duplicates}) {
      if (!*output || !(*output)->error()) continue;
      complain(kName, cannot("write", (*output)->name(), (*output)->error()));
      return false;
    }
    return true;
  }

  void show_progress() {
    report_.seconds = console_.seconds();
    console_.show(report_.progress(judge_.recent()));
    judge_.refresh();
  }

  // REQUIRES: all that was read is written.
  void save() {
    const auto begin = steady_clock::now();
    for (auto* output : {&outputs_.first, &outputs_.duplicates}) {
      if (*output) (*output)->sync();
    }
    if (!(sound_ = outputs_sound())) return;
    if (const auto saved = state_->save(options_, judge_); !saved) {
      complain(kName, saved.error().message());
      sound_ = false;
    }
    saved_chunks_ = chunks_;
    const auto end = steady_clock::now();
    next_save_ =
        end + std::max<steady_clock::duration>(std::chrono::milliseconds(plan_.checkpoint_ms),
                                               kSaveShare * (end - begin));
  }

  const SiftPlan& plan_;
  Judge& judge_;
  SiftOutputs& outputs_;
  StateFile* state_;
  const StateOptions& options_;
  SiftReport& report_;
  Hasher hasher_;
  SystemClock clock_;
  StopSignal stop_;

  std::mutex reading_;
  ChunkReader reader_;
  std::uint64_t chunks_ = 0;        // read; with the mutex
  std::uint64_t saved_chunks_ = 0;  // in the state
  steady_clock::time_point next_save_;

  Turnstile sequenced_;
  TimeMs now_ms_;  // the latest in any record

  Turnstile written_;
  Console console_;
  std::size_t input_ = 0;
  std::uint64_t input_lines_ = 0;

  std::atomic<bool> sound_ = true;     // keys can be recognised, outputs written
  std::atomic<bool> stopped_ = false;  // by a record that could not be read
};

}  // namespace

SiftEnd run_sift(const SiftPlan& plan, Judge& judge, SiftOutputs& outputs, StateFile* state,
                 const StateOptions& options, SiftReport& report) {
  return SiftRun(plan, judge, outputs, state, options, report).run();
}

}  // namespace semel::cli
