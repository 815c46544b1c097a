#include "cli/judge.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>

#include "cli/turnstile.h"

namespace semel::cli {
namespace {

// Keys of one chunk, ordered by slice. Keys of one slice keep their order.
struct Sorted {
  std::vector<std::uint32_t> slices;   // of each record
  std::vector<std::uint32_t> ends;     // of each slice, in what follows
  std::vector<std::uint32_t> records;  // their indices
  std::vector<Digest> keys;
  std::vector<TimeMs> at_ms;
  std::vector<TimeMs> now_ms;
  std::vector<Verdict> verdicts;
};

void sort(const Chunk& chunk, const Placement& placement, Sorted& out) {
  const auto slices = static_cast<std::uint32_t>(placement.slices());
  const std::size_t records = chunk.records.size();
  out.slices.resize(records);
  out.ends.assign(slices + 1, 0);
  for (std::size_t i = 0; i < records; ++i) {
    if (chunk.fates[i] != Fate::unknown) continue;
    const auto slice = static_cast<std::uint32_t>(placement.probe(chunk.keys[i], 0).slice);
    out.slices[i] = slice;
    ++out.ends[slice + 1];
  }
  for (std::uint32_t slice = 0; slice < slices; ++slice) out.ends[slice + 1] += out.ends[slice];
  const std::size_t known = out.ends[slices];
  out.records.resize(known);
  out.keys.resize(known);
  out.verdicts.resize(known);
  const bool timed = chunk.timed;
  out.at_ms.resize(timed ? known : 0);
  out.now_ms.resize(timed ? known : 0);
  for (std::size_t i = 0; i < records; ++i) {
    if (chunk.fates[i] != Fate::unknown) continue;
    const std::uint32_t place = out.ends[out.slices[i]]++;  // from its beginning to its end
    out.records[place] = static_cast<std::uint32_t>(i);
    out.keys[place] = chunk.keys[i];
    if (!timed) continue;
    out.at_ms[place] = chunk.times_ms[i];
    out.now_ms[place] = chunk.now_ms[i];
  }
}

// A judge over horizontal slices: as many chunks are on their way as there are slices.
class ParallelJudge final : public Judge {
 public:
  ParallelJudge(const Placement& placement, std::vector<Window> windows) : placement_(placement) {
    for (Window& window : windows) slices_.emplace_back(std::move(window));
    for (Slice& slice : slices_) slice.report();
  }

  Result<void> judge(Chunk& chunk) override {
    thread_local Sorted sorted;
    sort(chunk, placement_, sorted);
    bool room = true;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < slices_.size(); ++s) {
      Slice& slice = slices_[s];
      const std::size_t end = sorted.ends[s];
      slice.turn.wait(chunk.number);
      room = ask(slice.window, chunk, sorted, begin, end) && room;
      if (slice.wanted.exchange(false, std::memory_order_relaxed)) slice.report();
      slice.bytes.store(slice.window.bytes(), std::memory_order_relaxed);
      slice.turn.pass();
      begin = end;
    }
    for (std::size_t i = 0; i < sorted.records.size(); ++i) {
      chunk.fates[sorted.records[i]] = fate_of(sorted.verdicts[i]);
    }
    if (!room) return no_room();
    return {};
  }

  Trust recent() const override {
    Trust trust;
    for (const Slice& slice : slices_) {
      trust.bytes += slice.bytes.load(std::memory_order_relaxed);
      trust.error_now += slice.error.load(std::memory_order_relaxed) / count();
    }
    trust.windows = slices_.size();
    return trust;
  }
  void refresh() override {
    for (Slice& slice : slices_) slice.wanted.store(true, std::memory_order_relaxed);
  }
  Trust trust() const override {
    for (const Slice& slice : slices_) slice.report();
    return recent();
  }

  TimeMs now() const override {
    TimeMs latest = std::numeric_limits<TimeMs>::min();
    for (const Slice& slice : slices_) latest = std::max(latest, slice.window.now());
    return latest;
  }
  std::size_t sections() const override { return slices_.size(); }
  void encode(std::size_t section, Sink out) const override { slices_[section].window.encode(out); }
  Result<void> decode(std::size_t section, ByteView in) override {
    slices_[section].window = SEMEL_TRY(decode_like(slices_[section].window, in));
    return {};
  }

 private:
  struct Slice {
    explicit Slice(Window w) : window(std::move(w)) {}
    void report() const {
      bytes.store(window.bytes(), std::memory_order_relaxed);
      error.store(window.false_positive_rate(), std::memory_order_relaxed);
    }

    Turnstile turn;
    Window window;
    std::atomic<bool> wanted = false;
    mutable std::atomic<std::uint64_t> bytes = 0;
    mutable std::atomic<double> error = 0;
  };

  double count() const { return static_cast<double>(slices_.size()); }

  static bool ask(Window& window, const Chunk& chunk, Sorted& sorted, std::size_t begin,
                  std::size_t end) {
    const std::span<const Digest> keys(sorted.keys);
    const std::span<Verdict> verdicts(sorted.verdicts);
    if (!chunk.timed) {
      window.advance(chunk.read_ms);
      window.test_and_insert(keys.subspan(begin, end - begin),
                             verdicts.subspan(begin, end - begin));
    }
    // Keys that are known at one time go in one call.
    const std::span<const TimeMs> now_ms(sorted.now_ms), at_ms(sorted.at_ms);
    for (std::size_t i = begin; chunk.timed && i < end;) {
      std::size_t stop = i;
      while (stop < end && now_ms[stop] == now_ms[i]) ++stop;
      window.advance(now_ms[i]);
      window.test_and_insert(keys.subspan(i, stop - i), at_ms.subspan(i, stop - i),
                             verdicts.subspan(i, stop - i));
      i = stop;
    }
    return std::none_of(verdicts.begin() + static_cast<std::ptrdiff_t>(begin),
                        verdicts.begin() + static_cast<std::ptrdiff_t>(end),
                        [](Verdict verdict) { return verdict == Verdict::full; });
  }

  Placement placement_;
  std::deque<Slice> slices_;  // which do not move
};

}  // namespace

Window::Goal window_goal(const Memory& memory, double share, double error) {
  const auto all = static_cast<double>(memory.window_ms ? kFirstIds : kFirstKeys);
  return {.structure = memory.exact ? Window::Structure::exact : Window::Structure::forgetful,
          .window_ms = memory.window_ms.value_or(kForever),
          .fpr = memory.exact ? 0 : error,
          .ids = std::max<std::uint64_t>(64, static_cast<std::uint64_t>(all * share)),
          .hash = memory.hash,
          .punctual = memory.exact && memory.window_ms};
}

Result<Window> decode_like(const Window& model, ByteView in) {
  Window window = SEMEL_TRY(Window::decode(in));
  if (window.goal() != model.goal()) return Error{Errc::mismatch, "windows of another kind"};
  return window;
}

Result<std::unique_ptr<Judge>> make_parallel_judge(const Memory& memory, std::uint32_t slices) {
  const Placement placement = SEMEL_TRY(Placement::make({SliceLayout::horizontal, slices}));
  const Window::Goal goal = window_goal(memory, 1.0 / static_cast<double>(slices), memory.error);
  std::vector<Window> windows;
  for (std::uint32_t i = 0; i < slices; ++i) {
    windows.push_back(SEMEL_TRY(Window::make(goal, memory.now_ms)));
  }
  return std::unique_ptr<Judge>(std::make_unique<ParallelJudge>(placement, std::move(windows)));
}

}  // namespace semel::cli
