#include <algorithm>
#include <cmath>
#include <utility>

#include "semel/sync/internal/initiator_body.h"
#include "semel/sync/internal/probe.h"

namespace semel {
namespace {

using frame::SlotAnswer;

constexpr Error kNotAsked{Errc::corrupt, "sync: the other end answers what was not asked"};

// The numbers that are in one of the two alone.
std::uint64_t differing_numbers(std::vector<std::uint32_t> ours,
                                std::vector<std::uint32_t> theirs) {
  std::ranges::sort(ours);
  std::ranges::sort(theirs);
  std::vector<std::uint32_t> differing;
  std::ranges::set_symmetric_difference(ours, theirs, std::back_inserter(differing));
  return differing.size();
}

}  // namespace

Result<void> Initiator::Body::hello_answered(Reader in) {
  const Result<frame::HelloReply> reply = frame::decode_hello_reply(in);
  if (!reply) return reply.error();
  there_ = reply->sum;
  findings_.begin(here_, there_);
  question_ = {};
  probes_ = 0;
  probe_bytes_ = 0;
  if (pass_ == 1 && last_stretch_) range_records_ = records_done_ + here_.count;
  if (here_ == there_) {  // whatever the florets do not know of
    if (in.rest() != 0) return kNotAsked;
    return estimated({});
  }
  const Result<void> compared = compare_first(in);
  return compared ? estimate_difference(*reply) : compared;
}

// Where the first frontier says that the two ends differ.
Result<void> Initiator::Body::compare_first(Reader in) {
  const Result<std::vector<PeerSlot>> slots = decode_frontier(in);
  if (!slots) return slots.error();
  if (in.rest() != 0) return kNotAsked;
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  const ShortDigest node = shorten(ShortDigest::Of::node);
  Known& known = question_.known;
  known.slots = 0;
  known.slots_differing = 0;
  for (const PeerSlot& slot : *slots) {
    const Result<Aggregate> sum = view.sum(slot.region);
    if (!sum) return sum.error();
    const bool nothing_there = slot.empty || there_.count == 0;
    if (!slot.empty || sum->count > 0) ++known.slots;
    if (nothing_there ? sum->count == 0 : node_bits(node, *sum) == slot.digest) continue;
    ++known.slots_differing;
    known.records_in_question += sum->count;
    if (nothing_there) {
      question_.ours.push_back(slot.region);
      question_.our_records += sum->count;
    } else if (sum->count == 0) {
      question_.items.push_back({slot.region, true, {}});
    } else {
      question_.tops.push_back(slot.region.top);
      question_.records += sum->count;
    }
  }
  // The larger store has as many more records in question.
  if (here_.count > 0 && there_.count > here_.count) {
    known.records_in_question = static_cast<std::uint64_t>(
        static_cast<double>(known.records_in_question) * static_cast<double>(there_.count) /
        static_cast<double>(here_.count));
  }
  return {};
}

Result<void> Initiator::Body::estimate_difference(const frame::HelloReply& reply) {
  if (settings_.assumed_difference && pass_ == 1)
    return estimated({*settings_.assumed_difference, 0});
  const double unknown = static_cast<double>(unknown_) + static_cast<double>(reply.unknown);
  if (!probe::is_doubtful(reply.total, reply.reliable, unknown)) {
    // What a floret does not know of may differ too.
    return estimated({reply.total + unknown, std::hypot(reply.error, unknown)});
  }
  return probe();
}

// What differs is known, or about so: the stretch may be cut, or the search begins.
Result<void> Initiator::Body::estimated(const Estimated& total) {
  estimate_ = estimate_of_total(total, here_.count, there_.count);
  looked_for_ = here_ == there_ ? 0 : looked_for(estimate_);
  if (pass_ == 1) {
    const Result<bool> cut = cut_stretch();
    if (!cut) return cut.error();
    if (*cut) return ask_hello();
    report_.initiator += here_;
    report_.responder += there_;
  }
  if (here_ != there_) return find();
  predict({});
  return {};
}

Result<void> Initiator::Body::probe() {
  if (question_.records <= probe::kTooFew) {  // all that are in question may differ
    const auto all = static_cast<double>(question_.known.records_in_question);
    return estimated({all, all});
  }
  return ask_probe(
      std::max<std::uint64_t>(question_.records / (question_.tops.size() * probe::kNodes), 1));
}

// Nodes that differ, or lie below ones that do, each of no more records than this or a container; in
// order, and none below another.
Result<std::vector<BitPath>> Initiator::Body::sample(const RangeView& view, std::size_t nodes,
                                                     std::uint64_t records) {
  std::vector<BitPath> chosen;
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::size_t many = question_.tops.size();
    // From all over the tops, so that no part is left out.
    BitPath node = question_.tops[(i * many + salts_.below(many)) / nodes % many];
    for (;;) {
      const Result<Aggregate> sum = view.sum(node);
      if (!sum) return sum.error();
      if (sum->count <= records) break;
      std::optional<BitPath> at = view.branch(node);
      if (!at) break;
      node = *std::move(at);
      node.push(salts_.below(2) == 1);
    }
    chosen.push_back(std::move(node));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

// Of slots of about so many records; 0 of lists.
Result<void> Initiator::Body::ask_probe(std::uint64_t width) {
  Result<IndexedStore::View> held = index_.view();
  if (!held) return held.error();
  const RangeView view(held->trie(), held->cursor(), stretch_);
  const bool list = width == 0;
  const Result<std::vector<BitPath>> nodes =
      list ? sample(view, probe::kLists, 0)
           : sample(view, probe::kNodes, width * probe::kSlots / probe::kNodes);
  if (!nodes) return nodes.error();
  const Result<Frontier> frontier =
      Frontier::grow(view, *nodes, list ? nodes->size() : probe::kSlots, width);
  if (!frontier) return frontier.error();
  Bytes body;
  Writer out(body);
  frame::encode(frame::Compare{0, list ? UINT64_MAX : 0, list}, out);
  frontier->encode(shorten(ShortDigest::Of::node), out);
  ++probes_;
  probe_bytes_ += body.size();
  exchange_.ask(frame::Topic::compare, std::move(body), ProbeAsk{frontier->slots(), width});
  return {};
}

Result<void> Initiator::Body::probe_answered(const ProbeAsk& ask, Reader in) {
  probe_bytes_ += in.rest();
  const Result<std::vector<SlotAnswer>> answers = frame::decode_answers(in, ask.slots.size());
  if (!answers) return answers.error();
  if (ask.width == 0) return lists_answered(ask, *answers);
  probe::Sample seen;
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const bool differs = (*answers)[i].kind != SlotAnswer::Kind::equal;
    const std::uint64_t records = ask.slots[i].sum.count;
    if (records == 0 && !differs) continue;
    ++seen.slots;
    seen.records += records;
    if (differs) ++seen.differing;
  }
  if (seen.saturated()) {
    // Slots are no smaller than containers.
    const std::uint64_t finer = ask.width / probe::kFiner;
    const std::uint64_t mean = seen.records / std::max<std::uint64_t>(seen.slots, 1);
    return ask_probe(finer > 0 && mean < 4 * ask.width ? finer : 0);
  }
  const double keys =
      std::max(seen.keys_among(question_.records), static_cast<double>(question_.tops.size()));
  const double total = probe::records_of(keys, here_.count, there_.count) +
                       static_cast<double>(question_.our_records);
  return estimated(probe::with_error(total, seen.differing));
}

Result<void> Initiator::Body::lists_answered(const ProbeAsk& ask,
                                             std::span<const SlotAnswer> answers) {
  std::uint64_t records = 0;
  std::uint64_t differing = 0;
  {
    Result<IndexedStore::View> held = index_.view();
    if (!held) return held.error();
    const RangeView view(held->trie(), held->cursor(), stretch_);
    const ShortDigest shorten_record = shorten(ShortDigest::Of::record);
    EntryDigest digest(index_.secret());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      std::vector<std::uint32_t> ours;
      const Result<void> read =
          view.read(ask.slots[i].region, "", [&](std::string_view key, std::string_view value) {
            ours.push_back(RecordId::of(shorten_record, digest(key, value)).number);
            return true;
          });
      if (!read) return read;
      records += ours.size();
      if (answers[i].kind == SlotAnswer::Kind::equal) continue;
      // A slot of which the other end tells no more may differ as a whole.
      const bool list = answers[i].kind == SlotAnswer::Kind::list;
      differing += list ? differing_numbers(std::move(ours), answers[i].numbers) : ours.size();
    }
  }
  const double share =
      static_cast<double>(differing) / static_cast<double>(std::max<std::uint64_t>(records, 1));
  return estimated(probe::with_error(
      share * static_cast<double>(question_.records) + static_cast<double>(question_.our_records),
      differing));
}

}  // namespace semel
