// Relocation: while one lives, operator new takes memory where the server's defragmentation wants
// it.
//
// The server's allocator serves a request from the memory that was freed last. That memory lies in
// slabs that should become empty. So each new block is offered to the server at once, which moves
// it if it lies badly (RedisModule_DefragAlloc). Objects that are made anew then lie well, whatever
// they consist of.
//
// Threads   The thread that runs commands. At most one lives at a time. Other threads may allocate
//           meanwhile.
#pragma once

#include <pthread.h>

#include <atomic>

#include "module/host/api.h"

namespace semel::host {

class Relocation {
 public:
  explicit Relocation(api::DefragCtx* server) : server_(server), thread_(pthread_self()) {
    running() = this;
  }
  Relocation(const Relocation&) = delete;
  Relocation& operator=(const Relocation&) = delete;
  ~Relocation() { running() = nullptr; }

  // Returns a block of the server's memory that has just been allocated, or the block that takes
  // its place.
  static void* place(void* block) {
    const Relocation* const now = running().load(std::memory_order_relaxed);
    if (now == nullptr || block == nullptr) return block;
    if (pthread_equal(now->thread_, pthread_self()) == 0) return block;
    void* const moved = api::DefragAlloc(now->server_, block);
    return moved != nullptr ? moved : block;
  }

 private:
  static std::atomic<const Relocation*>& running() {
    static constinit std::atomic<const Relocation*> relocation{nullptr};
    return relocation;
  }

  api::DefragCtx* const server_;
  const pthread_t thread_;
};

}  // namespace semel::host
