#include "module/host/job.h"

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "module/host/statistics.h"

namespace semel::host {

// Takes the steps of a job from a timer, one at a time, while its client is blocked.
class JobRunner {
 public:
  static void run_at_once(Call& call, Job& job) {
    while (job.step(call)) {
    }
    job.answer(call);
  }

  static void start(Call& call, std::unique_ptr<Job> job) {
    auto runner = std::make_unique<JobRunner>();
    runner->job_ = std::move(job);
    runner->client_ = api::BlockClient(call.ctx_, answer, nullptr, forget, 0);
    api::CreateTimer(call.ctx_, 0, tick, runner.release());
  }

 private:
  // What a step throws ends the job: its client hears of it, nobody else.
  static void tick(api::Ctx* ctx, void* data) noexcept {
    auto* const runner = static_cast<JobRunner*>(data);
    bool more = false;
    try {
      if ((api::GetContextFlags(ctx) & api::kFlagReplica) != 0) {
        runner->failed_ = "READONLY this server became a replica; what was done stays";
      } else {
        Call call(ctx, {});
        call.owes_nothing();
        more = runner->job_->step(call);
      }
    } catch (const std::bad_alloc&) {
      runner->failed_ = "OOM the server has no memory for this";
    } catch (const std::exception& error) {
      runner->failed_ = kInternal;
      api::Log(ctx, "warning", "a job: %s", error.what());
    }
    if (more) {
      api::CreateTimer(ctx, 0, tick, runner);
    } else {
      api::UnblockClient(runner->client_, runner);
    }
  }

  static int answer(api::Ctx* ctx, api::String** /*argv*/, int /*argc*/) noexcept {
    const auto* const runner = static_cast<JobRunner*>(api::GetBlockedClientPrivateData(ctx));
    if (runner->failed_ != nullptr) return api::ReplyWithError(ctx, runner->failed_);
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
  const char* failed_ = nullptr;  // the error to answer with
};

void Call::start(std::unique_ptr<Job> job) {
  only_effects();
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
