#include "cli/peer_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "cli/files.h"

namespace semel::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kCannotStart = 127;  // the status that a shell gives
constexpr milliseconds kMoment{1000};
constexpr milliseconds kGrace{3000};  // between SIGTERM and SIGKILL
constexpr milliseconds kBetweenLooks{10};

void close_end(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

Result<void> how_ended(int status) {
  if (WIFSIGNALED(status)) {
    return Error{Errc::io, "was ended by signal " + std::to_string(WTERMSIG(status))};
  }
  const int code = WEXITSTATUS(status);
  if (code != 0) return Error{Errc::io, "ended with status " + std::to_string(code)};
  return {};
}

struct Relative {
  pid_t parent = 0;
  pid_t session = 0;
  bool zombie = false;
};

// Reads /proc/PID/stat: "PID (name) state parent group session ...", where the name may hold
// anything.
bool read_stat(const std::filesystem::path& folder, Relative& to) {
  std::ifstream file(folder / "stat");
  std::string text;
  std::getline(file, text, '\0');  // nothing, and no exception, if the process has ended meanwhile
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text.substr(name_end + 1));
  char state = 0;
  pid_t group = 0;
  fields >> state >> to.parent >> group >> to.session;
  to.zombie = state == 'Z';
  return !fields.fail();
}

// Returns the processes that descend from this one and are of its session. Orphans among them have
// become its children (PR_SET_CHILD_SUBREAPER).
std::vector<pid_t> descendants() {
  std::map<pid_t, Relative> all;
  std::error_code gone;  // processes may end meanwhile
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || rest != name.data() + name.size()) continue;
    Relative relative;
    if (read_stat(entry.path(), relative)) all.emplace(pid, relative);
  }
  const pid_t self = ::getpid();
  const pid_t session = ::getsid(0);
  std::vector<pid_t> found;
  for (const auto& [pid, relative] : all) {
    if (relative.zombie || relative.session != session) continue;
    pid_t ancestor = relative.parent;
    // If a process ends meanwhile and its number is used again, parents may form a loop.
    for (std::size_t steps = 0; ancestor != self && steps < all.size(); ++steps) {
      const auto above = all.find(ancestor);
      if (above == all.end()) break;
      ancestor = above->second.parent;
    }
    if (ancestor == self) found.push_back(pid);
  }
  return found;
}

// Becomes the command. Only calls that are safe between fork and exec are made here: there may be
// other threads.
[[noreturn]] void become(const char* command, int in, int out) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  (void)std::signal(SIGPIPE, SIG_DFL);
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::execl("/bin/sh", "sh", "-c", command, nullptr);
  ::_exit(kCannotStart);
}

}  // namespace

std::unique_ptr<PeerProcess> PeerProcess::start(const std::string& command,
                                                std::error_code& error) {
  std::array<int, 2> in = {-1, -1};  // the end to read, the end to write
  std::array<int, 2> out = {-1, -1};
  pid_t pid = -1;
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const bool piped = ::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0;
  if (piped) pid = ::fork();
  if (pid == 0) become(command.c_str(), in[0], out[1]);
  error = pid < 0 ? last_error() : std::error_code{};
  close_end(in[0]);
  close_end(out[1]);
  if (pid > 0) return std::unique_ptr<PeerProcess>(new PeerProcess(pid, in[1], out[0]));
  close_end(in[1]);
  close_end(out[0]);
  return nullptr;
}

PeerProcess::~PeerProcess() { (void)terminate(); }

Result<void> PeerProcess::finish(milliseconds patience, const StopSignal& stop) {
  const std::lock_guard lock(mutex_);
  close_pipes();
  const auto deadline = steady_clock::now() + patience;
  while (!reap() && stop.received() == 0 && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenLooks);
  }
  end_all();
  if (!forced_) return how_ended(status_);
  if (stop.received() != 0) return {};
  return Error{Errc::busy, "did not end, and was made to"};
}

Result<void> PeerProcess::terminate() {
  const std::lock_guard lock(mutex_);
  close_pipes();
  end_all();
  return forced_ ? Result<void>() : how_ended(status_);
}

void PeerProcess::close_pipes() {
  close_end(to_);
  close_end(from_);
}

bool PeerProcess::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != pid_) continue;  // an orphan of the command
    pid_ = -1;
    status_ = status;
  }
  return pid_ < 0;
}

bool PeerProcess::all_end_before(Time deadline) {
  for (;;) {
    if (reap() && descendants().empty()) return true;
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

// Ends the processes in several passes, because new ones may start meanwhile. If even SIGKILL does
// not end a process, because a disk or a network does not answer, it is left to the system.
void PeerProcess::end_all() {
  const auto signal_all = [this](int signal) {
    for (const pid_t pid : descendants()) (void)::kill(pid, signal);
    if (pid_ > 0) (void)::kill(pid_, signal);  // even where there is no /proc
  };
  if (all_end_before(steady_clock::now() + kMoment)) return;
  forced_ = pid_ > 0;
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped process takes no SIGTERM
  if (all_end_before(steady_clock::now() + kGrace)) return;
  for (int tries = 0; tries < 5; ++tries) {
    signal_all(SIGKILL);
    if (all_end_before(steady_clock::now() + kMoment)) return;
  }
}

}  // namespace semel::cli
