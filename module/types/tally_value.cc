#include "module/types/tally_value.h"

#include <utility>

#include "module/types/secret.h"
#include "semel/core/assert.h"
#include "semel/hash/internal/sealed.h"

namespace semel::module {
namespace {

constexpr Format kFormat{"MTL", 1, "table of a key"};  // docs/formats/module_tally_v1.md

}  // namespace

const host::TypeSpec TallyValue::kType = {"SMLtally-", 1,     &TallyValue::decode,
                                          "tally",     false, true};

Result<std::unique_ptr<TallyValue>> TallyValue::make(const Secret& secret,
                                                     tally::Recognition recogniser, TimeMs now_ms) {
  const Hasher hasher = hasher_of(secret);
  recogniser.hash = hasher.id();
  tally::Table table = SEMEL_TRY(tally::Table::make({.recognition = recogniser}, now_ms));
  return std::make_unique<TallyValue>(secret, hasher, std::move(table));
}

void TallyValue::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, secret_);
    table_.encode(w.sink());
  });
}

Result<std::unique_ptr<host::Value>> TallyValue::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Secret secret = read_secret(r);
  if (!r.ok()) return corrupt(kFormat, "size");
  tally::Table table = SEMEL_TRY(decoded_part(tally::Table::decode(r.view(r.rest()))));
  const Hasher hasher = hasher_of(secret);
  if (table.info().recognition.hash != hasher.id()) {
    return corrupt(kFormat, "the secret of another table");
  }
  return std::unique_ptr<host::Value>(
      std::make_unique<TallyValue>(secret, hasher, std::move(table)));
}

std::unique_ptr<host::Value> TallyValue::clone() const {
  Bytes bytes;
  encode(bytes);
  Result<std::unique_ptr<host::Value>> copied = decode(bytes);
  SEMEL_ASSERT(copied.has_value());
  return std::move(*copied);
}

host::Figures TallyValue::figures() const {
  return {.items = table_.sum({}).count,
          .capacity = table_.recognition().ids,
          .forgotten_early = table_.counts().forgotten_early};
}

host::ErrorRate TallyValue::error_rate() const {
  const tally::Recognition& goal = table_.recognition();
  const bool exact = goal.kind == tally::Recognition::Kind::exact;
  return {table_.false_positive_rate(), exact ? 0 : goal.fpr};
}

// Counters lie in blocks of a few hundred.
std::size_t TallyValue::parts() const {
  return 16 + static_cast<std::size_t>(table_.sum({}).count / 256);
}

}  // namespace semel::module
