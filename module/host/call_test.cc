// Call: whatever a handler does, its client gets one answer, and missing arguments are never read.
#include "module/host/call.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "module/host/command.h"
#include "tests/support/fake_host.h"

namespace semel::host {
namespace {

using Words = FakeHost::Words;

std::function<void(Call&)> behaviour;
void behave(Call& call) { behaviour(call); }

// Returns what the client of a handler gets. The handler is loaded and called as by a server.
Words answers(std::function<void(Call&)> handler) {
  static const std::array kRows = {command<behave>({
      .name = "TEST.BEHAVE",
      .syntax = "key",
      .kind = CommandKind::reads,
      .summary = "",
      .reply = "",
  })};
  FakeHost host({"TEST.BEHAVE", "key"});
  static const std::array kFamilies = {Family{"TEST", "test", kRows}};
  static const Result<void> kLoaded = CommandTable::load(nullptr, kFamilies);
  EXPECT_TRUE(kLoaded);
  behaviour = std::move(handler);
  std::vector<api::String*> arguments(host.arguments().begin(), host.arguments().end());
  kRows[0].entry(nullptr, arguments.data(), static_cast<int>(arguments.size()));
  return host.answers();
}

TEST(Call, AnArgumentThatIsNotThereIsRefused) {
  const FakeHost host({"NAME", "key"});
  Call call(nullptr, host.arguments());
  EXPECT_EQ(call[1], "key");
  EXPECT_THROW(call[2], std::logic_error);
  EXPECT_THROW(call[static_cast<std::size_t>(-1)], std::logic_error);
  EXPECT_THROW(call.open(2, Access::read), std::logic_error);
}

constexpr const char* kError = "-ERR internal error, see the log of the server";

TEST(Call, ASecondAnswerReachesNobody) {
  EXPECT_EQ(answers([](Call& call) {
              call.ok();
              call.ok();
            }),
            Words({"+OK"}));
  EXPECT_EQ(answers([](Call& call) {
              call.error("ERR first");
              call.wrong_arity();
            }),
            Words({"-ERR first"}));
  EXPECT_EQ(answers([](Call& call) {
              call.array(1);
              call.integer(1);
              call.integer(2);
            }),
            Words({"*1", "1"}));
  EXPECT_EQ(answers([](Call& call) {
              call.map(0);
              call.null();
            }),
            Words({"%0"}));
}

TEST(Call, AnAnswerThatIsMissingIsAnError) {
  EXPECT_EQ(answers([](Call& /*call*/) {}), Words({kError}));
  EXPECT_EQ(answers([](Call& call) { call.text(call[7]); }), Words({kError}));
  EXPECT_EQ(answers([](Call& call) {
              call.array(3);
              call.boolean(true);
            }),
            Words({"*3", "1", kError, kError}));
  EXPECT_EQ(answers([](Call& call) {
              call.map(1);
              call.text("a");
              call.array(2);
              throw std::bad_alloc();
            }),
            Words({"%1", "\"a\"", "*2", "-OOM the server has no memory for this command",
                   "-OOM the server has no memory for this command"}));
}

// A server that saves in a thread of its own gives no key that it is saving.
TEST(Call, AKeyThatIsBeingSavedIsForLater) {
  api::OpenKey = [](api::Ctx* /*ctx*/, api::String* /*name*/, int /*mode*/) -> api::Key* {
    return nullptr;
  };
  EXPECT_EQ(answers([](Call& call) {
              const OpenKey key = call.open(1, Access::write);
              call.ok();
            }),
            Words({std::string("-") + kKeyInUse}));
  EXPECT_EQ(answers([](Call& call) {
              const OpenKey key = call.open(1, Access::read);
              call.boolean(key.empty());
            }),
            Words({"1"}));
}

TEST(Call, AMapOfUnknownSizeIsClosedWithWhatIsInIt) {
  EXPECT_EQ(answers([](Call& call) {
              call.begin_map();
              call.text("a");
              call.array(1);
              call.integer(1);
              call.text("b");
              call.null();
              call.end_map();
            }),
            Words({"%?", "\"a\"", "*1", "1", "\"b\"", "nil", "=2"}));
  EXPECT_EQ(answers([](Call& call) {
              call.begin_map();
              call.text("a");
              throw std::runtime_error("half a pair");
            }),
            Words({"%?", "\"a\"", kError, "=1"}));
  EXPECT_EQ(answers([](Call& call) {
              call.begin_map();
              call.end_map();
              call.ok();
            }),
            Words({"%?", "=0"}));
  EXPECT_EQ(answers([](Call& call) {
              call.array(2);
              call.begin_map();
            }),
            Words({"*2", kError, kError}));
}

}  // namespace
}  // namespace semel::host
