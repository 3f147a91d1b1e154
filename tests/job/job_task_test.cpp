#include "job/job_task.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

Job read(const std::string& text) { return job_from_json_text(text, "job.json"); }

std::string task_problem(const std::string& text) {
  return test::message_of<UserError>([&] { check_task(read(text)); });
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

TEST(TaskOfAJob, ClassifyBringsBertsShapeAndTheUsualRecipe) {
  const Job job = read(R"({"task": "classify"})");
  EXPECT_EQ(job.model.type, "bert");
  EXPECT_EQ(job.model.activation, "gelu_erf");
  EXPECT_DOUBLE_EQ(job.model.norm_epsilon, 1e-12);
  EXPECT_DOUBLE_EQ(job.model.dropout, 0.1);
  EXPECT_EQ(job.training.optimizer, "adamw");
  EXPECT_EQ(job.training.lr_scheduler, "linear");
  EXPECT_DOUBLE_EQ(job.training.warmup_ratio, 0.1);
  EXPECT_DOUBLE_EQ(job.training.weight_decay, 0.01);
  EXPECT_DOUBLE_EQ(job.training.max_grad_norm, 1);
  EXPECT_EQ(job.training.best_by, "accuracy");
  EXPECT_EQ(job.data.text_field, "");
}

TEST(TaskOfAJob, WhatIsGivenStandsBesideItsDefaults) {
  const Job job = read(R"({"task": "classification", "model": {"type": "distilbert", "dropout": 0.2},
                           "training": {"optimizer": "muon", "beta2": 0.95}, "data": {"text_field": "review"}})");
  EXPECT_EQ(job.task, "classify");
  EXPECT_EQ(job.model.type, "distilbert");
  EXPECT_DOUBLE_EQ(job.model.dropout, 0.2);
  EXPECT_DOUBLE_EQ(job.model.classifier_dropout, 0.2);
  EXPECT_EQ(job.training.optimizer, "muon");
  EXPECT_DOUBLE_EQ(job.training.beta2, 0.95);
  EXPECT_EQ(job.data.text_field, "review");
}

TEST(TaskOfAJob, FillsWhatAnEncoderOfItsTypeHas) {
  const auto resolved = [](const std::string& type) {
    Job job = read(R"({"task": "classify", "model": {"type": ")" + type + R"("}})");
    resolve_defaults(job);
    return job.model;
  };
  EXPECT_EQ(resolved("bert").token_types, 2);
  EXPECT_EQ(resolved("distilbert").token_types, 0);
  EXPECT_EQ(resolved("roberta").token_types, 1);
  EXPECT_DOUBLE_EQ(resolved("bert").attention_dropout, 0.1);
  EXPECT_DOUBLE_EQ(resolved("distilbert").classifier_dropout, 0.2);
}

TEST(TaskOfAJob, TakesTheUsualRates) {
  Job job = read(R"({"task": "classify", "model": {"from": "somewhere"}})");
  resolve_defaults(job);
  EXPECT_DOUBLE_EQ(job.training.learning_rate, 5e-5);
  job = read(R"({"task": "classify"})");
  resolve_defaults(job);
  EXPECT_DOUBLE_EQ(job.training.learning_rate, 5e-4);
}

TEST(TaskOfAJob, ModelCheckpointIsModelFrom) {
  EXPECT_EQ(read(R"({"task": "classify", "model": {"checkpoint": "bert"}})").model.from, "bert");
}

TEST(TaskOfAJob, FreezeIsAWordOrANumberOfLayers) {
  const auto freeze = [](const std::string& value) {
    return read(R"({"task": "classify", "training": {"freeze": )" + value + "}}").training.freeze;
  };
  EXPECT_EQ(freeze("\"none\""), -1);
  EXPECT_EQ(freeze("\"embeddings\""), 0);
  EXPECT_EQ(freeze("4"), 4);
  EXPECT_THROW(freeze("\"everything\""), UserError);
  EXPECT_THROW(freeze("-2"), UserError);
}

TEST(TaskOfAJob, IsReadBackFromWhatItWrites) {
  Job job = read(R"({"task": "classify", "training": {"freeze": "embeddings", "class_weights": "balanced"}})");
  job.training.freeze = 0;
  const Job again = read(job_to_json_text(job));
  EXPECT_EQ(job_to_json_text(again), job_to_json_text(job));
  EXPECT_EQ(again.training.freeze, 0);
}

