// The envelope of every format: a name, a version, a length and a checksum around a body.
//
// Contract  open_sealed() checks all four before a decoder sees a byte of the body. So a decoder
//           reads its fields in a straight line, and checks only their meaning.
//           The bytes are untrusted: a checksum is easily forged.
// Cost      A block is hashed as a whole when it is sealed. Pieces are hashed as they are handed
//           on; their body is encoded twice, the first time only to measure it.
// Format    docs/formats/README.md, 'The envelope'.
// Example   inline constexpr Format kFormat{"SBF", 1, "Bloom filter"};
//
//           void BloomFilter::encode(Sink out) const {
//             seal(out, kFormat, [&](Writer& w) { ... });
//           }
//
//           Result<BloomFilter> BloomFilter::decode(ByteView in) {
//             Reader r = SEMEL_TRY(open_sealed(in, kFormat));
//             ...
//             if (!r.at_end()) return corrupt(kFormat, "size");
//             return filter;
//           }
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"

namespace semel::inline hash_internal {

struct Format {
  char name[4];  // three letters
  std::uint8_t version;
  const char* what;  // for messages: "Bloom filter"
};

inline constexpr std::size_t kSealedHeader = 12;  // name, version, length of the body
inline constexpr std::size_t kSealedTrailer = 8;  // checksum of all that comes before it

// Returns the error for a body that makes no sense. `part` names the part that is wrong.
inline Error corrupt(const Format& format, const char* part) {
  return {Errc::corrupt, format.what, std::string(part)};
}

namespace sealed {

inline void write_header(Writer& w, const Format& format, std::uint64_t length) {
  w.bytes({reinterpret_cast<const std::uint8_t*>(format.name), 3});
  w.u8(format.version);
  w.u64(length);
}

// Hashes what is written to pieces during its lifetime.
class Running final : public Pieces::Watch {
 public:
  using Pieces::Watch::Watch;
  ~Running() override = default;
  std::uint64_t value() {
    catch_up();
    return sum_.value();
  }

 private:
  void see(ByteView bytes) override { sum_.add(bytes); }
  RunningChecksum sum_;
};

}  // namespace sealed

// Appends an envelope around what body(Writer&) writes. Envelopes nest.
template <class Body>
void seal(Sink out, const Format& format, Body&& body) {
  Writer w(out);
  if (Bytes* const block = out.block()) {
    const std::size_t start = block->size();
    sealed::write_header(w, format, 0);
    body(w);
    const std::uint64_t length = block->size() - start - kSealedHeader;
    store_u64(block->data() + start + kSealedHeader - 8, length);
    w.u64(checksum(ByteView(*block).subspan(start)));
  } else if (out.only_measures(0)) {
    sealed::write_header(w, format, 0);
    body(w);
    w.u64(0);
  } else {
    const std::uint64_t length = measured([&](Sink measure) {
      Writer measuring(measure);
      body(measuring);
    });
    std::uint64_t sum = 0;
    {
      sealed::Running running(*out.pieces());
      sealed::write_header(w, format, length);
      body(w);
      sum = running.value();
    }
    w.u64(sum);
  }
}

// Returns true if the bytes begin with the name of this format, in any version.
inline bool begins_like(ByteView bytes, const Format& format) {
  return text_of(bytes).substr(0, 3) == std::string_view(format.name, 3);
}

// Takes the next envelope from `in` and returns a reader of its body. After an error, the position
// of `in` is unspecified.
inline Result<Reader> open_sealed(Reader& in, const Format& format) {
  const std::size_t size = in.rest();
  const ByteView all = in.view(size);
  if (size < kSealedHeader + kSealedTrailer) {
    return Error{Errc::truncated, format.what, std::string("cut short")};
  }
  Reader header(all);
  const ByteView name = header.view(3);
  const std::uint8_t version = header.u8();
  const std::uint64_t length = header.u64();
  if (!begins_like(name, format)) {
    return Error{Errc::unsupported, format.what, std::string("these bytes are something else")};
  }
  if (version != format.version) {
    return Error{Errc::unsupported, format.what,
                 "version " + std::to_string(version) + " is not known here"};
  }
  if (length > header.rest() - kSealedTrailer) {
    return Error{Errc::truncated, format.what, std::string("cut short")};
  }
  const ByteView body = header.view(length);
  const std::uint64_t sum = header.u64();
  if (sum != checksum(all.first(kSealedHeader + length))) return corrupt(format, "checksum");
  in = Reader(all.subspan(kSealedHeader + length + kSealedTrailer));
  return Reader(body);
}

// Opens one envelope that fills `in` exactly.
inline Result<Reader> open_sealed(ByteView in, const Format& format) {
  Reader all(in);
  auto body = open_sealed(all, format);
  if (body && all.rest() != 0) return corrupt(format, "size");
  return body;
}

// Passes on what decode() returned for a part of a body that has a format of its own. A part that
// cannot be read is corrupt, whatever its own error: the checksum of the whole is sound.
template <class T>
Result<T> decoded_part(Result<T> part) {
  if (!part) return Error{Errc::corrupt, part.error().message()};
  return part;
}

// Digests and names of hash functions, as all formats have them.
inline void write(Writer& w, const Digest& digest) {
  w.u64(digest.lo);
  w.u64(digest.hi);
}
inline Digest read_digest(Reader& r) {
  const std::uint64_t lo = r.u64();
  return {lo, r.u64()};
}
inline void write(Writer& w, const HashId& hash) {
  w.enumeration(hash.kind);
  w.u64(hash.seed);
}
inline HashId read_hash_id(Reader& r) {
  const HashKind kind = r.enumeration(HashKind::keyed);
  return {kind, r.u64()};
}

}  // namespace semel::inline hash_internal
