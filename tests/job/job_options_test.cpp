// Every option of a job says what it means: where it applies, and what a smoke test does. (Whether it may change on
// resume, the compiler asks.)
#include "job/job_options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

// Every option, and those of the items of lists.
std::vector<Option> every_option(Job& job) {
  std::vector<Option> all = declare_job_options(job);
  for (const Option& option : declare_job_options(job)) {
    if (const auto* items = std::get_if<std::shared_ptr<OptionItems>>(&option.field)) {
      for (const Option& inner : (*items)->example()) all.push_back(inner);
    }
  }
  return all;
}

TEST(EveryOption, SaysWhereItAppliesAndWhatASmokeTestDoes) {
  Job job;
  for (const Option& option : every_option(job)) {
    EXPECT_TRUE(option.smoke_test_said) << option.path;
    EXPECT_NE(option.applies_everywhere, !option.requirements.empty()) << option.path;
  }
}

TEST(EveryOption, ThatTheDataDecidesIsOpenOrHasAValueOfItsOwn) {
  Job job = job_from_json_text(R"({"task": "classify"})", "job.json"), saved = job;
  resolve_defaults(job);
  const Job found = with_found(job, {{"model.vocab_size", int64_t{77}}, {"data.text_field", std::string("review")}});
  EXPECT_EQ(found.model.vocab_size, 77);
  EXPECT_EQ(found.data.text_field, "review");
  saved.data.text_field = "review";
  saved.data.label_field = "stars";
  saved.model.num_labels = 5;
  job.data.label_field = "mark";
  const Job recalled = with_recalled(job, saved);
  EXPECT_EQ(recalled.data.text_field, "review");
  EXPECT_EQ(recalled.data.label_field, "mark") << "what the job says stands";
  EXPECT_EQ(recalled.model.num_labels, 5);
  EXPECT_EQ(recalled.model.vocab_size, job.model.vocab_size);
}

TEST(EveryOption, OfTheModelSaysWhatAModelToStartFromMeansForIt) {
  Job job;
  std::map<WithSource, std::set<std::string>> keys;
  for (const Option& option : declare_job_options(job)) keys[option.source_rule].insert(option.path);
  EXPECT_EQ(keys[WithSource::leaves],
            (std::set<std::string>{"model.allow_nonfinite", "model.decoder_from", "model.from",
                                   "model.image_encoder_from", "model.layout_encoder_from", "model.num_labels"}));
  EXPECT_EQ(keys[WithSource::limits], (std::set<std::string>{"model.num_layers"}));
  for (const std::string& path : keys[WithSource::suggests]) EXPECT_TRUE(path.ends_with("dropout")) << path;
}

TEST(Encoders, HaveAShapeOfTheirOwn) {
  for (const char* key : {R"("norm": "rmsnorm")", R"("positions": "rotary")", R"("activation": "swiglu")",
                          R"("bias": false)", R"("tie_embeddings": false)"}) {
    const std::string text = fmt::format(R"({{"task": "mlm", "model": {{{}}}}})", key);
    Job job = job_from_json_text(text, "job.json");
    const std::string message = test::message_of<UserError>([&] { resolve_defaults(job); });
    EXPECT_TRUE(test::has(message, "an encoder has")) << key << ": " << message;
  }
}

TEST(Mu, HasLayersOfItsOwnAndItsRecipesDefaults) {
  Job job = job_from_json_text(R"({"model": {"type": "mu"}})", "job.json");
  resolve_defaults(job);
  EXPECT_EQ(job.model.num_layers, 6);
  EXPECT_EQ(job.model.vocab_size, 50000);
  EXPECT_EQ(job.model.dropout, 0.1);
  EXPECT_EQ(job.model.context, 128);
  EXPECT_EQ(job.training.batch_size, 8);
  EXPECT_EQ(job.training.gradient_accumulation_steps, 4);
  EXPECT_EQ(job.training.optimizer, "adamw");
  EXPECT_EQ(job.training.learning_rate, 3e-4);
  EXPECT_EQ(job.training.weight_decay, 0.01);
  EXPECT_EQ(job.training.warmup_steps, 500);
  EXPECT_EQ(job.training.max_grad_norm, 1.0);
  EXPECT_EQ(job.training.num_epochs, 3);
  for (const char* key :
       {R"("d_model": 128)", R"("num_heads": 4)", R"("num_kv_heads": 2)", R"("d_ff": 128)", R"("norm": "rmsnorm")",
        R"("positions": "rotary")", R"("activation": "gelu")", R"("bias": false)", R"("tie_embeddings": true)"}) {
    Job other = job_from_json_text(fmt::format(R"({{"model": {{"type": "mu", {}}}}})", key), "job.json");
    const std::string message = test::message_of<UserError>([&] { resolve_defaults(other); });
    EXPECT_TRUE(test::has(message, "model.type mu has")) << key << ": " << message;
  }
  for (const char* key : {"lora_rank", "train_layers"}) {
    Job adapted = job_from_json_text(
        fmt::format(R"({{"model": {{"type": "mu", "from": "run"}}, "training": {{"{}": 2}}}})", key), "job.json");
    EXPECT_TRUE(
        test::has(test::message_of<UserError>([&] { resolve_defaults(adapted); }), "does not apply to model.type mu"))
        << key;
  }
  Job decoder = job_from_json_text(R"({"model": {"reference": true}})", "job.json");
  EXPECT_TRUE(
      test::has(test::message_of<UserError>([&] { resolve_defaults(decoder); }), "model.reference does not apply"));
  shrink_for_smoke_test(declare_job_options(job));
  resolve_defaults(job);
  EXPECT_EQ(job.model.d_model, 64);
  EXPECT_EQ(job.model.num_heads, 8) << "its own, however small the job";
}

