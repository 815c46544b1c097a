// The entry point of a fuzzer without libFuzzer: a test that runs in every build.
//
//   fuzz_NAME SEEDS    every file of the folder, every truncation of the small ones, and kMutations
//                      inputs made from them; the same inputs each time
//   fuzz_NAME FILE     this one input
//
// A fuzzer that counts what it accepts (fuzz/accepted.h) must accept every seed. So a change of a
// format that leaves old seeds behind fails here.
//
// An input that fails is left in the working directory as fuzz_NAME.failed.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/internal/random.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// In sanitized builds: called when a sanitizer is about to end the program.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());
extern "C" [[gnu::weak]] std::uint64_t semel_accepted_inputs();

namespace semel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMutations = 20'000;
constexpr std::size_t kSmall = 512;        // bytes; below it every truncation is tried
constexpr std::size_t kLargest = 1 << 16;  // inserts and splices stop growing an input here
constexpr std::uint64_t kSeed = 1;

ByteView running;         // the input that is being tried
std::string failed_path;  // where it is kept if it fails

// Async-signal-safe: the program may be in any state when this is called.
void keep_failed_input() {
  const int file = open(failed_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool kept = write(file, running.data(), running.size()) >= 0;
  close(file);
  const auto say = [](std::string_view text) {
    (void)!write(STDERR_FILENO, text.data(), text.size());
  };
  say(kept ? "smoke: the input that failed is kept: " : "smoke: cannot keep the failed input: ");
  say(failed_path);
  say("\n");
}

void on_signal(int signal) {
  keep_failed_input();
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

void watch_for_failures() {
  (void)std::signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(keep_failed_input);  // and it reports the other signals itself
  } else {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) (void)std::signal(signal, on_signal);
  }
}

// The input is copied to memory of just its size, where a sanitizer sees a read past its end.
void run(ByteView input) {
  const auto exact = std::make_unique<std::uint8_t[]>(input.size());
  std::copy(input.begin(), input.end(), exact.get());
  running = {exact.get(), input.size()};
  LLVMFuzzerTestOneInput(exact.get(), input.size());
}

Bytes contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// In the order of their names, so that a run does not depend on the file system.
std::set<fs::path> seeds_in(const fs::path& folder) {
  std::set<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.insert(entry.path());
  }
  return paths;
}

// Runs the input. Returns false if the fuzzer counts what it accepts, and did not accept it.
bool accepts(ByteView input) {
  const auto accepted = [] {
    return semel_accepted_inputs == nullptr ? 0 : semel_accepted_inputs();
  };
  const std::uint64_t before = accepted();
  run(input);
  return semel_accepted_inputs == nullptr || accepted() > before;
}

// Numbers at which lengths, counts and shifts go wrong.
std::uint64_t interesting(Random& random) {
  const std::uint64_t power = std::uint64_t{1} << random.below(64);
  switch (random.below(4)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return ~power + 1;
    default:
      return random.below(17);
  }
}

void mutate(Bytes& bytes, const std::vector<Bytes>& seeds, Random& random) {
  const auto position = [&](std::size_t size) {
    return static_cast<std::ptrdiff_t>(size == 0 ? 0 : random.below(size));
  };
  const auto byte = [&] { return static_cast<std::uint8_t>(random()); };
  const std::ptrdiff_t at = position(bytes.size());
  const std::size_t rest = bytes.size() - static_cast<std::size_t>(at);
  switch (random.below(6)) {
    case 0:  // flip a bit
      if (rest > 0) bytes[at] ^= static_cast<std::uint8_t>(1u << random.below(8));
      break;
    case 1:  // set a byte
      if (rest > 0) bytes[at] = byte();
      break;
    case 2: {  // set up to eight bytes to a number
      Bytes number(8);
      store_u64(number.data(), interesting(random));
      const std::size_t width = std::min(rest, std::size_t{1} << random.below(4));
      std::copy_n(number.begin(), width, bytes.begin() + at);
      break;
    }
    case 3:  // insert a run of one byte
      if (bytes.size() < kLargest) bytes.insert(bytes.begin() + at, 1 + random.below(16), byte());
      break;
    case 4:  // delete a run
      if (rest > 0) {
        const auto run =
            static_cast<std::ptrdiff_t>(1 + random.below(std::min<std::size_t>(rest, 16)));
        bytes.erase(bytes.begin() + at, bytes.begin() + at + run);
      }
      break;
    default: {  // go on as another seed does
      const Bytes& other = seeds[random.below(seeds.size())];
      bytes.resize(static_cast<std::size_t>(at));
      bytes.insert(bytes.end(), other.begin() + position(other.size()), other.end());
      if (bytes.size() > kLargest) bytes.resize(kLargest);
      break;
    }
  }
}

// Returns the number of inputs.
std::size_t run_all(const std::vector<Bytes>& seeds) {
  std::size_t inputs = 0;
  for (const Bytes& seed : seeds) {
    const std::size_t shortest = seed.size() <= kSmall ? 0 : seed.size();
    for (std::size_t size = shortest; size <= seed.size(); ++size, ++inputs) {
      run(ByteView(seed).first(size));
    }
  }
  Random random(kSeed);
  for (std::size_t i = 0; i < kMutations; ++i, ++inputs) {
    Bytes bytes = seeds[i % seeds.size()];
    for (std::uint64_t times = 1 + random.below(4); times > 0; --times) {
      mutate(bytes, seeds, random);
    }
    run(bytes);
  }
  return inputs;
}

int smoke(const fs::path& path) {
  watch_for_failures();
  if (fs::is_regular_file(path)) {
    run(contents(path));
    std::puts("1 input");
    return 0;
  }
  if (!fs::is_directory(path)) {
    std::fprintf(stderr, "smoke: %s is neither a folder of seeds nor a file\n", path.c_str());
    return 2;
  }
  std::vector<Bytes> seeds;
  bool refused = false;
  for (const fs::path& seed : seeds_in(path)) {
    seeds.push_back(contents(seed));
    if (accepts(seeds.back())) continue;
    std::fprintf(stderr, "smoke: the seed %s is refused; its mutations would test nothing\n",
                 seed.c_str());
    refused = true;
  }
  if (refused) return 1;
  if (seeds.empty()) {
    std::fprintf(stderr, "smoke: no seeds in %s\n", path.c_str());
    return 2;
  }
  std::printf("%zu inputs from %zu seeds\n", run_all(seeds), seeds.size());
  return 0;
}

}  // namespace
}  // namespace semel

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s SEEDS|FILE\n", argv[0]);
    return 2;
  }
  semel::failed_path = std::filesystem::path(argv[0]).filename().string() + ".failed";
  return semel::smoke(argv[1]);
}
