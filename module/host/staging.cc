#include "module/host/staging.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace semel::host {
namespace {

constexpr const char* kName = "SMLstaged";
constexpr int kVersion = 1;

api::Type* handle = nullptr;

// Values may be freed by another thread.
std::atomic<std::uint64_t> keys{0}, bytes_held{0}, required{0};

// The part of one value that has arrived.
class Arrived {
 public:
  Arrived(std::string_view type, std::uint64_t length, bool must_complete)
      : type_(type), length_(length), must_complete_(must_complete) {
    keys += 1;
    if (must_complete_) required += 1;
  }
  Arrived(const Arrived&) = delete;
  Arrived& operator=(const Arrived&) = delete;
  ~Arrived() {
    keys -= 1;
    if (must_complete_) required -= 1;
    bytes_held -= bytes_.size();
  }

  const std::string& type() const { return type_; }
  std::uint64_t length() const { return length_; }
  const Bytes& bytes() const { return bytes_; }
  std::size_t room() const { return bytes_.capacity(); }
  bool complete() const { return bytes_.size() == length_; }

  bool continues_with(const Piece& piece) const {
    return piece.type == type_ && piece.length == length_ && piece.offset == bytes_.size() &&
           piece.bytes.size() <= length_ - bytes_.size();
  }
  void append(ByteView piece) {
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    bytes_held += piece.size();
  }

 private:
  std::string type_;
  std::uint64_t length_;
  bool must_complete_;
  Bytes bytes_;
};

const Arrived& arrived_at(const void* value) { return *static_cast<const Arrived*>(value); }

const char* text(ByteView bytes) { return reinterpret_cast<const char*>(bytes.data()); }

// Calls take(offset, piece) for each piece.
template <class Take>
void in_pieces(const Bytes& bytes, Take take) {
  for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    take(at, ByteView(bytes).subspan(at, std::min(kPieceBytes, bytes.size() - at)));
  }
}

void save(api::Io* io, void* value) noexcept {
  const Arrived& arrived = arrived_at(value);
  api::SaveStringBuffer(io, arrived.type().data(), arrived.type().size());
  api::SaveUnsigned(io, arrived.length());
  in_pieces(arrived.bytes(), [&](std::size_t /*at*/, ByteView piece) { save_piece(io, piece); });
  api::SaveUnsigned(io, 0);
}

Result<std::unique_ptr<Arrived>> read(api::Io* io, int version) {
  if (version > kVersion) {
    return Error{Errc::unsupported, "its version is newer than this module"};
  }
  if (is_for_a_client(api::GetContextFromIO(io))) {
    return Error{Errc::unsupported, "a part of a value cannot be restored"};
  }
  std::size_t size = 0;
  const std::unique_ptr<char, void (*)(void*)> type(api::LoadStringBuffer(io, &size), api::Free);
  if (api::IsIOError(io) != 0) return Error{Errc::truncated, "the input ends too early"};
  const std::uint64_t length = api::LoadUnsigned(io);
  const Bytes bytes = SEMEL_TRY(read_pieces(io, 0));
  if (type_named({type.get(), size}) == nullptr || bytes.size() >= length) {
    return Error{Errc::corrupt, "a part of a value that is none"};
  }
  auto arrived = std::make_unique<Arrived>(std::string_view(type.get(), size), length, false);
  arrived->append(bytes);
  return arrived;
}

void* load(api::Io* io, int version) noexcept {
  try {
    Result<std::unique_ptr<Arrived>> arrived = read(io, version);
    if (arrived) return arrived->release();
    api::LogIOError(io, "warning", "semel: a value of type %s: %s", kName,
                    arrived.error().message().c_str());
  } catch (const std::exception& error) {
    api::LogIOError(io, "warning", "semel: a value of type %s: %s", kName, error.what());
  }
  return nullptr;
}

void rewrite(api::Io* io, api::String* key, void* value) noexcept {
  const Arrived& arrived = arrived_at(value);
  std::size_t size = 0;
  const char* const name = api::StringPtrLen(key, &size);
  in_pieces(arrived.bytes(), [&](std::size_t at, ByteView bytes) {
    const Piece piece{api::GetDbIdFromIO(io), {name, size}, arrived.type(), at,
                      arrived.length(),       bytes};
    api::EmitAOF(io, "SEMEL.LOAD", "scllblc", key, arrived.type().c_str(),
                 static_cast<long long>(at), static_cast<long long>(arrived.length()), text(bytes),
                 bytes.size(), static_cast<long long>(piece.checksum()), kImport);
  });
}

void digest(api::Digest* out, void* value) noexcept {
  const Arrived& arrived = arrived_at(value);
  const std::string length = std::to_string(arrived.length());
  api::DigestAddStringBuffer(out, arrived.type().data(), arrived.type().size());
  api::DigestAddStringBuffer(out, length.data(), length.size());
  in_pieces(arrived.bytes(), [&](std::size_t /*at*/, ByteView piece) {
    api::DigestAddStringBuffer(out, text(piece), piece.size());
  });
  api::DigestEndSequence(out);
}

std::size_t memory(const void* value) noexcept {
  return sizeof(Arrived) + arrived_at(value).room();
}

void give_back(void* value) noexcept { delete static_cast<Arrived*>(value); }

}  // namespace

Result<const Bytes*> stage(api::Key* key, const Piece& piece, bool must_complete) {
  const bool waits = api::ModuleTypeGetType(key) == handle;
  auto* arrived = waits ? static_cast<Arrived*>(api::ModuleTypeGetValue(key)) : nullptr;
  if (piece.offset == 0) {
    auto first = std::make_unique<Arrived>(piece.type, piece.length, must_complete);
    arrived = first.get();
    api::ModuleTypeSetValue(key, handle, first.release());
  }
  if (arrived == nullptr || !arrived->continues_with(piece)) {
    return Error{Errc::corrupt, "a part of a value does not follow the one before"};
  }
  arrived->append(piece.bytes);
  return arrived->complete() ? &arrived->bytes() : nullptr;
}

bool lacks_pieces() { return required != 0; }

Staged staged() { return {keys, bytes_held}; }

Result<void> load_staging(api::Ctx* ctx) {
  api::TypeMethods methods;
  methods.rdb_load = load;
  methods.rdb_save = save;
  methods.aof_rewrite = rewrite;
  methods.mem_usage = memory;
  methods.digest = digest;
  methods.free = give_back;
  handle = api::CreateDataType(ctx, kName, kVersion, &methods);
  if (handle == nullptr) return Error{Errc::unsupported, "the server rejects a type", kName};
  return {};
}

}  // namespace semel::host
