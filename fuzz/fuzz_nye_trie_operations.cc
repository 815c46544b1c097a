// Any history of writes and marks: a refreshed trie equals one that is built anew, and its sums are
// those over the records; with measures and without.
//
// An operation is two bytes: what to do and how much of it; and a key, its length before it.
#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include "semel/index/nye_trie.h"

namespace {

using Map = std::map<std::string, std::string, std::less<>>;

class MapCursor : public semel::Cursor {
 public:
  explicit MapCursor(const Map& map) : map_(map), at_(map.end()) {}
  void seek(std::string_view key) override { at_ = map_.lower_bound(key); }
  void next() override { ++at_; }
  bool valid() const override { return at_ != map_.end(); }
  std::string_view key() const override { return at_->first; }
  std::string_view value() const override { return at_->second; }
  semel::Result<void> status() const override { return {}; }

 private:
  const Map& map_;
  Map::const_iterator at_;
};

void demand(bool condition) {
  if (!condition) std::abort();
}

// Returns a measure of either sign, sometimes so large that sums wrap.
semel::int128 some_measure(std::string_view key, std::string_view value) {
  const auto size = static_cast<semel::uint128>(value.size());
  const auto shift = key.empty() ? 0U : static_cast<std::uint8_t>(key.back()) % 128U;
  return static_cast<semel::int128>(key.size() % 2 == 0 ? size << shift : 0 - (size << shift));
}

// Refreshes, and compares with what is built anew and with the sum from `key` on.
void check(semel::NyeTrie& trie, const Map& map, const std::string& key) {
  MapCursor cursor(map);
  demand(trie.refresh(cursor).has_value());
  const semel::RecordMeasure measure = trie.measured_by();
  semel::NyeTrie anew(trie.burst_bytes(), trie.entry_digest(), measure);
  demand(anew.refresh(cursor).has_value());
  demand(trie == anew);

  semel::EntryDigest digest = trie.entry_digest();
  semel::Aggregate sum;
  for (auto at = map.lower_bound(key); at != map.end(); ++at) {
    sum += {1, at->first.size() + at->second.size(), digest(at->first, at->second),
            measure == nullptr ? 0 : measure(at->first, at->second)};
  }
  demand(*trie.sum(semel::KeyRange{key, std::nullopt}, cursor) == sum);
}

void run(const std::uint8_t* data, std::size_t size, semel::RecordMeasure measure) {
  using namespace semel;
  static const std::array<std::uint8_t, Secret::kSize> kZeros{};
  static const EntryDigest kDigest{Secret(kZeros)};
  Map map;
  NyeTrie trie(NyeTrie::kLeastBurst, kDigest, measure);
  while (size >= 3) {
    const unsigned operation = data[0] % 6;
    const std::size_t amount = data[1];
    const std::size_t length = std::min<std::size_t>(data[2], size - 3);
    const std::string key(reinterpret_cast<const char*>(data + 3), length);
    data += 3 + length;
    size -= 3 + length;
    switch (operation) {
      case 0:
      case 1:
        map[key] = std::string(amount * (operation + 1), 'v');
        trie.mark(key);
        break;
      case 2:
        map.erase(key);
        trie.mark(key);
        break;
      case 3: {  // what begins with the key goes
        const KeyRange range{key, key + '\xff'};
        map.erase(map.lower_bound(range.first), map.lower_bound(*range.end));
        trie.mark(range);
        break;
      }
      case 4: {
        Bytes bytes;
        trie.encode(bytes);
        Result<NyeTrie> copy = NyeTrie::decode(bytes, kDigest, measure);
        demand(copy.has_value());
        trie = *std::move(copy);
        break;
      }
      default:
        check(trie, map, key);
    }
  }
  check(trie, map, "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run(data, size, nullptr);
  run(data, size, &some_measure);
  return 0;
}
