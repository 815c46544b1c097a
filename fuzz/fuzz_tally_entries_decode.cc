// Every value that a table keeps in a store: any bytes are refused, or encode to the very same
// bytes.
#include <algorithm>
#include <cstdlib>

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

struct SomeOperation {
  static Result<Operation> decode(ByteView in) { return Operation::decode({1, 1}, in); }
};

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

// Half of the bytes against the other half, under a key of either kind.
void join_is_a_join(ByteView in) {
  const std::string_view a = text_of(in.first(in.size() / 2));
  const std::string_view b = text_of(in.subspan(in.size() / 2));
  for (const std::string& key : {operation_key({1, 1}), view_key(1)}) {
    const std::string both = join_entries(key, a, b);
    if (both != join_entries(key, b, a) || both != join_entries(key, both, a)) std::abort();
  }
}

}  // namespace
}  // namespace semel::tally

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::tally;
  const semel::ByteView bytes(data, size);
  semel::decode_refuses_or_round_trips<CounterState>(bytes);
  semel::decode_refuses_or_round_trips<SomeOperation>(bytes);
  semel::decode_refuses_or_round_trips<SiteView>(bytes);
  semel::decode_refuses_or_round_trips<State>(bytes);
  semel::decode_refuses_or_round_trips<Journal<false>>(bytes);
  semel::decode_refuses_or_round_trips<Journal<true>>(bytes);
  semel::fuzz_decode<StoreShape>(data, size);
  join_is_a_join(bytes);
  return 0;
}
