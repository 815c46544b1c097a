// GroupCommit: every thread gets an answer, also if the work of its group fails.
#include "semel/tally/store/internal/group_commit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace semel::tally::internal {
namespace {

constexpr int kThreads = 4;

struct Request {
  int number;
  bool done = false;
};

TEST(GroupCommit, DoesTheRequestsOfAllThreads) {
  GroupCommit<Request> commits;
  std::atomic<int> at_work = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        Request request{i};
        commits.run(request, [&](std::span<Request* const> group) {
          EXPECT_EQ(at_work++, 0);
          for (Request* each : group) each->done = true;
          --at_work;
        });
        EXPECT_TRUE(request.done);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GroupCommit, GivesTheExceptionOfTheWorkToAllThreadsOfTheGroup) {
  GroupCommit<Request> commits;
  std::atomic<int> failed = 0;
  std::atomic<int> expected = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        Request request{i};
        try {
          commits.run(request, [&](std::span<Request* const> group) {
            for (const Request* each : group) {
              if (each->number % 7 != 0) continue;
              expected += static_cast<int>(group.size());
              throw std::bad_alloc();
            }
            for (Request* each : group) each->done = true;
          });
          EXPECT_TRUE(request.done);
        } catch (const std::bad_alloc&) {
          EXPECT_FALSE(request.done);
          ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, expected);
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace semel::tally::internal
