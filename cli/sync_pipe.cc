#include "cli/sync_pipe.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "cli/commands.h"

namespace semel::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kAliveEvery{1000};
constexpr milliseconds kLineComes{200};  // wait for the rest of a foreign greeting
constexpr seconds kLastWords{5};         // wait for the last words of a peer that reads no more
constexpr seconds kNoticeSignal{1};      // wait for a caller that is busy
constexpr seconds kNoticeError{5};
constexpr seconds kLinger{1};
constexpr std::size_t kFrameCost = 64;  // of memory, beside the bytes of a frame

std::string seconds_text(TimeMs ms) {
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 != 0) text += '.' + std::to_string(1000 + ms % 1000).substr(1);
  return text + " s";
}

// Writes as much as possible without waiting. The descriptor may be shared, so its flags are not
// changed. A pipe that poll() calls writable takes PIPE_BUF bytes; a socket is told not to wait.
ssize_t write_now(int fd, std::string_view bytes) {
  const std::size_t size = std::min<std::size_t>(bytes.size(), PIPE_BUF);
  const ssize_t sent = ::send(fd, bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent < 0 && errno == ENOTSOCK ? ::write(fd, bytes.data(), size) : sent;
}

}  // namespace

SyncPipe::SyncPipe(const Settings& settings, const StopSignal& stop, Abandon abandon)
    : settings_(settings),
      timeout_(settings.timeout_ms),
      stop_(stop),
      abandon_(std::move(abandon)),
      woken_(File::own(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      decoder_(settings.role == PipeRole::asks ? PipeRole::answers : PipeRole::asks,
               settings.most_bytes),
      unsent_(hello_of(settings.role)),
      heard_(Clock::now()),
      spoken_(heard_),
      moved_(heard_) {
  if (woken_.fd() < 0) throw std::system_error(last_error());
  thread_ = std::thread([this] { pump(); });
}

SyncPipe::~SyncPipe() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    wake();
  }
  thread_.join();
}

Result<void> SyncPipe::send(ByteView frame) {
  const std::lock_guard lock(mutex_);
  append([&](std::string& to) { encoder_.frame(frame, to); });
  return {};
}

void SyncPipe::send_end() {
  const std::lock_guard lock(mutex_);
  if (!said_end_) append([&](std::string& to) { encoder_.end(to); });
  said_end_ = true;
}

Result<std::optional<Bytes>> SyncPipe::receive() {
  Lock lock(mutex_);
  Bytes frame;
  switch (SEMEL_TRY(next(lock, frame))) {
    case Event::frame:
      return std::optional(std::move(frame));
    case Event::stopped:
      return std::optional<Bytes>();
    case Event::ended:
      break;
  }
  if (settings_.role == PipeRole::answers) return std::optional<Bytes>();
  return Error{Errc::io, "the peer ended before it answered"};
}

// Waits for a frame, a signal or the end.
Result<SyncPipe::Event> SyncPipe::next(Lock& lock, Bytes& frame) {
  changed_.wait(
      lock, [this] { return !abandoned_ && (stopped() || !frames_.empty() || ended_ || error_); });
  if (!stopped() && !frames_.empty()) {
    frame = std::move(frames_.front());
    frames_.pop_front();
    const bool was_full = full();
    frames_bytes_ -= frame.size() + kFrameCost;
    if (was_full) wake();
    return Event::frame;
  }
  noticed_ = true;
  if (stopped()) return Event::stopped;
  if (error_) return *error_;
  return Event::ended;
}

Result<bool> SyncPipe::flush() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return !abandoned_ && (stopped() || error_ || unsent_.empty()); });
  if (!error_ && !stopped() && deaf_since_) fail({Errc::io, "the peer reads no more"});
  if (!error_ && !stopped()) return true;
  noticed_ = true;
  if (stopped()) return false;
  return *error_;
}

Result<bool> SyncPipe::wait_for_end() {
  Lock lock(mutex_);
  Bytes frame;
  const Event event = SEMEL_TRY(next(lock, frame));
  if (event != Event::frame) return event == Event::ended;
  fail({Errc::corrupt, "the peer sends an answer that nobody asked for"});
  noticed_ = true;
  return *error_;
}

