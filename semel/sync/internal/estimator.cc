#include "semel/sync/internal/estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "semel/sync/internal/probe.h"

namespace semel::sync_internal {
namespace {

using frame::SlotAnswer;

// Counts the numbers that only one of the two has.
std::uint64_t differing_numbers(std::vector<std::uint32_t> ours,
                                std::vector<std::uint32_t> theirs) {
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  std::vector<std::uint32_t> differing;
  std::ranges::set_symmetric_difference(ours, theirs, std::back_inserter(differing));
  return differing.size();
}

}  // namespace

Result<void> Estimator::begin() {
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  s_.here = SEMEL_TRY(view.sum(BitPath()));
  const IndexedStore::RangeFloret floret =
      SEMEL_TRY(s_.index.floret(held, s_.stretch, IndexedStore::Fresh::not_worn));
  unknown_ = floret.unknown;
  Bytes body;
  Writer out(body);
  frame::encode(frame::Hello{s_.here, floret.unknown, floret.floret.bytes()}, out);
  s_.exchange.ask(frame::Topic::hello, std::move(body), HelloAsk{});
  return {};
}

Result<Estimator::Answer> Estimator::hello_answered(Reader in) {
  const frame::HelloReply reply = SEMEL_TRY(frame::decode_hello_reply(in));
  s_.there = reply.sum;
  s_.findings.begin(s_.here, s_.there);
  question_ = {};
  if (s_.here == s_.there) {  // even if the florets miss some changes
    if (in.rest() != 0) return kNotAsked;
    return Answer(Estimated());
  }
  SEMEL_TRY(compare_first(in));
  return estimate_difference(reply);
}

// Notes where the two ends differ, by the first frontier.
Result<void> Estimator::compare_first(Reader in) {
  const std::vector<PeerSlot> slots = SEMEL_TRY(decode_frontier(in));
  if (in.rest() != 0) return kNotAsked;
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  const ShortDigest node = s_.shorten(ShortDigest::Of::node);
  PlanInputs& known = question_.known;
  known.slots = 0;
  known.slots_differing = 0;
  for (const PeerSlot& slot : slots) {
    const Aggregate sum = SEMEL_TRY(view.sum(slot.region));
    const bool nothing_there = slot.empty || s_.there.count == 0;
    if (!slot.empty || sum.count > 0) ++known.slots;
    if (nothing_there ? sum.count == 0 : node_bits(node, sum) == slot.digest) continue;
    ++known.slots_differing;
    known.records_in_question += sum.count;
    if (nothing_there) {
      question_.ours.push_back(slot.region);
      question_.our_records += sum.count;
    } else if (sum.count == 0) {
      question_.items.push_back({slot.region, true, {}});
    } else {
      question_.tops.push_back(slot.region.top);
      question_.records += sum.count;
    }
  }
  // The larger store has proportionally more records in question.
  if (s_.here.count > 0 && s_.there.count > s_.here.count) {
    known.records_in_question = static_cast<std::uint64_t>(
        static_cast<double>(known.records_in_question) * static_cast<double>(s_.there.count) /
        static_cast<double>(s_.here.count));
  }
  return {};
}

Result<Estimator::Answer> Estimator::estimate_difference(const frame::HelloReply& reply) {
  if (s_.settings.assumed_difference && s_.pass == 1)
    return Answer(Estimated{*s_.settings.assumed_difference, 0});
  const double unknown = static_cast<double>(unknown_) + static_cast<double>(reply.unknown);
  if (!probe::is_doubtful(reply.total, reply.reliable, unknown)) {
    // Changes that the florets miss may differ too.
    return Answer(Estimated{reply.total + unknown, std::hypot(reply.error, unknown)});
  }
  return probe();
}

Result<Estimator::Answer> Estimator::probe() {
  if (question_.records <= probe::kTooFew) {  // all records in question may differ
    const auto all = static_cast<double>(question_.known.records_in_question);
    return Answer(Estimated{all, all});
  }
  SEMEL_TRY(ask_probe(
      std::max<std::uint64_t>(question_.records / (question_.tops.size() * probe::kNodes), 1)));
  return Answer();
}

// Returns nodes that differ, or lie below nodes that differ. They are in order, and none is below
// another. Each is a container or has at most `records` records.
Result<std::vector<BitPath>> Estimator::sample(const RangeView& view, std::size_t nodes,
                                               std::uint64_t records) {
  std::vector<BitPath> chosen;
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t many = question_.tops.size();
    // The nodes are taken from all tops, so that no part is left out.
    BitPath node = question_.tops[(i * many + s_.salts.below(many)) / nodes % many];
    for (;;) {
      const Aggregate sum = SEMEL_TRY(view.sum(node));
      if (sum.count <= records) break;
      std::optional<BitPath> at = view.branch(node);
      if (!at) break;
      node = *std::move(at);
      node.push(s_.salts.below(2) == 1);
    }
    chosen.push_back(std::move(node));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

// Asks about slots of about `width` records, or for lists if it is 0.
Result<void> Estimator::ask_probe(std::uint64_t width) {
  IndexedStore::View held = SEMEL_TRY(s_.index.view());
  const RangeView view(held.trie(), held.cursor(), s_.stretch);
  const bool list = width == 0;
  const std::vector<BitPath> nodes =
      SEMEL_TRY(list ? sample(view, probe::kLists, 0)
                     : sample(view, probe::kNodes, width * probe::kSlots / probe::kNodes));
  const Frontier frontier =
      SEMEL_TRY(Frontier::grow(view, nodes, list ? nodes.size() : probe::kSlots, width));
  Bytes body;
  Writer out(body);
  frame::encode(frame::Compare{0, list ? UINT64_MAX : 0, list}, out);
  frontier.encode(s_.shorten(ShortDigest::Of::node), out);
  ++question_.probes;
  question_.probe_bytes += body.size();
  s_.exchange.ask(frame::Topic::compare, std::move(body), ProbeAsk{frontier.slots(), width});
  return {};
}

Result<Estimator::Answer> Estimator::probe_answered(const ProbeAsk& ask, Reader in) {
  question_.probe_bytes += in.rest();
  const std::vector<SlotAnswer> answers = SEMEL_TRY(frame::decode_answers(in, ask.slots.size()));
  if (ask.width == 0) return lists_answered(ask, answers);
  probe::Sample seen;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const bool differs = answers[i].kind != SlotAnswer::Kind::equal;
    const std::uint64_t records = ask.slots[i].sum.count;
    if (records == 0 && !differs) continue;
    ++seen.slots;
    seen.records += records;
    if (differs) ++seen.differing;
  }
  if (seen.saturated()) {
    // Slots are never smaller than containers.
    const std::uint64_t finer = ask.width / probe::kFiner;
    const std::uint64_t mean = seen.records / std::max<std::uint64_t>(seen.slots, 1);
    SEMEL_TRY(ask_probe(finer > 0 && mean < 4 * ask.width ? finer : 0));
    return Answer();
  }
  const double keys =
      std::max(seen.keys_among(question_.records), static_cast<double>(question_.tops.size()));
  const double total = probe::records_of(keys, s_.here.count, s_.there.count) +
                       static_cast<double>(question_.our_records);
  return Answer(probe::with_error(total, seen.differing));
}

Result<Estimator::Answer> Estimator::lists_answered(const ProbeAsk& ask,
                                                    std::span<const SlotAnswer> answers) {
  std::uint64_t records = 0;
  std::uint64_t differing = 0;
  {
    IndexedStore::View held = SEMEL_TRY(s_.index.view());
    const RangeView view(held.trie(), held.cursor(), s_.stretch);
    const ShortDigest shorten_record = s_.shorten(ShortDigest::Of::record);
    EntryDigest digest(s_.index.secret());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      std::vector<std::uint32_t> ours;
      SEMEL_TRY(
          view.read(ask.slots[i].region, "", [&](std::string_view key, std::string_view value) {
            ours.push_back(RecordId::of(shorten_record, digest(key, value)).number);
            return true;
          }));
      records += ours.size();
      if (answers[i].kind == SlotAnswer::Kind::equal) continue;
      // Without a list, all records of the slot may differ.
      const bool list = answers[i].kind == SlotAnswer::Kind::list;
      differing += list ? differing_numbers(std::move(ours), answers[i].numbers) : ours.size();
    }
  }
  const double share =
      static_cast<double>(differing) / static_cast<double>(std::max<std::uint64_t>(records, 1));
  return Answer(probe::with_error(
      share * static_cast<double>(question_.records) + static_cast<double>(question_.our_records),
      differing));
}

}  // namespace semel::sync_internal
