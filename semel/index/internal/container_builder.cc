#include "semel/index/internal/container_builder.h"

#include <algorithm>
#include <utility>

#include "semel/core/assert.h"

namespace semel::index_internal {

ContainerBuilder::ContainerBuilder(std::uint32_t burst_bytes, Emit emit)
    : burst_bytes_(burst_bytes), emit_(std::move(emit)) {}

void ContainerBuilder::begin_after(std::string_view key) {
  SEMEL_ASSERT(!any_);
  last_ = key;
  any_ = true;
}

void ContainerBuilder::add(std::string_view key, const Aggregate& sum) {
  std::int64_t common = kNone;
  if (any_) {
    common = static_cast<std::int64_t>(common_bits(last_, key));
    complete(common);
  }
  any_ = true;
  last_ = key;
  open_.push_back({std::string(key), common, sum});
  volume_ += sum.volume;
  while (volume_ > burst_bytes_ && open_.size() > 1) emit_lowest(open_[1].parted);
}

void ContainerBuilder::complete(std::int64_t common) {
  while (open_.size() > 1 && open_.back().parted > common) {
    const Aggregate sum = open_.back().sum;
    open_.pop_back();
    open_.back().sum += sum;
  }
  // The container to the left was emitted, so the parent of both is too large for a container.
  if (open_.size() == 1 && open_.back().parted > common) emit_lowest(common);
}

void ContainerBuilder::emit_lowest(std::int64_t parted_after) {
  Node node = std::move(open_.front());
  open_.pop_front();
  volume_ -= node.sum.volume;
  BitPath path = BitPath::of_key(node.key);
  path.truncate(static_cast<std::size_t>(std::max(node.parted, parted_after) + 1));
  emit_({std::move(path), node.sum});
}

void ContainerBuilder::finish(std::int64_t common) {
  complete(common);
  while (!open_.empty()) emit_lowest(open_.size() > 1 ? open_[1].parted : common);
}

void ContainerBuilder::finish_before(std::string_view key) {
  SEMEL_ASSERT(any_);
  finish(static_cast<std::int64_t>(common_bits(last_, key)));
}

void ContainerBuilder::finish() { finish(kNone); }

}  // namespace semel::index_internal