void SyncPipe::linger() {
  Lock lock(mutex_);
  noticed_ = true;
  changed_.wait_for(lock, kLinger, [this] { return !abandoned_ && (error_ || unsent_.empty()); });
}

void SyncPipe::append(const std::function<void(std::string&)>& write) {
  if (deaf_since_ || error_) return;
  if (unsent_.empty()) moved_ = Clock::now();
  write(unsent_);
  wake();
}

void SyncPipe::wake() const {
  const std::uint64_t one = 1;
  // If this fails, the counter is full and can be read already.
  [[maybe_unused]] const ssize_t written = ::write(woken_.fd(), &one, sizeof one);
}

bool SyncPipe::full() const { return frames_bytes_ > settings_.most_bytes; }

bool SyncPipe::reads() const { return !error_ && !ended_ && !full(); }

bool SyncPipe::writes() const { return !error_ && !deaf_since_ && !unsent_.empty(); }

void SyncPipe::pump() {
  Lock lock(mutex_);
  while (!closing_) {
    say_alive();
    wait_for_work(lock);
    check_deadlines();
    abandon_if_unnoticed(lock);
  }
}

// Waits until bytes can be moved or a deadline has come, and moves some.
void SyncPipe::wait_for_work(Lock& lock) {
  enum { kIn, kOut, kStop, kWoken };
  std::array<pollfd, 4> wanted = {{{reads() ? settings_.in : -1, POLLIN, 0},
                                   {writes() ? settings_.out : -1, POLLOUT, 0},
                                   {trouble_since_ && stopped() ? -1 : stop_.fd(), POLLIN, 0},
                                   {woken_.fd(), POLLIN, 0}}};
  const auto left = std::chrono::ceil<milliseconds>(next_deadline() - Clock::now());
  lock.unlock();
  const auto patience = std::clamp<milliseconds::rep>(left.count(), 0, INT_MAX);
  const int ready = ::poll(wanted.data(), wanted.size(), static_cast<int>(patience));
  const std::error_code error = ready < 0 ? last_error() : std::error_code{};
  lock.lock();
  if (error && error != std::errc::interrupted) fail(io_error("wait", "for the peer", error));
  if (ready <= 0) return;
  std::uint64_t count = 0;
  if (wanted[kWoken].revents != 0) (void)!::read(woken_.fd(), &count, sizeof count);
  if (wanted[kOut].revents != 0 && writes()) give();
  if (wanted[kIn].revents != 0 && reads()) take();
}

// A peer that has frames to read needs no sign of life.
void SyncPipe::say_alive() {
  if (error_ || said_end_ || deaf_since_ || !unsent_.empty()) return;
  const bool news = full() && !reported_full_;
  if (!news && Clock::now() - spoken_ < kAliveEvery) return;
  reported_full_ = full();
  append([&](std::string& to) { encoder_.alive(full(), to); });
}

void SyncPipe::take() {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(settings_.in, piece.data(), piece.size());
  if (got < 0) {
    const std::error_code error = last_error();
    const bool transient =
        error == std::errc::interrupted || error == std::errc::resource_unavailable_try_again;
    if (!transient) fail(io_error("read", "from the peer", error));
    return;
  }
  heard_ = Clock::now();
  if (got == 0) return fail(why_it_must_not_end());
  decoder_.feed({piece.data(), static_cast<std::size_t>(got)});
  drain();
}

void SyncPipe::drain() {
  using Item = PipeDecoder::Item;
  for (Bytes frame;;) {
    const Result<Item> item = decoder_.next(frame);
    if (!item) return fail(item.error());
    switch (*item) {
      case Item::none:
        return;
      case Item::alive:
        break;
      case Item::full:
        moved_ = Clock::now();
        break;
      case Item::frame:
        frames_bytes_ += frame.size() + kFrameCost;
        frames_.push_back(std::move(frame));
        changed_.notify_all();
        break;
      case Item::end:
        ended_ = true;
        changed_.notify_all();
        return;
      case Item::foreign:
        if (!foreign_since_) foreign_since_ = Clock::now();
        if (decoder_.line_is_whole()) fail(decoder_.foreign());
        return;
    }
  }
}

