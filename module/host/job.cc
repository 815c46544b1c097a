#include "module/host/job.h"

#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "module/host/api.h"
#include "module/host/command.h"
#include "module/host/counters.h"

namespace semel::host {

namespace {

constexpr long long kPauseMs = 10;  // between two questions whether writes are allowed again

// Fails with the server's own error if a client could not write to a key now. A step is a write
// that the server does not check itself.
Result<void> may_write(api::Ctx* ctx, std::string_view key) {
  const int flags = api::GetContextFlags(ctx);
  const auto denied = [](std::string why) { return Error{Errc::busy, std::move(why)}; };
  if ((flags & api::kFlagReplica) != 0) return denied("READONLY this server became a replica");
  if ((flags & api::kFlagOutOfMemory) != 0 && (flags & api::kFlagEvicts) == 0) {
    return denied("OOM command not allowed when used memory > 'maxmemory'.");
  }
  // S and M deny what a script would be denied: after an error of the disk, with too few replicas,
  // or without memory that eviction could free. E puts the error into the reply.
  errno = 0;
  api::CallReply* const reply = api::Call(ctx, kWritable, "SMEb", key.data(), key.size());
  if (errno == EPERM) {  // a client that tries again is sent to the new node
    if (reply != nullptr) api::FreeCallReply(reply);
    return denied("TRYAGAIN the key has moved to another node.");
  }
  if (reply == nullptr) return denied("ERR the server does not say whether it accepts writes");
  Result<void> allowed;
  if (api::CallReplyType(reply) == api::kReplyError) {
    std::size_t size = 0;
    const char* const text = api::CallReplyStringPtr(reply, &size);
    std::string why(text, size);
    why.erase(why.find_last_not_of("\r\n") + 1);
    allowed = denied(std::move(why));
  }
  api::FreeCallReply(reply);
  return allowed;
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
  enum class Next : std::uint8_t { step, pause, end };

  // The job waits while writes are paused: another server may be about to take over, and nothing
  // may change here. It also waits for a key that the server is saving.
  static void tick(api::Ctx* ctx, void* data) noexcept {
    auto* const runner = static_cast<JobRunner*>(data);
    switch (api::AvoidReplicaTraffic() != 0 ? Next::pause : runner->step(ctx)) {
      case Next::step:
        api::CreateTimer(ctx, 0, tick, runner);
        break;
      case Next::pause:
        api::CreateTimer(ctx, kPauseMs, tick, runner);
        break;
      case Next::end:
        Call call(ctx, {});
        runner->job_->end(call);
        api::UnblockClient(runner->client_, runner);
        break;
    }
  }

  // An exception of a step ends the job. Its client gets an error.
  Next step(api::Ctx* ctx) noexcept {
    try {
      if (const Result<void> allowed = may_write(ctx, job_->key()); !allowed) {
        failed_ = allowed.error().message() + " The steps done so far stay.";
        return Next::end;
      }
      Call call(ctx, {});
      call.owes_nothing();
      return job_->step(call) ? Next::step : Next::end;
    } catch (const KeyInUse&) {
      return Next::pause;
    } catch (const std::bad_alloc&) {
      failed_ = "OOM no memory left";
    } catch (const std::exception& error) {
      failed_ = kInternal;
      api::Log(ctx, "warning", "a job: %s", error.what());
    }
    return Next::end;
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
  ++counters.jobs_started;
  JobRunner::start(*this, std::move(job));
  owes_nothing();  // the job answers in a call of its own
}

}  // namespace semel::host
