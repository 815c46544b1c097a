#include "cli/sift_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <functional>

#include "cli/commands.h"
#include "semel/hash/digest.h"

namespace semel::cli {
namespace {

constexpr std::uint32_t kMagic = 0x31535353;  // "SSS1"
constexpr std::size_t kHeaderSize = 24;
constexpr std::size_t kTrailerSize = 8;

void put_text(Writer& w, std::string_view text) {
  w.u64(text.size());
  w.bytes(bytes_of(text));
}

// The next bytes, of a length that stands before them; `ok` becomes false where they do not fit.
ByteView take(Reader& r, ByteView body, bool& ok) {
  const std::uint64_t size = r.u64();
  const std::size_t at = body.size() - r.rest();
  if (!r.ok() || size > r.rest()) {
    ok = false;
    return {};
  }
  r.skip(size);
  return body.subspan(at, size);
}

std::string text_of(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

StateProblem damaged() { return {"it is damaged"}; }

std::string given(const std::string& name, const std::string& value) {
  return value.empty() ? "without " + name : "with " + name + ' ' + value;
}

// The directory's entry survives a crash only when the directory itself is on the disk.
std::error_code sync_directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::error_code error;
  const File file =
      File::open_to_read(slash == std::string::npos ? "." : path.substr(0, slash + 1), error);
  if (!error && ::fsync(file.fd()) != 0) error = last_error();
  return error;
}

// A file in memory, without reading it first.
class Mapping {
 public:
  Mapping(int fd, std::size_t size)
      : size_(size), bytes_(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (sound()) ::munmap(bytes_, size_);
  }
  bool sound() const { return bytes_ != MAP_FAILED; }
  ByteView bytes() const { return {static_cast<const std::uint8_t*>(bytes_), size_}; }

 private:
  std::size_t size_;
  void* bytes_;
};

}  // namespace

bool encode_state(const StateOptions& options, const Judge& judge,
                  const std::function<bool(ByteView)>& put) {
  RunningChecksum sum;
  const auto piece = [&](const Bytes& bytes) {
    sum.add(bytes);
    return put(bytes);
  };
  Bytes bytes;
  Writer head(bytes);
  head.u32(kMagic);
  head.u32(0);
  head.u64(options.size());
  head.u64(judge.sections());
  for (const auto& [name, value] : options) {
    put_text(head, name);
    put_text(head, value);
  }
  if (!piece(bytes)) return false;
  for (std::size_t i = 0; i < judge.sections(); ++i) {
    bytes.assign(sizeof(std::uint64_t), 0);
    judge.encode(i, bytes);
    store_u64(bytes.data(), bytes.size() - sizeof(std::uint64_t));
    if (!piece(bytes)) return false;
  }
  bytes.clear();
  Writer(bytes).u64(sum.value());
  return put(bytes);
}

StateProblem decode_state(ByteView in, const StateOptions& options, Judge& judge) {
  if (in.size() < kHeaderSize + kTrailerSize) return {"it is too short"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  Reader r(body);
  if (r.u32() != kMagic) return {"it is no state of this version of semel sift"};
  if (load_u64(in.data() + body.size()) != checksum(body) || r.u32() != 0) return damaged();
  const std::uint64_t option_count = r.u64();
  const std::uint64_t sections = r.u64();
  bool ok = true;
  StateOptions written;
  for (std::uint64_t i = 0; ok && i < option_count; ++i) {
    std::string name = text_of(take(r, body, ok));
    written.emplace_back(std::move(name), text_of(take(r, body, ok)));
  }
  if (!ok) return damaged();
  if (written.size() != options.size()) return damaged();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& [name, value] = options[i];
    const auto& [written_name, before] = written[i];
    if (written_name != name) return damaged();
    if (before == value) continue;
    return {"it was made " + given(name, before) + ", and cannot go on " + given(name, value),
            true};
  }
  if (!judge.prepare(sections)) return damaged();
  for (std::uint64_t i = 0; i < sections; ++i) {
    const ByteView section = take(r, body, ok);
    if (!ok || !judge.decode(i, section)) return damaged();
  }
  return r.rest() == 0 ? StateProblem{} : damaged();
}

std::string StateFile::open(const std::string& path) {
  path_ = path;
  name_ = quoted(path);
  for (;;) {
    std::error_code error;
    file_ = File::open_to_update(path, error);
    if (error) return cannot("open", name_, error);
    const auto id = file_id(file_.fd());
    if (!id) return "cannot use " + name_ + " for the state: it is not a regular file";
    if (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return "another process is using " + name_;
      return cannot("lock", name_, last_error());
    }
    // Whoever had it may have put another file in its place meanwhile.
    if (file_id(path) == id) {
      id_ = *id;
      return "";
    }
  }
}

StateProblem StateFile::load(const StateOptions& options, Judge& judge) {
  struct stat status {};
  if (::fstat(file_.fd(), &status) != 0) return {cannot("read", name_, last_error())};
  if (status.st_size == 0) return {};  // made just now
  const Mapping mapping(file_.fd(), static_cast<std::size_t>(status.st_size));
  if (!mapping.sound()) return {cannot("read", name_, last_error())};
  StateProblem problem = decode_state(mapping.bytes(), options, judge);
  if (!problem.text.empty()) problem.text = "cannot go on from " + name_ + ": " + problem.text;
  return problem;
}

std::string StateFile::save(const StateOptions& options, const Judge& judge) {
  const std::string beside = path_ + ".new";
  std::error_code error;
  File file = File::open_to_update(beside, error);
  // Locked before it has the name: nobody gets in between.
  if (!error && ::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) error = last_error();
  if (!error) error = empty(file.fd());
  // Who may read the state is up to the user.
  struct stat before {};
  if (!error && (::fstat(file_.fd(), &before) != 0 || ::fchmod(file.fd(), before.st_mode) != 0)) {
    error = last_error();
  }
  const auto put = [&](ByteView bytes) {
    error = write_all(file.fd(), text_of(bytes));
    return !error;
  };
  if (!error) encode_state(options, judge, put);
  if (!error && ::fsync(file.fd()) != 0) error = last_error();
  if (!error && ::rename(beside.c_str(), path_.c_str()) != 0) error = last_error();
  if (error) return cannot("write", quoted(beside), error);
  file_ = std::move(file);
  id_ = file_id(file_.fd()).value_or(id_);
  if ((error = sync_directory_of(path_))) return cannot("write", name_, error);
  return "";
}

}  // namespace semel::cli
