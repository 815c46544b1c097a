// SyncPipe, with a test as its other end. No test measures time. An event that must not happen is
// given longer than the timeout, and an event that must happen has any time.
#include "cli/sync_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "cli/files.h"
#include "semel/core/assert.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

using cli::File;
using cli::PipeDecoder;
using cli::PipeEncoder;
using cli::PipeRole;
using cli::SyncPipe;
using std::chrono::milliseconds;

constexpr TimeMs kTimeoutMs = SyncPipe::kLeastTimeoutMs;
constexpr milliseconds kLonger{kTimeoutMs + 1200};

void abandon(const Error& error, int /*signal*/) { FAIL() << error.message(); }

// Returns the next frame, "ended", or why there is none.
std::string received(SyncPipe& pipe) {
  const Result<std::optional<Bytes>> frame = pipe.receive();
  if (!frame) return frame.error().message();
  return *frame ? std::string((*frame)->begin(), (*frame)->end()) : "ended";
}

std::string said(const Result<bool>& done) {
  if (!done) return done.error().message();
  return *done ? "done" : "stopped";
}

struct Pipe {
  File to_read;
  File to_write;

  Pipe() {
    std::array<int, 2> ends{};
    SEMEL_ASSERT(::pipe2(ends.data(), O_CLOEXEC) == 0);
    to_read = File::own(ends[0]);
    to_write = File::own(ends[1]);
  }
};

// The end that asks, and bare descriptors where the other end would be.
class SyncPipes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { (void)std::signal(SIGPIPE, SIG_IGN); }

  SyncPipe::Settings asker(std::uint32_t most_bytes = 1 << 20) const {
    return {back_.to_read.fd(), forth_.to_write.fd(), PipeRole::asks, most_bytes, kTimeoutMs};
  }
  SyncPipe::Settings answerer() const {
    return {forth_.to_read.fd(), back_.to_write.fd(), PipeRole::answers, 1 << 20, kTimeoutMs};
  }
  // Writes as the peer does.
  void write(std::string_view bytes) const {
    ASSERT_FALSE(cli::write_all(back_.to_write.fd(), bytes));
  }
  void say_hello() const { write(cli::hello_of(PipeRole::answers)); }
  // Says something five times a second, for as long.
  void say_for(milliseconds time, const std::function<void(std::string&)>& what) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      std::string bytes;
      what(bytes);
      if (cli::write_all(back_.to_write.fd(), bytes)) return;
      std::this_thread::sleep_for(milliseconds(200));
    }
  }

  Pipe forth_;
  Pipe back_;
  cli::StopSignal stop_;
};

TEST_F(SyncPipes, ABusyEndIsNotSilent) {
  SyncPipe asks(asker(), stop_, abandon);
  SyncPipe answers(answerer(), stop_, abandon);
  EXPECT_TRUE(asks.send(Bytes{1, 2}));
  std::thread busy([&] {
    const Result<std::optional<Bytes>> question = answers.receive();
    ASSERT_TRUE(question && *question);
    std::this_thread::sleep_for(kLonger);
    EXPECT_TRUE(answers.send(**question));
    EXPECT_EQ(said(answers.flush()), "done");
    // Now the other end is busy.
    EXPECT_EQ(received(answers), "ended");
    answers.send_end();
    EXPECT_EQ(said(answers.flush()), "done");
  });
  EXPECT_EQ(received(asks), std::string("\1\2"));
  std::this_thread::sleep_for(kLonger);
  asks.send_end();
  EXPECT_EQ(said(asks.wait_for_end()), "done");
  busy.join();
}

TEST_F(SyncPipes, SilenceIsAProblem) {
  SyncPipe asks(asker(), stop_, abandon);
  EXPECT_EQ(received(asks), "the peer has been silent for 2 s");
}

TEST_F(SyncPipes, SilenceBehindHalfAHelloIsAProblem) {
  SyncPipe asks(asker(), stop_, abandon);
  write("semel-s");
  EXPECT_EQ(received(asks), "the peer has been silent for 2 s");
}

TEST_F(SyncPipes, ASlowPeerIsNotSilent) {
  SyncPipe asks(asker(), stop_, abandon);
  std::string stream(cli::hello_of(PipeRole::answers));
  PipeEncoder encoder;
  encoder.frame(Bytes{7}, stream);
  std::thread slow([&] {
    for (const char byte : stream) {
      write({&byte, 1});
      std::this_thread::sleep_for(kLonger / 34);
    }
  });
  EXPECT_EQ(received(asks), "\7");
  slow.join();
}

