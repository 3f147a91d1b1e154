#include <gtest/gtest.h>

#include <thread>

#include "base/runtime.h"
#include "support/tiny_job.h"

namespace brisk {
namespace {

using namespace brisk::testing;

struct Training {
  EngineOptions options;
  Corpus corpus;

  Curve run() const {
    Runtime runtime({.threads = 2});
    const RuntimeScope scope(runtime);
    return train_curve(options, packed_steps(corpus, 4, 32, 16));
  }
};

Training training_of(const DecoderConfig& shape, uint64_t seed) {
  Training training{tiny_options(shape), tiny_corpus(160, seed)};
  training.options.seed = seed;
  training.options.muon = MuonOptions{};
  return training;
}

TEST(ConcurrentTraining, TwoInOneProcessGiveTheBitsTheyGiveAlone) {
  for (const DType type : {DType::f32, DType::bf16}) {
    Training first = training_of(gpt_shape(), 5), second = training_of(llama_shape(), 6);
    first.options.compute_type = second.options.compute_type = type;
    const Curve first_alone = first.run(), second_alone = second.run();
    Curve first_beside, second_beside;
    std::thread other([&] { second_beside = second.run(); });
    first_beside = first.run();
    other.join();
    expect_same_bits(first_beside, first_alone);
    expect_same_bits(second_beside, second_alone);
  }
}

}  // namespace
}  // namespace brisk
