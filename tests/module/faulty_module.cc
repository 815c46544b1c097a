// The unchanged module, and a command that makes its memory run out.
//
//   FAULT.ALLOCATION good least    Counts allocations of `least` bytes or more. The first `good`
//                                  succeed, and all later ones fail. Of small ones only one
//                                  fails, because there is a reserve.
//   FAULT.ALLOCATION               Ends the faults. Returns how many allocations have failed.
#include <cstddef>
#include <cstdint>

#include "module/host/api.h"
#include "semel/core/limits.h"

// The entry of module/module.cc.
extern "C" int semel_on_load(void* ctx, void** argv, int argc);

namespace {

namespace api = semel::host::api;

void* (*allocate)(std::size_t) = nullptr;
constinit bool armed = false;
constinit std::uint64_t good = 0, failed = 0;
constinit std::size_t least = 0;

void* allocate_or_fail(std::size_t size) {
  if (!armed || size < least) return allocate(size);
  if (good > 0) {
    --good;
    return allocate(size);
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

}  // namespace

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(void* ctx, void** argv,
                                                                         int argc) {
  const int loaded = semel_on_load(ctx, argv, argc);
  if (loaded != api::kOk) return loaded;
  allocate = api::TryAlloc;
  api::TryAlloc = allocate_or_fail;
  return api::CreateCommand(static_cast<api::Ctx*>(ctx), "FAULT.ALLOCATION", fault, "", 0, 0, 0);
}
