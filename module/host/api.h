// The part of the module API of Redis 7.0, Redis 7.2 and later, and Valkey that Semel uses.
//
// Debian ships no header for it. None is needed: a server hands each module a function that finds
// all others by name. Names, numbers and layouts here are the server's, which keeps them stable
// across versions. A function that came after Redis 7.0 is null where the server does not have it.
//
// Only the sources of module/host, and headers that stay there, include this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "module/host/handles.h"

namespace semel::host::api {

struct Io;
struct Type;
struct Digest;
struct DefragCtx;
struct InfoCtx;
struct BlockedClient;
struct Command;
struct ServerInfo;
struct CallReply;

inline constexpr int kOk = 0, kErr = 1;
inline constexpr int kApiVersion = 1;

// For OpenKey.
inline constexpr int kRead = 1 << 0, kWrite = 1 << 1;
// From KeyType.
inline constexpr int kKeyEmpty = 0;
// From GetContextFlags.
inline constexpr int kFlagLua = 1 << 0, kFlagMulti = 1 << 1, kFlagReplica = 1 << 3;
inline constexpr int kFlagEvicts = 1 << 9, kFlagOutOfMemory = 1 << 10;
inline constexpr int kFlagReplicated = 1 << 12, kFlagLoading = 1 << 13;
inline constexpr int kFlagDenyBlocking = 1 << 21, kFlagResp3 = 1 << 22;
inline constexpr int kFlagAsyncLoading = 1 << 23;  // instead of kFlagLoading
inline constexpr int kFlagSlotImport = 1 << 25;    // Valkey 9; something else in Redis 8
// From CallReplyType.
inline constexpr int kReplyError = 1, kReplyArray = 3;
// For NotifyKeyspaceEvent and SubscribeToKeyspaceEvents.
inline constexpr int kNotifyGeneric = 1 << 2;  // DEL, RENAME and others
inline constexpr int kNotifyExpired = 1 << 8, kNotifyEvicted = 1 << 9, kNotifyModule = 1 << 13;
// For SetModuleOptions.
inline constexpr int kHandleIoErrors = 1 << 0, kNoImplicitSignal = 1 << 1;
inline constexpr int kHandleAsyncLoad = 1 << 2;
inline constexpr int kHandleSlotMigration = 1 << 5;  // Valkey 9
// For the Register...Config functions.
inline constexpr unsigned kConfigImmutable = 1u << 0;
inline constexpr unsigned kConfigUnprefixed = 1u << 9;  // Redis 8
// For SubscribeToServerEvent.
inline constexpr std::uint64_t kEventRole = 0, kEventLoading = 3, kEventReplica = 6, kEventCron = 8;
inline constexpr std::uint64_t kEventForkChild = 13, kEventAsyncLoad = 14, kEventConfig = 16;
inline constexpr std::uint64_t kEventRedisSlots = 18, kEventValkeySlots = 19;  // slot migration
inline constexpr std::uint64_t kLoadingEnded = 3;                              // of kEventLoading
// The following are kinds of kEventAsyncLoad.
inline constexpr std::uint64_t kAsyncLoadStarted = 0, kAsyncLoadAborted = 1;
inline constexpr std::uint64_t kAsyncLoadCompleted = 2;
// For ReplyWithArray and ReplyWithMap: the length comes at the end.
inline constexpr long kPostponed = -1;

using CommandFn = int (*)(Ctx*, String**, int);

struct TypeMethods {
  static constexpr std::uint64_t kVersion = 4;  // that of Redis 7.0

