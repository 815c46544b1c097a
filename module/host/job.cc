#include "module/host/job.h"

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "module/host/command.h"
#include "module/host/statistics.h"

namespace semel::host {

namespace {

constexpr long long kPauseMs = 10;  // between two looks whether writes are allowed again

// Why the server would not let a client write to a key now; nothing if it would. A step is a write,
// but none that the server sees come.
std::string denied(api::Ctx* ctx, std::string_view key) {
  const int flags = api::GetContextFlags(ctx);
  if ((flags & api::kFlagReplica) != 0) return "READONLY this server became a replica";
  if ((flags & api::kFlagOutOfMemory) != 0 && (flags & api::kFlagEvicts) == 0) {
    return "OOM command not allowed when used memory > 'maxmemory'.";
  }
  // S, M: what a script would be denied, for errors of the disk, too few replicas, or memory that
  // the last command could not free by eviction. E: the answer says it.
  api::CallReply* const reply = api::Call(ctx, kWritable, "SMEb", key.data(), key.size());
  if (reply == nullptr) return "ERR the server does not say whether it can be written to";
  std::string why;
  if (api::CallReplyType(reply) == api::kReplyError) {
    std::size_t size = 0;
    const char* const text = api::CallReplyStringPtr(reply, &size);
    why.assign(text, size);
    why.erase(why.find_last_not_of("\r\n") + 1);
  }
  api::FreeCallReply(reply);
  return why;
}

}  // namespace

// Takes the steps of a job from a timer, one at a time, while its client is blocked.
class JobRunner {
 public:
  static void run_at_once(Call& call, Job& job) {
    while (job.step(call)) {
    }
    job.end(call);
    job.answer(call);
  }

  static void start(Call& call, std::unique_ptr<Job> job) {
    auto runner = std::make_unique<JobRunner>();
    runner->job_ = std::move(job);
    runner->client_ = api::BlockClient(call.ctx_, answer, nullptr, forget, 0);
    api::CreateTimer(call.ctx_, 0, tick, runner.release());
  }

 private:
  // While writes are paused, another server may be about to take over: nothing may change here, and
  // the job waits.
  static void tick(api::Ctx* ctx, void* data) noexcept {
    auto* const runner = static_cast<JobRunner*>(data);
    if (api::AvoidReplicaTraffic() != 0) {
      api::CreateTimer(ctx, kPauseMs, tick, runner);
    } else if (runner->step(ctx)) {
      api::CreateTimer(ctx, 0, tick, runner);
    } else {
      Call call(ctx, {});
      runner->job_->end(call);
      api::UnblockClient(runner->client_, runner);
    }
  }

  // What a step throws ends the job: its client hears of it, nobody else.
  bool step(api::Ctx* ctx) noexcept {
    try {
      if (std::string why = denied(ctx, job_->key()); !why.empty()) {
        failed_ = std::move(why).append(" What was done stays.");
        return false;
      }
      Call call(ctx, {});
      call.owes_nothing();
      return job_->step(call);
    } catch (const std::bad_alloc&) {
      failed_ = "OOM no memory left";
    } catch (const std::exception& error) {
      failed_ = kInternal;
      api::Log(ctx, "warning", "a job: %s", error.what());
    }
    return false;
  }

  static int answer(api::Ctx* ctx, api::String** /*argv*/, int /*argc*/) noexcept {
    const auto* const runner = static_cast<JobRunner*>(api::GetBlockedClientPrivateData(ctx));
    if (!runner->failed_.empty()) return api::ReplyWithError(ctx, runner->failed_.c_str());
    Call call(ctx, {});
    try {
      runner->job_->answer(call);
    } catch (const std::exception& error) {
      api::Log(ctx, "warning", "a job: %s", error.what());
    }
    call.settle(kInternal);
    return api::kOk;
  }

  static void forget(api::Ctx* /*ctx*/, void* data) noexcept {
    delete static_cast<JobRunner*>(data);
  }

  std::unique_ptr<Job> job_;
  api::BlockedClient* client_ = nullptr;
  std::string failed_;  // the error to answer with
};

void Call::start(std::unique_ptr<Job> job) {
  only_effects();
  silent();
  const int flags = api::GetContextFlags(ctx_);
  constexpr int kCannotWait = api::kFlagLua | api::kFlagMulti | api::kFlagDenyBlocking |
                              api::kFlagReplicated | api::kFlagLoading;
  if ((flags & kCannotWait) != 0 || replayed_) {
    JobRunner::run_at_once(*this, *job);
    return;
  }
  ++statistics.jobs;
  JobRunner::start(*this, std::move(job));
  owes_nothing();  // the job answers by a call of its own
}

}  // namespace semel::host