TEST_F(SyncPipes, APeerThatReadsNothingIsAProblemAlthoughItSpeaks) {
  SyncPipe asks(asker(), stop_, abandon);
  std::atomic<bool> over = false;
  std::thread peer([&] {
    PipeEncoder encoder;
    say_hello();
    while (!over) say_for(milliseconds(200), [&](std::string& to) { encoder.alive(false, to); });
  });
  EXPECT_TRUE(asks.send(Bytes(1 << 20)));
  EXPECT_EQ(received(asks), "the peer has read nothing for 2 s");
  over = true;
  peer.join();
}

TEST_F(SyncPipes, APeerThatSaysItIsFullIsWaitedFor) {
  SyncPipe asks(asker(), stop_, abandon);
  std::atomic<bool> over = false;
  std::thread peer([&] {
    PipeEncoder encoder;
    say_hello();
    say_for(kLonger, [&](std::string& to) { encoder.alive(true, to); });
    std::array<char, 65536> bytes;
    while (!over) {
      pollfd in{forth_.to_read.fd(), POLLIN, 0};
      std::size_t got = 0;
      if (::poll(&in, 1, 10) > 0) {
        (void)cli::read_some(forth_.to_read.fd(), bytes.data(), bytes.size(), got);
      }
    }
  });
  EXPECT_TRUE(asks.send(Bytes(1 << 20)));
  EXPECT_EQ(said(asks.flush()), "done");
  over = true;
  peer.join();
}

// Whatever a peer sends, little more is held than the limit; and the peer gets to know why.
TEST_F(SyncPipes, AnEndThatIsFullSaysSoAndReadsOnLater) {
  constexpr std::uint32_t kMost = 64 << 10;
  constexpr std::size_t kHeldByPipe = 64 << 10;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1000}}) {
    const Pipe forth, back;
    SyncPipe asks({back.to_read.fd(), forth.to_write.fd(), PipeRole::asks, kMost, kTimeoutMs},
                  stop_, abandon);
    ::fcntl(back.to_write.fd(), F_SETFL, O_NONBLOCK);
    PipeEncoder encoder;
    PipeDecoder decoder(PipeRole::asks, kMost);
    std::string stream(cli::hello_of(PipeRole::answers));
    const std::size_t count = (1 << 20) / (size + 15);
    for (std::size_t i = 0; i < count; ++i) encoder.frame(Bytes(size), stream);
    encoder.end(stream);
    std::size_t given = 0;
    const auto push = [&] {
      const ssize_t n = ::write(back.to_write.fd(), stream.data() + given, stream.size() - given);
      if (n > 0) given += static_cast<std::size_t>(n);
    };
    bool full = false;
    ASSERT_TRUE(eventually([&] {
      push();
      std::array<char, 4096> bytes;
      std::size_t got = 0;
      pollfd in{forth.to_read.fd(), POLLIN, 0};
      if (::poll(&in, 1, 0) > 0 &&
          !cli::read_some(forth.to_read.fd(), bytes.data(), bytes.size(), got)) {
        decoder.feed({bytes.data(), got});
      }
      Bytes none;
      for (auto item = *decoder.next(none); item != PipeDecoder::Item::none;
           item = *decoder.next(none)) {
        full = full || item == PipeDecoder::Item::full;
      }
      return full || given == stream.size();
    }));
    ASSERT_TRUE(full) << size;
    EXPECT_LE(given, 3 * kMost + kHeldByPipe) << size;
    std::thread rest([&] {
      while (given < stream.size()) {
        push();
        std::this_thread::sleep_for(milliseconds(1));
      }
    });
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(received(asks), std::string(size, '\0'));
    EXPECT_EQ(received(asks), "the peer ended before it answered");
    rest.join();
  }
}

TEST_F(SyncPipes, AnAnswerThatWasNotAskedForIsNoGoodbye) {
  SyncPipe asks(asker(), stop_, abandon);
  std::string stream(cli::hello_of(PipeRole::answers));
  PipeEncoder encoder;
  encoder.frame(Bytes{7}, stream);
  encoder.end(stream);
  write(stream);
  asks.send_end();
  EXPECT_EQ(said(asks.wait_for_end()), "the peer sends an answer that nobody asked for");
}

TEST_F(SyncPipes, ABusyCallerIsAbandoned) {
  std::atomic<bool> abandoned = false;
  SyncPipe asks(asker(), stop_, [&](const Error& error, int signal) {
    EXPECT_EQ(error.message(), "the peer ended before it said hello");
    EXPECT_EQ(signal, 0);
    abandoned = true;
  });
  (void)back_.to_write.close();
  EXPECT_TRUE(eventually([&] { return abandoned.load(); }));
}

}  // namespace
}  // namespace semel
