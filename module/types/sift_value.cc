#include "module/types/sift_value.h"

#include "module/types/secret.h"
#include "semel/hash/internal/sealed.h"

namespace semel::module {
namespace {

constexpr Format kFormat{"MSF", 1, "sift of a key"};  // docs/formats/module_sift_v1.md

}  // namespace

const host::TypeSpec SiftValue::kType = {"SMLsift--", 1, &SiftValue::decode, "sift", true, true};

Result<std::unique_ptr<SiftValue>> SiftValue::make(const Secret& secret, Sifter::Goal goal,
                                                   TimeMs now_ms) {
  const Hasher hasher = hasher_of(secret);
  goal.hash = hasher.id();
  goal.keep_ms = goal.window_ms;
  Sifter sifter = SEMEL_TRY(Sifter::make(goal, now_ms));
  return std::make_unique<SiftValue>(secret, hasher, std::move(sifter));
}

void SiftValue::encode(Sink out) const {
  seal(out, kFormat, [&](Writer& w) {
    write(w, secret_);
    sifter_.encode(w.sink());
  });
}

Result<std::unique_ptr<host::Value>> SiftValue::decode(ByteView in) {
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Secret secret = read_secret(r);
  if (!r.ok()) return corrupt(kFormat, "size");
  Sifter sifter = SEMEL_TRY(decoded_part(Sifter::decode(r.view(r.rest()))));
  const Hasher hasher = hasher_of(secret);
  if (sifter.goal().hash != hasher.id()) return corrupt(kFormat, "the secret of another sift");
  if (sifter.goal().keep_ms != sifter.goal().window_ms) {
    return corrupt(kFormat, "it keeps claims for another time");
  }
  return std::unique_ptr<host::Value>(
      std::make_unique<SiftValue>(secret, hasher, std::move(sifter)));
}

std::unique_ptr<host::Value> SiftValue::clone() const {
  return std::make_unique<SiftValue>(secret_, hasher_, sifter_);
}

host::Figures SiftValue::figures() const {
  return {.items = sifter_.ids(sifter_.now()),
          .capacity = sifter_.goal().ids,
          .claims = sifter_.claims(),
          .claims_expired = sifter_.claims_expired(),
          .forgotten_early = sifter_.counts().forgotten_early};
}

}  // namespace semel::module
