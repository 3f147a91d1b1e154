#include "tensor/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tensor/parameter.h"

namespace brisk {
namespace {

class EveryDevice : public ::testing::TestWithParam<Device*> {};
INSTANTIATE_TEST_SUITE_P(Device, EveryDevice, ::testing::Values(&cpu_device(), &guarded_device()),
                         [](const auto& info) { return std::string(info.param->name()); });

TEST_P(EveryDevice, MemoryIsZeroedAndAlignedToPages) {
  const Buffer buffer(*GetParam(), 10000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096, 0u);
  std::vector<char> host(10000, 'x');
  GetParam()->copy_out(host.data(), buffer.data(), 10000);
  EXPECT_EQ(host, std::vector<char>(10000, '\0'));
}

TEST_P(EveryDevice, BytesComeBackAsTheyWentIn) {
  const Buffer buffer(*GetParam(), 5);
  GetParam()->copy_in(buffer.data(), "brisk", 5);
  char host[5];
  GetParam()->copy_out(host, buffer.data(), 5);
  EXPECT_EQ(std::string(host, 5), "brisk");
}

TEST_P(EveryDevice, OpsMayReadAndWrite) {
  const Buffer buffer(*GetParam(), 64);
  {
    DeviceAccess access(*GetParam());
    DeviceAccess nested(*GetParam());
    const Buffer made_inside(*GetParam(), 64);
    std::memset(made_inside.data(), 1, 64);
    std::memset(buffer.data(), 7, 64);
  }
  char host[64];
  GetParam()->copy_out(host, buffer.data(), 64);
  EXPECT_EQ(host[63], 7);
}

TEST_P(EveryDevice, ABufferMovesWithItsMemory) {
  Buffer buffer(*GetParam(), 8);
  GetParam()->copy_in(buffer.data(), "12345678", 8);
  void* const data = buffer.data();
  Buffer moved(std::move(buffer));
  EXPECT_EQ(moved.data(), data);
  EXPECT_FALSE(buffer);
  Buffer assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.data(), data);
  EXPECT_EQ(assigned.bytes(), 8);
  char host[8];
  GetParam()->copy_out(host, assigned.data(), 8);
  EXPECT_EQ(std::string(host, 8), "12345678");
}

// By the signal, or (where a sanitizer catches it) by an exit that is not 0; without a fault the exits below are 0.
bool died_of_access(int status) {
#if defined(BRISK_SANITIZED)
  return WIFEXITED(status) && WEXITSTATUS(status) != 0;
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

// What makes the guarded device a proof: touching its memory from outside ends the program.

TEST(GuardedDeviceDeathTest, ReadingFromOutsideFaults) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Buffer buffer(guarded_device(), 64);
  EXPECT_EXIT(
      {
        volatile char* data = static_cast<char*>(buffer.data());
        const char value = data[3];
        std::_Exit(value);
      },
      died_of_access, "");
}

TEST(GuardedDeviceDeathTest, WritingFromOutsideFaults) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Buffer buffer(guarded_device(), 64);
  EXPECT_EXIT(
      {
        static_cast<volatile char*>(buffer.data())[3] = 1;
        std::_Exit(0);
      },
      died_of_access, "");
}

TEST(GuardedDeviceDeathTest, ReadingAfterAnOpHasEndedFaults) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Buffer buffer(guarded_device(), 64);
  EXPECT_EXIT(
      {
        { DeviceAccess access(guarded_device()); }
        volatile char* data = static_cast<char*>(buffer.data());
        const char value = data[3];
        std::_Exit(value);
      },
      died_of_access, "");
}

TEST(GuardedDeviceDeathTest, AParameterCannotBeReadFromOutside) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  ParameterStore store;
  Parameter* parameter = store.add({.name = "w", .rows = 2, .cols = 2});
  store.allocate(guarded_device(), {}, DType::f32, ParameterStore::Purpose::training);
  store.initialise(1);
  EXPECT_EXIT(
      {
        const volatile float* data = parameter->master.f32();
        const float value = data[0];
        std::_Exit(static_cast<int>(0 * value));
      },
      died_of_access, "");
}

}  // namespace
}  // namespace brisk
