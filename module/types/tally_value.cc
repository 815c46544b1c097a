#include "module/types/tally_value.h"

#include <utility>

#include "module/types/secret_frame.h"
#include "semel/core/assert.h"

namespace semel::module {
namespace {

constexpr std::uint32_t kMagic = 0x3154564d;  // "MVT1"

}  // namespace

const host::TypeSpec TallyValue::kType = {"SMLtally-", 1, &TallyValue::decode};

Result<std::unique_ptr<TallyValue>> TallyValue::make(const Secret& secret,
                                                     tally::Recogniser::Goal recogniser,
                                                     TimeMs now_ms) {
  const Hasher hasher = hasher_of(secret);
  recogniser.hash = hasher.id();
  Result<tally::Table> table = tally::Table::make({.recogniser = recogniser}, now_ms);
  if (!table) return table.error();
  return std::make_unique<TallyValue>(secret, hasher, std::move(*table));
}

void TallyValue::encode(Sink out) const {
  encode_frame(out, kMagic, secret_, [&](Sink body) { table_.encode(body); });
}

Result<std::unique_ptr<host::Value>> TallyValue::decode(ByteView in) {
  const Result<Frame> frame = decode_frame(in, kMagic, "a table of counters");
  if (!frame) return frame.error();
  Result<tally::Table> table = tally::Table::decode(frame->body);
  if (!table) return table.error();
  const Hasher hasher = hasher_of(frame->secret);
  if (table->recogniser().goal().hash != hasher.id()) {
    return Error{Errc::corrupt, "a table of counters with the secret of another"};
  }
  return std::unique_ptr<host::Value>(
      std::make_unique<TallyValue>(frame->secret, hasher, std::move(*table)));
}

std::unique_ptr<host::Value> TallyValue::copy() const {
  Bytes bytes;
  encode(bytes);
  Result<std::unique_ptr<host::Value>> copied = decode(bytes);
  SEMEL_ASSERT(copied.has_value());
  return std::move(*copied);
}

// Counters lie in blocks, a few hundred in each.
std::size_t TallyValue::parts() const {
  return 16 + static_cast<std::size_t>(table_.sum({}).count / 256);
}

}  // namespace semel::module
