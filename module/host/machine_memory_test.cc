// The memory of a machine, as control groups of both versions limit it.
#include "module/host/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/temporary_directory.h"

namespace semel::host {
namespace {

class MachineMemory : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::uint64_t found() const { return machine_memory(root.path().string()); }

  TemporaryDirectory root;
  const std::uint64_t all = machine_memory(root.path().string());  // no group says anything
};

TEST_F(MachineMemory, IsAllOfItWithoutALimit) {
  EXPECT_GT(all, std::uint64_t{1} << 20);
  write("/sys/fs/cgroup/memory.max", "max");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("/proc/self/cgroup", "0::/");
  EXPECT_EQ(found(), all);
  EXPECT_LE(machine_memory(), all);
}

TEST_F(MachineMemory, IsThatOfAContainer) {
  write("/sys/fs/cgroup/memory.max", "70000");
  EXPECT_EQ(found(), 70'000u);
  write("/proc/self/cgroup", "0::/../elsewhere");
  EXPECT_EQ(found(), 70'000u);
}

TEST_F(MachineMemory, IsThatOfAContainerOfVersion1) {
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "60000");
  EXPECT_EQ(found(), 60'000u);
}

TEST_F(MachineMemory, IsTheLeastOfTheGroupsAboveTheProcess) {
  write("/proc/self/cgroup", "0::/system.slice/redis.service");
  write("/sys/fs/cgroup/system.slice/redis.service/memory.max", "max");
  write("/sys/fs/cgroup/system.slice/memory.max", "50000");
  EXPECT_EQ(found(), 50'000u);
  write("/sys/fs/cgroup/system.slice/redis.service/memory.max", "40000");
  EXPECT_EQ(found(), 40'000u);
}

TEST_F(MachineMemory, IsThatOfTheMemoryControllerOfVersion1) {
  write("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/docker/1\nnonsense");
  write("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1000");
  write("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "30000");
  EXPECT_EQ(found(), 30'000u);
}

TEST_F(MachineMemory, IsAllOfItWhereTheFilesSayNothing) {
  write("/sys/fs/cgroup/memory.max", "");
  write("/proc/self/cgroup", ":");
  EXPECT_EQ(found(), all);
}

}  // namespace
}  // namespace semel::host
