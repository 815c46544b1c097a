#include "module/host/reserve.h"

#include <new>
#include <utility>

namespace semel::host {
namespace {

constinit void* reserve = nullptr;

}  // namespace

bool keep_reserve() {
  static_assert(kReserve > limits::kSmallBlock);  // or it would be spent on itself
  if (reserve == nullptr) reserve = ::operator new(kReserve, std::nothrow);
  return reserve != nullptr;
}

bool spend_reserve() {
  if (reserve == nullptr) return false;
  ::operator delete(std::exchange(reserve, nullptr));
  return true;
}

}  // namespace semel::host
