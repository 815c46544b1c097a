#include "semel/sync/internal/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include "semel/sync/internal/budget.h"
#include "semel/sync/internal/partition_sketch.h"
#include "semel/sync/internal/set_sketch.h"

namespace semel::sync_internal {
namespace {

using frame::Content;
using frame::Fetch;
using frame::Scan;
using frame::SlotAnswer;

// Records per slot of a list. The digests of such large slots cost little beside the list.
constexpr std::uint64_t kListSlot = 1024;
// Slots of a walk with fewer records are not split.
constexpr std::uint64_t kWalkSlot = 4;
// If the sketches of a slot do not suffice twice, the slot is split, provided that it has more than
// this many records for each number that the last sketch had room for. Then the parts and their
// sketches take at most half of the bytes of a list.
constexpr std::size_t kCrowded = 40;
// If a sketch does not suffice, the next one has this many times the room, unless that takes half
// of a list or more.
constexpr std::size_t kRoomier = 4;
// The number of times that sketches which did not decode are asked for again, with more capacity
// each time.
constexpr int kMostScans = 5;

// Numbers of records that only one end has, in increasing order.
struct NumberDifference {
  std::vector<std::uint32_t> only_ours;
  std::vector<std::uint32_t> only_theirs;
};

// Returns the numbers that a sketch holds. An overfull sketch of capacity c decodes with
// probability 1 / c!, to c wrong numbers. So a full sketch is not believed.
Result<std::vector<std::uint32_t>> decoded(std::span<const std::uint32_t> syndromes) {
  Result<std::vector<std::uint32_t>> numbers = SetSketch::decode(syndromes);
  if (numbers && numbers->size() >= syndromes.size()) {
    return Error{Errc::limit, "sketch: full"};
  }
  return numbers;
}

// Returns nullopt if the answer is a sketch that cannot hold the difference. Sorts `ours`.
std::optional<NumberDifference> difference_of(std::vector<std::uint32_t>& ours,
                                              const SlotAnswer& answer) {
  NumberDifference made;
  std::vector<std::uint32_t> theirs = answer.numbers;
  if (answer.kind == SlotAnswer::Kind::sketch) {
    SetSketch::toggle_many(theirs, ours);
    const Result<std::vector<std::uint32_t>> both = decoded(theirs);
    if (!both) return std::nullopt;
    std::ranges::sort(ours);
    for (const std::uint32_t number : *both) {
      const bool is_ours = std::ranges::binary_search(ours, number);
      (is_ours ? made.only_ours : made.only_theirs).push_back(number);
    }
    return made;
  }
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  std::ranges::set_difference(ours, theirs, std::back_inserter(made.only_ours));
  std::ranges::set_difference(theirs, ours, std::back_inserter(made.only_theirs));
  return made;
}

}  // namespace

void Search::predict(const Question& question) {
  PlanInputs known = question.known;
  known.initiator = s_.here;
  known.responder = s_.there;
  known.difference = s_.estimate;
  known.to_initiator = s_.travels();
  known.stores = s_.settings.purpose != SyncPurpose::diff && (s_.gives() || s_.calls_back());
  const SyncPlan plan = make_plan(known, s_.settings.link);
  predicted_ = plan.best;
  const bool list = std::exchange(escalate_, false);
  const std::optional<SyncWay> way = list ? std::optional(SyncWay::list) : s_.settings.way;
  if (way && plan.best.way != SyncWay::nothing)
    predicted_ = plan.all[static_cast<std::size_t>(*way)];
  predicted_.bytes.value += static_cast<double>(question.probe_bytes);
  predicted_.round_trips += question.probes;
  if (s_.pass > 1) return;
  if (s_.estimate.total.value >= s_.report.estimate.total.value) {
    s_.report.estimate = s_.estimate;
    s_.report.plan = plan;
    s_.report.way = predicted_.way;
  }
  s_.report.predicted += predicted_;
  s_.report.predicted.way = s_.report.way;
}

Result<void> Search::find(Question question) {
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  question.known.containers = held.trie().container_count();
  predict(question);
  if (s_.settings.purpose == SyncPurpose::plan) return {};
  for (const Region& region : question.ours) {
    SEMEL_TRY(take_region(view, region));
  }
  repair_.ask_items(std::move(question.items));
  return find(view, question.tops);
}

Result<void> Search::find(const RangeView& view, std::span<const BitPath> tops) {
  if (tops.empty()) return {};
  switch (predicted_.way) {
    case SyncWay::nothing:
    case SyncWay::walk:
      return ask_walk(view, tops,
                      {budget::walk_slots(looked_for_), budget::detail(looked_for_), looked_for_});
    case SyncWay::sketch: {
      const budget::Partition partition = budget::partition(looked_for_);
      if (partition.bytes() > s_.room()) break;  // ask for lists instead
      ask_scan({{tops.begin(), tops.end()}, partition.partitions, partition.capacity, {}}, 1);
      return {};
    }
    case SyncWay::list:
      break;
    case SyncWay::copy:
      repair_.ask_copy(tops);
      return {};
  }
  return ask_lists(view, tops);
}

Result<void> Search::ask_compare(const RangeView& view, std::span<const BitPath> tops, bool list,
                                 const Walk& walk) {
  if (tops.empty()) return {};
  const Frontier frontier =
      SEMEL_TRY(Frontier::grow(view, tops, walk.slots, list ? kListSlot : kWalkSlot));
  Bytes body;
  Writer out(body);
  frame::encode(
      frame::Compare{static_cast<std::uint64_t>(std::ceil(walk.expected)), walk.detail, list}, out);
  frontier.encode(s_.shorten(ShortDigest::Of::node), out);
  // The answer takes about the same number of bytes for each slot that differs.
  std::uint64_t listed = 0;
  for (const Frontier::Slot& slot : frontier.slots()) listed += slot.sum.count;
  const bool large = body.size() > s_.room() || (list && listed * 4 > s_.room() / 2);
  if (!large || (tops.size() == 1 && frontier.slots().size() == 1)) {
    s_.exchange.ask(frame::Topic::compare, std::move(body),
                    CompareAsk{frontier.slots(), list, walk.repeats});
    return {};
  }
  // Asks in two halves.
  std::vector<BitPath> split(tops.begin(), tops.end());
  if (split.size() == 1) {
    const std::optional<BitPath> at = view.branch(split[0]);
    if (!at) {
      s_.exchange.ask(frame::Topic::compare, std::move(body),
                      CompareAsk{frontier.slots(), list, walk.repeats});
      return {};
    }
    if (at->size() > split[0].size()) repair_.ask_items({{{split[0], *at}, true, {}}});
    split = {*at, *at};
    split[0].push(false);
    split[1].push(true);
  }
  const std::size_t half = split.size() / 2;
  const std::span<const BitPath> parts(split);
  const Walk halved{walk.slots - walk.slots / 2, walk.detail, walk.expected / 2, walk.repeats};
  SEMEL_TRY(ask_compare(view, parts.first(half), list, halved));
  return ask_compare(view, parts.subspan(half), list, halved);
}

Result<void> Search::compare_answered(const CompareAsk& ask, Reader in) {
  const std::vector<SlotAnswer> answers = SEMEL_TRY(frame::decode_answers(in, ask.slots.size()));
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  const ShortDigest shorten_record = s_.shorten(ShortDigest::Of::record);
  EntryDigest digest(s_.index.secret());

  std::vector<Fetch::Item> items;
  std::vector<BitPath> deeper;
  std::vector<BitPath> crowded;  // have more differences than expected, and will be split
  std::vector<BitPath> dense;    // have more differences than expected, and will not be split
  std::uint32_t capacity = 0;    // of all sketches of the answer
  std::vector<BitPath> listed;
  std::vector<BitPath> copied;
  std::vector<std::uint32_t> ours;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const SlotAnswer& answer = answers[i];
    const Region& region = ask.slots[i].region;
    const bool nothing_here = ask.slots[i].sum.count == 0;
    if (answer.kind == SlotAnswer::Kind::equal) continue;
    if (nothing_here) {
      items.push_back({region, true, {}});
      continue;
    }
    if (answer.kind == SlotAnswer::Kind::none) {
      SEMEL_TRY(take_region(view, region));
      continue;
    }
    // Splits at least once, so that regions get smaller with every question.
    const auto split_into = [&](std::vector<BitPath>& parts) {
      const std::optional<BitPath> at = view.branch(region.top);
      if (!at) return false;
      if (at->size() > region.top.size()) items.push_back({{region.top, *at}, true, {}});
      for (const bool right : {false, true}) {
        parts.push_back(*at);
        parts.back().push(right);
      }
      return true;
    };
    if (answer.kind == SlotAnswer::Kind::big) {
      if (!split_into(deeper)) (ask.list ? copied : listed).push_back(region.top);
      continue;
    }
    ours.clear();
    const Result<void> read =
        view.read(region, "", [&](std::string_view key, std::string_view value) {
          ours.push_back(RecordId::of(shorten_record, digest(key, value)).number);
          return true;
        });
    if (!read) return read;
    std::optional<NumberDifference> differing = difference_of(ours, answer);
    if (!differing) {
      capacity = static_cast<std::uint32_t>(answer.numbers.size());
      const bool large = ask.repeats > 0 && ours.size() > kCrowded * capacity;
      if (large && split_into(crowded)) continue;
      const bool roomy = ours.size() > 2 * kRoomier * capacity && ask.repeats < kMostScans;
      (roomy ? dense : listed).push_back(region.top);
      continue;
    }
    SEMEL_TRY(take_numbers(view, region, differing->only_ours));
    if (!differing->only_theirs.empty()) {
      items.push_back({region, false, std::move(differing->only_theirs)});
    }
  }
  repair_.ask_items(std::move(items));
  repair_.ask_copy(copied);
  SEMEL_TRY(ask_again(view, crowded, dense, capacity, ask.repeats + 1));
  SEMEL_TRY(ask.list ? ask_lists(view, deeper)
                     : ask_walk(view, deeper,
                                {deeper.size() / 2 * budget::kDeeperSlots,
                                 budget::detail(looked_for_), looked_for_}));
  return ask_lists(view, listed);
}

