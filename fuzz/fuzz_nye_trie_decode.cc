#include "fuzz/decode.h"
#include "semel/index/nye_trie.h"

namespace {

// Tries of one replication group, whose secret is zeros.
struct GroupTrie {
  semel::NyeTrie trie;
  void encode(semel::Bytes& out) const { trie.encode(out); }
  static semel::Result<GroupTrie> decode(semel::ByteView in) {
    static const std::array<std::uint8_t, semel::Secret::kSize> zeros{};
    static const semel::EntryDigest digest{semel::Secret(zeros)};
    semel::Result<semel::NyeTrie> trie = semel::NyeTrie::decode(in, digest);
    if (!trie) return trie.error();
    return GroupTrie{*std::move(trie)};
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::fuzz_decode<GroupTrie>(data, size);
  return 0;
}
