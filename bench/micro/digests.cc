// Hashing: the two kinds of digest, beside the 64-bit hashes that hash tables use.
#include <absl/hash/hash.h>

#include <string_view>

#include "bench/harness.h"
#include "semel/core/internal/random.h"
#include "semel/hash/digest.h"
#include "semel/hash/keyed_digest.h"

namespace semel::bench {
namespace {

// Records of equal length, few enough to stay in the cache.
class Records {
 public:
  explicit Records(std::size_t length) : length_(length), bytes_(kCount * length) {
    Random random(1);
    for (char& byte : bytes_) byte = static_cast<char>(random());
  }
  std::string_view operator[](std::size_t i) const {
    return {bytes_.data() + i % kCount * length_, length_};
  }

 private:
  static constexpr std::size_t kCount = 1024;
  std::size_t length_;
  std::vector<char> bytes_;
};

template <class Hash>
Contender hashing(std::string name, const Records& records, Hash hash) {
  return {std::move(name), [&records, hash](const Slice& slice) {
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < slice.keys.size(); ++i) sum += hash(records[i]);
            return sum;
          }};
}

void compare(Session& session, std::size_t length) {
  const Records records(length);
  const std::array<std::uint8_t, Secret::kSize> bytes{};
  const DigestKey key(Secret(bytes), KeyPurpose::key);
  const auto both = [](Digest digest) { return digest.lo ^ digest.hi; };
  const std::vector<Contender> peers = {
      hashing("std-hash", records, std::hash<std::string_view>()),
      hashing("absl-hash", records, absl::Hash<std::string_view>())};

  const std::string id = "digest/" + std::to_string(length) + "-bytes/";
  const auto fast = [&](std::string_view record) { return both(digest(record, 0)); };
  const auto keyed = [&](std::string_view record) { return both(key(record)); };
  session.compare({{.id = id + "fast",
                    .workload = new_keys(1 << 20),
                    .ours = hashing("semel-fast", records, fast),
                    .peers = peers},
                   {.id = id + "keyed",
                    .workload = new_keys(1 << 20),
                    .ours = hashing("semel-keyed", records, keyed),
                    .peers = peers}});
}

const Registration kDigests("digests", "hashing of records of 16 and 100 bytes", [](Session& s) {
  compare(s, 16);
  compare(s, 100);
});

}  // namespace
}  // namespace semel::bench