// Asks again about slots with more differences than expected, with enough room that one more
// question usually suffices.
Result<void> Search::ask_again(const RangeView& view, std::span<const BitPath> halves,
                               std::span<const BitPath> whole, std::uint32_t capacity,
                               int repeats) {
  const double room = static_cast<double>(kRoomier) * capacity;
  const double split = room * static_cast<double>(halves.size()) / 2;
  looked_for_ = std::max(looked_for_, split);
  SEMEL_TRY(
      ask_walk(view, halves,
               {halves.size() / 2 * budget::kDeeperSlots, budget::detail(looked_for_), split}));
  return ask_walk(view, whole,
                  {whole.size(), UINT64_MAX,
                   static_cast<double>(whole.size()) * budget::mean_of_capacity(room), repeats});
}

void Search::ask_scan(Scan scan, int attempt) {
  Bytes body;
  Writer out(body);
  frame::encode(scan, out);
  s_.exchange.ask(frame::Topic::scan, std::move(body), ScanAsk{std::move(scan), attempt});
}

Result<void> Search::scan_answered(const ScanAsk& ask, Reader in) {
  const Scan& scan = ask.scan;
  const std::uint64_t sketches = scan.sketches();
  if (in.rest() != sketches * scan.capacity * 4) return kNotAsked;
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  const ShortDigest shorten_record = s_.shorten(ShortDigest::Of::record);
  std::vector<std::uint32_t> syndromes = SEMEL_TRY(sketch_partitions(view, scan, shorten_record));
  for (std::uint32_t& word : syndromes) word ^= in.u32();

  std::unordered_set<std::uint64_t> differing;
  std::vector<std::uint32_t> failed;
  for (std::uint64_t i = 0; i < sketches; ++i) {
    const auto partition = scan.only.empty() ? static_cast<std::uint32_t>(i) : scan.only[i];
    const std::span<const std::uint32_t> all(syndromes);
    const Result<std::vector<std::uint32_t>> numbers =
        decoded(all.subspan(i * scan.capacity, scan.capacity));
    if (!numbers) {
      failed.push_back(partition);
      continue;
    }
    for (const std::uint32_t number : *numbers) differing.insert(placed(partition, number));
  }
  // Far more differs than expected. Asks again with enough partitions for everything.
  if (scan.only.empty() && failed.size() * 2 > sketches && ask.attempt < kMostScans) {
    looked_for_ *= 4;
    const budget::Partition more = budget::partition(looked_for_);
    if (more.bytes() <= s_.room()) {
      ask_scan({scan.tops, more.partitions, more.capacity, {}}, ask.attempt + 1);
      return {};
    }
    return ask_lists(view, scan.tops);
  }
  // Toggling removes the records that are found here. The rest are at the other end.
  EntryDigest digest(s_.index.secret());
  for (const BitPath& top : scan.tops) {
    const Result<void> read =
        view.read({top, {}}, "", [&](std::string_view key, std::string_view value) {
          const Digest found = digest(key, value);
          const RecordId id = RecordId::of(shorten_record, found);
          if (differing.erase(placed(id.partition(scan.partitions), id.number)) > 0) {
            repair_.take_ours(key, value, found);
          }
          return true;
        });
    if (!read) return read;
  }
  ask_placed(scan, std::move(differing));
  if (!failed.empty()) scan_again(ask, std::move(failed));
  return {};
}

