// Every value that a table keeps in a store: any bytes are refused, or encode to the very same
// bytes.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "fuzz/accepted.h"
#include "fuzz/decode.h"
#include "semel/tally/counters/internal/counter_state.h"
#include "semel/tally/internal/entries.h"
#include "semel/tally/internal/ledger.h"
#include "semel/tally/operation.h"
#include "semel/tally/store/internal/store_batch.h"
#include "semel/tally/store/internal/store_shape.h"

namespace semel::tally {

using namespace internal;

namespace {

std::string key_of(const Operation& operation) { return operation_key(operation.dot); }
std::string key_of(const ViewOfSite& said) { return view_key(said.site); }
std::string value_of(const Operation& operation) { return entry_of(operation); }
std::string value_of(const ViewOfSite& said) { return entry_of(said.site, said.view); }

// An entry is refused, or it is that of its key and gives the very same bytes.
void entry_refuses_or_round_trips(std::string_view key, ByteView in) {
  const Result<SharedEntry> entry = decode_entry(key, in);
  if (!entry) return;
  ++accepted_inputs;
  const auto differs = [&](const auto& read) {
    return key_of(read) != key || value_of(read) != text_of(in);
  };
  if (std::visit(differs, *entry)) std::abort();
}

// Returns the bytes with the checksum of an entry, in place of their last ones if there are enough.
Bytes resealed(std::string_view key, ByteView in) {
  const std::size_t body = in.size() < 8 ? in.size() : in.size() - 8;
  Bytes repaired(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(body));
  Writer(repaired).u64(entry_checksum(key, repaired));
  return repaired;
}

struct State {
  static Result<Ledger::State> decode(ByteView in) {
    Reader r(in);
    Result<Ledger::State> state = Ledger::State::decode(r);
    if (state && r.rest() != 0) return Error{Errc::corrupt, "of another length"};
    return state;
  }
};

// A table writes a record a piece at a time: this is the whole.
template <bool kWithContent>
struct Journal {
  JournalRecord record;

  static Result<Journal> decode(ByteView in) {
    Result<JournalRecord> record = JournalRecord::decode(in, kWithContent);
    if (!record) return record.error();
    return Journal{std::move(*record)};
  }
  void encode(Sink out) const {
    Writer w(out);
    w.varint(record.ids.size());
    for (const Recogniser::Query& query : record.ids) {
      query.id.encode(out);
      if (!kWithContent) continue;
      w.u64(query.content.lo);
      w.u64(query.content.hi);
    }
    w.varint(record.operations.size());
    for (const Operation& operation : record.operations) {
      Bytes value;
      operation.encode(value);
      w.u64(operation.dot.packed());
      w.text(text_of(value));
    }
  }
};

void join_is_a_join(std::string_view key, ByteView one, ByteView other) {
  const std::string_view a = text_of(one), b = text_of(other);
  const std::string both = join_entries(key, a, b);
  if (both != join_entries(key, b, a) || both != join_entries(key, both, a)) std::abort();
}

// Half of the bytes against the other half and against all, as they are and with checksums.
void shared_entries_are_sound(ByteView in) {
  const ByteView first = in.first(in.size() / 2), second = in.subspan(in.size() / 2);
  for (const std::string& key : {operation_key({1, 1}), view_key(1)}) {
    const Bytes whole = resealed(key, in), half = resealed(key, first);
    entry_refuses_or_round_trips(key, in);
    entry_refuses_or_round_trips(key, whole);
    join_is_a_join(key, first, second);
    join_is_a_join(key, whole, in);
    join_is_a_join(key, half, resealed(key, second));
  }
}

}  // namespace
}  // namespace semel::tally

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tally;
  const semel::ByteView bytes(data, size);
  semel::decode_refuses_or_round_trips<CounterState>(bytes);
  semel::decode_refuses_or_round_trips<State>(bytes);
  semel::decode_refuses_or_round_trips<Journal<false>>(bytes);
  semel::decode_refuses_or_round_trips<Journal<true>>(bytes);
  semel::fuzz_decode<StoreShape>(data, size);
  shared_entries_are_sound(bytes);
  return 0;
}
