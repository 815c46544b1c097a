#include "semel/tally/operation.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "semel/core/limits.h"

namespace semel::tally {
namespace {

// Shorter than a version vector elsewhere: every operation has one.
void encode_known(const VersionVector& known, Writer& out) {
  out.varint(known.sites().size());
  for (const VersionVector::Site& log : known.sites()) {
    out.varint(log.site);
    out.varint(log.counter);
  }
}

bool decode_known(Reader& in, VersionVector& known) {
  const std::uint64_t logs = in.varint();
  if (!in.ok() || logs > in.rest() / 2) return false;
  std::optional<std::uint64_t> last;
  for (std::uint64_t i = 0; i < logs; ++i) {
    const std::uint64_t site = in.varint();
    const std::uint64_t counter = in.varint();
    const bool ascends = !last || site > *last;
    if (!in.ok() || !ascends || site > std::numeric_limits<SiteId>::max()) return false;
    if (counter == 0 || counter > Dot::kLastCounter) return false;
    known.advance({static_cast<SiteId>(site), counter});
    last = site;
  }
  return true;
}

}  // namespace

void OperationId::encode(Sink out) const {
  Writer w(out);
  w.u8(static_cast<std::uint8_t>(kind));
  if (kind == Kind::none) return;
  w.u64(digest.lo);
  w.u64(digest.hi);
  if (kind == Kind::numbered) w.varint(sequence);
}

Result<OperationId> OperationId::decode(Reader& in) {
  OperationId id;
  const std::uint8_t kind = in.u8();
  if (kind > static_cast<std::uint8_t>(Kind::numbered)) {
    return Error{Errc::corrupt, "operation id: of no kind"};
  }
  id.kind = static_cast<Kind>(kind);
  if (id.kind != Kind::none) id.digest = {in.u64(), in.u64()};
  if (id.kind == Kind::numbered) id.sequence = in.varint();
  if (!in.ok()) return Error{Errc::truncated, "operation id"};
  return id;
}

void Operation::encode(Sink out) const {
  Writer w(out);
  w.u8(static_cast<std::uint8_t>(kind));
  id.encode(out);
  w.text(counter);
  if (kind == Kind::add) {
    w.signed_varint(delta);
  } else {
    observed.encode(out);
  }
  w.u64(static_cast<std::uint64_t>(taken_ms));
  encode_known(known, w);
  w.u64(previous);
}

std::uint64_t Operation::head() const {
  Bytes bytes;
  encode(bytes);
  return std::max<std::uint64_t>(1, digest(text_of(bytes), dot.packed()).lo);
}

Result<Operation> Operation::decode(Dot dot, ByteView in) {
  Reader r(in);
  Operation operation;
  operation.dot = dot;
  const std::uint8_t kind = r.u8();
  if (kind > static_cast<std::uint8_t>(Kind::remove)) {
    return Error{Errc::corrupt, "operation: of no kind"};
  }
  operation.kind = static_cast<Kind>(kind);
  const Result<OperationId> id = OperationId::decode(r);
  if (!id) return id.error();
  operation.id = *id;
  operation.counter = r.text();
  if (operation.counter.size() > limits::kCounterNameBytes) {
    return Error{Errc::limit, "operation: the name of a counter is too long"};
  }
  if (operation.kind == Kind::add) {
    const int128 delta = r.signed_varint();
    operation.delta = static_cast<std::int64_t>(delta);
    if (operation.delta != delta) return Error{Errc::corrupt, "operation: delta"};
  } else {
    Result<VersionVector> observed = VersionVector::decode(r);
    if (!observed) return observed.error();
    operation.observed = std::move(*observed);
  }
  operation.taken_ms = static_cast<TimeMs>(r.u64());
  if (!decode_known(r, operation.known)) {
    return Error{Errc::corrupt, "operation: what its site knew"};
  }
  operation.previous = r.u64();
  if (!r.ok() || r.rest() != 0) return Error{Errc::corrupt, "operation: of another length"};
  return operation;
}

Result<OperationId> opaque_id(const Hasher& hasher, std::string_view id) {
  if (id.size() > limits::kOperationIdBytes) {
    return Error{Errc::limit, "an operation id of more than 1024 bytes"};
  }
  return OperationId::opaque(hasher(id));
}

Result<OperationId> numbered_id(const Hasher& hasher, std::string_view client,
                                std::uint64_t sequence) {
  if (client.size() > limits::kOperationIdBytes) {
    return Error{Errc::limit, "the name of a client of more than 1024 bytes"};
  }
  return OperationId::numbered(hasher(client), sequence);
}

}  // namespace semel::tally
