// The table of architectures, and what a job knows of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "infer/architecture/architecture.h"
#include "infer/architecture/unread_options.h"
#include "job/job_options.h"
#include "job/tables.h"

namespace brisk {
namespace {

TEST(Architectures, AreTrainedByEveryTask) {
  for (const TaskTraits& task : all_tasks()) EXPECT_FALSE(types_for_task(task.name).empty()) << task.name;
  EXPECT_EQ(tasks_for_type("bert"), std::vector<std::string>({"classify", "mlm"}));
  EXPECT_EQ(alternatives(types_for_task("mlm")), "bert, distilbert or roberta");
  EXPECT_EQ(alternatives(types_for_task("language_model")), "mu or decoder");
}

TEST(Architectures, MakeAConfigurationOfEveryType) {
  ASSERT_EQ(architectures().size(), all_architectures().size());
  for (const ArchitectureTraits& traits : all_architectures()) {
    for (const std::string& type : traits.types) {
      const std::string text =
          fmt::format(R"({{"task": "{}", "model": {{"type": "{}"}}}})", tasks_for_type(type).front(), type);
      Job job = job_from_json_text(text, "job.json");
      EXPECT_EQ(job.model.is_encoder(), traits.is_encoder);
      EXPECT_EQ(job.model.is_encoder_decoder(), traits.is_encoder_decoder);
      resolve_defaults(job);
      ParameterStore store;
      const ModelConfig config = training_config(job);
      const std::unique_ptr<Model> model = make_model(config, store);
      EXPECT_EQ(model->causal() != nullptr, !traits.is_encoder && !traits.is_encoder_decoder) << type;
      EXPECT_EQ(model->conditional() != nullptr, traits.is_encoder_decoder) << type;
      EXPECT_EQ(fingerprint(config), fingerprint(architecture_of(job.model).training_config(job)));
      EXPECT_FALSE(architecture_of(job.model).describe(job).empty());
    }
  }
}

// What a job may say of a model.type is read there, or refused by one of the checks: nothing is ignored.
TEST(Architectures, ReadEveryOptionOfTheModelOrRefuseIt) {
  const std::vector<std::pair<std::string, std::string>> settings = {{"d_model", "128"},
                                                                     {"num_layers", "3"},
                                                                     {"num_heads", "8"},
                                                                     {"num_kv_heads", "2"},
                                                                     {"d_ff", "96"},
                                                                     {"vocab_size", "999"},
                                                                     {"norm", "rmsnorm"},
                                                                     {"activation", "relu"},
                                                                     {"positions", "rotary"},
                                                                     {"bias", "false"},
                                                                     {"tie_embeddings", "false"},
                                                                     {"dropout", "0.37"},
                                                                     {"norm_epsilon", "1e-3"},
                                                                     {"context", "200"},
                                                                     {"attention_dropout", "0.37"},
                                                                     {"token_types", "3"},
                                                                     {"classifier_dropout", "0.37"},
                                                                     {"encoder_d_model", "128"},
                                                                     {"encoder_layers", "3"},
                                                                     {"encoder_heads", "2"},
                                                                     {"encoder_d_ff", "96"},
                                                                     {"head_width", "24"},
                                                                     {"source_context", "77"},
                                                                     {"source_vocab_size", "777"},
                                                                     {"share_embeddings", "false"},
                                                                     {"norm_position", "post"},
                                                                     {"embedding_norm", "true"},
                                                                     {"scale_embeddings", "false"},
                                                                     {"scale_attention", "false"},
                                                                     {"scale_outputs", "true"},
                                                                     {"position_offset", "2"},
                                                                     {"output_bias", "trained"},
                                                                     {"first_token", "1"},
                                                                     {"output_transform", "true"},
                                                                     {"activation_dropout", "0.37"},
                                                                     {"final_dropout", "0.37"}};
  for (const ArchitectureTraits& traits : all_architectures()) {
    for (const std::string& type : traits.types) {
      for (const auto& [key, value] : settings) {
        std::vector<std::string> notes;
        const std::string task = tasks_for_type(type).front();
        const auto job_with = [&](const std::vector<std::string>& given) {
          Job job = job_from_json_text(R"({"task": ")" + task + R"(", "model": {"type": ")" + type + R"("}})", "job",
                                       given, notes);
          resolve_defaults(job);
          check_model_options(job);
          return job;
        };
        try {
          const Job job = job_with({"model." + key + "=" + value});
          const Job usual = job_with({});
          if (job_to_json_text(job) == job_to_json_text(usual)) continue;  // that is what it has anyway
          Job copy = job;
          const std::vector<Option> options = declare_job_options(copy);
          const bool has_effect = std::none_of(options.begin(), options.end(), [&](const Option& option) {
            return option.path == "model." + key && !option.has_effect();
          });
          if (!has_effect) continue;  // as a rope_theta without rotary positions
          EXPECT_FALSE(is_same_config(training_config(job), training_config(usual)))
              << type << " ignores model." << key;
        } catch (const UserError&) {  // it is told
        }
      }
    }
  }
}

TEST(Architectures, MayBeGivenTheDefaultsOfOptionsThatTheyDoNotRead) {
  std::vector<std::string> notes;
  Job job = job_from_json_text(R"({"task": "classify"})", "job", {}, notes);
  resolve_defaults(job);
  Job again = job_from_json_text(job_to_json_text(job), "run/job.json");  // a run's own job gives all of them
  resolve_defaults(again);
  EXPECT_NO_THROW(check_model_options(again));
}

}  // namespace
}  // namespace brisk