TEST(ImageEncoders, TakeOneNumberOrAList) {
  const auto job_with = [](const std::string& model) {
    Job job = job_from_json_text(R"({"task": "classify", "model": {"type": "swin", "d_model": 64, )" + model + "}}",
                                 "job.json");
    resolve_defaults(job);
    return job;
  };
  EXPECT_EQ(job_with(R"("image_size": 448)").model.image_size, (std::vector<int64_t>{448, 448}));
  EXPECT_EQ(job_with(R"("image_size": [896, 672])").model.image_size, (std::vector<int64_t>{896, 672}));
  const Job job = job_with(R"("depths": [2, 2, 4])");
  EXPECT_EQ(job.model.encoder_depths, (std::vector<int64_t>{2, 2, 4}));
  EXPECT_EQ(job.model.encoder_stage_heads, (std::vector<int64_t>{2, 4, 8})) << "heads of 32";
  EXPECT_EQ(job.model.num_layers, 8);
  EXPECT_EQ(job.model.patch_size, 4);
  EXPECT_EQ(job_from_json_text(job_to_json_text(job), "job.json").model.encoder_depths, job.model.encoder_depths);
  for (const char* wrong : {R"("image_size": "large")", R"("image_size": [0, 3])", R"("depths": [2, 1.5])"}) {
    EXPECT_TRUE(test::has(test::message_of<UserError>([&] { job_with(wrong); }), "or a list of these")) << wrong;
  }
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { job_with(R"("depths": [2, 2], "stage_heads": [2])"); }),
                        "give one for each stage"));
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { job_with(R"("pooling": "class")"); }), "no class token"));
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { job_with(R"("num_heads": 8)"); }), "encoder_stage_heads"));
  Job small = job;
  shrink_for_smoke_test(declare_job_options(small));
  resolve_defaults(small);
  EXPECT_EQ(small.model.encoder_depths, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(small.model.num_heads, small.model.encoder_stage_heads.front());
}

TEST(EveryOption, HasHelpThatStandsAlone) {
  Job job;
  for (const Option& option : every_option(job)) {
    EXPECT_GT(option.help.size(), 10u) << option.path;
    EXPECT_FALSE(option.help.starts_with("of ")) << option.path << ": " << option.help;
    EXPECT_FALSE(option.help.ends_with(".")) << option.path << ": " << option.help;
    for (const Option::Requirement& requirement : option.requirements) {
      EXPECT_FALSE(requirement.condition.where.empty()) << option.path;
      EXPECT_TRUE(requirement.condition.holds != nullptr) << option.path;
    }
  }
}

TEST(EveryOption, AppliesToSomeJob) {
  const std::vector<std::string> jobs = {
      R"({"model": {"from": "gpt"}, "training": {"lora_rank": 4}})",
      R"({"model": {"from": "gpt"}, "training": {"train_layers": 1}})",
      R"({"model": {"type": "llama"}, "training": {"sample_tokens": 4}})",
      R"({"model": {"type": "mu", "reference": true}})",
      R"({"task": "classify", "model": {"from": "bert"}, "training": {"freeze": 1, "teacher": "big"}})",
      R"({"task": "classify", "model": {"from": "bert"}, "training": {"freeze": 1, "frozen_dropout": true}})",
      R"({"task": "translate"})",
      R"({"task": "translate", "model": {"type": "t5"}})",
      R"({"task": "image_to_text", "model": {"type": "vision_encoder_decoder"}})",
      R"({"task": "image_to_text", "model": {"type": "dimtda", "image_encoder_from": "nougat"},
          "training": {"freeze_encoders": true}})",
      R"({"task": "classify", "model": {"type": "vit"}})",
      R"({"task": "classify", "model": {"type": "swin"}})",
      R"({"task": "mlm"})"};
  std::set<std::string> unused;
  Job plain;
  for (const Option& option : declare_job_options(plain)) unused.insert(option.path);
  for (const std::string& text : jobs) {
    Job job = job_from_json_text(text, "job.json");
    resolve_defaults(job);
    for (const Option& option : declare_job_options(job)) {
      if (option.has_effect()) unused.erase(option.path);
    }
  }
  EXPECT_TRUE(unused.empty()) << *unused.begin();
}

