// 'Nye's Trie and Floret Estimators', figures 9, 10 and 15: bytes and time of a sync by divergence.
//
// sync_divergence [RECORDS]: sequential records of 100 bytes, 1,000,000 unless said otherwise. Of a
// share of them, drawn at random, half get another value at either end; then both ends are brought
// together by join.
//
// Prints TSV. First data set (9 and 10): the percentage, the way that was chosen, all bytes, those
// of records (payload) and the rest (overhead), the overhead of the paper's walk (paper_trie.h),
// all bytes of one set (enumeration); round trips, CPU seconds of both ends together, and seconds
// on the default link. Below it the lines that fit bytes and seconds best (least squares), R^2, and
// the largest distance in percent of the line's end. Second (15): all bytes over enumeration for
// each way by force, and for the plan's choice, which is that of the least time on the default
// link; the way of the fewest bytes. Fails if R^2 of the bytes is below 0.99, or if a sync does not
// leave both ends equal.
#include <cmath>
#include <cstdio>

#include "bench/papers/paper_trie.h"
#include "bench/papers/sync_runs.h"

namespace semel::bench {
namespace {

constexpr double kLinear = 0.99;  // least R^2

class Divergence {
 public:
  explicit Divergence(std::uint64_t records) : replicas_(KeyKind::sequential, records) {}

  double enumeration() const { return static_cast<double>(replicas_.keys().size() * kRecordBytes); }

  // Makes both ends differ in this many records, and brings them together.
  Synced run(std::uint64_t differences, std::optional<SyncWay> way) {
    ++serial_;
    Random random(serial_);
    changed_.clear();
    std::array<std::vector<std::string>, 2> updates;
    for (const Run& run : drawn_runs(replicas_.keys().size(), differences, 1, random)) {
      updates[changed_.size() % 2].push_back(replicas_.keys()[run.first]);
      changed_.push_back(run.first);
    }
    std::ranges::sort(changed_);
    write_version(replicas_.initiator().store(), updates[0], serial_);
    write_version(replicas_.responder().store(), updates[1], serial_);
    replicas_.refresh();
    SyncSettings settings;
    settings.seed = serial_;
    settings.way = way;
    Synced synced = run_sync(replicas_.initiator(), replicas_.responder(), settings);
    equal_ = replicas_.refresh() && synced.report.proved && equal_;
    return synced;
  }

  // The results of the last run.
  std::uint64_t paper_bytes() const { return PaperTrie::bytes(replicas_.keys(), changed_); }
  bool all_equal() const { return equal_; }  // after every run

 private:
  Replicas replicas_;
  std::uint64_t serial_ = 0;
  std::vector<std::uint64_t> changed_;
  bool equal_ = true;
};

struct Point {
  double x, y;
};
struct Line {
  double at_0, slope;
  double r2;
  double farthest;  // of a point, in percent of the line at x = 100
};

Line fitted(const std::vector<Point>& points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const Point& point : points) {
    x += point.x / n;
    y += point.y / n;
  }
  for (const Point& point : points) {
    xx += (point.x - x) * (point.x - x);
    xy += (point.x - x) * (point.y - y);
    yy += (point.y - y) * (point.y - y);
  }
  Line line{y - xy / xx * x, xy / xx, xy * xy / (xx * yy), 0};
  const double end = line.at_0 + 100 * line.slope;
  for (const Point& point : points) {
    const double distance = std::abs(point.y - line.at_0 - line.slope * point.x);
    line.farthest = std::max(line.farthest, 100 * distance / end);
  }
  return line;
}

void print_line(const char* what, const Line& line) {
  std::printf("# %s: %.4g + %.4g for each percent, R^2 %.5f, largest distance %.2f %%\n", what,
              line.at_0, line.slope, line.r2, line.farthest);
}

bool print_growth(Divergence& divergence, std::uint64_t records) {
  constexpr std::array<std::uint64_t, 13> kPercent = {0,  1,  2,  5,  10, 20, 30,
                                                      40, 50, 60, 70, 80, 100};
  std::printf(
      "percent\tway\tbytes\tpayload\toverhead\tpaper_overhead\tenumeration\ttrips\tseconds\t"
      "on_link\n");
  std::vector<Point> bytes, seconds, on_link;
  for (const std::uint64_t percent : kPercent) {
    const Synced synced = divergence.run(records * percent / 100, std::nullopt);
    const SyncReport& report = synced.report;
    const SyncLink link;
    const auto all = static_cast<double>(synced.bytes());
    const double link_seconds =
        synced.seconds + report.round_trips * link.round_trip_seconds + all / link.bytes_per_second;
    std::printf("%llu\t%s\t%.0f\t%llu\t%.0f\t%llu\t%.0f\t%u\t%.2f\t%.1f\n",
                static_cast<unsigned long long>(percent),
                kSyncWayNames[static_cast<std::size_t>(report.way)].data(), all,
                static_cast<unsigned long long>(report.payload_bytes),
                all - static_cast<double>(report.payload_bytes),
                static_cast<unsigned long long>(divergence.paper_bytes()), divergence.enumeration(),
                report.round_trips, synced.seconds, link_seconds);
    std::fflush(stdout);
    bytes.push_back({static_cast<double>(percent), all});
    seconds.push_back({static_cast<double>(percent), synced.seconds});
    on_link.push_back({static_cast<double>(percent), link_seconds});
  }
  print_line("bytes", fitted(bytes));
  print_line("CPU seconds", fitted(seconds));
  print_line("seconds on the link", fitted(on_link));
  return fitted(bytes).r2 >= kLinear;
}

void print_ways(Divergence& divergence, std::uint64_t records) {
  constexpr std::array<double, 10> kPercent = {0.01, 0.1, 1, 3, 10, 20, 35, 50, 75, 100};
  std::printf("percent\twalk\tsketch\tlist\tcopy\tplan\tchosen\tfewest\n");
  for (const double percent : kPercent) {
    const auto differences =
        static_cast<std::uint64_t>(std::llround(percent / 100 * static_cast<double>(records)));
    std::printf("%g", percent);
    std::uint64_t least = 0;
    SyncWay fewest = SyncWay::nothing;
    for (const SyncWay way : {SyncWay::walk, SyncWay::sketch, SyncWay::list, SyncWay::copy}) {
      const Synced synced = divergence.run(differences, way);
      if (fewest == SyncWay::nothing || synced.bytes() < least) {
        least = synced.bytes();
        fewest = way;
      }
      std::printf("\t%.6f", static_cast<double>(synced.bytes()) / divergence.enumeration());
      std::fflush(stdout);
    }
    const Synced planned = divergence.run(differences, std::nullopt);
    std::printf("\t%.6f\t%s\t%s\n", static_cast<double>(planned.bytes()) / divergence.enumeration(),
                kSyncWayNames[static_cast<std::size_t>(planned.report.way)].data(),
                kSyncWayNames[static_cast<std::size_t>(fewest)].data());
    std::fflush(stdout);
  }
}

bool print_all(std::uint64_t records) {
  Divergence divergence(records);
  const bool linear = print_growth(divergence, records);
  std::printf("\n\n");
  print_ways(divergence, records);
  return linear && divergence.all_equal();
}

}  // namespace
}  // namespace semel::bench

int main(int argc, char** argv) {
  const auto records = semel::bench::records_of_arguments("sync_divergence", argc, argv, 1'000'000);
  if (!records) return 2;
  return semel::bench::print_all(*records) ? 0 : 1;
}
