// semel generate: writes a stream of test lines, the same for the same options everywhere.
//
// Contract  The i-th different line is a function of (seed, i) alone. No two are equal: line i
//           begins with mix(start + i), a bijection, in hexadecimal. A repetition picks i uniformly
//           among the lines already written. Exactly round(share * lines) lines are repetitions, at
//           places drawn uniformly. The first line is never one.
// Cost      Memory, and time for each line, do not grow with the number of lines.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "cli/commands.h"
#include "cli/files.h"
#include "semel/core/internal/random.h"

namespace semel::cli {
namespace {

constexpr std::size_t kWordDigits = 16;  // of 64 bits in hexadecimal
constexpr std::uint64_t kMostLines = 1'000'000'000'000'000;
constexpr std::size_t kBuffer = std::size_t{256} << 10;

struct Settings {
  std::uint64_t lines = 1000;
  double duplicates = 0.5;
  std::uint64_t bytes = 80;
  std::uint64_t seed = 1;
};

// The two hexadecimal digits of each byte.
constexpr auto kHexPairs = [] {
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = "0123456789abcdef"[byte / 16];
    pairs[2 * byte + 1] = "0123456789abcdef"[byte % 16];
  }
  return pairs;
}();

void write_hex(char* to, std::uint64_t word) {
  for (int shift = 56; shift >= 0; shift -= 8, to += 2) {
    std::memcpy(to, kHexPairs.data() + 2 * ((word >> shift) & 0xff), 2);
  }
}

// Writes `size` - 1 digits and a newline: first those of `id`, then digits that follow from it.
void write_line(char* to, std::size_t size, std::uint64_t id) {
  Random digits(id);
  char* const end = to + size - 1;
  std::uint64_t word = id;
  for (; end - to >= static_cast<std::ptrdiff_t>(kWordDigits); to += kWordDigits, word = digits()) {
    write_hex(to, word);
  }
  std::array<char, kWordDigits> last{};
  write_hex(last.data(), word);
  std::memcpy(to, last.data(), static_cast<std::size_t>(end - to));
  *end = '\n';
}

Exit generate(const Settings& settings) {
  Random random(settings.seed);
  const std::uint64_t start = random();
  const double wanted = std::round(settings.duplicates * static_cast<double>(settings.lines));
  std::uint64_t repetitions = std::min(static_cast<std::uint64_t>(wanted),
                                       settings.lines - std::min<std::uint64_t>(settings.lines, 1));
  std::uint64_t distinct = 0;

  const std::size_t capacity = std::max<std::size_t>(kBuffer, settings.bytes);
  const std::unique_ptr<char[]> buffer(new char[capacity]);
  std::size_t used = 0;
  for (std::uint64_t left = settings.lines; left > 0; --left) {
    const bool repeat = distinct > 0 && random.below(left) < repetitions;
    repetitions -= repeat;
    const std::uint64_t number = repeat ? random.below(distinct) : distinct++;
    if (capacity - used < settings.bytes) {
      if (print("semel generate", {buffer.get(), used}) != Exit::success) return Exit::failure;
      used = 0;
    }
    write_line(buffer.get() + used, settings.bytes, mix(start + number));
    used += settings.bytes;
  }
  return print("semel generate", {buffer.get(), used});
}

}  // namespace

Command generate_command() {
  auto settings = std::make_shared<Settings>();
  Syntax syntax{
      "semel generate",
      "Writes a stream of lines with a known share of duplicates",
      "Lines are hexadecimal digits. The same options give the same bytes on every machine.",
      {{"lines", 'n', count_value("N", settings->lines, 0, kMostLines),
        "how many lines to write (default 1000)"},
       {"duplicates", 'd',
        number_value("SHARE", settings->duplicates, "a number from 0 to 1",
                     [](double share) { return share >= 0 && share <= 1; }),
        "the share of lines that repeat an earlier one, chosen uniformly among the different ones "
        "(default 0.5)"},
       {"bytes", 'b', bytes_value("LEN", settings->bytes, kWordDigits + 1, std::uint64_t{1} << 30),
        "the length of a line, newline included (default 80)"},
       {"seed", 's', count_value("S", settings->seed, 0, UINT64_MAX),
        "another seed gives other lines (default 1)"}}};
  syntax.examples = {
      {"semel generate --lines 1M --duplicates 0.1 | semel sift >first", "900,000 lines stay"},
      {"semel generate --lines 20M --bytes 80 --seed 7 >stream", "1.6 GB to measure with"}};
  return {"generate", std::move(syntax), [settings] { return generate(*settings); }};
}

}  // namespace semel::cli
