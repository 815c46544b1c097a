// Any bytes are cut into the same records however they arrive. The records make up the bytes, and
// each gives an answer or an error.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "cli/records.h"

namespace {

using namespace semel::cli;

void check(bool holds) {
  if (!holds) std::abort();
}

// The first byte chooses the format and the questions, the second the size of pieces.
void run(std::string_view input) {
  if (input.size() < 2) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  const std::size_t piece = 1 + static_cast<unsigned char>(input[1]);
  input.remove_prefix(2);
  const RecordSyntax syntax{static_cast<Format>(choice % 4), choice % 8 < 4 ? ',' : ';'};
  Questions questions;
  if (syntax.format != Format::lines && choice % 16 >= 8) {
    const bool json = syntax.format == Format::json;
    questions.key = parse_fields(syntax, json ? "a.b,/c" : "1,3");
    if (choice % 32 >= 16) questions.time = parse_field(syntax, json ? "t" : "2");
    if (choice % 64 >= 32) questions.places = parse_fields(syntax, json ? "d.0" : "2");
  }
  const auto columns = find_columns(syntax, questions, std::nullopt);
  check(columns.has_value());
  (void)find_columns(syntax, questions, input.substr(0, input.find('\n')));

  // Cuts the input as it arrives in pieces.
  std::vector<std::size_t> ends;
  std::size_t begin = 0;
  CutProgress progress;
  for (std::size_t seen = std::min(piece, input.size()); begin < input.size();) {
    const bool end = seen == input.size();
    const std::size_t whole =
        whole_records(syntax, input.substr(begin, seen - begin), end, progress);
    check(whole <= seen - begin && (!end || whole == seen - begin));
    if (whole > 0) {
      begin += whole;
      progress = {};
      ends.push_back(begin);
    }
    seen = std::min(seen + piece, input.size());
  }

  const semel::Hasher hasher = semel::Hasher::fast(1);
  RecordReader reader(syntax, questions, hasher);
  RecordReader::Answers answers{};
  const std::string padded = std::string(input) + std::string(kPadding, '\0');
  begin = 0;
  for (const std::size_t end : ends) {
    while (begin < end) {
      const std::string_view rest(padded.data() + begin, end - begin);
      const Cut cut = cut_record(syntax, rest, true);
      check(cut.size > 0 && cut.size <= rest.size() && cut.lines > 0);
      (void)reader.read(rest.substr(0, cut.size), *columns, answers);
      begin += cut.size;
    }
  }
  (void)parse_time(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}
