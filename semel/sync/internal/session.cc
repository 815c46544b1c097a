#include "semel/sync/internal/session.h"

namespace semel::sync_internal {

using frame::Content;

Content Session::content() const {
  if (settings.purpose == SyncPurpose::diff) return Content::keys;
  if (takes() || calls_back()) return Content::records;
  return removes() ? Content::keys : Content::digest;
}

Travels Session::travels() const {
  switch (content()) {
    case Content::records:
      return Travels::records;
    case Content::keys:
      return Travels::keys;
    case Content::digest:
      break;
  }
  return Travels::nothing;
}

Findings::Keep Session::keep() const {
  if (repairs() && calls_back()) return Findings::Keep::records;
  if (settings.purpose == SyncPurpose::diff || removes()) return Findings::Keep::keys;
  return Findings::Keep::nothing;
}

std::size_t Session::room() const {
  const std::size_t scope = stretch.first.size() + (stretch.end ? stretch.end->size() : 0);
  const std::size_t besides = frame::kHeaderBytes + frame::kChecksumBytes + frame::kPartBytes + 32;
  const std::size_t frame = settings.limits.frame_bytes;
  return frame > scope + besides ? frame - scope - besides : 0;
}

}  // namespace semel::sync_internal
