// SyncPipe: sync frames over a pair of file descriptors, to a peer that may fall silent.
//
// Contract  Frames come out as they went in, whole and in order, or there is an error
//           (pipe_records.h). A thread reads and writes all the time, whatever the caller does, and
//           tells the peer once a second that this end is alive. So silence means death, however
//           long a peer works. A peer that sends nothing, or takes nothing, for the timeout is an
//           error. Every byte counts, so a peer on a slow link is not silent.
//           A busy caller may not notice an error, a signal or the end of the peer. After a while
//           the pipe calls a function that ends the process. The first error stays.
// Memory    Frames that wait to be written. Frames that wait to be received: little more than
//           `most_bytes` and one frame. Then the thread stops reading, and tells the peer.
// Threads   One thread calls. It need not be the one that made the pipe.
// Format    docs/formats/sync_pipe_v1.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/files.h"
#include "cli/pipe_records.h"
#include "cli/stop_signal.h"
#include "semel/core/clock.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/sync/peer.h"

namespace semel::cli {

class SyncPipe final : public SyncPeer {
 public:
  static constexpr TimeMs kLeastTimeoutMs = 2'000;  // a peer speaks every second
  static constexpr TimeMs kMostTimeoutMs = 86'400'000;

  struct Settings {
    int in;
    int out;
    PipeRole role;
    std::uint32_t most_bytes;  // the size limit of a frame
    TimeMs timeout_ms;
  };
  // Takes the error, and the signal if there was one. Must not return. It is called in the thread
  // of the pipe.
  using Abandon = std::function<void(const Error& error, int signal)>;

  // REQUIRES: the descriptors and `stop` outlive the pipe, and SIGPIPE is ignored.
  SyncPipe(const Settings& settings, const StopSignal& stop, Abandon abandon);
  SyncPipe(const SyncPipe&) = delete;
  SyncPipe& operator=(const SyncPipe&) = delete;
  ~SyncPipe() override;

  // Queues the frame and returns at once.
  Result<void> send(ByteView frame) override;
  // Waits for a frame. Returns nullopt after a signal. The end that answers also gets nullopt after
  // the peer has said that no more frames come.
  Result<std::optional<Bytes>> receive() override;
  // Waits until everything is sent. Returns false if a signal came first.
  Result<bool> flush();
  // Tells the peer that no more frames come from this end. REQUIRES: nothing is sent later.
  void send_end();
  // Waits until the peer has said the same. Returns false if a signal came first.
  Result<bool> wait_for_end();
  // Waits until everything is sent, but at most a second, and even after a signal.
  void linger();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  // REQUIRES for everything below: the mutex is held. The functions of the thread come first.
  void pump();
  void wait_for_work(Lock& lock);
  void say_alive();
  void take();
  void drain();
  void give();
  void check_deadlines();
  Clock::time_point next_deadline() const;
  void abandon_if_unnoticed(Lock& lock);
  void fail(Error error);
  bool full() const;       // no room for frames
  bool reads() const;      // the thread reads
  bool writes() const;     // the thread writes
  bool unnoticed() const;  // there is trouble that the caller should notice
  void append(const std::function<void(std::string&)>& write);
  void wake() const;
  bool stopped() const { return stop_.received() != 0; }
  Error why_it_must_not_end() const;
  enum class Event : std::uint8_t { frame, ended, stopped };
  Result<Event> next(Lock& lock, Bytes& frame);

  const Settings settings_;
  const std::chrono::milliseconds timeout_;
  const StopSignal& stop_;
  const Abandon abandon_;
  const File woken_;  // becomes readable when the thread has something to do

  std::mutex mutex_;
  std::condition_variable changed_;
  PipeEncoder encoder_;
  PipeDecoder decoder_;
  std::deque<Bytes> frames_;      // received and not yet handed on
  std::size_t frames_bytes_ = 0;  // in these frames
  std::string unsent_;
  std::size_t sent_ = 0;   // bytes of unsent_ that are sent
  bool ended_ = false;     // the peer sends nothing more
  bool said_end_ = false;  // this end sends nothing more
  bool noticed_ = false;   // the caller knows of the error, the signal or the end
  bool abandoned_ = false;
  bool closing_ = false;
  std::optional<Error> error_;  // the first one

  Clock::time_point heard_;   // when bytes came, or were not waited for
  Clock::time_point spoken_;  // when bytes went
  Clock::time_point moved_;   // when the peer had last no reason to take bytes, or took some
  std::optional<Clock::time_point> deaf_since_;     // the peer reads no more
  std::optional<Clock::time_point> foreign_since_;  // its hello is not ours
  std::optional<Clock::time_point> trouble_since_;  // there is something to notice
  bool reported_full_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace semel::cli
