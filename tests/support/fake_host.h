// FakeHost: the few functions of a server that commands need, for tests of what handlers may do.
//
// Contract  While one lives, arguments are its words and answers are written down: `5`, `"a"`,
//           `+OK`, `-ERR x`, `nil`, `*2` for an array of two, `%1` for a map of one pair, `%?` for
//           a map whose length comes at the end as `=1`. At most one host lives at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "module/host/api.h"

namespace semel::host {

class FakeHost {
 public:
  using Words = std::vector<std::string>;

  explicit FakeHost(Words words = {}) : words_(std::move(words)) {
    answers_of().clear();
    for (std::string& word : words_) {
      arguments_.push_back(reinterpret_cast<api::String*>(&word));
    }
    api::StringPtrLen = [](const api::String* string, std::size_t* size) {
      const auto& word = *reinterpret_cast<const std::string*>(string);
      *size = word.size();
      return word.data();
    };
    api::CreateCommand = [](api::Ctx* /*ctx*/, const char* /*name*/, api::CommandFn /*entry*/,
                            const char* /*flags*/, int /*first*/, int /*last*/,
                            int /*step*/) { return api::kOk; };
    api::GetCommand = [](api::Ctx* /*ctx*/, const char* name) {
      return reinterpret_cast<api::Command*>(const_cast<char*>(name));
    };
    api::SetCommandInfo = [](api::Command* /*command*/, const api::CommandInfo* /*info*/) {
      return api::kOk;
    };
    api::GetContextFlags = [](api::Ctx* /*ctx*/) { return 0; };
    api::Log = log;
    api::WrongArity = [](api::Ctx* /*ctx*/) { return say("-ERR arity"); };
    api::ReplyWithLongLong = [](api::Ctx* /*ctx*/, long long value) {
      return say(std::to_string(value));
    };
    api::ReplyWithBool = [](api::Ctx* /*ctx*/, int value) { return say(std::to_string(value)); };
    api::ReplyWithError = [](api::Ctx* /*ctx*/, const char* text) {
      return say(std::string("-").append(text));
    };
    api::ReplyWithSimpleString = [](api::Ctx* /*ctx*/, const char* text) {
      return say(std::string("+").append(text));
    };
    api::ReplyWithStringBuffer = [](api::Ctx* /*ctx*/, const char* text, std::size_t size) {
      return say('"' + std::string(text, size) + '"');
    };
    api::ReplyWithNull = [](api::Ctx* /*ctx*/) { return say("nil"); };
    api::ReplyWithArray = [](api::Ctx* /*ctx*/, long size) {
      return say("*" + std::to_string(size));
    };
    api::ReplyWithMap = [](api::Ctx* /*ctx*/, long size) {
      return say(size == api::kPostponed ? "%?" : "%" + std::to_string(size));
    };
    api::ReplySetMapLength = [](api::Ctx* /*ctx*/, long size) { say("=" + std::to_string(size)); };
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  std::span<api::String* const> arguments() const { return arguments_; }
  const Words& answers() const { return answers_of(); }

 private:
  static Words& answers_of() {
    static Words answers;
    return answers;
  }
  static void log(api::Ctx* /*ctx*/, const char* /*level*/, const char* /*format*/, ...) {}
  static int say(std::string answer) {
    answers_of().push_back(std::move(answer));
    return api::kOk;
  }

  Words words_;
  std::vector<api::String*> arguments_;
};

}  // namespace semel::host
