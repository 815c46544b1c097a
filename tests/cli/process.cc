#include "tests/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "semel/core/assert.h"
#include "tests/support/eventually.h"

namespace semel {
namespace {

constexpr std::string_view kPath = "PATH=";

struct Pipe {
  int to_read;
  int to_write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  SEMEL_ASSERT(::pipe2(ends.data(), O_CLOEXEC) == 0);
  return {ends[0], ends[1]};
}

void close_end(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

// Appends what can be read now; closes at the end.
void take(int& fd, std::string& to) {
  std::array<char, 65536> bytes;
  const ssize_t n = ::read(fd, bytes.data(), bytes.size());
  if (n > 0) to.append(bytes.data(), static_cast<std::size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) close_end(fd);
}

// Returns our environment, with the given variables replaced.
std::vector<std::string> environment_of(const Start& start) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view known(*entry);
    const bool replaced = std::any_of(
        start.environment.begin(), start.environment.end(),
        [known](const auto& given) { return known.substr(0, known.find('=')) == given.first; });
    if (replaced) continue;
    all.emplace_back(known);
    if (known.starts_with(kPath) && !start.commands.empty()) {
      all.back().insert(kPath.size(), start.commands + ':');
    }
  }
  for (const auto& [name, value] : start.environment) {
    all.emplace_back(name).append("=").append(value);
  }
  return all;
}

// Returns the state of each thread, and how often it was given a processor and gave it back.
std::string activity(pid_t pid) {
  std::string all;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code gone;  // threads may end meanwhile
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:") || line.find("ctxt_switches:") != std::string::npos) {
        all += line + '\n';
      }
    }
  }
  return all;
}

// Returns true if one of its threads is in a write to standard output. A line "1 0x1 ..." has the
// number of the system call and its arguments.
bool writes(pid_t pid) {
  const std::string writing = std::to_string(SYS_write) + " 0x1 ";
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream file(task.path() / "syscall");
    std::string line;
    if (std::getline(file, line) && line.starts_with(writing)) return true;
  }
  return false;
}

bool all_sleep(const std::string& activity) {
  for (std::size_t at = 0; (at = activity.find("State:\t", at)) != std::string::npos; ++at) {
    const char state = activity[at + 7];
    if (state != 'S' && state != 'Z') return false;
  }
  return !activity.empty();
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

Process::Process(const Start& start)
    : input_(start.input), deadline_(std::chrono::steady_clock::now() + start.timeout) {
  std::signal(SIGPIPE, SIG_IGN);  // a program that does not read its input must not end us
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.to_read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.to_write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, start.merge ? out.to_write : err.to_write,
                                   STDERR_FILENO);
  if (!start.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, start.directory.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);  // a group of its own, killed as a whole
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

  std::vector<std::string> command = start.command;
  std::vector<std::string> environment = environment_of(start);
  const int failed = ::posix_spawnp(&pid_, command.at(0).c_str(), &actions, &attributes,
                                    pointers(command).data(), pointers(environment).data());
  SEMEL_ASSERT(failed == 0);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);

  close_end(in.to_read);
  close_end(out.to_write);
  close_end(err.to_write);
  in_ = in.to_write;
  out_ = out.to_read;
  err_ = err.to_read;
  ::fcntl(in_, F_SETFL, O_NONBLOCK);
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_end(in_);
  close_end(out_);
  close_end(err_);
}

void Process::write(std::string_view bytes) {
  input_ += bytes;
  while (given_ < input_.size() && in_ >= 0 && pump()) {
  }
}

std::string Process::read(std::size_t size) {
  while (outcome_.out.size() < size && out_ >= 0 && pump()) {
  }
  std::string taken = outcome_.out.substr(0, size);
  outcome_.out.erase(0, taken.size());
  return taken;
}

void Process::wait_until_still() const {
  std::string before;
  const bool still = eventually([&] {
    const std::string last = std::exchange(before, activity(pid_));
    return before == last && all_sleep(before);
  });
  SEMEL_ASSERT(still);
}

void Process::wait_until_blocked() const {
  SEMEL_ASSERT(eventually([this] { return writes(pid_); }));
  wait_until_still();
}

void Process::signal(int number) const { SEMEL_ASSERT(::kill(pid_, number) == 0); }

Outcome Process::finish() {
  last_input_ = true;
  while (pump()) {
  }
  wait_for_end();
  return std::move(outcome_);
}

bool Process::pump() {
  if (last_input_ && given_ == input_.size()) close_end(in_);
  if (in_ < 0 && out_ < 0 && err_ < 0) return false;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline_ - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;

  const bool giving = in_ >= 0 && given_ < input_.size();
  std::array<pollfd, 3> streams = {
      {{giving ? in_ : -1, POLLOUT, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  (void)::poll(streams.data(), streams.size(), static_cast<int>(left.count()));
  if (streams[0].revents != 0) give();
  if (streams[1].revents != 0) take(out_, outcome_.out);
  if (streams[2].revents != 0) take(err_, outcome_.err);
  return true;
}

void Process::give() {
  // No more than a pipe holds: ThreadSanitizer looks at all that is offered, however little is
  // taken.
  constexpr std::size_t kMost = std::size_t{64} << 10;
  const ssize_t n = ::write(in_, input_.data() + given_, std::min(kMost, input_.size() - given_));
  if (n >= 0) {
    given_ += static_cast<std::size_t>(n);
  } else if (errno != EAGAIN && errno != EINTR) {
    close_end(in_);  // the program reads no more
  }
}

void Process::wait_for_end() {
  // Streams that are still open belong to it, or to something that it has left behind.
  outcome_.timed_out = out_ >= 0 || err_ >= 0;
  int status = 0;
  while (!outcome_.timed_out && ::waitpid(pid_, &status, WNOHANG) == 0) {
    outcome_.timed_out = std::chrono::steady_clock::now() >= deadline_;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (outcome_.timed_out) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  if (WIFEXITED(status)) outcome_.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
}

Outcome run(const Start& start) { return Process(start).finish(); }

}  // namespace semel
