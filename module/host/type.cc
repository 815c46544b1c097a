#include "module/host/type.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "module/host/census.h"
#include "module/host/counters.h"
#include "module/host/meter.h"
#include "module/host/migration.h"
#include "module/host/relocation.h"
#include "module/host/value_limit.h"
#include "semel/core/assert.h"
#include "semel/core/sink.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"

namespace semel::host {
namespace {

constexpr std::size_t kMostTypes = Census::kTypes;

constinit std::array<const TypeSpec*, kMostTypes> loaded_types{};
constinit std::size_t loaded_count = 0;
// This is true while the server loads a dataset beside the one that it serves. Only a replica does
// that, and it refuses writes. So every value that is loaded meanwhile belongs to the new dataset.
constinit bool loads_beside = false;

// Room for the piece of an encoding that is under way. It is allocated when the module is loaded,
// so that a server without memory can still save. Only a server that saves in a thread of its own
// ever needs another one.
class PieceRoom {
 public:
  static void reserve() { kept().resize(kPieceBytes); }

  PieceRoom() : has_kept_(!taken().exchange(true, std::memory_order_acquire)) {
    if (!has_kept_) own_.resize(kPieceBytes);
  }
  PieceRoom(const PieceRoom&) = delete;
  PieceRoom& operator=(const PieceRoom&) = delete;
  ~PieceRoom() {
    if (has_kept_) taken().store(false, std::memory_order_release);
  }

  Bytes& bytes() { return has_kept_ ? kept() : own_; }

 private:
  static Bytes& kept() {
    static constinit Bytes bytes;
    return bytes;
  }
  static std::atomic<bool>& taken() {
    static constinit std::atomic<bool> flag{false};
    return flag;
  }

  bool has_kept_;
  Bytes own_;
};

const Value& value_at(const void* value) { return *static_cast<const Value*>(value); }

// Memory that the server allocated for us.
class ServerBuffer {
 public:
  explicit ServerBuffer(api::Io* io) : data_(api::LoadStringBuffer(io, &size_)) {}
  ServerBuffer(const ServerBuffer&) = delete;
  ServerBuffer& operator=(const ServerBuffer&) = delete;
  ~ServerBuffer() {
    if (data_ != nullptr) api::Free(data_);
  }
  ByteView bytes() const { return {reinterpret_cast<const std::uint8_t*>(data_), size_}; }