  std::uint64_t version = kVersion;
  void* (*rdb_load)(Io*, int version) = nullptr;
  void (*rdb_save)(Io*, void* value) = nullptr;
  void (*aof_rewrite)(Io*, String* key, void* value) = nullptr;
  std::size_t (*mem_usage)(const void* value) = nullptr;
  void (*digest)(Digest*, void* value) = nullptr;
  void (*free)(void* value) = nullptr;
  int (*aux_load)(Io*, int version, int when) = nullptr;
  void (*aux_save)(Io*, int when) = nullptr;
  int aux_save_triggers = 0;
  std::size_t (*free_effort)(String* key, const void* value) = nullptr;
  void (*unlink)(String* key, const void* value) = nullptr;
  void* (*copy)(String* from, String* to, const void* value) = nullptr;
  int (*defrag)(DefragCtx*, String* key, void** value) = nullptr;
  void* mem_usage2 = nullptr;
  void* free_effort2 = nullptr;
  void* unlink2 = nullptr;
  void* copy2 = nullptr;
};

// The type of an argument in COMMAND DOCS.
enum class ArgumentType : int {
  string = 0,
  integer = 1,
  number = 2,
  key = 3,
  pattern = 4,
  unix_time = 5,
  token = 6,
  one_of = 7,
  block = 8,
};
inline constexpr int kArgumentOptional = 1 << 0, kArgumentMultiple = 1 << 1;

struct CommandArgument {
  const char* name = nullptr;
  ArgumentType type = ArgumentType::string;
  int key_spec_index = -1;
  const char* token = nullptr;
  const char* summary = nullptr;
  const char* since = nullptr;
  int flags = 0;
  const char* deprecated_since = nullptr;
  CommandArgument* subargs = nullptr;  // ends with one that has no name
  const char* display_text = nullptr;
};

struct CommandHistory {
  const char* since = nullptr;
  const char* changes = nullptr;
};

inline constexpr std::uint64_t kKeyRo = 1 << 0, kKeyRw = 1 << 1;
inline constexpr std::uint64_t kKeyAccess = 1 << 4, kKeyUpdate = 1 << 5;
inline constexpr int kSearchIndex = 2, kFindRange = 2;

struct CommandKeySpec {
  const char* notes = nullptr;
  std::uint64_t flags = 0;
  int begin_search_type = 0;
  union {
    struct {
      int pos;
    } index;
    struct {
      const char* keyword;
      int startfrom;
    } keyword;
  } bs = {};
  int find_keys_type = 0;
  union {
    struct {
      int lastkey;
      int keystep;
      int limit;
    } range;
    struct {
      int keynumidx;
      int firstkey;
      int keystep;
    } keynum;
  } fk = {};
};

struct CommandInfoVersion {
  int version = 1;
  std::size_t sizeof_history = sizeof(CommandHistory);
  std::size_t sizeof_keyspec = sizeof(CommandKeySpec);
  std::size_t sizeof_arg = sizeof(CommandArgument);
};

struct CommandInfo {
  const CommandInfoVersion* version = nullptr;
  const char* summary = nullptr;
  const char* complexity = nullptr;
  const char* since = nullptr;
  CommandHistory* history = nullptr;
  const char* tips = nullptr;
  int arity = 0;
  CommandKeySpec* key_specs = nullptr;  // ends with one of zeros
  CommandArgument* args = nullptr;      // ends with one that has no name
};

struct Event {
  std::uint64_t id = 0;
  std::uint64_t data_version = 1;
};
using EventFn = void (*)(Ctx*, Event, std::uint64_t subevent, void* data);
using KeyspaceFn = int (*)(Ctx*, int type, const char* event, String* key);
using TimerFn = void (*)(Ctx*, void* data);
using ApplyFn = int (*)(Ctx*, void* data, String** error);

// X(result, name, arguments)
#define SEMEL_HOST_FUNCTIONS(X)                                                                  \
  X(void*, TryAlloc, (std::size_t))                                                              \
  X(void, Free, (void*))                                                                         \
  X(std::size_t, MallocSize, (void*))                                                            \
  X(int, IsModuleNameBusy, (const char*))                                                        \
  X(void, SetModuleAttribs, (Ctx*, const char* name, int version, int api_version))              \
  X(void, SetModuleOptions, (Ctx*, int))                                                         \
  X(int, CreateCommand, (Ctx*, const char*, CommandFn, const char* flags, int, int, int))        \
  X(Command*, GetCommand, (Ctx*, const char*))                                                   \
  X(int, SetCommandInfo, (Command*, const CommandInfo*))                                         \
  X(Type*, CreateDataType, (Ctx*, const char* name, int version, TypeMethods*))                  \
  X(void, Log, (Ctx*, const char* level, const char* format, ...))                               \
  X(int, WrongArity, (Ctx*))                                                                     \
  X(int, ReplyWithLongLong, (Ctx*, long long))                                                   \
  X(int, ReplyWithError, (Ctx*, const char*))                                                    \
  X(int, ReplyWithSimpleString, (Ctx*, const char*))                                             \
  X(int, ReplyWithStringBuffer, (Ctx*, const char*, std::size_t))                                \
  X(int, ReplyWithArray, (Ctx*, long))                                                           \
  X(int, ReplyWithMap, (Ctx*, long))                                                             \
  X(void, ReplySetArrayLength, (Ctx*, long))                                                     \
  X(void, ReplySetMapLength, (Ctx*, long))                                                       \
  X(int, ReplyWithNull, (Ctx*))                                                                  \
  X(int, ReplyWithBool, (Ctx*, int))                                                             \
  X(int, ReplyWithDouble, (Ctx*, double))                                                        \
  X(int, GetContextFlags, (Ctx*))                                                                \
  X(void, GetRandomBytes, (unsigned char*, std::size_t))                                         \
  X(String*, CreateString, (Ctx*, const char*, std::size_t))                                     \
  X(void, FreeString, (Ctx*, String*))                                                           \
  X(const char*, StringPtrLen, (const String*, std::size_t*))                                    \
  X(Key*, OpenKey, (Ctx*, String*, int mode))                                                    \
  X(void, CloseKey, (Key*))                                                                      \
  X(int, KeyType, (Key*))                                                                        \
  X(Type*, ModuleTypeGetType, (Key*))                                                            \
  X(void*, ModuleTypeGetValue, (Key*))                                                           \
  X(int, ModuleTypeSetValue, (Key*, Type*, void*))                                               \
  X(int, SignalModifiedKey, (Ctx*, String*))                                                     \
  X(int, NotifyKeyspaceEvent, (Ctx*, int type, const char* event, String* key))                  \
  X(int, Replicate, (Ctx*, const char* command, const char* format, ...))                        \
  X(int, ReplicateVerbatim, (Ctx*))                                                              \
  X(int, AvoidReplicaTraffic, ())                                                                \
  X(CallReply*, Call, (Ctx*, const char* command, const char* format, ...))                      \
  X(int, CallReplyType, (CallReply*))                                                            \
  X(std::size_t, CallReplyLength, (CallReply*))                                                  \
  X(const char*, CallReplyStringPtr, (CallReply*, std::size_t*))                                 \
  X(void, FreeCallReply, (CallReply*))                                                           \
  X(void, EmitAOF, (Io*, const char* command, const char* format, ...))                          \
  X(void, SaveUnsigned, (Io*, std::uint64_t))                                                    \
  X(std::uint64_t, LoadUnsigned, (Io*))                                                          \
  X(void, SaveStringBuffer, (Io*, const char*, std::size_t))                                     \
  X(char*, LoadStringBuffer, (Io*, std::size_t*))                                                \
  X(int, GetDbIdFromIO, (Io*))                                                                   \
  X(int, GetSelectedDb, (Ctx*))                                                                  \
  X(Ctx*, GetContextFromIO, (Io*))                                                               \
  X(int, IsIOError, (Io*))                                                                       \
  X(void, LogIOError, (Io*, const char* level, const char* format, ...))                         \
  X(void, DigestAddStringBuffer, (Digest*, const char*, std::size_t))                            \
  X(void, DigestEndSequence, (Digest*))                                                          \
  X(std::uint64_t, CreateTimer, (Ctx*, long long ms, TimerFn, void* data))                       \
  X(BlockedClient*, BlockClient,                                                                 \
    (Ctx*, CommandFn reply, CommandFn timeout, void (*free)(Ctx*, void*), long long timeout_ms)) \
  X(int, UnblockClient, (BlockedClient*, void*))                                                 \
  X(void*, GetBlockedClientPrivateData, (Ctx*))                                                  \
  X(void*, DefragAlloc, (DefragCtx*, void*))                                                     \
  X(int, DefragShouldStop, (DefragCtx*))                                                         \
  X(int, DefragCursorSet, (DefragCtx*, unsigned long))                                           \
  X(int, DefragCursorGet, (DefragCtx*, unsigned long*))                                          \
  X(int, SubscribeToServerEvent, (Ctx*, Event, EventFn))                                         \
  X(int, SubscribeToKeyspaceEvents, (Ctx*, int types, KeyspaceFn))                               \
  X(int, GetServerVersion, ())                                                                   \
  X(ServerInfo*, GetServerInfo, (Ctx*, const char* section))                                     \
  X(void, FreeServerInfo, (Ctx*, ServerInfo*))                                                   \
  X(unsigned long long, ServerInfoGetFieldUnsigned, (ServerInfo*, const char*, int* error))      \
  X(const char*, ServerInfoGetFieldC, (ServerInfo*, const char*))                                \
  X(int, RegisterInfoFunc, (Ctx*, void (*)(InfoCtx*, int for_crash_report)))                     \
  X(int, InfoAddSection, (InfoCtx*, const char*))                                                \
  X(int, InfoAddFieldULongLong, (InfoCtx*, const char*, unsigned long long))                     \
  X(int, InfoAddFieldDouble, (InfoCtx*, const char*, double))                                    \
  X(int, RegisterStringConfig,                                                                   \
    (Ctx*, const char*, const char*, unsigned, String* (*)(const char*, void*),                  \
     int (*)(const char*, String*, void*, String**), ApplyFn, void*))                            \
  X(int, LoadConfigs, (Ctx*))

// Functions of servers after Redis 7.0.
#define SEMEL_HOST_LATER_FUNCTIONS(X)         \
  X(int, GetModuleOptionsAll, ())             \
  X(int, AddACLCategory, (Ctx*, const char*)) \
  X(int, SetCommandACLCategories, (Command*, const char*))

#define SEMEL_HOST_DECLARE(result, name, arguments) extern result(*name) arguments;
SEMEL_HOST_FUNCTIONS(SEMEL_HOST_DECLARE)
SEMEL_HOST_LATER_FUNCTIONS(SEMEL_HOST_DECLARE)
#undef SEMEL_HOST_DECLARE

// Finds all functions through the context that OnLoad got. Returns false if the server lacks one
// that Redis 7.0 has.
bool resolve(Ctx* ctx);

// Returns true if the server is Valkey.
bool is_valkey();

// Returns true if a command comes from another server: from the primary, or from the server that
// moves slots to this one. `flags` are those of GetContextFlags.
bool is_replicated(int flags);
// Returns true if it comes from the server that moves slots to this one, in Valkey.
bool is_slot_import(int flags);

}  // namespace semel::host::api
