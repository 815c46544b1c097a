// Any text is refused with a line, or is a plan that can be written down.
#include <cstdlib>

#include "cli/tree_plan.h"
#include "fuzz/accepted.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::cli;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Format format : {Format::csv, Format::json}) {
    const auto plan = parse_tree(text, {format, ','});
    if (plan) ++semel::accepted_inputs;
    if (plan ? plan->levels.size() < 2 || plan->text().empty() : plan.error().message().empty()) {
      std::abort();
    }
  }
  return 0;
}
