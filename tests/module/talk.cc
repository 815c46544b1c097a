#include "tests/module/talk.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "client/command.h"
#include "semel/core/assert.h"

namespace semel {
namespace {

constexpr int kPatienceSeconds = 600;

int digit(char c) { return static_cast<int>(std::string_view("0123456789abcdef").find(c)); }

// Reads an escape after a backslash, as servers write it.
char unescaped(char c) {
  constexpr std::string_view kLetters = "nrtab", kMeant = "\n\r\t\a\b";
  const std::size_t at = kLetters.find(c);
  return at == std::string_view::npos ? c : kMeant[at];
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      std::array<char, 5> hex{};
      std::snprintf(hex.data(), hex.size(), "\\x%02x", static_cast<unsigned char>(c));
      out += hex.data();
    }
  }
  return out += '"';
}

std::string joined(const std::vector<Answer>& parts, const char* open, const char* close,
                   bool map) {
  std::string out = open;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += map && i % 2 == 1 ? ": " : ", ";
    out += parts[i].shown();
  }
  return out += close;
}

}  // namespace

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    std::string& word = words.emplace_back();
    if (line[at] != '"') {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      word = line.substr(at, end - at);
      at = end;
      continue;
    }
    for (++at; line.at(at) != '"'; ++at) {
      if (line[at] == '\\' && line.at(at + 1) == 'x') {
        word += static_cast<char>(16 * digit(line.at(at + 2)) + digit(line.at(at + 3)));
        at += 3;
      } else if (line[at] == '\\') {
        word += unescaped(line.at(++at));
      } else {
        word += line[at];
      }
    }
    ++at;
  }
  return words;
}

std::int64_t Answer::integer() const {
  SEMEL_ASSERT(type == ':');
  return std::strtoll(text.c_str(), nullptr, 10);
}

std::string Answer::shown() const {
  if (null) return type == '_' ? "null" : "nil";
  switch (type) {
    case '$':
      return in_quotes(text);
    case ':':
      return text;
    case '*':
      return joined(parts, "[", "]", false);
    case '%':
      return joined(parts, "{", "}", true);
    case '>':
      return joined(parts, ">[", "]", false);
    case '!':
      return "lost";
    default:
      return std::string(1, type).append(text);
  }
}

Talk::Talk(std::uint16_t port, int protocol) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  SEMEL_ASSERT(fd_ >= 0);
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const int at_once = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(fd_);
    fd_ = -1;
  }
  if (protocol != 2) call({"HELLO", std::to_string(protocol)});
}

Talk::~Talk() {
  if (fd_ >= 0) ::close(fd_);
}

Answer Talk::call(const Words& words) {
  if (at_ < in_.size()) {
    std::fprintf(stderr, "an answer that nobody asked for: %s\n", in_.c_str() + at_);
    std::abort();
  }
  send(words);
  return read();
}

void Talk::send(const Words& words) const {
  client::Command command;
  for (const std::string& word : words) command.add(word);
  std::string out;
  command.write(out);
  for (std::size_t sent = 0; sent < out.size();) {
    const ssize_t n = ::send(fd_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;  // read() will report it
    sent += static_cast<std::size_t>(n);
  }
}

bool Talk::fill() {
  std::array<char, 1 << 16> buffer;
  const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
  if (n <= 0) return false;
  in_.erase(0, at_);
  at_ = 0;
  in_.append(buffer.data(), static_cast<std::size_t>(n));
  return true;
}

bool Talk::line(std::string& out) {
  std::size_t end = 0;
  while ((end = in_.find("\r\n", at_)) == std::string::npos) {
    if (!fill()) return false;
  }
  out = in_.substr(at_, end - at_);
  at_ = end + 2;
  return true;
}

bool Talk::take(std::size_t size, std::string& out) {
  while (in_.size() - at_ < size + 2) {
    if (!fill()) return false;
  }
  out = in_.substr(at_, size);
  at_ += size + 2;
  return true;
}

Answer Talk::read() {
  std::string head;
  if (!line(head) || head.empty()) return {};
  Answer answer{.type = head[0], .text = head.substr(1)};
  const std::int64_t size = std::strtoll(answer.text.c_str(), nullptr, 10);
  switch (answer.type) {
    case '_':
      answer.null = true;
      break;
    case '$':
      answer.null = size < 0;
      if (!answer.null && !take(static_cast<std::size_t>(size), answer.text)) return {};
      break;
    case '*':
    case '>':
    case '%':
      answer.null = size < 0;
      for (std::int64_t i = 0; i < (answer.type == '%' ? 2 * size : size); ++i) {
        answer.parts.push_back(read());
        if (answer.parts.back().lost()) return {};
      }
      break;
    default:
      break;
  }
  return answer;
}

}  // namespace semel