TEST(TaskOfAJob, ClassWeightsAreAWordOrANumberForEachName) {
  Job job = read(R"({"task": "classify", "training": {"class_weights": {"spam": 5, "ham": 1.5}}})");
  EXPECT_EQ(job.training.class_weights, (NamedNumbers{"", {{"spam", 5}, {"ham", 1.5}}}));
  resolve_defaults(job);
  EXPECT_EQ(read(job_to_json_text(job)).training.class_weights, job.training.class_weights);
  EXPECT_EQ(read(R"({"task": "classify", "training": {"class_weight": "Balanced"}})").training.class_weights.word,
            "balanced");
  for (const char* wrong : {"{}", "{\"a\": 0}", "{\"a\": -1}", "{\"a\": \"b\"}", "[1, 2]", "3"}) {
    const std::string text = fmt::format(R"({{"task": "classify", "training": {{"class_weights": {}}}}})", wrong);
    EXPECT_NE(task_problem(text).find("expected one of none, balanced, or a number for each name"), std::string::npos)
        << wrong;
  }
}

TEST(TaskOfAJob, RefusesAModelOfAnotherKind) {
  EXPECT_TRUE(says(task_problem(R"({"model": {"type": "bert"}})"), "use task classify or mlm"));
  EXPECT_TRUE(says(task_problem(R"({"task": "classify", "model": {"type": "llama"}})"),
                   "bert, distilbert, roberta, vit, beit, dit or swin"));
}

TEST(TaskOfAJob, RefusesASettingThatItWouldHaveToIgnore) {
  EXPECT_EQ(task_problem(R"({"training": {"class_weights": "balanced"}})"),
            "training.class_weights does not apply to task language_model (it has no classes); remove it");
  EXPECT_TRUE(says(task_problem(R"({"training": {"freeze": 1}})"), "training.train_layers"));
  EXPECT_TRUE(says(task_problem(R"({"data": {"label_field": "label"}})"), "data.label_field does not apply to task"));
  EXPECT_TRUE(
      says(task_problem(R"({"task": "classify", "training": {"whole_word_masking": true}})"), "it masks no tokens"));
  EXPECT_EQ(task_problem(R"({"task": "classify", "training": {"lora_rank": 4}})"),
            "training.lora_rank does not apply to model.type bert (only decoders have adapters here); remove it");
  EXPECT_TRUE(says(task_problem(R"({"task": "classify", "model": {"positions": "rotary"}})"), "learned positions"));
  EXPECT_TRUE(says(task_problem(R"({"task": "classify", "training": {"freeze": 1}})"), "without model.from"));
  EXPECT_TRUE(says(task_problem(R"({"training": {"train_layers": 1}})"), "without model.from"));
  EXPECT_TRUE(says(task_problem(R"({"task": "mlm", "training": {"teacher": "runs/a"}})"),
                   "a teacher's predictions are classes"));
  EXPECT_EQ(task_problem(R"({"task": "classify", "training": {"distillation_temperature": 4}})"),
            "training.distillation_temperature does not apply without training.teacher; remove it");
  EXPECT_TRUE(
      says(task_problem(R"({"task": "classify", "training": {"frozen_dropout": true}})"), "without training.freeze"));
  EXPECT_TRUE(says(task_problem(R"({"training": {"cache_frozen": false}})"), "training.cache_frozen does not apply"));
  EXPECT_EQ(task_problem(R"({"task": "classify", "training": {"teacher": "runs/a", "distillation_temperature": 4}})"),
            "");
  EXPECT_EQ(task_problem("{}"), "");
}

TEST(TaskOfAJob, SaysWhichDefaultsItBrings) {
  std::vector<std::string> notes;
  job_from_json_text(R"({"task": "classify", "training": {"batch_size": 8}})", "job.json", {}, notes);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_TRUE(says(notes[0], "defaults with task classify or mlm: model.type = \"bert\"")) << notes[0];
  EXPECT_TRUE(says(notes[0], "training.lr_scheduler = \"linear\"")) << notes[0];
  EXPECT_FALSE(says(notes[0], "batch_size")) << notes[0];
  EXPECT_EQ(notes[1],
            "defaults with task classify: training.best_by = \"accuracy\", training.divergence_guard = false");
  EXPECT_EQ(notes[2], "defaults with a WordPiece vocabulary that is trained: data.lowercase = true");
}

}  // namespace
}  // namespace brisk
