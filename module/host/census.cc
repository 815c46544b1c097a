#include "module/host/census.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "semel/core/assert.h"

namespace semel::host {
namespace {

// The steps of Worst are the values of the first bits of a double: exponent, then kBits of the
// fraction.
constexpr unsigned kFraction = 52;
constexpr std::uint64_t kBias = 1023;
constexpr std::uint64_t kLeastExponent = 56;

}  // namespace

std::uint16_t Worst::step_of(double number) {
  if (!(number > 0)) return 0;
  constexpr std::uint64_t kFirst = (kBias - kLeastExponent) << kBits;
  const std::uint64_t place = std::bit_cast<std::uint64_t>(number) >> (kFraction - kBits);
  return static_cast<std::uint16_t>(place <= kFirst ? 1 : std::min(place - kFirst, kSteps - 1));
}

void Worst::move(std::uint16_t from, std::uint16_t to) {
  if (from == to) return;
  if (from != 0) --count_[from];
  if (to != 0) ++count_[to];
}

double Worst::bound() const {
  std::uint64_t step = kSteps - 1;
  while (step > 0 && count_[step] == 0) --step;
  if (step == 0) return 0;
  constexpr std::uint64_t kFirst = (kBias - kLeastExponent) << kBits;
  return std::bit_cast<double>((kFirst + step + 1) << (kFraction - kBits));
}

void Census::put(Value& value, Place place) {
  Account& account = value.account_;
  if (account.place != Place::none) {
    List& from = list_of(account.place);
    (account.previous != nullptr ? account.previous->account_.next : from.first) = account.next;
    (account.next != nullptr ? account.next->account_.previous : from.last) = account.previous;
    --from.size;
  }
  account.place = place;
  if (place == Place::none) return;
  List& to = list_of(place);
  account.next = nullptr;
  account.previous = std::exchange(to.last, &value);
  (account.previous != nullptr ? account.previous->account_.next : to.first) = &value;
  ++to.size;
}

// Brings the sums of its type up to date with a value. The value has counted its expired claims and
// forgotten ids since it was made, so only the difference is new.
void Census::sum(Value& value) {
  Account& account = value.account_;
  const Figures now = value.figures();
  const std::uint64_t bytes = value.bytes();
  account.changed = account.changed || bytes != account.bytes || now.items != account.items ||
                    now.forgotten_early != account.forgotten_early;
  Sums& sums = types_[account.type].sums;
  sums.bytes += bytes - std::exchange(account.bytes, bytes);
  sums.items += now.items - std::exchange(account.items, now.items);
  sums.capacity += now.capacity - std::exchange(account.capacity, now.capacity);
  sums.claims += now.claims - std::exchange(account.claims, now.claims);
  const auto count = [](std::uint64_t& sum, std::uint32_t& before, std::uint64_t total) {
    const auto low = static_cast<std::uint32_t>(total);
    sum += low - std::exchange(before, low);
  };
  count(sums.claims_expired, account.claims_expired, now.claims_expired);
  count(sums.forgotten_early, account.forgotten_early, now.forgotten_early);
}

// Brings the worst error of its type up to date with a value.
void Census::compare(Value& value) {
  const ErrorRate rate = value.error_rate();
  Account& account = value.account_;
  account.changed = false;
  Type& type = types_[account.type];
  const std::uint16_t error = Worst::step_of(rate.now);
  const std::uint16_t share = rate.goal > 0 ? Worst::step_of(rate.now / rate.goal) : 0;
  type.errors.move(std::exchange(account.error, error), error);
  type.shares.move(std::exchange(account.share, share), share);
}

// A value that got only retries has not changed, and needs no comparison.
void Census::settle_all() {
  while (written_.size > 0) {
    Value& value = *written_.first;
    sum(value);
    put(value, value.account_.changed ? Place::late : Place::none);
  }
}

void Census::admit(Value& value, std::size_t type, Dataset dataset) {
  Account& account = value.account_;
  SEMEL_ASSERT(type < kTypes && !account.counted);
  const std::lock_guard lock(mutex_);
  account.counted = true;
  account.type = static_cast<std::uint8_t>(index_of(type, dataset));
  const Figures now = value.figures();  // a copy begins with the counts of its original
  account.claims_expired = static_cast<std::uint32_t>(now.claims_expired);
  account.forgotten_early = static_cast<std::uint32_t>(now.forgotten_early);
  ++types_[account.type].sums.keys;
  account.changed = true;
  sum(value);
  put(value, Place::late);
}

void Census::serve_loaded() {
  const std::lock_guard lock(mutex_);
  served_ = kTypes - served_;
}

void Census::dismiss(Value& value) noexcept {
  const std::lock_guard lock(mutex_);
  Account& account = value.account_;
  if (!account.counted) return;
  if (account.place == Place::written) sum(value);  // it may have counted since the last sum
  put(value, Place::none);
  Type& type = types_[account.type];
  --type.sums.keys;
  type.sums.bytes -= account.bytes;
  type.sums.items -= account.items;
  type.sums.capacity -= account.capacity;
  type.sums.claims -= account.claims;
  type.errors.move(account.error, 0);
  type.shares.move(account.share, 0);
  account.counted = false;
}

void Census::note(Value& value) {
  if (!value.account_.counted) return;
  const std::lock_guard lock(mutex_);
  if (written_.size < kWritten) return put(value, Place::written);
  sum(value);
  if (value.account_.changed && value.account_.place == Place::none) put(value, Place::late);
}

void Census::settle() {
  const std::lock_guard lock(mutex_);
  settle_all();
}

void Census::catch_up(std::chrono::microseconds budget) {
  const std::lock_guard lock(mutex_);
  settle_all();
  const auto end = std::chrono::steady_clock::now() + budget;
  while (late_.size > 0 && std::chrono::steady_clock::now() < end) {
    Value& value = *late_.first;
    try {
      compare(value);
    } catch (const std::bad_alloc&) {
      return;  // the value stays due, for a time when there is memory
    }
    put(value, Place::none);
  }
}

// What was counted since the module was loaded does not depend on the dataset.
Sums Census::sums_unlocked(std::size_t type) const {
  const Type& served = types_[index_of(type, Dataset::served)];
  const Sums& other = types_[index_of(type, Dataset::loading)].sums;
  Sums sums = served.sums;
  sums.claims_expired += other.claims_expired;
  sums.forgotten_early += other.forgotten_early;
  sums.evicted += other.evicted;
  sums.expired += other.expired;
  sums.error_worst = served.errors.bound();
  sums.error_ratio_worst = served.shares.bound();
  return sums;
}

std::uint64_t Census::unserved_bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (std::size_t type = 0; type < kTypes; ++type) {
    bytes += types_[index_of(type, Dataset::loading)].sums.bytes;
  }
  return bytes;
}

Sums Census::sums(std::size_t type) const {
  const std::lock_guard lock(mutex_);
  return sums_unlocked(type);
}

void Census::evicted(std::size_t type) {
  const std::lock_guard lock(mutex_);
  ++types_[index_of(type, Dataset::served)].sums.evicted;
}

void Census::expired(std::size_t type) {
  const std::lock_guard lock(mutex_);
  ++types_[index_of(type, Dataset::served)].sums.expired;
}

}  // namespace semel::host
