// All memory of the module comes from the server's allocator: it counts in used_memory, against
// maxmemory and in MEMORY STATS, and its allocator can defragment it. This file belongs into
// semel.so alone.
//
// Before the server's functions are known (static initialisers), a small buffer stands in, which is
// never given back. Memory that the server does not have is std::bad_alloc. So is a block that is
// larger than the machine or its container: the system would promise it, and end the server once it is
// used.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>

#include "module/host/api.h"
#include "module/host/machine_memory.h"
#include "module/host/reserve.h"
#include "semel/core/assert.h"
#include "semel/core/zeroed.h"

namespace {

using semel::host::api::Free;
using semel::host::api::TryAlloc;

constinit std::array<std::byte, 1 << 16> early_buffer{};
constinit std::size_t early_used = 0;

void* allocate_early(std::size_t size) {
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  auto* const free = early_buffer.data() + early_used;
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(free) & (kAlign - 1);
  if (size > early_buffer.size() - early_used - skip) return nullptr;
  early_used += skip + size;
  return free + skip;
}

bool is_early(const void* block) {
  const std::less<> before;
  return !before(block, early_buffer.data()) &&
         before(block, early_buffer.data() + early_buffer.size());
}

bool beyond_the_machine(std::size_t size) {
  constexpr std::size_t kSmall = std::size_t{1} << 30;
  if (size <= kSmall) return false;
  static const std::size_t kAll = semel::host::machine_memory();
  return size > kAll;
}

void* allocate(std::size_t size) {
  if (size == 0) size = 1;
  if (beyond_the_machine(size)) throw std::bad_alloc();
  void* block = TryAlloc != nullptr ? TryAlloc(size) : allocate_early(size);
  if (block == nullptr && size <= semel::limits::kSmallBlock && semel::host::spend_reserve()) {
    block = TryAlloc(size);
  }
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void give_back(void* block) noexcept {
  if (block != nullptr && !is_early(block)) Free(block);
}

constexpr std::size_t kLine = 64;

bool is_aligned(const void* block, std::size_t align) {
  return (reinterpret_cast<std::uintptr_t>(block) & (align - 1)) == 0;
}

// Whether blocks of whole lines begin on a line, as those of jemalloc do. The C library's do not.
bool gives_lines() {
  constexpr std::size_t kSizes = 16, kOfEach = 8;  // side by side: one may lie on a line by chance
  std::array<void*, kSizes * kOfEach> samples{};
  bool all = true;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t lines = 1 + i / kOfEach;
    samples[i] = allocate(kLine * lines * (lines % 2 == 0 ? 100 : 1));
    all = all && is_aligned(samples[i], kLine);
  }
  for (void* const sample : samples) give_back(sample);
  return all;
}

// Whether such a block is handed out as it is. Otherwise a table of 2^n bytes would be a little larger
// than that, and the allocator would round it up by a fifth.
bool needs_no_room(std::size_t align) {
  static const bool kGivesLines = gives_lines();
  return align <= kLine && kGivesLines;
}

// The server's allocator takes no alignment. Where it does not keep it by itself, the block begins up to
// `align` bytes before what is handed out, and its address stands in the word before that.
void* allocate_aligned(std::size_t size, std::size_t align) {
  if (TryAlloc != nullptr && needs_no_room(align)) {
    if (size > SIZE_MAX - kLine) throw std::bad_alloc();
    void* const block = allocate((size + kLine - 1) / kLine * kLine);
    SEMEL_ASSERT(is_aligned(block, align));
    return block;
  }
  const std::size_t extra = align + sizeof(void*);
  if (size > SIZE_MAX - extra) throw std::bad_alloc();
  void* const block = allocate(size + extra);
  auto* const from = static_cast<std::byte*>(block) + sizeof(void*);
  const std::size_t skip = -reinterpret_cast<std::uintptr_t>(from) & (align - 1);
  auto* const aligned = reinterpret_cast<void**>(from + skip);
  aligned[-1] = block;
  return aligned;
}

void give_back_aligned(void* aligned, std::size_t align) noexcept {
  if (aligned == nullptr || is_early(aligned)) return;
  give_back(needs_no_room(align) ? aligned : static_cast<void**>(aligned)[-1]);
}

}  // namespace

namespace semel {

// What is large is given back to the system, page by page, and comes anew when it is used; the server's
// allocators have private memory of the system's. Locked memory is not taken back: then zeros are
// written.
void* allocate_zeroed(std::size_t bytes, std::size_t align) {
  auto* const memory = static_cast<std::byte*>(allocate_aligned(bytes, align));
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory) & (kPage - 1);
  const std::size_t pages = bytes < kZeroedBySystem ? 0 : (bytes - before) / kPage * kPage;
  if (pages == 0 || ::madvise(memory + before, pages, MADV_DONTNEED) != 0) {
    return std::memset(memory, 0, bytes);
  }
  std::memset(memory, 0, before);
  std::memset(memory + before + pages, 0, bytes - before - pages);
  return memory;
}

void release_zeroed(void* memory, std::size_t /*bytes*/, std::size_t align) noexcept {
  give_back_aligned(memory, align);
}

}  // namespace semel

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, static_cast<std::size_t>(align));
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, static_cast<std::size_t>(align));
}
// For those who ask without exceptions, such as std::inplace_merge.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return allocate(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept {
  return operator new(size, tag);
}
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, std::size_t /*size*/) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t /*size*/) noexcept { give_back(block); }
void operator delete(void* block, std::align_val_t align) noexcept {
  give_back_aligned(block, static_cast<std::size_t>(align));
}
void operator delete[](void* block, std::align_val_t align) noexcept {
  give_back_aligned(block, static_cast<std::size_t>(align));
}
void operator delete(void* block, std::size_t /*size*/, std::align_val_t align) noexcept {
  give_back_aligned(block, static_cast<std::size_t>(align));
}
void operator delete[](void* block, std::size_t /*size*/, std::align_val_t align) noexcept {
  give_back_aligned(block, static_cast<std::size_t>(align));
}
