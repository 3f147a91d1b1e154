#include "base/runtime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "base/terminal/work_bar.h"

namespace brisk {
namespace {

TEST(Runtime, IsBoundToAThreadForAScope) {
  Runtime& before = Runtime::current();
  Runtime runtime({.threads = 2});
  {
    const RuntimeScope scope(runtime);
    EXPECT_EQ(&Runtime::current(), &runtime);
    EXPECT_EQ(thread_pool().size(), 2);
  }
  EXPECT_EQ(&Runtime::current(), &before);
}

TEST(Runtime, IsAskedForInVainWhereNoneIsBound) {
  std::thread([] { EXPECT_THROW(Runtime::current(), InternalError); }).join();
}

TEST(Runtime, IsBoundToTheThreadsOfItsPool) {
  Runtime runtime({.threads = 3});
  const RuntimeScope scope(runtime);
  std::vector<const Runtime*> seen(3);
  thread_pool().run([&](int thread) { seen[static_cast<size_t>(thread)] = &Runtime::current(); });
  for (const Runtime* bound : seen) EXPECT_EQ(bound, &runtime);
}

TEST(Runtime, ComputesForOneThreadAtATime) {
  Runtime runtime({.threads = 2});
  const RuntimeScope scope(runtime);
  std::thread other;
  thread_pool().run([&](int thread) {
    if (thread != 0) return;
    other = std::thread([&] { EXPECT_THROW(runtime.pool().run([](int) {}), InternalError); });
    other.join();
  });
}

#if defined(__SSE2__)
float half_of_the_smallest() {
  volatile float smallest = std::numeric_limits<float>::min(), half = 0.5f;
  return smallest * half;
}

TEST(Runtime, LeavesTheCallersFloatingPointModeAsItWas) {
  Runtime runtime({.threads = 2});
  for (const bool flushes : {false, true}) {  // whatever the caller had chosen
    std::optional<FlushSubnormals> own;
    const unsigned first = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(first & ~0x8040u);
    if (flushes) own.emplace();
    const unsigned before = __builtin_ia32_stmxcsr() & 0x8040u;
    {
      const RuntimeScope scope(runtime);
      thread_pool().run([](int) { EXPECT_EQ(half_of_the_smallest(), 0.0f); });
      EXPECT_EQ(half_of_the_smallest(), 0.0f) << "between two runs, too";
    }
    EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8040u, before);
    EXPECT_EQ(half_of_the_smallest() == 0.0f, flushes);
    own.reset();
    __builtin_ia32_ldmxcsr(first);
  }
}

class Halving final : public LogSink {
 public:
  void line(LogLevel, std::string_view) override { seen.push_back(half_of_the_smallest() == 0.0f); }
  void work(const WorkProgress&) override { seen.push_back(half_of_the_smallest() == 0.0f); }
  std::chrono::milliseconds work_interval() const override { return std::chrono::milliseconds(0); }
  void clear_progress() override { seen.push_back(half_of_the_smallest() == 0.0f); }
  std::vector<bool> seen;  // whether it was flushed
};

TEST(Runtime, CallsSinkAndCallbacksInTheFloatingPointModeOfTheCaller) {
  const unsigned first = __builtin_ia32_stmxcsr();
  const auto sink = std::make_shared<Halving>();
  Runtime runtime({.threads = 1, .log = sink});
  std::thread([&] {  // a caller that no runtime is bound to
    __builtin_ia32_ldmxcsr(first & ~0x8040u);
    const RuntimeScope scope(runtime);
    const RuntimeScope inner(runtime);
    say("a line");
    {
      WorkBar bar("tokens");
      bar.update(1, 8);
      bar.update(7, 8);
    }
    const std::function<bool()> callback = in_callers_mode(std::function<bool()>([&] {
      const bool outside = half_of_the_smallest() == 0.0f;
      {
        const RuntimeScope of_callback(runtime);  // the callback uses brisk itself
        EXPECT_EQ(half_of_the_smallest(), 0.0f);
        say("another");
      }
      EXPECT_EQ(half_of_the_smallest() == 0.0f, outside);
      return outside;
    }));
    EXPECT_FALSE(callback());
    EXPECT_EQ(half_of_the_smallest(), 0.0f) << "after the callback";
    EXPECT_FALSE(in_callers_mode(std::function<void()>()));
  })
      .join();
  ASSERT_GE(sink->seen.size(), 4u);
  for (const bool flushed : sink->seen) EXPECT_FALSE(flushed);
}
#endif

class Remembering final : public LogSink {
 public:
  void line(LogLevel level, std::string_view text) override {
    const std::lock_guard lock(mutex_);
    lines.push_back((level == LogLevel::warning ? "warning " : "info ") + std::string(text));
  }
  void work(const WorkProgress& progress) override { done = progress.done; }
  std::chrono::milliseconds work_interval() const override { return std::chrono::milliseconds(0); }

  std::vector<std::string> lines;
  int64_t done = 0;

 private:
  std::mutex mutex_;
};

TEST(Runtime, HandsEveryLineToItsSinkAndNothingToStandardError) {
  const auto sink = std::make_shared<Remembering>();
  Runtime runtime({.threads = 2, .log = sink});
  testing::internal::CaptureStderr();
  {
    const RuntimeScope scope(runtime);
    say("{} tokens", 5);
    thread_pool().run([](int thread) {
      if (thread == 1) warn("from a thread of the pool");
    });
    WorkBar bar("tokens");
    bar.update(1, 8);
    bar.update(7, 8);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(sink->lines, std::vector<std::string>({"info 5 tokens", "warning from a thread of the pool"}));
  EXPECT_EQ(sink->done, 7);
}

TEST(Runtime, KeepsItsCacheWhereTheSystemWantsIt) {
  const auto directory = [](const Environment& environment) {
    return Runtime({.environment = environment}).cache_directory();
  };
  EXPECT_EQ(directory({{"XDG_CACHE_HOME", "/var/cache"}, {"HOME", "/home/ada"}}), "/var/cache/brisk");
  EXPECT_EQ(directory({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/home/ada"}}), "/home/ada/.cache/brisk")
      << "its specification ignores a relative one";
  EXPECT_TRUE(directory({}).starts_with("/tmp/brisk-cache-"));
  EXPECT_EQ(Runtime({.cache_directory = "/data/cache"}).cache_directory(), "/data/cache");
}

TEST(Runtime, HasAnotherCacheDirectoryForAScope) {
  Runtime runtime({.cache_directory = "/data/cache"});
  const RuntimeScope scope(runtime);
  {
    const CacheDirectoryScope of_a_job("/data/job");
    EXPECT_EQ(runtime.cache_directory(), "/data/job");
  }
  EXPECT_EQ(runtime.cache_directory(), "/data/cache");
  const CacheDirectoryScope none("");
  EXPECT_EQ(runtime.cache_directory(), "/data/cache");
}

TEST(Runtime, TakesTheInstructionSetThatItsEnvironmentForces) {
  EXPECT_EQ(Runtime({.environment = {}}).isa(), best_isa());
  EXPECT_EQ(Runtime({.environment = {{"BRISK_ISA", "baseline"}}}).isa(), Isa::baseline);
  EXPECT_THROW(Runtime({.environment = {{"BRISK_ISA", "sse"}}}).isa(), UserError);
}

TEST(Runtime, DestroysWhatItKeepsWithItself) {
  const auto resource = std::make_shared<int>(1);
  {
    Runtime runtime;
    runtime.keep(resource);
    EXPECT_EQ(resource.use_count(), 2);
  }
  EXPECT_EQ(resource.use_count(), 1);
}

}  // namespace
}  // namespace brisk
