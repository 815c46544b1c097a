#include "cli/sync_pipe.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "cli/commands.h"
#include "cli/files.h"

namespace semel::cli {
namespace {

// docs/formats/sync_pipe_v1.md
constexpr std::string_view kHelloName = "semel-sync ";
constexpr std::string_view kHello = "semel-sync 1\n";
constexpr std::size_t kLengthSize = 4;

}  // namespace

SyncPipe::SyncPipe(int in, int out, std::uint32_t most_bytes, const StopSignal& stop)
    : in_(in), out_(out), most_bytes_(most_bytes), stop_(stop), unsent_(kHello) {}

void SyncPipe::send(ByteView frame) {
  std::array<std::uint8_t, kLengthSize> length{};
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    length[i] = static_cast<std::uint8_t>(frame.size() >> (8 * i));
  }
  unsent_.append(length.begin(), length.end());
  unsent_.append(frame.begin(), frame.end());
}

SyncPipe::Event SyncPipe::receive(Bytes& frame) {
  for (;;) {
    if (!greeted_) {
      if (const Event event = check_hello(); event != Event::done) return event;
    }
    if (greeted_ && received_.size() >= kLengthSize) {
      const std::uint32_t length = Reader(bytes_of(received_)).u32();
      if (length > most_bytes_) {
        return fail("the peer sends a frame of " + std::to_string(length) +
                    " bytes; the limit is " + std::to_string(most_bytes_));
      }
      if (received_.size() - kLengthSize >= length) {
        const ByteView whole = bytes_of(received_).subspan(kLengthSize, length);
        frame.assign(whole.begin(), whole.end());
        received_.erase(0, kLengthSize + length);
        return Event::done;
      }
    }
    if (const Event event = move(true); event != Event::done) return event;
  }
}

SyncPipe::Event SyncPipe::flush() {
  while (sent_ < unsent_.size()) {
    if (const Event event = move(false); event != Event::done) return event;
  }
  return deaf_ ? fail("the peer reads no more") : Event::done;
}

SyncPipe::Event SyncPipe::move(bool reading) {
  if (!problem_.empty()) return Event::failed;
  std::array<pollfd, 3> wanted = {{{reading ? in_ : -1, POLLIN, 0},
                                   {sent_ < unsent_.size() ? out_ : -1, POLLOUT, 0},
                                   {stop_.fd(), POLLIN, 0}}};
  if (::poll(wanted.data(), wanted.size(), -1) < 0) {
    const std::error_code error = last_error();
    return error == std::errc::interrupted ? Event::done
                                           : fail(cannot("wait", "for the peer", error));
  }
  if (stop_.received() != 0) return Event::stopped;
  if (wanted[0].revents != 0) return take();
  if (wanted[1].revents != 0) return give();
  return Event::done;
}

SyncPipe::Event SyncPipe::take() {
  std::array<char, 65536> piece;
  std::size_t got = 0;
  if (const std::error_code error = read_some(in_, piece.data(), piece.size(), got)) {
    return fail(cannot("read", "from the peer", error));
  }
  received_.append(piece.data(), got);
  if (got > 0) return Event::done;
  if (!greeted_) return fail("the peer ended before it said hello");
  return received_.empty() ? Event::ended : fail("the peer ended in the middle of a frame");
}

SyncPipe::Event SyncPipe::give() {
  // A pipe that poll() calls writable takes this much without blocking.
  const std::size_t size = std::min<std::size_t>(unsent_.size() - sent_, PIPE_BUF);
  const std::error_code error = write_all(out_, std::string_view(unsent_).substr(sent_, size));
  // What a peer said before it went away is of more use than that it went: it may still be read.
  deaf_ = error == std::errc::broken_pipe;
  if (error && !deaf_) return fail(cannot("write", "to the peer", error));
  sent_ += size;
  if (deaf_ || sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  }
  return Event::done;
}

SyncPipe::Event SyncPipe::check_hello() {
  const std::string_view got = std::string_view(received_).substr(0, kHello.size());
  if (got != kHello.substr(0, got.size())) {
    hear_out();
    const std::string said = quoted(received_.substr(0, received_.find('\n')));
    return fail(received_.starts_with(kHelloName)
                    ? "the peer speaks another version: it said " + said + ", not " +
                          quoted(kHello.substr(0, kHello.size() - 1))
                    : "the peer does not speak semel's sync: it said " + said);
  }
  if (got.size() == kHello.size()) {
    greeted_ = true;
    received_.erase(0, kHello.size());
  }
  return Event::done;
}

// A line may come in pieces. How the peer ends is of no more interest.
void SyncPipe::hear_out() {
  constexpr std::size_t kEnough = 80;
  constexpr int kPatienceMs = 200;
  pollfd in{in_, POLLIN, 0};
  while (received_.size() < kEnough && received_.find('\n') == std::string::npos &&
         ::poll(&in, 1, kPatienceMs) > 0 && take() == Event::done) {
  }
  problem_.clear();
}

SyncPipe::Event SyncPipe::fail(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  return Event::failed;
}

}  // namespace semel::cli