TEST(PairsOfFiles, AreReadFromAnObjectAndSavedAsKeysOfTheirOwn) {
  const std::string text = R"({"task": "translate", "data": {"train": {"source": "a.en", "target": ["a.de", "b.de"]},
                                                             "validation": {"target": "v.de", "source": "v.en"}}})";
  const Job job = job_from_json_text(text, "job.json");
  ASSERT_EQ(job.data.train.size(), 1u);
  EXPECT_EQ(job.data.train[0].path, "a.en");
  EXPECT_EQ(job.data.train_target, (std::vector<std::string>{"a.de", "b.de"}));
  EXPECT_EQ(job.data.validation, (std::vector<std::string>{"v.en"}));
  EXPECT_EQ(job.data.validation_target, (std::vector<std::string>{"v.de"}));
  EXPECT_EQ(job.training.label_smoothing, 0.1);
  const Job again = job_from_json_text(job_to_json_text(job), "job.json");
  EXPECT_EQ(again.data.train_target, job.data.train_target);
  EXPECT_EQ(again.data.validation_target, job.data.validation_target);
  EXPECT_EQ(again.data.train[0].path, "a.en");
}

TEST(PairsOfFiles, OfAnObjectThatIsNotWholeAreRefused) {
  for (const auto& [train, expected] :
       {std::pair<std::string, std::string>{R"({"source": "a.en"})", "expected {\"source\": ..., \"target\": ...}"},
        {R"({"source": "a.en", "target": null})", "expected {\"source\": ..., \"target\": ...}"},
        {R"({"source": "a.en", "target": {"path": "a.de"}})", "expected {\"source\": ..., \"target\": ...}"},
        {R"({"source": "a.en", "target": "a.de", "weight": 2})", "data.train.weight: unknown key"},
        {R"({"source": "a.en", "target": 3})", "data.train_target: found 3"}}) {
    const std::string text = fmt::format(R"({{"task": "translate", "data": {{"train": {}}}}})", train);
    const std::string message = test::message_of<UserError>([&] { job_from_json_text(text, "job.json"); });
    EXPECT_TRUE(test::has(message, expected)) << train << ": " << message;
  }
  Job other = job_from_json_text(R"({"data": {"train": {"source": "a.en", "target": "a.de"}}})", "job.json");
  const std::string message = test::message_of<UserError>([&] { resolve_defaults(other); });
  EXPECT_TRUE(test::has(message, "data.train_target does not apply to task language_model")) << message;
}

TEST(SmokeTest, OfALargeJobIsSmallAndStillTheSameKindOfJob) {
  Job job = job_from_json_text(
      R"({"model": {"type": "llama", "d_model": 4096, "num_layers": 32, "num_heads": 32, "num_kv_heads": 8,
                    "vocab_size": 100000},
          "training": {"stop": "30h", "max_length": 4096, "batch_size": 512, "gradient_accumulation_steps": 8,
                       "warmup_steps": 2000, "save_minutes": 5}})",
      "job.json");
  resolve_defaults(job);
  shrink_for_smoke_test(declare_job_options(job));
  resolve_defaults(job);
  EXPECT_EQ(job.model.d_model, 64);
  EXPECT_EQ(job.model.num_layers, 2);
  EXPECT_EQ(job.model.num_heads, 2);
  EXPECT_EQ(job.model.num_kv_heads, 1) << "heads are shared still";
  EXPECT_EQ(job.model.d_ff, 192);
  EXPECT_EQ(job.model.vocab_size, 1000);
  EXPECT_EQ(job.model.norm, "rmsnorm");
  EXPECT_EQ(job.model.context, 64);
  EXPECT_EQ(job.training.stop, "");
  EXPECT_EQ(job.training.max_steps, kSmokeTestSteps);
  EXPECT_EQ(job.training.batch_size, 8);
  EXPECT_EQ(job.training.gradient_accumulation_steps, 2);
  EXPECT_EQ(job.training.warmup_steps, 6);
  EXPECT_EQ(job.training.save_minutes, 0);
}

}  // namespace
}  // namespace brisk
