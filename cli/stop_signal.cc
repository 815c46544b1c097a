#include "cli/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace semel::cli {
namespace {

// The handler can reach these.
volatile std::sig_atomic_t g_received = 0;
volatile std::sig_atomic_t g_fd = -1;

void wake_up() {
  const std::uint64_t one = 1;
  // If this fails, the counter is full and can be read already.
  [[maybe_unused]] const ssize_t written = ::write(g_fd, &one, sizeof one);
}

void receive(int signal) {
  const int saved = errno;
  g_received = signal;
  wake_up();
  errno = saved;
}

void install(int signal) {
  struct sigaction before {};
  if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = receive;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  (void)::sigaction(signal, &action, nullptr);
}

// A user, the system, or a terminal that closes sends these to end a program.
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

void restore(int signal) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != receive) return;
  action.sa_handler = SIG_DFL;
  (void)::sigaction(signal, &action, nullptr);
}

}  // namespace

StopSignal::StopSignal() {
  g_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int signal : kSignals) install(signal);
}

StopSignal::~StopSignal() {
  for (const int signal : kSignals) restore(signal);
  const int fd = g_fd;
  g_fd = -1;
  if (fd >= 0) ::close(fd);
}

int StopSignal::fd() const { return g_fd; }
int StopSignal::received() const { return g_received; }
void StopSignal::wake() const { wake_up(); }

bool StopPatience::is_over() {
  constexpr std::chrono::seconds kMoment{1};
  if (g_received == 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!since_) since_ = now;
  return now - *since_ >= kMoment;
}

void die_of(int signal) {
  (void)std::signal(signal, SIG_DFL);
  (void)std::raise(signal);
}

}  // namespace semel::cli
