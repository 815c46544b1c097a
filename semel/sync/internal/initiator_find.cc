#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include "semel/sync/internal/budget.h"
#include "semel/sync/internal/initiator_body.h"
#include "semel/sync/internal/partition_sketch.h"
#include "semel/sync/internal/set_sketch.h"

namespace semel {
namespace {

using frame::Content;
using frame::Fetch;
using frame::Scan;
using frame::SlotAnswer;

constexpr Error kNotAsked{Errc::corrupt, "sync: the other end answers what was not asked"};

// Slots of a list: with so many records each, their digests weigh nothing beside the list.
constexpr std::uint64_t kListSlot = 1024;
// Slots of a walk are not split below this.
constexpr std::uint64_t kWalkSlot = 4;
// A slot whose sketches do not suffice, for the second time, is split if it has more records than
// this for each number that the last one had room for: the parts and their sketches take half of the
// bytes of a list at the most.
constexpr std::size_t kCrowded = 40;
// A sketch that does not suffice is followed by one of so many times the room, if that is less than
// half of a list.
constexpr std::size_t kRoomier = 4;
// Sketches that did not decode are asked for again so often, with more capacity each time.
constexpr int kMostScans = 5;

// Numbers of records that only one end has, in increasing order.
struct NumberDifference {
  std::vector<std::uint32_t> only_ours;
  std::vector<std::uint32_t> only_theirs;
};

// The numbers that a sketch holds. One that holds too many decodes all the same, once in the
// factorial of its capacity, to as many numbers as it has room for, none of which are right: so a
// full sketch is not believed.
Result<std::vector<std::uint32_t>> decoded(std::span<const std::uint32_t> syndromes) {
  Result<std::vector<std::uint32_t>> numbers = SetSketch::decode(syndromes);
  if (numbers && numbers->size() >= syndromes.size()) {
    return Error{Errc::limit, "sketch: full"};
  }
  return numbers;
}

// nullopt if the answer is a sketch that does not hold so many. `ours` is sorted.
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

Travels Initiator::Body::travels() const {
  switch (content()) {
    case Content::records:
      return Travels::records;
    case Content::keys:
      return Travels::keys;
    case Content::digest:
      break;
  }
  return Travels::nothing;
}

void Initiator::Body::predict(Known known) {
  known.initiator = here_;
  known.responder = there_;
  known.difference = estimate_;
  known.to_initiator = travels();
  known.stores = settings_.purpose != Purpose::diff && (gives() || calls_back());
  const Plan plan = make_plan(known, settings_.link);
  predicted_ = plan.best;
  const bool list = std::exchange(escalate_, false);
  const std::optional<Way> way = list ? std::optional(Way::list) : settings_.way;
  if (way && plan.best.way != Way::nothing) predicted_ = plan.all[static_cast<std::size_t>(*way)];
  predicted_.bytes.value += static_cast<double>(probe_bytes_);
  predicted_.round_trips += probes_;
  if (pass_ > 1) return;
  if (estimate_.total.value >= report_.estimate.total.value) {
    report_.estimate = estimate_;
    report_.plan = plan;
    report_.way = predicted_.way;
  }
  report_.predicted += predicted_;
  report_.predicted.way = report_.way;
}

// REQUIRES: the difference is estimated.
Result<void> Initiator::Body::find() {
  Question question = std::move(question_);
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  question.known.containers = held->trie().container_count();
  predict(question.known);
  if (settings_.purpose == Purpose::plan) return {};
  for (const Region& region : question.ours) {
    const Result<void> taken = take_region(view, region);
    if (!taken) return taken;
  }
  ask_items(std::move(question.items));
  return find(view, question.tops);
}

Result<void> Initiator::Body::find(const RangeView& view, std::span<const BitPath> tops) {
  if (tops.empty()) return {};
  switch (predicted_.way) {
    case Way::nothing:
    case Way::walk:
      return ask_walk(view, tops,
                      {budget::walk_slots(looked_for_), budget::detail(looked_for_), looked_for_});
    case Way::sketch: {
      const budget::Partition partition = budget::partition(looked_for_);
      if (partition.bytes() > room()) break;  // a list is as good
      ask_scan({{tops.begin(), tops.end()}, partition.partitions, partition.capacity, {}}, 1);
      return {};
    }
    case Way::list:
      break;
    case Way::copy:
      ask_copy(tops);
      return {};
  }
  return ask_lists(view, tops);
}

void Initiator::Body::ask_copy(std::span<const BitPath> tops) {
  if (tops.empty()) return;
  FetchAsk all;
  for (const BitPath& top : tops) {
    all.fetch.items.push_back({{top, {}}, true, {}});
    all.numbers.emplace_back();
  }
  all.fetch.content = content() == Content::digest ? Content::keys : content();
  all.copy = true;
  ask_fetch(std::move(all));
}

Result<void> Initiator::Body::ask_compare(const RangeView& view, std::span<const BitPath> tops,
                                          bool list, const Walk& walk) {
  if (tops.empty()) return {};
  const Result<Frontier> frontier =
      Frontier::grow(view, tops, walk.slots, list ? kListSlot : kWalkSlot);
  if (!frontier) return frontier.error();
  Bytes body;
  Writer out(body);
  frame::encode(
      frame::Compare{static_cast<std::uint64_t>(std::ceil(walk.expected)), walk.detail, list}, out);
  frontier->encode(shorten(ShortDigest::Of::node), out);
  // An answer has about as many bytes for each slot that differs.
  std::uint64_t listed = 0;
  for (const Frontier::Slot& slot : frontier->slots()) listed += slot.sum.count;
  const bool large = body.size() > room() || (list && listed * 4 > room() / 2);
  if (!large || (tops.size() == 1 && frontier->slots().size() == 1)) {
    exchange_.ask(frame::Topic::compare, std::move(body),
                  CompareAsk{frontier->slots(), list, walk.repeats});
    return {};
  }
  // In two halves.
  std::vector<BitPath> split(tops.begin(), tops.end());
  if (split.size() == 1) {
    const std::optional<BitPath> at = view.branch(split[0]);
    if (!at) {
      exchange_.ask(frame::Topic::compare, std::move(body),
                    CompareAsk{frontier->slots(), list, walk.repeats});
      return {};
    }
    if (at->size() > split[0].size()) ask_items({{{split[0], *at}, true, {}}});
    split = {*at, *at};
    split[0].push(false);
    split[1].push(true);
  }
  const std::size_t half = split.size() / 2;
  const std::span<const BitPath> parts(split);
  const Walk halved{walk.slots - walk.slots / 2, walk.detail, walk.expected / 2, walk.repeats};
  const Result<void> left = ask_compare(view, parts.first(half), list, halved);
  if (!left) return left;
  return ask_compare(view, parts.subspan(half), list, halved);
}

Result<void> Initiator::Body::compare_answered(const CompareAsk& ask, Reader in) {
  const Result<std::vector<SlotAnswer>> answers = frame::decode_answers(in, ask.slots.size());
  if (!answers) return answers.error();
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  EntryDigest digest(index_.secret());

  std::vector<Fetch::Item> items;
  std::vector<BitPath> deeper;
  std::vector<BitPath> crowded;  // by more differences than were expected; split
  std::vector<BitPath> dense;    // the same, but not split
  std::uint32_t capacity = 0;    // of all sketches of the answer
  std::vector<BitPath> listed;
  std::vector<BitPath> copied;
  std::vector<std::uint32_t> ours;
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const SlotAnswer& answer = (*answers)[i];
    const Region& region = ask.slots[i].region;
    const bool nothing_here = ask.slots[i].sum.count == 0;
    if (answer.kind == SlotAnswer::Kind::equal) continue;
    if (nothing_here) {
      items.push_back({region, true, {}});
      continue;
    }
    if (answer.kind == SlotAnswer::Kind::none) {
      const Result<void> taken = take_region(view, region);
      if (!taken) return taken;
      continue;
    }
    // Splits at least once, so that what is too big gets smaller with every question.
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
    const Result<void> taken = take_numbers(view, region, differing->only_ours);
    if (!taken) return taken;
    if (!differing->only_theirs.empty()) {
      items.push_back({region, false, std::move(differing->only_theirs)});
    }
  }
  ask_items(std::move(items));
  ask_copy(copied);
  const Result<void> closer = ask_again(view, crowded, dense, capacity, ask.repeats + 1);
  if (!closer) return closer;
  const Result<void> further = ask.list ? ask_lists(view, deeper)
                                        : ask_walk(view, deeper,
                                                   {deeper.size() / 2 * budget::kDeeperSlots,
                                                    budget::detail(looked_for_), looked_for_});
  if (!further) return further;
  return ask_lists(view, listed);
}

// Asks for what there is more of than was expected, with so many times the room that one more
// question mostly does.
Result<void> Initiator::Body::ask_again(const RangeView& view, std::span<const BitPath> halves,
                                        std::span<const BitPath> whole, std::uint32_t capacity,
                                        int repeats) {
  const double room = static_cast<double>(kRoomier) * capacity;
  const double split = room * static_cast<double>(halves.size()) / 2;
  looked_for_ = std::max(looked_for_, split);
  const Result<void> closer = ask_walk(
      view, halves, {halves.size() / 2 * budget::kDeeperSlots, budget::detail(looked_for_), split});
  if (!closer) return closer;
  return ask_walk(view, whole,
                  {whole.size(), UINT64_MAX,
                   static_cast<double>(whole.size()) * budget::mean_of_capacity(room), repeats});
}

void Initiator::Body::ask_scan(Scan scan, int attempt) {
  Bytes body;
  Writer out(body);
  frame::encode(scan, out);
  exchange_.ask(frame::Topic::scan, std::move(body), ScanAsk{std::move(scan), attempt});
}

Result<void> Initiator::Body::scan_answered(const ScanAsk& ask, Reader in) {
  const Scan& scan = ask.scan;
  const std::uint64_t sketches = scan.sketches();
  if (in.rest() != sketches * scan.capacity * 4) return kNotAsked;
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  Result<std::vector<std::uint32_t>> syndromes = sketch_partitions(view, scan, shorten_record);
  if (!syndromes) return syndromes.error();
  for (std::uint32_t& word : *syndromes) word ^= in.u32();

  std::unordered_set<std::uint64_t> differing;
  std::vector<std::uint32_t> failed;
  for (std::uint64_t i = 0; i < sketches; ++i) {
    const auto partition = scan.only.empty() ? static_cast<std::uint32_t>(i) : scan.only[i];
    const std::span<const std::uint32_t> all(*syndromes);
    const Result<std::vector<std::uint32_t>> numbers =
        decoded(all.subspan(i * scan.capacity, scan.capacity));
    if (!numbers) {
      failed.push_back(partition);
      continue;
    }
    for (const std::uint32_t number : *numbers) differing.insert(placed(partition, number));
  }
  // Far more than expected: with partitions enough for all, nothing is found in part.
  if (scan.only.empty() && failed.size() * 2 > sketches && ask.attempt < kMostScans) {
    looked_for_ *= 4;
    const budget::Partition more = budget::partition(looked_for_);
    if (more.bytes() <= room()) {
      ask_scan({scan.tops, more.partitions, more.capacity, {}}, ask.attempt + 1);
      return {};
    }
    return ask_lists(view, scan.tops);
  }
  // What is here is taken out as it is found; the rest is there.
  EntryDigest digest(index_.secret());
  for (const BitPath& top : scan.tops) {
    const Result<void> read =
        view.read({top, {}}, "", [&](std::string_view key, std::string_view value) {
          const Digest found = digest(key, value);
          const RecordId id = RecordId::of(shorten_record, found);
          if (differing.erase(placed(id.partition(scan.partitions), id.number)) > 0) {
            take_ours(key, value, found);
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
void Initiator::Body::ask_placed(const Scan& scan, std::unordered_set<std::uint64_t> wanted) {
  if (wanted.empty()) return;
  FetchAsk ask;
  ask.fetch.content = content();
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
  ask_fetch(std::move(ask));
}

// The sketches that did not decode, with twice the capacity.
void Initiator::Body::scan_again(const ScanAsk& ask, std::vector<std::uint32_t> failed) {
  Scan again = ask.scan;
  again.only = std::move(failed);
  again.capacity = std::min(ask.scan.capacity * 2, SetSketch::kMostCapacity);
  const bool hopeless = ask.attempt >= kMostScans || again.capacity == ask.scan.capacity ||
                        again.sketches() * again.capacity * 4 > room();
  if (hopeless) {
    escalate_ = true;
  } else {
    ask_scan(std::move(again), ask.attempt + 1);
  }
}

Result<void> Initiator::Body::take_region(const RangeView& view, const Region& region) {
  EntryDigest digest(index_.secret());
  return view.read(region, "", [&](std::string_view key, std::string_view value) {
    take_ours(key, value, digest(key, value));
    return true;
  });
}

Result<void> Initiator::Body::take_numbers(const RangeView& view, const Region& region,
                                           std::span<const std::uint32_t> numbers) {
  if (numbers.empty()) return {};
  const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
  EntryDigest digest(index_.secret());
  return view.read(region, "", [&](std::string_view key, std::string_view value) {
    const Digest found = digest(key, value);
    if (std::ranges::binary_search(numbers, RecordId::of(shorten_record, found).number)) {
      take_ours(key, value, found);
    }
    return true;
  });
}

}  // namespace semel