// Asks for the records of these partitions and numbers.
void Search::ask_placed(const Scan& scan, std::unordered_set<std::uint64_t> wanted) {
  if (wanted.empty()) return;
  FetchAsk ask;
  ask.fetch.content = s_.content();
  ask.fetch.wide = ask.fetch.content == Content::digest;
  ask.fetch.partitions = scan.partitions;
  std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
  for (const std::uint64_t each : wanted) {
    parts[static_cast<std::uint32_t>(each >> 32)].push_back(
        ask.fetch.named(static_cast<std::uint32_t>(each)));
  }
  for (const BitPath& top : scan.tops) ask.fetch.items.push_back({{top, {}}, false, {}});
  for (auto& [partition, numbers] : parts) {
    std::ranges::sort(numbers);
    ask.fetch.parts.push_back({partition, std::move(numbers)});
  }
  ask.placed = std::move(wanted);
  repair_.ask_fetch(std::move(ask));
}

// Asks again for the sketches that did not decode, with twice the capacity.
void Search::scan_again(const ScanAsk& ask, std::vector<std::uint32_t> failed) {
  Scan again = ask.scan;
  again.only = std::move(failed);
  again.capacity = std::min(ask.scan.capacity * 2, SetSketch::kMostCapacity);
  const bool hopeless = ask.attempt >= kMostScans || again.capacity == ask.scan.capacity ||
                        again.sketches() * again.capacity * 4 > s_.room();
  if (hopeless) {
    escalate_ = true;
  } else {
    ask_scan(std::move(again), ask.attempt + 1);
  }
}

Result<void> Search::take_region(const RangeView& view, const Region& region) {
  EntryDigest digest(s_.index.secret());
  return view.read(region, "", [&](std::string_view key, std::string_view value) {
    repair_.take_ours(key, value, digest(key, value));
    return true;
  });
}

Result<void> Search::take_numbers(const RangeView& view, const Region& region,
                                  std::span<const std::uint32_t> numbers) {
  if (numbers.empty()) return {};
  const ShortDigest shorten_record = s_.shorten(ShortDigest::Of::record);
  EntryDigest digest(s_.index.secret());
  return view.read(region, "", [&](std::string_view key, std::string_view value) {
    const Digest found = digest(key, value);
    if (std::ranges::binary_search(numbers, RecordId::of(shorten_record, found).number)) {
      repair_.take_ours(key, value, found);
    }
    return true;
  });
}

}  // namespace semel::sync_internal
