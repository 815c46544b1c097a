#include "semel/tally/internal/site_view.h"

namespace semel::tally::internal {
namespace {

// The later of two views of a site has the greater sum. Two views with equal sums come from two
// sites with one id; either will do.
bool is_later(const SiteView& one, const SiteView& other) {
  if (one.held.sum() != other.held.sum()) return one.held.sum() > other.held.sum();
  const auto bytes = [](const SiteView& view) {
    Bytes out;
    view.held.encode(out);
    view.heads.encode(out);
    return out;
  };
  return bytes(one) > bytes(other);
}

}  // namespace

bool SiteView::merge(const SiteView& other) {
  if (other.group != group) {
    if (other.group < group) return false;
    *this = other;
    return true;
  }
  const bool later = is_later(other, *this);
  if (later) {
    held = other.held;
    heads = other.heads;
  }
  return members.merge(other.members) || later;
}

void SiteView::encode(Sink out) const {
  held.encode(out);
  members.encode(out);
  heads.encode(out);
  Writer(out).u64(group);
}

Result<SiteView> SiteView::decode(ByteView in) {
  Reader r(in);
  SiteView view;
  view.held = SEMEL_TRY(VersionVector::decode(r));
  view.members = SEMEL_TRY(Members::decode(r));
  view.heads = SEMEL_TRY(LogHeads::decode(r));
  view.group = r.u64();
  if (!r.at_end()) return Error{Errc::corrupt, "view: size"};
  if (!view.heads.within(view.held)) return Error{Errc::corrupt, "view: the head of an empty log"};
  return view;
}

}  // namespace semel::tally::internal
