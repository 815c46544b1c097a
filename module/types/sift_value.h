// SiftValue: the sift behind a key.
//
// Contract  As in semel/sift/sifter.h. Ids and owners are hashed here, with the secret of the
//           key. A claim that nobody took over can be committed for a window after its deadline.
//           Reads and duplicates change nothing, not even the time of the sifter.
// Format    docs/formats/module_sift_v1.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "module/host/value.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"
#include "semel/sift/sifter.h"

namespace semel::module {

class SiftValue final : public host::Value {
 public:
  static const host::TypeSpec kType;

  // Sets goal.hash to the hash of the secret, and goal.keep_ms to the window. Errors are those of
  // Sifter::make.
  static Result<std::unique_ptr<SiftValue>> make(const Secret& secret, Sifter::Goal goal,
                                                 TimeMs now_ms);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  const Hasher& hasher() const { return hasher_; }
  Digest id_of(std::string_view id) const { return hasher_(id); }
  std::uint64_t owner_of(std::string_view owner) const { return hasher_(owner).lo; }

  Sifter& sifter() { return sifter_; }
  const Sifter& sifter() const { return sifter_; }

  bool advance(TimeMs now_ms) override {
    sifter_.advance(now_ms);
    return true;
  }
  void encode(Sink out) const override;
  std::uint64_t bytes() const override { return sizeof(*this) + sifter_.bytes(); }
  std::unique_ptr<host::Value> clone() const override;
  bool renew(std::uint64_t section) override { return sifter_.renew_claims(section); }
  host::Figures figures() const override;
  host::ErrorRate error_rate() const override {
    return {sifter_.false_positive_rate(), sifter_.goal().fpr};
  }
  std::size_t parts() const override { return 16 + static_cast<std::size_t>(sifter_.claims()); }

  SiftValue(const Secret& secret, const Hasher& hasher, Sifter sifter)
      : secret_(secret), hasher_(hasher), sifter_(std::move(sifter)) {}

 private:
  Secret secret_;
  Hasher hasher_;
  Sifter sifter_;
};

}  // namespace semel::module
