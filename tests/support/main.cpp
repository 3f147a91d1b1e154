// Every test program computes with a runtime of its own: all cores, standard error.
#include <gtest/gtest.h>

#include "base/runtime.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  brisk::Runtime runtime;
  const brisk::RuntimeScope scope(runtime);
  return RUN_ALL_TESTS();
}
