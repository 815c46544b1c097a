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
#include "semel/hash/internal/sealed.h"
#include "semel/store/internal/new_file.h"

namespace semel::cli {

using namespace store_internal;
namespace {

constexpr semel::Format kFormat{"SST", 1, "state of semel sift"};

Error damaged() { return {Errc::corrupt, "it is damaged"}; }

std::string given(const std::string& name, const std::string& value) {
  if (value == kFlag) return "with " + name;
  return value.empty() ? "without " + name : "with " + name + ' ' + value;
}

// Maps a file into memory, without reading it first.
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

// Hands pieces on until the first error.
class PutPieces final : public Pieces {
 public:
  PutPieces(std::span<std::uint8_t> buffer, const std::function<Result<void>(ByteView)>& put)
      : Pieces(buffer), put_(put) {}
  const Result<void>& done() const { return done_; }

 private:
  void take(ByteView piece) override {
    if (done_) done_ = put_(piece);
  }
  const std::function<Result<void>(ByteView)>& put_;
  Result<void> done_;
};

}  // namespace

Result<void> encode_state(const StateOptions& options, const Judge& judge,
                          const std::function<Result<void>(ByteView)>& put) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  Bytes buffer(kPieceBytes);
  PutPieces out(buffer, put);
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < judge.sections(); ++i) {
    sizes.push_back(measured([&](Sink size) { judge.encode(i, size); }));
  }
  seal(out, kFormat, [&](Writer& w) {
    w.u64(options.size());
    w.u64(sizes.size());
    for (const auto& [name, value] : options) {
      w.text(name);
      w.text(value);
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      w.u64(sizes[i]);
      judge.encode(i, w.sink());
    }
  });
  out.finish();
  return out.done();
}

Result<void> decode_state(ByteView in, const StateOptions& options, Judge& judge) {
  auto opened = open_sealed(in, kFormat);
  if (!opened && opened.error().code == Errc::unsupported) {
    return Error{Errc::unsupported, "it is not a state of this version of semel sift"};
  }
  if (!opened) return damaged();
  Reader& r = *opened;
  if (r.u64() != options.size()) return damaged();
  const std::uint64_t sections = r.u64();
  for (const auto& [name, value] : options) {
    const std::string_view written = r.text();
    const std::string before(r.text());
    if (!r.ok() || written != name) return damaged();
    if (before == value) continue;
    return Error{Errc::invalid,
                 "it was made " + given(name, before) + ", and cannot go on " + given(name, value)};
  }
  if (!judge.prepare(sections)) return damaged();
  for (std::uint64_t i = 0; i < sections; ++i) {
    const std::uint64_t size = r.u64();
    const ByteView section = r.view(size);
    if (!r.ok() || !judge.decode(i, section)) return damaged();
  }
  if (!r.at_end()) return damaged();
  return {};
}

Result<void> StateFile::open(const std::string& path) {
  path_ = path;
  name_ = quoted(path);
  for (;;) {
    std::error_code error;
    file_ = File::open_own(path, error);
    if (error == std::errc::too_many_symbolic_link_levels) {
      return cannot_use("it is a symbolic link");
    }
    if (error) return io_error("open", name_, error);
    const auto id = file_id(file_.fd());
    if (!id) return cannot_use("it is not a regular file");
    if (::flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return Error{Errc::busy, "another process is using " + name_};
      return io_error("lock", name_, last_error());
    }
    // The process that had it may have put another file in its place meanwhile.
    if (file_id(path) == id) {
      id_ = *id;
      remove_leftovers(path);
      return {};
    }
  }
}

Error StateFile::cannot_use(const char* why) const {
  return {Errc::unsupported, "cannot use " + name_ + " for the state: " + why};
}

Result<void> StateFile::load(const StateOptions& options, Judge& judge) {
  struct stat status {};
  if (::fstat(file_.fd(), &status) != 0) return io_error("read", name_, last_error());
  if (status.st_size == 0) return {};  // made just now
  const Mapping mapping(file_.fd(), static_cast<std::size_t>(status.st_size));
  if (!mapping.sound()) return io_error("read", name_, last_error());
  const auto decoded = decode_state(mapping.bytes(), options, judge);
  if (!decoded) return decoded.error().about("cannot go on from " + name_);
  return {};
}

Result<void> StateFile::save(const StateOptions& options, const Judge& judge) {
  std::error_code error;
  NewFile file = NewFile::beside(path_, error);
  // Locked before it has the name: nobody gets in between.
  if (!error && ::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) error = last_error();
  // The user decides who may read the state.
  if (!error) error = file.permit_like(file_.fd());
  if (error) return io_error("write", name_, error);
  SEMEL_TRY(encode_state(options, judge, [&](ByteView bytes) -> Result<void> {
    if (const std::error_code failed = file.write(bytes)) return io_error("write", name_, failed);
    return {};
  }));
  if ((error = file.replace())) return io_error("write", name_, error);
  file_ = File::own(file.release());
  id_ = file_id(file_.fd()).value_or(id_);
  return {};
}

}  // namespace semel::cli
