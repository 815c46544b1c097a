// pipe_proxy: the way between `semel sync` and `semel serve-sync`, with one fault.
//
//   pipe_proxy FAULT DIRECTION OFFSET LENGTH PIDS COMMAND...
//
// Runs COMMAND and passes bytes between it and standard input and output. DIRECTION is 0 for what
// goes to COMMAND, 1 for what comes from it. The fault happens at byte OFFSET of that direction.
//
// The proxy is two processes. The front is what the shell runs, as it would run ssh: it waits. The
// network passes the bytes, in a session of its own. Ending the front does not end the network or
// COMMAND, just as ending ssh does not end a program on another host. The file PIDS gets the
// process ids of the network and of COMMAND.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

namespace {

constexpr unsigned kLongestSeconds = 300;  // no fault of a test leaves a process behind for ever
constexpr std::size_t kMostPending = 65536;

enum class Fault {
  none,
  drop,          // LENGTH bytes are lost
  flip,          // one bit of a byte
  repeat,        // LENGTH bytes come twice
  swap,          // LENGTH bytes come after the LENGTH bytes behind them
  stall,         // from here on bytes are swallowed
  stall_both,    // and those of the other direction too
  close,         // the receiver sees the end of the stream
  close_both,    // both ends see the end of the stream
  stop_reading,  // the pipe of the sender fills
  trickle,       // no fault: LENGTH bytes at a time
  garbage,       // LENGTH bytes before the first
  kill_asker,    // kill -9 of semel sync
  kill_answerer
};
constexpr std::array kNames = {
    "none",  "drop",       "flip",         "repeat",  "swap",    "stall",      "stall_both",
    "close", "close_both", "stop_reading", "trickle", "garbage", "kill_asker", "kill_answerer"};

struct Plan {
  Fault fault = Fault::none;
  std::size_t direction = 0;
  std::size_t offset = 0;
  std::size_t length = 0;
};

void close_end(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

// One direction.
struct Lane {
  int in = -1;
  int out = -1;
  std::size_t seen = 0;  // bytes that came in
  std::string pending;   // bytes to pass on
  std::string held;      // of Fault::repeat and Fault::swap
  bool swallows = false;
  bool reads = true;
  bool ends = false;  // closes when nothing is pending
};

pid_t parent_of(pid_t pid, std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  pid_t parent = 0;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Name:\t")) name = line.substr(6);
    if (line.starts_with("PPid:\t")) parent = std::atoi(line.c_str() + 6);
  }
  return parent;
}

// The nearest ancestor that is `semel`.
pid_t asker_above(pid_t pid) {
  std::string name;
  for (pid_t at = parent_of(pid, name); at > 1;) {
    const pid_t above = parent_of(at, name);
    if (name == "semel") return at;
    at = above;
  }
  return -1;
}

class Network {
 public:
  Network(const Plan& plan, pid_t asker, pid_t answerer, int to, int from)
      : plan_(plan), asker_(asker), answerer_(answerer) {
    lanes_[0].in = STDIN_FILENO;
    lanes_[0].out = to;
    lanes_[1].in = from;
    lanes_[1].out = STDOUT_FILENO;
    for (const Lane& lane : lanes_) {
      for (const int fd : {lane.in, lane.out}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    if (plan.fault == Fault::garbage) {
      for (std::size_t i = 0; i < plan.length; ++i) {
        lanes_[plan.direction].pending += static_cast<char>((i + plan.offset) * 131);
      }
    }
  }

  // Passes bytes until the answerer has ended and all its bytes are passed on. Returns its status.
  int run() {
    int status = 0;
    bool ended = false;
    for (;;) {
      ended = ended || ::waitpid(answerer_, &status, WNOHANG) == answerer_;
      const Lane& back = lanes_[1];
      const bool idle = back.out < 0 || back.in < 0 || !back.reads || back.swallows;
      if (ended && idle && (back.pending.empty() || back.out < 0)) return status;
      std::array<pollfd, 4> wanted{};
      for (std::size_t i = 0; i < 2; ++i) {
        const Lane& lane = lanes_[i];
        const bool room = lane.pending.size() < kMostPending;
        wanted[2 * i] = {lane.reads && room ? lane.in : -1, POLLIN, 0};
        wanted[2 * i + 1] = {lane.pending.empty() ? -1 : lane.out, POLLOUT, 0};
      }
      (void)::poll(wanted.data(), wanted.size(), 20);
      for (std::size_t i = 0; i < 2; ++i) {
        if (wanted[2 * i].revents != 0) take(i);
        if (wanted[2 * i + 1].revents != 0) give(lanes_[i]);
        if (lanes_[i].ends && lanes_[i].pending.empty()) close_end(lanes_[i].out);
      }
      if (plan_.fault == Fault::trickle) ::usleep(500);
    }
  }

 private:
  void take(std::size_t number) {
    Lane& lane = lanes_[number];
    std::array<char, 16384> bytes;
    const ssize_t got = ::read(lane.in, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      close_end(lane.in);
      if (lane.swallows) return;  // nobody hears of the end either
      lane.pending += std::exchange(lane.held, "");
      lane.ends = true;
      return;
    }
    const std::string_view piece(bytes.data(), static_cast<std::size_t>(got));
    if (lane.swallows || lane.out < 0) return;
    if (number == plan_.direction) {
      damage(lane, piece);
    } else {
      lane.pending += piece;
    }
  }

  void damage(Lane& lane, std::string_view piece) {
    for (const char byte : piece) {
      const std::size_t at = lane.seen++;
      if (at == plan_.offset) strike(lane);
      if (lane.swallows || lane.ends || !lane.reads) continue;
      const std::size_t within = at - plan_.offset;  // large before it
      switch (plan_.fault) {
        case Fault::drop:
          if (within >= plan_.length) lane.pending += byte;
          break;
        case Fault::flip:
          lane.pending += static_cast<char>(within == 0 ? byte ^ (1 << (plan_.length % 8)) : byte);
          break;
        case Fault::repeat:
          lane.pending += byte;
          if (within < plan_.length) lane.held += byte;
          if (within + 1 == plan_.length) lane.pending += std::exchange(lane.held, "");
          break;
        case Fault::swap:
          (within < plan_.length ? lane.held : lane.pending) += byte;
          if (within + 1 == 2 * plan_.length) lane.pending += std::exchange(lane.held, "");
          break;
        default:
          lane.pending += byte;
      }
    }
  }

  // The fault, which happens once, at the offset.
  void strike(Lane& lane) {
    switch (plan_.fault) {
      case Fault::stall_both:
        lanes_[1 - plan_.direction].swallows = true;
        [[fallthrough]];
      case Fault::stall:
        lane.swallows = true;
        break;
      case Fault::close_both:
        lanes_[1 - plan_.direction].ends = true;
        [[fallthrough]];
      case Fault::close:
        lane.ends = true;
        break;
      case Fault::stop_reading:
        lane.reads = false;
        break;
      case Fault::kill_asker:
        if (asker_ > 1) (void)::kill(asker_, SIGKILL);
        break;
      case Fault::kill_answerer:
        (void)::kill(answerer_, SIGKILL);
        break;
      default:
        break;
    }
  }

  void give(Lane& lane) {
    const bool slow = plan_.fault == Fault::trickle;
    const std::size_t size = std::min(lane.pending.size(), slow ? plan_.length : kMostPending);
    const ssize_t given = ::write(lane.out, lane.pending.data(), size);
    if (given > 0) lane.pending.erase(0, static_cast<std::size_t>(given));
    if (given >= 0 || errno == EAGAIN || errno == EINTR) return;
    close_end(lane.out);  // the receiver is gone, and the sender gets to know
    close_end(lane.in);
    lane.pending.clear();
  }

  const Plan plan_;
  const pid_t asker_;
  const pid_t answerer_;
  std::array<Lane, 2> lanes_;
};

// The command with pipes for its standard input and output.
pid_t start(char** command, int& to, int& from) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)std::signal(SIGPIPE, SIG_DFL);
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execv(command[0], command);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  to = in[1];
  from = out[0];
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  Plan plan;
  const auto* const name = std::find(kNames.begin(), kNames.end(), std::string_view(argv[1]));
  if (name == kNames.end()) return 2;
  plan.fault = static_cast<Fault>(name - kNames.begin());
  plan.direction = std::strtoull(argv[2], nullptr, 10);
  plan.offset = std::strtoull(argv[3], nullptr, 10);
  plan.length = std::strtoull(argv[4], nullptr, 10);
  const pid_t asker = asker_above(::getpid());
  const pid_t network = ::fork();
  if (network > 0) {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    return wait_for(network);
  }
  ::setsid();
  ::alarm(kLongestSeconds);
  (void)std::signal(SIGPIPE, SIG_IGN);
  int to = -1;
  int from = -1;
  const pid_t answerer = start(argv + 6, to, from);
  if (answerer < 0) return 1;
  const std::string pids = argv[5];
  std::ofstream(pids + ".new") << ::getpid() << ' ' << answerer << '\n';
  if (std::rename((pids + ".new").c_str(), pids.c_str()) != 0) return 1;
  const int status = Network(plan, asker, answerer, to, from).run();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
