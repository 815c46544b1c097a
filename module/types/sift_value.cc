#include "module/types/sift_value.h"

#include "module/types/secret_frame.h"

namespace semel::module {
namespace {

constexpr std::uint32_t kMagic = 0x3153564d;  // "MVS1"

}  // namespace

const host::TypeSpec SiftValue::kType = {"SMLsift--", 1, &SiftValue::decode};

Result<std::unique_ptr<SiftValue>> SiftValue::make(const Secret& secret, SiftGoal goal,
                                                   TimeMs now_ms) {
  const Hasher hasher = hasher_of(secret);
  goal.hash = hasher.id();
  goal.keep_ms = goal.window_ms;
  Result<AnySifter> sifter = AnySifter::make(goal, now_ms);
  if (!sifter) return sifter.error();
  return std::make_unique<SiftValue>(secret, hasher, *std::move(sifter));
}

void SiftValue::encode(Sink out) const {
  encode_frame(out, kMagic, secret_, [&](Sink body) { sifter_.encode(body); });
}

Result<std::unique_ptr<host::Value>> SiftValue::decode(ByteView in) {
  const Result<Frame> frame = decode_frame(in, kMagic, "a sift: header or checksum");
  if (!frame) return frame.error();
  Result<AnySifter> sifter = AnySifter::decode(frame->body);
  // Behind a sound checksum, a part that ends too early is as corrupt as any other.
  if (!sifter) return Error{Errc::corrupt, sifter.error().what};
  const Hasher hasher = hasher_of(frame->secret);
  if (sifter->goal().hash != hasher.id()) {
    return Error{Errc::corrupt, "a sift with the secret of another"};
  }
  if (sifter->goal().keep_ms != sifter->goal().window_ms) {
    return Error{Errc::corrupt, "a sift that keeps claims for another time"};
  }
  return std::unique_ptr<host::Value>(
      std::make_unique<SiftValue>(frame->secret, hasher, *std::move(sifter)));
}

std::unique_ptr<host::Value> SiftValue::copy() const {
  return std::make_unique<SiftValue>(secret_, hasher_, sifter_);
}

}  // namespace semel::module
