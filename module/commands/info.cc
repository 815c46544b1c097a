#include "module/commands/info.h"

namespace semel::module {

void answer_value(host::Call& call, const InfoField& field) {
  if (const auto* const number = std::get_if<std::uint64_t>(&field.value)) {
    call.integer(static_cast<std::int64_t>(*number));
  } else if (const auto* const rate = std::get_if<double>(&field.value)) {
    call.number(*rate);
  } else if (const auto* const word = std::get_if<const char*>(&field.value)) {
    call.text(*word);
  } else {
    call.null();
  }
}

void answer_info(host::Call& call, std::span<const InfoField> fields) {
  call.map(fields.size());
  for (const InfoField& field : fields) {
    call.simple(field.name);  // as RedisBloom does
    answer_value(call, field);
  }
}

}  // namespace semel::module