Error SyncPipe::why_it_must_not_end() const {
  if (foreign_since_) return decoder_.foreign();
  if (!decoder_.greeted()) return {Errc::io, "the peer ended before it said hello"};
  if (decoder_.in_the_middle()) return {Errc::io, "the peer ended in the middle of a frame"};
  if (settings_.role == PipeRole::answers) {
    return {Errc::io, "the peer ended before it said goodbye"};
  }
  return {Errc::io, said_end_ ? "the peer ended before it said that its directory is closed"
                              : "the peer ended before it answered"};
}

void SyncPipe::give() {
  const ssize_t given = write_now(settings_.out, std::string_view(unsent_).substr(sent_));
  if (given < 0) {
    const std::error_code error = last_error();
    // The last words of a peer are more useful than the fact that it is gone. Go on reading.
    const bool gone = error == std::errc::broken_pipe || error == std::errc::connection_reset;
    const bool transient =
        error == std::errc::interrupted || error == std::errc::resource_unavailable_try_again;
    if (gone) deaf_since_ = Clock::now();
    if (!gone && !transient) fail(io_error("write", "to the peer", error));
    if (!gone) return;
  }
  spoken_ = moved_ = Clock::now();
  if (given > 0) sent_ += static_cast<std::size_t>(given);
  if (!deaf_since_ && sent_ < unsent_.size()) return;
  unsent_.clear();
  sent_ = 0;
  changed_.notify_all();
}

SyncPipe::Clock::time_point SyncPipe::next_deadline() const {
  Clock::time_point next = Clock::time_point::max();
  const auto until = [&next](Clock::time_point time) { next = std::min(next, time); };
  if (!error_ && !said_end_ && !deaf_since_ && unsent_.empty()) {
    until(spoken_ + kAliveEvery);
  }
  if (reads()) until(heard_ + timeout_);
  if (writes() && !full()) until(moved_ + timeout_);
  if (foreign_since_ && !error_) until(*foreign_since_ + kLineComes);
  if (deaf_since_ && reads()) until(*deaf_since_ + kLastWords);
  if (unnoticed()) until(*trouble_since_ + (stopped() ? kNoticeSignal : kNoticeError));
  // An hour stands for 'never', which a sum of times cannot hold.
  return std::min(next, Clock::now() + std::chrono::hours(1));
}

void SyncPipe::check_deadlines() {
  const auto now = Clock::now();
  // This end cannot judge the peer while it does not read.
  if (full()) heard_ = moved_ = now;
  if (foreign_since_ && now >= *foreign_since_ + kLineComes) fail(decoder_.foreign());
  if (reads() && now >= heard_ + timeout_) {
    fail({Errc::io, "the peer has been silent for " + seconds_text(settings_.timeout_ms)});
  }
  if (writes() && now >= moved_ + timeout_) {
    fail({Errc::io, "the peer has read nothing for " + seconds_text(settings_.timeout_ms)});
  }
  if (deaf_since_ && reads() && now >= *deaf_since_ + kLastWords)
    fail({Errc::io, "the peer reads no more"});
  if (!trouble_since_ && (stopped() || ended_ || error_)) {
    trouble_since_ = now;
    changed_.notify_all();
  }
}

// A caller that has sent the end needs no notice.
bool SyncPipe::unnoticed() const { return trouble_since_ && !noticed_ && !said_end_; }

void SyncPipe::abandon_if_unnoticed(Lock& lock) {
  if (!unnoticed()) return;
  const auto patience = stopped() ? kNoticeSignal : kNoticeError;
  if (Clock::now() < *trouble_since_ + patience) return;
  abandoned_ = true;
  lock.unlock();
  abandon_(error_.value_or(Error{Errc::io, "the peer ended before it was answered"}),
           stop_.received());
  lock.lock();
}

void SyncPipe::fail(Error error) {
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

}  // namespace semel::cli
