// FailingStore: a store whose next write or sync fails on request.
//
// A failed write may have been done all the same: its caller cannot know. After a failed sync,
// unsynced writes are still unsynced.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "semel/store/ordered_store.h"

namespace semel::simulation {

class FailingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  enum class Failure : std::uint8_t { write_not_done, write_done, sync };
  void fail_next(std::optional<Failure> failure) { next_ = failure; }

  Result<void> write(std::span<const RecordWrite> writes) override {
    const bool not_done = takes(Failure::write_not_done);
    if (not_done) return error();
    const bool done = takes(Failure::write_done);
    Result<void> written = below().write(writes);
    if (written && done) return error();
    return written;
  }
  Result<void> sync() override { return takes(Failure::sync) ? error() : below().sync(); }

 private:
  static Error error() { return {Errc::io, "a planted failure of the disk"}; }
  bool takes(Failure failure) {
    if (next_ != failure) return false;
    next_.reset();
    return true;
  }

  std::optional<Failure> next_;
};

}  // namespace semel::simulation
