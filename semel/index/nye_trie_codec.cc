#include <deque>
#include <limits>
#include <utility>

#include "semel/core/assert.h"
#include "semel/hash/seal.h"
#include "semel/index/internal/container_builder.h"
#include "semel/index/nye_trie.h"

namespace semel {
namespace {

// docs/formats/nye_trie_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SNT1", with measures "SNT2"; a new layout takes a new magic
//         4        4  burst size
//         8        8  name of the key of the digests
//        16        8  containers n
//        24           containers, as write_container() writes them
//                n/8  marked containers, in whole bytes
//            (n+1)/8  marked gaps, in whole bytes
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31544e53;
constexpr std::uint32_t kMagicMeasured = 0x32544e53;
constexpr std::size_t kTrailerSize = 8;
constexpr std::size_t kLeastContainer = 19;
// The first path of each block is in full in memory, but not in the encoding. With this limit a
// trie takes at most some ten times the bytes that it is read from.
constexpr std::size_t kMostPathBits = std::size_t{1} << 16;

std::size_t bytes_for(std::size_t bits) { return bits / 8 + (bits % 8 != 0); }

void set_bit(Bytes& bits, std::size_t i) {
  bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1U << i % 8);
}

bool bit_of(ByteView bits, std::size_t i) { return (bits[i / 8] >> i % 8 & 1) != 0; }

bool padded(ByteView bits, std::size_t count) {
  return count % 8 == 0 || bits.back() >> count % 8 == 0;
}

// Returns true if such records can exist below the path, in one container.
bool sound(const Container& container, std::uint32_t burst_bytes) {
  const auto& [path, sum] = container;
  if (!path.possible() || sum.count == 0) return false;
  if (sum.count == 1) return sum.volume >= path.first_key().size();
  const bool one_key = path.size() % 9 == 1 && !path.bit(path.size() - 1);
  return !one_key && sum.volume <= burst_bytes && sum.volume >= sum.count - 1 &&
         sum.volume / sum.count >= path.first_key().size();
}

bool overflows(const Aggregate& sum, const Aggregate& more) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return more.count > kMost - sum.count || more.volume > kMost - sum.volume;
}

// Checks that the containers read are those that a builder makes of them.
class CanonicalCheck {
 public:
  explicit CanonicalCheck(std::uint32_t burst_bytes)
      : builder_(burst_bytes, [this](Container&& made) {
          same_ = same_ && made == read_.front();
          read_.pop_front();
        }) {}

  bool add(const Container& container) {
    read_.push_back(container);
    builder_.add(container.path.first_key(), container.sum);
    return same_;
  }
  bool finish() {
    builder_.finish();
    return same_ && read_.empty();
  }

 private:
  std::deque<Container> read_;
  bool same_ = true;
  ContainerBuilder builder_;
};

}  // namespace

void NyeTrie::encode(Sink out) const {
  Seal seal(out);
  const std::size_t count = container_count();
  Marks marks = marks_;
  mark_pending(marks);

  Writer w(out);
  w.u32(blocks_.measured() == Measured::yes ? kMagicMeasured : kMagic);
  w.u32(burst_bytes_);
  w.u64(digest_.id().seed);
  w.u64(count);
  Bytes containers(bytes_for(count)), gaps(bytes_for(count + 1));
  std::optional<BitPath> before;
  std::size_t i = 0;
  for (ContainerBlocks::Walk walk = blocks_.at(0); walk.valid(); walk.next(), ++i) {
    write_container(w, walk.container(), before ? &*before : nullptr, blocks_.measured());
    before = walk.path();
    if (marks.container(walk)) set_bit(containers, i);
    if (marks.gap_before(walk)) set_bit(gaps, i);
  }
  if (marks.last_gap()) set_bit(gaps, count);
  w.bytes(containers);
  w.bytes(gaps);
  seal.close();
}

Result<NyeTrie> NyeTrie::decode(ByteView in, const EntryDigest& digest, Measure measure) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const std::uint32_t burst_bytes = r.u32();
  const std::uint64_t key_name = r.u64();
  const std::uint64_t count = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "trie: header"};
  if (magic != kMagic && magic != kMagicMeasured) return Error{Errc::unsupported, "trie: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "trie: checksum"};
  }
  if (burst_bytes < kLeastBurst || burst_bytes > kMostBurst) {
    return Error{Errc::corrupt, "trie: burst size"};
  }
  if (key_name != digest.id().seed) return Error{Errc::mismatch, "trie: digests of another key"};
  if (measure == nullptr && magic == kMagicMeasured) {
    return Error{Errc::mismatch, "trie: measures that nobody wants"};
  }
  if (measure != nullptr && magic == kMagic) return Error{Errc::mismatch, "trie: no measures"};
  if (count > r.rest() / kLeastContainer) return Error{Errc::corrupt, "trie: containers"};
  ByteView rest = body.last(r.rest() - kTrailerSize);

  NyeTrie trie(burst_bytes, digest, measure);
  ContainerBlocks::Splice splice(trie.blocks_);
  CanonicalCheck check(burst_bytes);
  Container container;
  Aggregate total;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!read_container(rest, i == 0, container, trie.blocks_.measured())) {
      return Error{Errc::corrupt, "trie: container"};
    }
    if (container.path.size() > kMostPathBits) return Error{Errc::limit, "trie: path"};
    if (!sound(container, burst_bytes) || overflows(total, container.sum)) {
      return Error{Errc::corrupt, "trie: sum of a container"};
    }
    total += container.sum;
    if (!check.add(container)) return Error{Errc::corrupt, "trie: containers of no trie"};
    splice.add(container);
  }
  if (!check.finish()) return Error{Errc::corrupt, "trie: containers of no trie"};
  splice.finish();
  trie.blocks_.take(std::move(splice));

  if (rest.size() != bytes_for(count) + bytes_for(count + 1)) {
    return Error{Errc::corrupt, "trie: size"};
  }
  const ByteView containers = rest.first(bytes_for(count));
  const ByteView gaps = rest.last(bytes_for(count + 1));
  if (!padded(containers, count) || !padded(gaps, count + 1)) {
    return Error{Errc::corrupt, "trie: marks"};
  }
  trie.marks_ = {};
  std::size_t i = 0;
  ContainerBlocks::Walk walk = trie.blocks_.at(0);
  for (; walk.valid(); walk.next(), ++i) {
    if (bit_of(containers, i)) trie.marks_.mark_container(trie.blocks_, walk);
    if (bit_of(gaps, i)) trie.marks_.mark_gap_before(trie.blocks_, walk);
  }
  if (bit_of(gaps, count)) trie.marks_.mark_gap_before(trie.blocks_, walk);
  return trie;
}

}  // namespace semel
