// Set sketches: adding numbers, by each kernel that the processor has, and decoding sets.
#include "semel/sync/internal/set_sketch.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/harness.h"
#include "semel/core/internal/random.h"
#include "semel/sync/internal/binary_field.h"

namespace semel::bench {

using namespace sync_internal;
namespace {

using binary_field::Kernel;

std::vector<std::uint32_t> random_numbers(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t& number : numbers) number = static_cast<std::uint32_t>(random() | 1);
  return numbers;
}

// Measures the time for a number. Each number goes to one of a thousand sketches.
Contender toggling(const Kernel& kernel, std::uint32_t capacity, std::size_t slice) {
  constexpr std::size_t kSketches = 1000;
  const auto sketches = std::make_shared<std::vector<std::uint32_t>>(kSketches * capacity);
  Random random(1);
  std::vector<std::uint32_t> places(slice);
  for (std::uint32_t& place : places) place = static_cast<std::uint32_t>(random.below(kSketches));
  return {std::string(kernel.name),
          [&kernel, capacity, sketches, places, numbers = random_numbers(slice, 2)](const Slice&) {
            kernel.toggle({sketches->data(), capacity, places.data(), numbers});
            return std::uint64_t{0};
          }};
}

Contender toggling_one_by_one(std::uint32_t capacity, std::size_t slice) {
  const auto sketch = std::make_shared<SetSketch>(capacity);
  return {"one-by-one", [sketch, numbers = random_numbers(slice, 2)](const Slice&) {
            for (const std::uint32_t number : numbers) sketch->toggle(number);
            return std::uint64_t{0};
          }};
}

void compare_toggles(Session& session) {
  const auto all = binary_field::kernels();
  for (const std::uint32_t capacity : {8, 16, 32, 100}) {
    Workload workload = new_keys(1 << 20);
    workload.slice = 1 << 14;
    std::vector<Contender> peers = {toggling_one_by_one(capacity, workload.slice)};
    for (const Kernel& kernel : all.first(all.size() - 1)) {
      peers.push_back(toggling(kernel, capacity, workload.slice));
    }
    session.compare({{.id = "set-sketch-toggle/capacity-" + std::to_string(capacity),
                      .workload = workload,
                      .ours = toggling(all.back(), capacity, workload.slice),
                      .peers = peers}});
  }
}

const Registration kToggle("set-sketch-toggle", "a number into one of a thousand set sketches",
                           compare_toggles);

// Measures the time for a sketch.
Contender decoding(std::string name, std::uint32_t members, std::uint32_t capacity,
                   std::size_t slice) {
  std::vector<SetSketch> sketches;
  for (std::size_t i = 0; i < slice; ++i) {
    sketches.emplace_back(capacity);
    for (const std::uint32_t number : random_numbers(members, i)) sketches.back().toggle(number);
  }
  return {std::move(name), [sketches = std::move(sketches)](const Slice&) {
            return static_cast<std::uint64_t>(
                std::count_if(sketches.begin(), sketches.end(),
                              [](const SetSketch& sketch) { return sketch.decode().has_value(); }));
          }};
}

void compare_decoding(Session& session) {
  for (const std::uint32_t members : {1, 2, 4, 8, 16, 32, 64}) {
    Workload workload = new_keys(1 << 20);
    workload.slice = 64;
    session.compare({{.id = "set-sketch-decode/members-" + std::to_string(members),
                      .workload = workload,
                      .ours = decoding("full", members, members, workload.slice),
                      .peers = {decoding("half-full", members, 2 * members, workload.slice),
                                decoding("too-many", 3 * members, members, workload.slice)}}});
  }
}

const Registration kDecode("set-sketch-decode",
                           "sets out of sketches that they fill, half fill or overfill",
                           compare_decoding);

}  // namespace
}  // namespace semel::bench
