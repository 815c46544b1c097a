#include "semel/tally/internal/logged_operation.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "semel/core/limits.h"

namespace semel::tally::internal {
namespace {

// Every operation has one, so its encoding is shorter than that of version vectors elsewhere.
void encode_known(const VersionVector& known, Writer& out) {
  out.varint(known.sites().size());
  for (const VersionVector::Site& log : known.sites()) {
    out.varint(log.site);
    out.varint(log.counter);
  }
}

Result<VersionVector> decode_known(Reader& in) {
  const Error kBad{Errc::corrupt, "operation: what its site knew"};
  const std::uint64_t logs = in.varint();
  if (!in.ok() || logs > in.rest() / 2) return kBad;
  VersionVector known;
  std::optional<std::uint64_t> last;
  for (std::uint64_t i = 0; i < logs; ++i) {
    const std::uint64_t site = in.varint();
    const std::uint64_t counter = in.varint();
    const bool ascends = !last || site > *last;
    if (!in.ok() || !ascends || site > std::numeric_limits<SiteId>::max()) return kBad;
    if (counter == 0 || counter > Dot::kLastCounter) return kBad;
    known.advance({static_cast<SiteId>(site), counter});
    last = site;
  }
  return known;
}

}  // namespace

void Operation::encode(Sink out) const {
  Writer w(out);
  w.enumeration(kind);
  id.encode(out);
  w.text(counter);
  if (kind == Kind::add) {
    w.signed_varint(delta);
  } else {
    observed.encode(out);
  }
  w.i64(taken_ms);
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
  operation.kind = r.enumeration(Kind::remove);
  if (!r.ok()) return Error{Errc::corrupt, "operation: kind"};
  operation.id = SEMEL_TRY(OperationId::decode(r));
  operation.counter = r.text();
  if (operation.counter.size() > limits::kCounterNameBytes) {
    return Error{Errc::limit, "operation: the name of a counter is too long"};
  }
  if (operation.kind == Kind::add) {
    const int128 delta = r.signed_varint();
    operation.delta = static_cast<std::int64_t>(delta);
    if (operation.delta != delta) return Error{Errc::corrupt, "operation: delta"};
  } else {
    operation.observed = SEMEL_TRY(VersionVector::decode(r));
  }
  operation.taken_ms = r.i64();
  operation.known = SEMEL_TRY(decode_known(r));
  operation.previous = r.u64();
  if (!r.at_end()) return Error{Errc::corrupt, "operation: size"};
  return operation;
}

}  // namespace semel::tally::internal
