// The replies of INFO commands.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <variant>

#include "module/host/call.h"

namespace semel::module {

struct InfoField {
  const char* name;
  std::variant<std::monostate, std::uint64_t, double, const char*> value;

  InfoField(const char* field, std::uint64_t number) : name(field), value(number) {}
  InfoField(const char* field, double rate) : name(field), value(rate) {}
  InfoField(const char* field, const char* word) : name(field), value(word) {}
  // Answers null if `number` stands for no limit.
  InfoField(const char* field, std::uint64_t number, std::uint64_t none) : name(field) {
    if (number != none) value = number;
  }
};

void answer_value(host::Call& call, const InfoField& field);
void answer_info(host::Call& call, std::span<const InfoField> fields);
inline void answer_info(host::Call& call, std::initializer_list<InfoField> fields) {
  answer_info(call, {fields.begin(), fields.size()});
}

}  // namespace semel::module
