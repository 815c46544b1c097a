#include "fuzz/decode.h"
#include "semel/index/nye_trie.h"

namespace {

semel::int128 lengths(std::string_view key, std::string_view value) {
  return static_cast<semel::int128>(key.size()) - static_cast<semel::int128>(value.size());
}

// Tries of one replication group, whose secret is zeros; with measures or without.
struct GroupTrie {
  semel::NyeTrie trie;
  void encode(semel::Sink out) const { trie.encode(out); }
  static semel::Result<GroupTrie> decode(semel::ByteView in) {
    static const std::array<std::uint8_t, semel::Secret::kSize> zeros{};
    static const semel::EntryDigest digest{semel::Secret(zeros)};
    semel::Result<semel::NyeTrie> trie = semel::NyeTrie::decode(in, digest);
    if (!trie && trie.error().code == semel::Errc::mismatch) {
      trie = semel::NyeTrie::decode(in, digest, &lengths);
    }
    if (!trie) return trie.error();
    return GroupTrie{*std::move(trie)};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<GroupTrie>(data, size);
  return 0;
}
