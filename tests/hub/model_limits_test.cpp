#include "hub/model_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "job/job.h"

namespace brisk {
namespace {

bool job_takes(const std::string& task, const std::string& key, const std::string& value) {
  try {
    job_from_json_text(fmt::format(R"({{"task": "{}", "model": {{"{}": {}}}}})", task, key, value), "job.json");
    return true;
  } catch (const UserError&) {
    return false;
  }
}

TEST(ModelLimits, AreThoseOfAJob) {
  using namespace model_limits;
  struct Limit {
    const char *task, *key;
    int64_t most;
  };
  for (const auto& [task, key, most] : {Limit{"language_model", "d_model", kWidest},
                                        {"language_model", "num_layers", kMostLayers},
                                        {"language_model", "num_heads", kMostHeads},
                                        {"language_model", "num_kv_heads", kMostHeads},
                                        {"language_model", "d_ff", kWidestInside},
                                        {"language_model", "vocab_size", kLargestVocabulary},
                                        {"language_model", "context", kLongestContext},
                                        {"classify", "token_types", kMostTokenTypes},
                                        {"classify", "num_labels", kMostLabels}}) {
    EXPECT_TRUE(job_takes(task, key, fmt::format("{}", most))) << key;
    EXPECT_FALSE(job_takes(task, key, fmt::format("{}", most + 1))) << key;
  }
  EXPECT_TRUE(job_takes("language_model", "norm_epsilon", fmt::format("{}", kLargestEpsilon)));
  EXPECT_FALSE(job_takes("language_model", "norm_epsilon", fmt::format("{}", 1.01 * kLargestEpsilon)));
  EXPECT_FALSE(job_takes("language_model", "rope_theta", fmt::format("{}", kLeastRopeTheta)));
  EXPECT_TRUE(job_takes("language_model", "rope_theta", fmt::format("{}", 1.01 * kLeastRopeTheta)));
}

}  // namespace
}  // namespace brisk
