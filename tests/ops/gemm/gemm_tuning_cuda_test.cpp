// What is kept of measured products: needs no GPU.
#include "ops/gemm/cuda/gemm_tuning_cuda.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace brisk {
namespace {

class TunedAlgorithmsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("brisk-algorithms-" + std::to_string(::getpid()));
    path_ = folder_ / "some" / "gpu.txt";
    key_[0] = 4096;
    key_[21] = -1;
    algorithm_[7] = 0xFFFFFFFFFFFFFFFFull;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_, path_;
  cuda::TunedAlgorithms::Key key_ = {};
  cuda::TunedAlgorithms::Algorithm algorithm_ = {};
};

TEST_F(TunedAlgorithmsFile, IsReadByTheNextProcess) {
  {
    cuda::TunedAlgorithms algorithms(path_);
    EXPECT_EQ(algorithms.find(key_), nullptr);
    algorithms.add(key_, algorithm_);
  }
  const cuda::TunedAlgorithms next(path_);
  ASSERT_NE(next.find(key_), nullptr);
  EXPECT_EQ(*next.find(key_), algorithm_);
}

TEST_F(TunedAlgorithmsFile, KeepsItsFirstChoice) {
  cuda::TunedAlgorithms(path_).add(key_, algorithm_);
  auto other = algorithm_;
  other[0] = 3;
  std::ofstream(path_, std::ios::app) << "4096";
  for (int i = 0; i < 20; ++i) std::ofstream(path_, std::ios::app) << " 0";
  std::ofstream(path_, std::ios::app) << " -1 3 0 0 0 0 0 0 5\n";
  EXPECT_EQ(*cuda::TunedAlgorithms(path_).find(key_), algorithm_);
}

TEST_F(TunedAlgorithmsFile, PassesOverLinesItCannotRead) {
  cuda::TunedAlgorithms(path_).add(key_, algorithm_);
  std::ofstream(path_, std::ios::app) << "1 2 three\n\n";
  auto second = key_;
  second[1] = 7;
  cuda::TunedAlgorithms(path_).add(second, algorithm_);
  const cuda::TunedAlgorithms algorithms(path_);
  EXPECT_NE(algorithms.find(key_), nullptr);
  EXPECT_NE(algorithms.find(second), nullptr);
}

TEST_F(TunedAlgorithmsFile, IsNoErrorWhereItCannotBeWritten) {
  cuda::TunedAlgorithms algorithms("/proc/nowhere/gpu.txt");
  algorithms.add(key_, algorithm_);
  EXPECT_NE(algorithms.find(key_), nullptr);
}

}  // namespace
}  // namespace brisk
