// All memory of the module comes from the server's allocator. So it counts in used_memory, against
// maxmemory and in MEMORY STATS, and the server can defragment it. Only semel.so links this file.
//
// Static initialisers run before the server's functions are known. A small buffer serves them, and
// is never freed. If the server has no memory, operator new throws std::bad_alloc. It also does so
// for a block that is larger than the machine or its container: the system would promise it, and
// kill the server once it is used.
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
#include "module/host/meter.h"
#include "module/host/relocation.h"
#include "module/host/reserve.h"
#include "semel/core/assert.h"
#include "semel/core/internal/zeroed.h"

namespace {

using semel::host::Meter;
using semel::host::Relocation;
using semel::host::api::Free;
using semel::host::api::MallocSize;
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

std::size_t size_of(void* block) { return is_early(block) ? 0 : MallocSize(block); }

void* allocate(std::size_t size) {
  if (size == 0) size = 1;
  if (beyond_the_machine(size)) throw std::bad_alloc();
  void* block = TryAlloc != nullptr ? Relocation::place(TryAlloc(size)) : allocate_early(size);
  if (block == nullptr && size <= semel::limits::kSmallBlock && semel::host::spend_reserve()) {
    block = TryAlloc(size);
  }
  if (block == nullptr) throw std::bad_alloc();
  Meter::count(1, [&] { return size_of(block); });
  return block;
}

void give_back(void* block) noexcept {
  if (block == nullptr || is_early(block)) return;
  Meter::count(-1, [&] { return size_of(block); });
  Free(block);
}

constexpr std::size_t kLine = 64;

bool is_aligned(const void* block, std::size_t align) {
  return (reinterpret_cast<std::uintptr_t>(block) & (align - 1)) == 0;
}

// Returns true if blocks of whole cache lines begin on a line. They do with jemalloc, and not with
// the C library.
bool gives_lines() {
  constexpr std::size_t kSizes = 16,
                        kOfEach = 8;  // several, because one may begin on a line by chance
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

// Returns true if the server's allocator aligns such a block by itself. With extra room for its
// alignment, a table of 2^n bytes would become a little larger, and the allocator would round it up
// by a fifth.
bool needs_no_room(std::size_t align) {
  static const bool kGivesLines = gives_lines();
  return align <= kLine && kGivesLines;
}

// The server's allocator takes no alignment. Where it does not align by itself, the block begins up
// to `align` bytes before the returned address, and the word before that holds the block's address.
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

// The pages of a large block are returned to the system, which provides zeroed ones when they are
// used: the server's allocators have private memory. If the system does not take the pages, because
// they are locked, zeros are written.
void* core_internal::allocate_zeroed(std::size_t bytes, std::size_t align) {
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

void core_internal::release_zeroed(void* memory, std::size_t /*bytes*/,
                                   std::size_t align) noexcept {
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
// For callers without exceptions, such as std::inplace_merge.
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
