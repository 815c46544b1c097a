// Scripts: commands and their expected answers, in RESP2 and in RESP3.
//
// A step that is answered with an error must change nothing: the digests of all keys are compared
// before and after it. There is one exception: a refusal for lack of room, or because an event is
// too old, advances the time of the value.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/cli/wildcard.h"
#include "tests/module/module_server.h"

namespace semel {

struct Step {
  std::string_view command;
  std::string_view resp2;                                // `[...]` stands for any text
  std::optional<std::string_view> resp3 = std::nullopt;  // if it differs
};

inline void run_script(const RedisServer& server, int protocol, const std::vector<Step>& steps) {
  Talk talk(server, protocol);
  ASSERT_EQ(talk("FLUSHALL"), "+OK");
  Digests before;
  for (const Step& step : steps) {
    const std::string_view expected = protocol == 3 ? step.resp3.value_or(step.resp2) : step.resp2;
    const std::string answer = talk(step.command);
    EXPECT_TRUE(matches_wildcard(expected, answer))
        << "RESP" << protocol << ": " << step.command << "\n  answer:   " << answer
        << "\n  expected: " << expected;
    const Digests after = digests(talk);
    if (answer.starts_with('-') && !answer.starts_with("-FULL") &&
        !answer.starts_with("-STALE the event")) {
      SCOPED_TRACE(step.command);
      expect_equal(after, before);
    }
    before = after;
  }
}

// Returns the fields of an INFO command of a key.
inline std::map<std::string, std::string> info_of(const RedisServer& server, int protocol,
                                                  const std::string& command) {
  const Answer answer = Talk(server, protocol).call(words_of(command));
  EXPECT_EQ(answer.type, protocol == 3 ? '%' : '*') << answer.shown();
  std::map<std::string, std::string> fields;
  for (std::size_t i = 0; i + 1 < answer.parts.size(); i += 2) {
    fields[answer.parts[i].text] = answer.parts[i + 1].text;
  }
  return fields;
}

// One server for all scripts of a suite.
class Script : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { held() = std::make_unique<RedisServer>(with_module()); }
  static void TearDownTestSuite() { held().reset(); }
  static void run(const std::vector<Step>& steps) { run_script(server(), GetParam(), steps); }
  static const RedisServer& server() { return *held(); }

 private:
  static std::unique_ptr<RedisServer>& held() {
    static std::unique_ptr<RedisServer> server;
    return server;
  }
};

inline std::string protocol_name(const ::testing::TestParamInfo<int>& instance) {
  return "Resp" + std::to_string(instance.param);
}

}  // namespace semel
