#include "cli/sift_state.h"

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <span>

#include "cli/commands.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"
#include "semel/hash/seal.h"
#include "semel/store/new_file.h"

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

// Puts no more after a failure.
class PutPieces final : public Pieces {
 public:
  PutPieces(std::span<std::uint8_t> buffer, const std::function<bool(ByteView)>& put)
      : Pieces(buffer), put_(put) {}
  bool good() const { return good_; }

 private:
  void take(ByteView piece) override { good_ = good_ && put_(piece); }
  const std::function<bool(ByteView)>& put_;
  bool good_ = true;
};

}  // namespace

bool encode_state(const StateOptions& options, const Judge& judge,
                  const std::function<bool(ByteView)>& put) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  Bytes buffer(kPieceBytes);
  PutPieces out(buffer, put);
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u32(0);
  w.u64(options.size());
  w.u64(judge.sections());
  for (const auto& [name, value] : options) {
    put_text(w, name);
    put_text(w, value);
  }
  for (std::size_t i = 0; i < judge.sections(); ++i) {
    w.u64(measured([&](Sink size) { judge.encode(i, size); }));
    judge.encode(i, out);
  }
  seal.close();
  out.finish();
  return out.good();
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
    file_ = File::open_own(path, error);
    if (error == std::errc::too_many_symbolic_link_levels) {
      return cannot_use("it is a symbolic link");
    }
    if (error) return cannot("open", name_, error);
    const auto id = file_id(file_.fd());
    if (!id) return cannot_use("it is not a regular file");
    if (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return "another process is using " + name_;
      return cannot("lock", name_, last_error());
    }
    // Whoever had it may have put another file in its place meanwhile.
    if (file_id(path) == id) {
      id_ = *id;
      remove_leftovers(path);
      return "";
    }
  }
}

std::string StateFile::cannot_use(std::string_view why) const {
  return "cannot use " + name_ + " for the state: " + std::string(why);
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
  std::error_code error;
  NewFile file = NewFile::beside(path_, error);
  // Locked before it has the name: nobody gets in between.
  if (!error && ::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) error = last_error();
  // Who may read the state is up to the user.
  if (!error) error = file.permit_like(file_.fd());
  const auto put = [&](ByteView bytes) {
    error = file.write(bytes);
    return !error;
  };
  if (!error) encode_state(options, judge, put);
  if (!error) error = file.replace();
  if (error) return cannot("write", name_, error);
  file_ = File::own(file.release());
  id_ = file_id(file_.fd()).value_or(id_);
  return "";
}

}  // namespace semel::cli
