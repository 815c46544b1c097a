#include "semel/crdt/zstd_frame.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "semel/hash/digest.h"

namespace semel::zstd_frame {
namespace {

// docs/formats/zstd_frame_v1.md. All integers are little-endian.
//
//    OFFSET     SIZE  FIELD
//         0        4  magic, the bytes "SZF1"
//         4        1  packing: 0 stored, 1 zstd
//         5        3  zeros
//         8        8  size of the content
//        16        8  size of the packed content
//        24           the packed content
//   end - 8        8  checksum of all the bytes before it
constexpr std::uint32_t kMagic = 0x31465a53;
constexpr std::size_t kHeaderSize = 24;
constexpr std::size_t kTrailerSize = 8;
static_assert(kOverhead == kHeaderSize + kTrailerSize);
constexpr int kLevel = 3;

enum class Packing : std::uint8_t { stored = 0, zstd = 1 };

template <class Context>
Context* checked(Context* context) {
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

// Compresses `content` into `to` as a zstd frame. Returns false, and leaves `to` as it was, if the
// frame is larger than `to`.
bool pack(ByteView content, Bytes& to) {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  const std::unique_ptr<ZSTD_CCtx, Free> context(checked(ZSTD_createCCtx()));
  const std::size_t size = ZSTD_compressCCtx(context.get(), to.data(), to.size(), content.data(),
                                             content.size(), kLevel);
  if (ZSTD_isError(size) != 0) return false;
  to.resize(size);
  return true;
}

// Fills `content` exactly. Returns false if the zstd frame gives anything else.
bool unpack(ByteView packed, Bytes& content) {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  const std::unique_ptr<ZSTD_DCtx, Free> context(checked(ZSTD_createDCtx()));
  const std::size_t size = ZSTD_decompressDCtx(context.get(), content.data(), content.size(),
                                               packed.data(), packed.size());
  return size == content.size();  // an error is larger than any size
}

// Returns true if the bytes are exactly one zstd frame that could hold so much. A block holds at
// most 128 KiB and takes at least four bytes.
bool may_hold(ByteView packed, std::uint64_t content_size) {
  constexpr std::uint64_t kLeastBlock = 4;
  return content_size / ZSTD_BLOCKSIZE_MAX <= packed.size() / kLeastBlock &&
         ZSTD_findFrameCompressedSize(packed.data(), packed.size()) == packed.size();
}

}  // namespace

void encode(ByteView content, Bytes& out) {
  Bytes packed(content.empty() ? 0 : content.size() - 1);
  const bool smaller = pack(content, packed);
  const ByteView body = smaller ? ByteView(packed) : content;

  const std::size_t start = out.size();
  out.reserve(start + body.size() + kOverhead);
  Writer w(out);
  w.u32(kMagic);
  w.u8(static_cast<std::uint8_t>(smaller ? Packing::zstd : Packing::stored));
  w.u8(0);
  w.u16(0);
  w.u64(content.size());
  w.u64(body.size());
  w.bytes(body);
  w.u64(checksum(ByteView(out).subspan(start)));
}

Result<Bytes> decode(ByteView in, std::uint64_t most_bytes) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const auto packing = static_cast<Packing>(r.u8());
  const std::uint32_t zeros = r.u8() | r.u16();
  const std::uint64_t content_size = r.u64();
  const std::uint64_t packed_size = r.u64();
  if (!r.ok()) return Error{Errc::truncated, "zstd frame: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "zstd frame: magic"};
  if (zeros != 0 || packing > Packing::zstd) return Error{Errc::corrupt, "zstd frame: packing"};
  if (r.rest() < kTrailerSize) return Error{Errc::truncated, "zstd frame: content"};
  const bool stored = packing == Packing::stored;
  if (r.rest() - kTrailerSize != packed_size ||
      (stored ? packed_size != content_size : packed_size >= content_size)) {
    return Error{Errc::corrupt, "zstd frame: size"};
  }
  const ByteView framed = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + framed.size()) != checksum(framed)) {
    return Error{Errc::corrupt, "zstd frame: checksum"};
  }
  if (content_size > most_bytes) return Error{Errc::limit, "zstd frame: content too large"};

  const ByteView packed = framed.subspan(kHeaderSize);
  if (stored) return Bytes(packed.begin(), packed.end());
  if (!may_hold(packed, content_size)) return Error{Errc::corrupt, "zstd frame: zstd"};
  Bytes content(content_size);
  if (!unpack(packed, content)) return Error{Errc::corrupt, "zstd frame: content"};
  return content;
}

}  // namespace semel::zstd_frame
