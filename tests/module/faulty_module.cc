// The unchanged module, with commands that make its memory run out and that watch it.
//
//   FAULT.ALLOCATION good least    Counts allocations of `least` bytes or more. The first `good`
//                                  succeed, and all later ones fail. Of small ones only one
//                                  fails, because there is a reserve.
//   FAULT.ALLOCATION               Ends the faults. Returns how many allocations have failed.
//   FAULT.PEAK                     Returns the most bytes, as the allocator rounds them, that the
//                                  module had at any moment since the last FAULT.PEAK beyond those
//                                  that it had then.
//   FAULT.MOMENT bytes             Allocates so many bytes, and frees them at once.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "module/host/api.h"
#include "semel/core/limits.h"

// The entry of module/module.cc.
extern "C" int semel_on_load(void* ctx, void** argv, int argc);

namespace {

namespace api = semel::host::api;

void* (*allocate)(std::size_t) = nullptr;
void (*give_back)(void*) = nullptr;
constinit bool armed = false;
constinit std::uint64_t good = 0, failed = 0;
constinit std::size_t least = 0;

// What the module has now, the most that it had, and what it had at the last FAULT.PEAK. Another
// thread may free memory. Only the thread that runs commands allocates any.
constinit std::atomic<std::int64_t> bytes_now{0};
constinit std::int64_t most_bytes = 0, first_bytes = 0;

std::int64_t size_of(void* block) { return static_cast<std::int64_t>(api::MallocSize(block)); }

void* counted(void* block) {
  if (block != nullptr) most_bytes = std::max(most_bytes, bytes_now += size_of(block));
  return block;
}

void count_and_give_back(void* block) {
  bytes_now -= size_of(block);
  give_back(block);
}

void* allocate_or_fail(std::size_t size) {
  if (!armed || size < least) return counted(allocate(size));
  if (good > 0) {
    --good;
    return counted(allocate(size));
  }
  ++failed;
  if (size <= semel::limits::kSmallBlock) armed = false;
  return nullptr;
}

std::uint64_t number_of(const api::String* text) {
  std::size_t size = 0;
  const char* const digits = api::StringPtrLen(text, &size);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value = 10 * value + static_cast<unsigned char>(digits[i] - '0');
  return value;
}

int fault(api::Ctx* ctx, api::String** argv, int argc) {
  armed = argc == 3;
  if (!armed) return api::ReplyWithLongLong(ctx, static_cast<long long>(failed));
  good = number_of(argv[1]);
  least = number_of(argv[2]);
  failed = 0;
  return api::ReplyWithSimpleString(ctx, "OK");
}

int peak(api::Ctx* ctx, api::String** /*argv*/, int /*argc*/) {
  const std::int64_t most = most_bytes - first_bytes;
  most_bytes = first_bytes = bytes_now;
  return api::ReplyWithLongLong(ctx, most);
}

int moment(api::Ctx* ctx, api::String** argv, int argc) {
  if (argc == 2) ::operator delete(::operator new(number_of(argv[1])));
  return api::ReplyWithSimpleString(ctx, "OK");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(void* ctx, void** argv,
                                                                         int argc) {
  const int loaded = semel_on_load(ctx, argv, argc);
  if (loaded != api::kOk) return loaded;
  allocate = api::TryAlloc;
  give_back = api::Free;
  api::TryAlloc = allocate_or_fail;
  api::Free = count_and_give_back;
  struct Added {
    const char* name;
    int (*run)(api::Ctx*, api::String**, int);
  };
  for (const Added& added : {Added{"FAULT.ALLOCATION", fault}, Added{"FAULT.PEAK", peak},
                             Added{"FAULT.MOMENT", moment}}) {
    const int made =
        api::CreateCommand(static_cast<api::Ctx*>(ctx), added.name, added.run, "", 0, 0, 0);
    if (made != api::kOk) return made;
  }
  return api::kOk;
}