 private:
  std::size_t size_ = 0;
  char* data_;
};

// Counts a refusal. The server tells the client only that a value is refused; the log has this.
Error refuse_as_too_large(std::uint64_t least_bytes, std::uint64_t limit) {
  ++counters.refused_limit;
  return {Errc::limit, "more memory than semel.max-value-bytes allows",
          "at least " + std::to_string(least_bytes) + " bytes, and " + std::to_string(limit) +
              " are allowed"};
}

Result<std::unique_ptr<Value>> read_value(api::Io* io, const TypeSpec& spec, int version,
                                          std::uint64_t limit) {
  if (version > spec.version)
    return Error{Errc::unsupported, "its version is newer than this module"};
  Result<Bytes> bytes = read_pieces(io, limit);
  if (!bytes) return bytes.error();
  return decode(spec, *bytes, limit);
}

void* load(api::Io* io, const TypeSpec& spec, int version) {
  try {
    Result<std::unique_ptr<Value>> value = read_value(
        io, spec, version, is_for_a_client(api::GetContextFromIO(io)) ? value_limit() : 0);
    if (value) {
      census.admit(**value, spec.index,
                   loads_beside ? Census::Dataset::loading : Census::Dataset::served);
      return value->release();
    }
    api::LogIOError(io, "warning", "semel: a value of type %s: %s", spec.name,
                    value.error().message().c_str());
  } catch (const std::exception& error) {
    api::LogIOError(io, "warning", "semel: a value of type %s: %s", spec.name, error.what());
  }
  return nullptr;
}

// Calls take(piece) for each piece of the encoding, in order.
template <class Take>
void encode_in_pieces(const Value& value, Take take) {
  class Taken final : public Pieces {
   public:
    Taken(Bytes& room, Take take) : Pieces(room), take_(take) {}

   private:
    void take(ByteView piece) override { take_(piece); }
    Take take_;
  };
  PieceRoom room;
  Taken pieces(room.bytes(), take);
  value.encode(pieces);
  pieces.finish();
}

const char* text(ByteView bytes) { return reinterpret_cast<const char*>(bytes.data()); }

// These functions are noexcept: a server that lacks the memory for a few kilobytes ends, as it does
// elsewhere. Half an RDB file would be worse.
void save(api::Io* io, void* value) noexcept {
  encode_in_pieces(value_at(value), [&](ByteView piece) { save_piece(io, piece); });
  api::SaveUnsigned(io, 0);
}

void rewrite(api::Io* io, api::String* key, const TypeSpec& spec, void* value) noexcept {
  const std::uint64_t length = encoded_size(value_at(value));
  std::size_t size = 0;
  const char* const name = api::StringPtrLen(key, &size);
  std::uint64_t offset = 0;
  encode_in_pieces(value_at(value), [&](ByteView bytes) {
    const Piece piece{api::GetDbIdFromIO(io), {name, size}, spec.name, offset, length, bytes};
    api::EmitAOF(io, "SEMEL.LOAD", "scllbl", key, spec.name, static_cast<long long>(offset),
                 static_cast<long long>(length), text(bytes), bytes.size(),
                 static_cast<long long>(piece.checksum()));
    offset += bytes.size();
  });
}

// All pieces have one size, so that equal encodings have equal digests.
void digest(api::Digest* out, void* value) noexcept {
  encode_in_pieces(value_at(value), [&](ByteView piece) {
    api::DigestAddStringBuffer(out, text(piece), piece.size());
  });
  api::DigestEndSequence(out);
}

// Makes another such value and measures it. It may lack memory that the original has grown to, such
// as the free end of a list: that is added as it was requested.
template <class Make>
std::uint64_t memory_like(const Value& value, Make make) {
  const Meter meter;
  const std::unique_ptr<Value> made = make();
  if (made == nullptr) return 0;
  const std::uint64_t measured = meter.bytes();
  const std::uint64_t grown = value.bytes(), fresh = made->bytes();
  return measured + (grown > fresh ? grown - fresh : 0);
}

// A small value consists of small blocks, each of which the allocator rounds up. So two more values
// are made and measured: a copy, which may lack reserved memory, and a decoded value. The larger
// one counts.
std::uint64_t small_memory(const TypeSpec& spec, const Value& value) {
  Bytes all;
  value.encode(all);
  const auto decoded = [&] {
    Result<std::unique_ptr<Value>> made = decode(spec, all, 0);
    return made ? *std::move(made) : nullptr;
  };
  return std::max(memory_like(value, [&] { return value.copy(); }), memory_like(value, decoded));
}

// The server counts the key and its entry, but not what it keeps beside a value of a module: two
// small objects, and the place of the key in its table.
std::size_t memory(const TypeSpec& spec, const void* value) noexcept {
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 10, kBesides = 40;
  const std::uint64_t requested = value_at(value).bytes();
  if (requested > kSmall) return requested + kBesides;
  try {
    return small_memory(spec, value_at(value)) + kBesides;
  } catch (const std::exception&) {
    return requested + kBesides;  // there is no memory to make another value
  }
}

// The server calls this from another thread too.
void give_back(void* value) noexcept {
  auto* const ours = static_cast<Value*>(value);
  census.dismiss(*ours);
  delete ours;
}

// A mebibyte in one block takes as long to give back as dozens of small blocks.
std::size_t effort(api::String* /*key*/, const void* value) noexcept {
  constexpr std::uint64_t kOfPart = std::uint64_t{1} << 20;
  return value_at(value).parts() + static_cast<std::size_t>(value_at(value).bytes() / kOfPart);
}

// The server tells the client that the copy failed, and not why.
void* copy(const TypeSpec& spec, const void* value) noexcept {
  const auto say = [&](const char* why) {
    api::Log(nullptr, "warning", "semel: a copy of a value of type %s: %s", spec.name, why);
  };
  try {
    const std::uint64_t limit = is_for_a_client(nullptr) ? value_limit() : 0;
    const std::uint64_t bytes = value_at(value).bytes();
    if (limit != 0 && bytes > limit) {
      say(refuse_as_too_large(bytes, limit).message().c_str());
      return nullptr;
    }
    std::unique_ptr<Value> copied = value_at(value).copy();
    census.admit(*copied, spec.index);
    return copied.release();
  } catch (const std::exception& error) {
    say(error.what());
    return nullptr;
  }
}

// A small value is copied into memory that suits the server. A large one is renewed in sections:
// the server says when to stop, and calls again. Its large blocks stay, because only small ones
// share memory that could be given back.
int defragment(api::DefragCtx* ctx, const TypeSpec& spec, void** value) noexcept {
  constexpr std::uint64_t kSmall = std::uint64_t{256} << 10;
  constexpr int kDone = 0, kMore = 1;
  const Relocation relocation(ctx);
  try {
    if (value_at(*value).bytes() <= kSmall) {
      std::unique_ptr<Value> moved = value_at(*value).clone();
      moved->reserve();
      census.admit(*moved, spec.index);
      give_back(std::exchange(*value, moved.release()));
      return kDone;
    }
    unsigned long section = 0;
    if (api::DefragCursorGet(ctx, &section) != api::kOk) section = 0;
    while (static_cast<Value*>(*value)->renew(section++)) {
      if (api::DefragShouldStop(ctx) == 0) continue;
      if (api::DefragCursorSet(ctx, section) == api::kOk) return kMore;
    }
  } catch (const std::exception&) {
    // What has not moved stays where it is.
  }
  return kDone;
}

// When the server says why it removes a key, the value is gone already. It unlinked the value
// before, without a reason. So the last unlinked key is remembered until its reason comes.
struct Unlinked {
  std::uint64_t name;  // a checksum of the name
  std::size_t type;
};
constinit std::optional<Unlinked> last_unlinked;

std::uint64_t name_of(const api::String* key) {
  std::size_t size = 0;
  const char* const name = api::StringPtrLen(key, &size);
  return checksum({reinterpret_cast<const std::uint8_t*>(name), size});
}

void unlinked(const api::String* key, std::size_t type) {
  last_unlinked = {.name = name_of(key), .type = type};
}

int removed(api::Ctx* /*ctx*/, int why, const char* /*event*/, api::String* key) {
  if ((why & api::kNotifyGeneric) != 0) {  // a command took the key away
    last_unlinked.reset();
    return api::kOk;
  }
  if (!last_unlinked || last_unlinked->name != name_of(key)) return api::kOk;
  const std::size_t type = std::exchange(last_unlinked, std::nullopt)->type;
  (why & api::kNotifyEvicted) != 0 ? census.evicted(type) : census.expired(type);
  return api::kOk;
}

void dataset_changed(api::Ctx* /*ctx*/, api::Event /*event*/, std::uint64_t subevent,
                     void* /*data*/) {
  loads_beside = subevent == api::kAsyncLoadStarted;
  if (subevent == api::kAsyncLoadCompleted) census.serve_loaded();
}

// The server tells us the type only by the function that it calls.
template <std::size_t kIndex>
api::TypeMethods methods() {
  api::TypeMethods out;
  out.rdb_load = [](api::Io* io, int version) { return load(io, *loaded_types[kIndex], version); };
  out.rdb_save = save;
  out.aof_rewrite = [](api::Io* io, api::String* key, void* value) {
    rewrite(io, key, *loaded_types[kIndex], value);
  };
  out.mem_usage = [](const void* value) { return memory(*loaded_types[kIndex], value); };
  out.digest = digest;
  out.free = give_back;
  out.free_effort = effort;
  out.unlink = [](api::String* key, const void* /*value*/) { unlinked(key, kIndex); };
  out.copy = [](api::String* /*from*/, api::String* /*to*/, const void* value) {
    return copy(*loaded_types[kIndex], value);
  };
  out.defrag = [](api::DefragCtx* ctx, api::String* /*key*/, void** value) {
    return defragment(ctx, *loaded_types[kIndex], value);
  };
  return out;
}

template <std::size_t... kIndex>
api::TypeMethods methods_of(std::size_t index, std::index_sequence<kIndex...> /*all*/) {
  static constexpr std::array<api::TypeMethods (*)(), sizeof...(kIndex)> kAll = {
      &methods<kIndex>...};
  return kAll[index]();
}

}  // namespace

std::uint64_t Piece::checksum() const {
  Bytes all;
  Writer w(all);
  w.u64(static_cast<std::uint64_t>(database));
  w.text(key);
  w.text(type);
  w.u64(offset);
  w.u64(length);
  w.u64(semel::checksum(bytes));
  return semel::checksum(all);
}

Result<std::unique_ptr<Value>> decode(const TypeSpec& spec, ByteView in, std::uint64_t limit) {
  Result<std::unique_ptr<Value>> value = spec.decode(in);
  if (!value) return value;
  const std::uint64_t bytes = (*value)->bytes() + (*value)->unreserved_bytes();
  if (limit != 0 && bytes > limit) return refuse_as_too_large(bytes, limit);
  try {
    (*value)->reserve();
  } catch (const std::bad_alloc&) {
    return value;  // its content is there, and must not be lost
  }
  return value;
}

Result<void> load_types(api::Ctx* ctx, std::span<const TypeSpec* const> types) {
  PieceRoom::reserve();
  for (const TypeSpec* const spec : types) {
    SEMEL_ASSERT(loaded_count < kMostTypes);
    loaded_types[loaded_count] = spec;
    api::TypeMethods methods = methods_of(loaded_count, std::make_index_sequence<kMostTypes>());
    spec->index = loaded_count;
    spec->handle = api::CreateDataType(ctx, spec->name, spec->version, &methods);
    if (spec->handle == nullptr) {
      return Error{Errc::unsupported, "the server rejects a type", std::string(spec->name)};
    }
    ++loaded_count;
  }
  return {};
}

bool is_for_a_client(api::Ctx* ctx) {
  constexpr int kOfTheServer = api::kFlagLoading | api::kFlagAsyncLoading | api::kFlagReplica;
  return (api::GetContextFlags(ctx) & kOfTheServer) == 0 && !restores_slots();
}

void save_piece(api::Io* io, ByteView piece) {
  api::SaveUnsigned(io, piece.size());
  api::SaveStringBuffer(io, text(piece), piece.size());
}

Result<Bytes> read_pieces(api::Io* io, std::uint64_t limit) {
  Bytes all;
  for (;;) {
    const std::uint64_t size = api::LoadUnsigned(io);
    if (api::IsIOError(io) != 0) return Error{Errc::truncated, "a piece without a length"};
    if (size == 0) return all;
    if (limit != 0 && (size > limit || all.size() > limit - size)) {
      return refuse_as_too_large(all.size() + size, limit);
    }
    const ServerBuffer piece(io);
    if (api::IsIOError(io) != 0) return Error{Errc::truncated, "the input ends too early"};
    const ByteView bytes = piece.bytes();
    if (bytes.size() != size)
      return Error{Errc::corrupt, "a piece with another length than announced"};
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
}

bool watch_datasets(api::Ctx* ctx) {
  return api::SubscribeToServerEvent(ctx, {api::kEventAsyncLoad}, dataset_changed) == api::kOk;
}

bool watch_removals(api::Ctx* ctx) {
  return api::SubscribeToKeyspaceEvents(
             ctx, api::kNotifyGeneric | api::kNotifyExpired | api::kNotifyEvicted, removed) ==
         api::kOk;
}

void forget_unlinked() { last_unlinked.reset(); }

std::span<const TypeSpec* const> types() { return std::span(loaded_types).first(loaded_count); }

bool is_ours(const api::Type* type) {
  const auto loaded = std::span(loaded_types).first(loaded_count);
  return std::any_of(loaded.begin(), loaded.end(),
                     [&](const TypeSpec* spec) { return handle_of(*spec) == type; });
}

const TypeSpec* type_named(std::string_view name) {
  const auto loaded = std::span(loaded_types).first(loaded_count);
  const auto found = std::find_if(loaded.begin(), loaded.end(),
                                  [&](const TypeSpec* spec) { return spec->name == name; });
  return found == loaded.end() ? nullptr : *found;
}

}  // namespace semel::host
