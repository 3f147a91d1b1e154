#include "base/machine/counters.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace brisk {
namespace {

TEST(Counters, CountWhatThisProcessUses) {
  const Counters before = read_counters();
  constexpr size_t kPages = 256, kPage = 4096;
  auto* memory = static_cast<volatile char*>(
      ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::madvise(const_cast<char*>(memory), kPages * kPage, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < kPages; ++i) memory[i * kPage] = 1;
  volatile double sum = 0;
  while ((read_counters() - before).user_seconds < 0.02) sum = sum + 1;
  const Counters used = read_counters() - before;
  EXPECT_GE(used.user_seconds, 0.02);
  EXPECT_GE(used.minor_faults, static_cast<int64_t>(kPages));
  EXPECT_GE(used.major_faults, 0);
  ::munmap(const_cast<char*>(memory), kPages * kPage);
}

TEST(Counters, AreUnknownWhereOneOfTwoIs) {
  Counters now, before;
  now.throttled_seconds = 3;
  before.throttled_seconds = 1;
  EXPECT_DOUBLE_EQ((now - before).throttled_seconds, 2);
  before.throttled_seconds = -1;
  EXPECT_LT((now - before).throttled_seconds, 0);
  EXPECT_LT((now - before).waiting_seconds, 0);
}

}  // namespace
}  // namespace brisk
