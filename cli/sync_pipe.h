// SyncPipe: sync frames over a pair of file descriptors, to a peer that may fall silent.
//
// Contract  Frames come out as they went in, whole and in order, or there is a problem
//           (pipe_records.h). A thread reads and writes from the first moment on, whatever the
//           caller does meanwhile, and tells the peer once a second that this end is alive. So
//           silence means death, however long a peer works: a peer from which nothing comes, or
//           which takes nothing, for the timeout is a problem. A peer on a slow link is not silent:
//           every byte counts.
// Abandon   A problem, a signal or an end of the peer that the caller does not notice for a while,
//           because it is busy with something that cannot be interrupted, is handed to a function
//           that ends the process.
// Memory    Frames that were sent and not yet written. Frames that have come and were not received:
//           little more than `most_bytes` and one frame; then the thread does not read, and tells the
//           peer.
// Error     The first one stays.
// Threads   One thread calls. It may be another one than that which made the pipe.
// Format    docs/formats/sync_pipe_v2.md.
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
#include "cli/sync_peer.h"
#include "semel/core/clock.h"
#include "semel/core/codec.h"

namespace semel::cli {

class SyncPipe final : public SyncPeer {
 public:
  static constexpr TimeMs kLeastTimeoutMs = 2'000;  // a peer speaks every second
  static constexpr TimeMs kMostTimeoutMs = 86'400'000;

  struct Settings {
    int in;
    int out;
    PipeRole role;
    std::uint32_t most_bytes;  // of a frame
    TimeMs timeout_ms;
  };
  // Gets the problem, or the signal. Does not return, and is called in the thread of the pipe.
  using Abandon = std::function<void(const std::string& problem, int signal)>;

  // REQUIRES: the descriptors and `stop` stay longer, and SIGPIPE is ignored.
  SyncPipe(const Settings& settings, const StopSignal& stop, Abandon abandon);
  SyncPipe(const SyncPipe&) = delete;
  SyncPipe& operator=(const SyncPipe&) = delete;
  ~SyncPipe() override;

  // Puts the frame in line.
  void send(ByteView frame) override;
  // Waits for a frame, or for the word that none will come.
  Event receive(Bytes& frame) override;
  // Waits until all is sent.
  Event flush();
  // Tells the peer that nothing more will come from this end. REQUIRES: nothing is sent later.
  void send_end();
  // Waits for the same word of the peer: Event::ended.
  Event wait_for_end();
  // Waits until all is sent, but for a second at most, and even after a signal.
  void linger();

  const std::string& problem() const override { return problem_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  // All that follow are called with the mutex held; those of the thread come first.
  void pump();
  void wait_for_work(Lock& lock);
  void say_alive();
  void take();
  void drain();
  void give();
  void check_deadlines();
  Clock::time_point next_deadline() const;
  void abandon_if_unnoticed(Lock& lock);
  void fail(std::string problem);
  bool full() const;       // no room for frames
  bool reads() const;      // whether the thread does
  bool writes() const;     // likewise
  bool unnoticed() const;  // whether there is trouble that the caller should notice
  void append(const std::function<void(std::string&)>& write);
  void wake() const;
  bool stopped() const { return stop_.received() != 0; }
  std::string why_it_must_not_end() const;

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
  std::size_t frames_bytes_ = 0;  // of these
  std::string unsent_;
  std::size_t sent_ = 0;   // of these
  bool ended_ = false;     // the peer sends nothing more
  bool said_end_ = false;  // nor do we
  bool noticed_ = false;   // the caller knows of the problem, the signal or the end
  bool abandoned_ = false;
  bool closing_ = false;
  std::string problem_;

  Clock::time_point heard_;   // when bytes came, or were not waited for
  Clock::time_point spoken_;  // when bytes went
  Clock::time_point moved_;   // when the peer had last no reason to take bytes, or took some
  std::optional<Clock::time_point> deaf_since_;     // the peer has closed its end of what we send
  std::optional<Clock::time_point> foreign_since_;  // its hello is none
  std::optional<Clock::time_point> trouble_since_;  // there is something to notice
  bool reported_full_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace semel::cli
