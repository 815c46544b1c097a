#include "semel/tally/operation.h"

#include "semel/core/limits.h"
#include "semel/hash/internal/sealed.h"

namespace semel::tally {

void OperationId::encode(Sink out) const {
  Writer w(out);
  w.enumeration(kind);
  if (kind == Kind::none) return;
  write(w, digest);
  if (kind == Kind::numbered) w.varint(sequence);
}

Result<OperationId> OperationId::decode(Reader& in) {
  OperationId id;
  id.kind = in.enumeration(Kind::numbered);
  if (id.kind != Kind::none) id.digest = read_digest(in);
  if (id.kind == Kind::numbered) id.sequence = in.varint();
  if (!in.ok()) return Error{Errc::corrupt, "operation id"};
  return id;
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
