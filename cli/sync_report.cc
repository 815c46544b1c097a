#include "cli/sync_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

#include "cli/escaped.h"
#include "cli/json_object.h"
#include "cli/sift_report.h"

namespace semel::cli {
namespace {

std::string whole(double number) {
  return grouped(static_cast<std::uint64_t>(std::llround(std::clamp(number, 0.0, 0x1p62))));
}

std::string with_error(const Estimated& number) {
  return whole(number.value) + " +- " + whole(number.error);
}

std::string fixed(double number, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << number;
  return out.str();
}

std::string seconds_text(const Estimated& seconds) {
  const int digits = seconds.value < 0.1 ? 6 : 3;
  return fixed(seconds.value, digits) + " +- " + fixed(seconds.error, digits);
}

std::string_view name_of(SyncWay way) { return kSyncWayNames.at(static_cast<std::size_t>(way)); }

std::string line(std::string_view name, const std::string& value) {
  constexpr std::size_t kNameWidth = 17;
  std::string out(name);
  out.resize(kNameWidth, ' ');
  return out + value + '\n';
}

std::string store_text(const Aggregate& store) {
  return grouped(store.count) + " records, " + in_units(store.volume);
}

std::string json_of(const Estimated& number) {
  return JsonObject().add("value", number.value).add("error", number.error).end();
}

std::string json_of(const Aggregate& store) {
  return JsonObject().add("records", store.count).add("bytes", store.volume).end();
}

std::string json_of(const SyncPrediction& prediction) {
  return JsonObject()
      .text("way", name_of(prediction.way))
      .add("bytes", json_of(prediction.bytes))
      .add("payload", json_of(prediction.payload))
      .add("round_trips", prediction.round_trips)
      .add("seconds", json_of(prediction.seconds))
      .end();
}

std::string json_of(const DifferenceEstimate& estimate) {
  return JsonObject()
      .add("only_a", json_of(estimate.only_a))
      .add("only_b", json_of(estimate.only_b))
      .add("shared", json_of(estimate.shared))
      .add("jaccard", json_of(estimate.jaccard))
      .add("reliable", estimate.reliable)
      .end();
}

// Columns of equal width, the first to the left, the others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.at(0).size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      text.append(i == 0 ? row[i] + pad : "  " + pad + row[i]);
    }
    out += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

}  // namespace

std::string SyncSummary::text() const {
  const SyncPrediction& predicted = report.predicted;
  const std::uint64_t bytes = report.bytes_sent + report.bytes_received - report.payload_bytes;
  std::string out =
      line("A", store_text(report.initiator)) + line("B", store_text(report.responder)) +
      line("differences", grouped(report.differences()) + ": " + grouped(report.only_initiator) +
                              " only in A, " + grouped(report.only_responder) + " only in B, " +
                              grouped(report.changed) + " with other values");
  if (repairs) {
    out += line("written",
                grouped(report.written_here) + " in A, " + grouped(report.written_there) + " in B");
    if (report.removed_here + report.removed_there > 0) {
      out += line("removed", grouped(report.removed_here) + " in A, " +
                                 grouped(report.removed_there) + " in B");
    }
  }
  out += line("way", std::string(name_of(report.way)));
  out += line("bytes", grouped(bytes) + ", predicted " + with_error(predicted.bytes));
  out += line("of records",
              grouped(report.payload_bytes) + ", predicted " + with_error(predicted.payload));
  out += line("round trips", std::to_string(report.round_trips) + ", predicted " +
                                 fixed(predicted.round_trips, 1));
  out += line("seconds", fixed(seconds, seconds < 0.1 ? 6 : 3) + ", predicted " +
                             seconds_text(predicted.seconds));
  if (!report.stopped) {
    out += line("proved", report.proved ? "yes" : "no: what is found does not explain everything");
  }
  return out;
}

std::string SyncSummary::json() const {
  JsonObject out;
  out.add("a", json_of(report.initiator))
      .add("b", json_of(report.responder))
      .add("only_a", report.only_initiator)
      .add("only_b", report.only_responder)
      .add("changed", report.changed)
      .add("written_a", report.written_here)
      .add("written_b", report.written_there)
      .add("removed_a", report.removed_here)
      .add("removed_b", report.removed_there)
      .add("proved", report.proved)
      .text("way", name_of(report.way))
      .add("bytes_sent", report.bytes_sent)
      .add("bytes_received", report.bytes_received)
      .add("bytes_first", report.first_bytes)
      .add("bytes_payload", report.payload_bytes)
      .add("round_trips", report.round_trips)
      .add("passes", report.passes)
      .add("seconds", seconds)
      .add("predicted", json_of(report.predicted))
      .add("estimate", json_of(report.estimate))
      .add("stopped", report.stopped);
  if (report.stopped) out.text("resume_from", escaped(report.resume_from));
  return out.end() + '\n';
}

std::string PlanSummary::text() const {
  const DifferenceEstimate& difference = report.estimate;
  std::string out =
      line("A", store_text(report.initiator)) + line("B", store_text(report.responder));
  if (report.initiator == report.responder) {
    return out + line("difference", "none: the digests are equal");
  }
  out += line("only in A", with_error(difference.only_a)) +
         line("only in B", with_error(difference.only_b)) +
         line("Jaccard",
              fixed(difference.jaccard.value, 6) + " +- " + fixed(difference.jaccard.error, 6));
  if (!difference.reliable) {
    out += line("", "the difference is larger than this estimate can tell");
  }
  std::vector<std::vector<std::string>> rows = {
      {"way", "bytes", "of records", "round trips", "seconds", ""}};
  for (const SyncPrediction& way : report.plan.all) {
    if (way.way == SyncWay::nothing) continue;
    rows.push_back({std::string(name_of(way.way)), with_error(way.bytes), with_error(way.payload),
                    fixed(way.round_trips, 1), seconds_text(way.seconds),
                    way.way == report.plan.best.way ? "chosen" : ""});
  }
  return out + '\n' + table(rows);
}

std::string PlanSummary::json() const {
  std::vector<SyncPrediction> ways(report.plan.all.begin(), report.plan.all.end());
  std::erase_if(ways, [](const SyncPrediction& way) { return way.way == SyncWay::nothing; });
  DifferenceEstimate difference = report.estimate;
  if (report.initiator == report.responder) {
    difference = {};
    difference.shared.value = static_cast<double>(report.initiator.count);
    difference.jaccard.value = 1;
  }
  return JsonObject()
             .add("a", json_of(report.initiator))
             .add("b", json_of(report.responder))
             .add("estimate", json_of(difference))
             .text("chosen", name_of(report.plan.best.way))
             .add("ways", json_array(ways, [](const auto& way) { return json_of(way); }))
             .end() +
         '\n';
}

std::string progress_text(const SyncProgress& progress, double seconds) {
  const double done = static_cast<double>(progress.records_done);
  const double all = static_cast<double>(std::max(progress.records, progress.records_done));
  // Assume that later stretches take as long as the earlier ones.
  const double left = done > 0 ? std::max(progress.seconds_left, seconds * (all - done) / done)
                               : progress.seconds_left;
  std::string out = "found " + grouped(progress.found) + " of about " +
                    grouped(std::max(progress.differences, progress.found)) + ", repaired " +
                    grouped(progress.repaired);
  if (all > 0) out += ", " + fixed(100 * done / all, 0) + " % of the records done";
  return out + ", about " + fixed(left, left < 10 ? 1 : 0) + " s left";
}

}  // namespace semel::cli
