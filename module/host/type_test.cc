// Types: a server may save a value in a thread of its own while another thread does the same.
#include "module/host/type.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "module/host/census.h"

namespace semel::host {
namespace {

// Its encoding repeats one byte, and waits in the middle until both threads are there.
class Pattern final : public Value {
 public:
  Pattern(std::uint8_t byte, std::atomic<int>& arrived) : byte_(byte), arrived_(arrived) {}

  void encode(Sink out) const override {
    constexpr std::size_t kPart = 1000;
    for (std::size_t i = 0; i <= kMost / kPart; ++i) {
      if (i == 1) {
        for (++arrived_; arrived_ < 2;) std::this_thread::yield();
      }
      out.append(std::vector<std::uint8_t>(kPart, byte_));
    }
  }
  std::uint64_t bytes() const override { return 0; }
  std::unique_ptr<Value> clone() const override { return nullptr; }
  Figures figures() const override { return {}; }
  ErrorRate error_rate() const override { return {}; }

  static constexpr std::size_t kMost = 3 * kPieceBytes;

 private:
  const std::uint8_t byte_;
  std::atomic<int>& arrived_;
};

thread_local std::vector<std::uint8_t> saved;
api::TypeMethods methods;

TEST(Types, AreSavedByTwoThreadsAtOnce) {
  static const TypeSpec kSpec = {
      .name = "TESTtype-", .version = 1, .decode = nullptr, .family = "test"};
  static const std::array<const TypeSpec*, 1> kTypes = {&kSpec};
  api::CreateDataType = [](api::Ctx* /*ctx*/, const char* /*name*/, int /*version*/,
                           api::TypeMethods* given) {
    methods = *given;
    return reinterpret_cast<api::Type*>(&methods);
  };
  api::SaveUnsigned = [](api::Io* /*io*/, std::uint64_t /*number*/) {};
  api::SaveStringBuffer = [](api::Io* /*io*/, const char* text, std::size_t size) {
    saved.insert(saved.end(), text, text + size);
  };
  ASSERT_TRUE(load_types(nullptr, kTypes));
  std::atomic<int> arrived = 0;
  const auto save = [&](std::uint8_t byte) {
    Pattern value(byte, arrived);
    methods.rdb_save(nullptr, static_cast<Value*>(&value));
    EXPECT_EQ(saved, std::vector<std::uint8_t>(saved.size(), byte));
    EXPECT_GT(saved.size(), Pattern::kMost);
  };
  std::thread other([&] { save(1); });
  save(2);
  other.join();
}

}  // namespace
}  // namespace semel::host
