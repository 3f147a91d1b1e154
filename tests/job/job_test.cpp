#include "job/job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/files.h"
#include "base/runtime.h"
#include "job/job_options.h"
#include "job/tables.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

std::string repository() { return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().string(); }

std::string problem(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return test::message_of<UserError>([&] {
    std::vector<std::string> notes;
    Job job = job_from_json_text(text, "job.json", overrides, notes);
    resolve_defaults(job);
  });
}

Job resolved(const std::string& text) {
  Job job = job_from_json_text(text, "job.json");
  resolve_defaults(job);
  return job;
}

TEST(Job, OfTheOldTrainerLoadsAsItStands) {
  const Job job = resolved(R"({"model": {"d_model": 256, "num_layers": 2, "vocab_size": 10000},
                               "training": {"max_length": 64, "batch_size": 32, "num_epochs": 1}})");
  EXPECT_EQ(job.model.d_model, 256);
  EXPECT_EQ(job.model.num_layers, 2);
  EXPECT_EQ(job.model.vocab_size, 10000);
  EXPECT_EQ(job.model.num_heads, 4);
  EXPECT_EQ(job.model.num_kv_heads, 4);
  EXPECT_EQ(job.model.d_ff, 1024);
  EXPECT_EQ(job.training.max_length, 64);
  EXPECT_EQ(job.training.batch_size, 32);
  EXPECT_EQ(job.training.num_epochs, 1);
  EXPECT_EQ(job.training.optimizer, "muon");
  EXPECT_DOUBLE_EQ(job.training.learning_rate, 4e-3);
  EXPECT_EQ(job.output, "runs/run");
}

TEST(Job, OptimizerAdamwAloneIsAdamwWithACosineAndItsOwnRate) {
  const Job muon = resolved("{}"), adamw = resolved(R"({"training": {"optimizer": "adamw"}})");
  EXPECT_EQ(muon.training.lr_scheduler, "wsd");
  EXPECT_EQ(muon.training.batch_size, 16);
  EXPECT_EQ(adamw.training.lr_scheduler, "cosine");
  EXPECT_EQ(adamw.training.batch_size, 32);
  EXPECT_DOUBLE_EQ(adamw.training.learning_rate, 1e-3);
  const Job mixed = resolved(R"({"training": {"optimizer": "adamw", "lr_scheduler": "wsd", "batch_size": 8}})");
  EXPECT_EQ(mixed.training.lr_scheduler, "wsd");
  EXPECT_EQ(mixed.training.batch_size, 8);
  std::vector<std::string> notes;
  EXPECT_EQ(job_from_json_text("{}", "job.json", {"training.optimizer=adamw"}, notes).training.lr_scheduler, "cosine");
  EXPECT_FALSE(notes.empty());
}

TEST(Job, OfHuggingFaceSpellingsLoadsAndSaysWhatTheyAreHere) {
  std::vector<std::string> notes;
  const Job job = job_from_json_text(
      R"({"model": {"hidden_size": 128, "n_layers": 3, "num_attention_heads": 2, "intermediate_size": 300,
                    "max_position_embeddings": 256, "tie_word_embeddings": false, "hidden_act": "gelu_new"},
          "training": {"per_device_train_batch_size": 8, "num_train_epochs": 2, "lr": 5e-4, "bf16": true, "fp16": false,
                       "grad_clip": 0.5, "lr_scheduler_type": "linear", "gradient_checkpointing": true}})",
      "job.json", {}, notes);
  EXPECT_EQ(job.model.d_model, 128);
  EXPECT_EQ(job.model.num_layers, 3);
  EXPECT_EQ(job.model.num_heads, 2);
  EXPECT_EQ(job.model.d_ff, 300);
  EXPECT_FALSE(job.model.tie_embeddings);
  EXPECT_EQ(job.model.activation, "gelu");
  EXPECT_EQ(job.training.max_length, 256);
  EXPECT_EQ(job.training.batch_size, 8);
  EXPECT_EQ(job.training.num_epochs, 2);
  EXPECT_EQ(job.training.learning_rate, 5e-4);
  EXPECT_EQ(job.training.precision, "bf16");
  EXPECT_EQ(job.training.max_grad_norm, 0.5);
  EXPECT_EQ(job.training.lr_scheduler, "linear");
  EXPECT_EQ(job.training.gradient_checkpointing, 1);
  const std::string all = fmt::format("{}", fmt::join(notes, "\n"));
  const auto noted = [&](const char* words) { return all.find(words) != std::string::npos; };
  EXPECT_TRUE(noted("n_layers is model.num_layers"));
  EXPECT_TRUE(noted("max_position_embeddings is training.max_length"));
  EXPECT_TRUE(noted("job.json: read training.bf16 as training.precision = \"bf16\""));
}

TEST(Job, TypeLlamaChangesTheDefaultsAndNothingThatIsGiven) {
  const Job llama = resolved(R"({"model": {"type": "llama", "d_model": 192, "tie_embeddings": true}})");
  EXPECT_EQ(llama.model.type, "decoder");
  EXPECT_EQ(llama.model.norm, "rmsnorm");
  EXPECT_EQ(llama.model.activation, "swiglu");
  EXPECT_EQ(llama.model.positions, "rotary");
  EXPECT_FALSE(llama.model.bias);
  EXPECT_TRUE(llama.model.tie_embeddings);
  EXPECT_EQ(llama.model.d_ff, 512);  // 8/3 of 192
  const Job gpt2 = resolved(R"({"model": {"type": "gpt2"}})");
  EXPECT_EQ(gpt2.model.type, "decoder");
  EXPECT_EQ(gpt2.model.norm, "layernorm");
  EXPECT_TRUE(gpt2.model.bias);
  std::vector<std::string> notes;
  EXPECT_EQ(job_from_json_text("{}", "job.json", {"model.type=llama"}, notes).model.norm, "rmsnorm");
}

TEST(Job, RmsnormHasNoBiasUnlessAsked) {
  EXPECT_FALSE(resolved(R"({"model": {"norm": "rmsnorm"}})").model.bias);
  EXPECT_TRUE(resolved(R"({"model": {"norm": "rmsnorm", "bias": true}})").model.bias);
}

TEST(Job, SaysHowLongItIsOnlyOnce) {
  for (const char* other : {R"("num_epochs": 1)", R"("max_steps": 10)", R"("epochs": 3)"}) {
    const std::string message = problem(std::string(R"({"training": {"stop": "30m", )") + other + "}}");
    EXPECT_NE(message.find("training.stop = \"30m\""), std::string::npos) << message;
    EXPECT_NE(message.find(std::string(other).find("steps") == std::string::npos ? "training.num_epochs" : "max_steps"),
              std::string::npos)
        << message;
  }
  EXPECT_NE(problem("{}", {"training.stop=2e", "training.max_steps=5"}).find("the command line"), std::string::npos);
  EXPECT_NE(problem(R"({"training": {"stop": "30"}})").find("job.json: training.stop"), std::string::npos);
}

TEST(Job, TakesTheCommandLinesLengthBeforeTheFiles) {
  std::vector<std::string> notes;
  const Job boxed = job_from_json_text(R"({"training": {"num_epochs": 3, "max_steps": 7}})", "job.json",
                                       {"training.stop=30m"}, notes);
  EXPECT_EQ(boxed.training.stop, "30m");
  EXPECT_EQ(boxed.training.max_steps, 0);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("training.max_steps = 7"), std::string::npos) << notes[0];
  const Job counted = job_from_json_text(R"({"stop": "30m"})", "job.json", {"training.max_steps=5"}, notes);
  EXPECT_EQ(counted.training.stop, "");
  EXPECT_EQ(counted.training.max_steps, 5);
}

TEST(Job, WithAStopReadsBackAsItWasWritten) {
  const Job job = resolved(R"({"training": {"stop": "0.5e"}})");
  const std::string text = job_to_json_text(job);
  EXPECT_EQ(job_to_json_text(resolved(text)), text);
  EXPECT_EQ(resolved(R"({"training": {"num_epochs": "auto"}})").training.num_epochs, 1);
}

TEST(Job, AutomaticBatchSizeIsARuleAndNotATiming) {
  Job job = job_from_json_text(R"({"training": {"batch_size": "auto", "max_length": 256}})", "job.json");
  const std::vector<std::string> lines = resolve_defaults(job);
  EXPECT_EQ(job.training.batch_size, 16);
  EXPECT_TRUE(job.training.measure_micro_batch);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("affects the result") != std::string::npos;
  }));
  EXPECT_EQ(resolved(R"({"training": {"batch_size": "auto", "max_length": 100000}})").training.batch_size, 1);
  for (const char* key : {"batch_size", "learning_rate"}) {  // what stands for auto inside is no value outside
    const std::string message = problem(fmt::format(R"({{"training": {{"{}": 0}}}})", key));
    EXPECT_NE(message.find(fmt::format(R"(training.{0}: found 0, expected)", key)), std::string::npos) << message;
    EXPECT_NE(message.find(fmt::format(R"(write "{}": "auto")", key)), std::string::npos) << message;
  }
  EXPECT_FALSE(
      resolved(R"({"training": {"batch_size": "auto", "micro_batch_tokens": 512}})").training.measure_micro_batch);
  EXPECT_FALSE(resolved("{}").training.measure_micro_batch);
}

TEST(Job, UnknownKeysNameTheNearestOfAnySection) {
  EXPECT_EQ(problem(R"({"btach_size": 8})"), "job.json: btach_size: unknown key; did you mean training.batch_size?");
  EXPECT_EQ(problem(R"({"model": {"d_modl": 8}})"), "job.json: model.d_modl: unknown key; did you mean model.d_model?");
  EXPECT_EQ(problem(R"({"training": {"num_layers": 8}})"),
            "job.json: training.num_layers: unknown key; did you mean model.num_layers?");
  EXPECT_EQ(problem(R"({"modle": {"d_model": 8}})"), "job.json: modle: unknown key; did you mean the section model?");
}

TEST(Job, ASectionMayBeLeftOutAtTheTop) {
  std::vector<std::string> notes;
  const Job job = job_from_json_text(R"({"batch_size": 8, "num_train_epochs": 2})", "job.json", {"lr=1e-4"}, notes);
  EXPECT_EQ(job.training.batch_size, 8);
  EXPECT_EQ(job.training.num_epochs, 2);
  EXPECT_EQ(job.training.learning_rate, 1e-4);
  EXPECT_EQ(notes.at(0), "job.json: read batch_size as training.batch_size");
}

TEST(Job, AllKeysOfASectionAreListedOnce) {
  const std::string text = problem(R"({"training": {"xyzzy": 1, "plugh": 2, "frotz": 3}})");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("training.xyzzy: unknown key; training has max_length, window_stride, batch_size"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("\njob.json: training.plugh: unknown key\njob.json: training.frotz: unknown key")) << text;
}

TEST(Job, MessagesNameTheDefaultsOfTheTaskWhereverItStands) {
  const auto default_of = [](const std::string& section, const std::string& entry) {
    const std::string text = problem(fmt::format(R"({{"{}": {{{}}}, "task": "classify"}})", section, entry));
    return text.substr(text.rfind("; ") + 2);
  };
  EXPECT_EQ(default_of("training", R"("optim": "sgd")"), "leave it out for the default, \"adamw\"");
  EXPECT_EQ(default_of("training", R"("lr_scheduler": "steps")"), "leave it out for the default, \"linear\"");
  EXPECT_EQ(default_of("training", R"("warmup_ratio": 2)"), "leave it out for the default, 0.1");
  EXPECT_EQ(default_of("training", R"("weight_decay": -1)"), "leave it out for the default, 0.01");
  EXPECT_EQ(default_of("training", R"("batch_size": -1)"), "leave it out for the default, 32");
  EXPECT_EQ(default_of("training", R"("best_by": [])"), "leave it out for the default, \"accuracy\"");
  EXPECT_EQ(default_of("model", R"("type": "xlnet")"), "leave it out for the default, \"bert\"");
  EXPECT_NE(problem(R"({"training": {"optim": "sgd"}})").find("the default, \"muon\""), std::string::npos);
  EXPECT_NE(problem(R"({"training": {"optimizer": "adamw", "batch_size": -1}})").find("the default, 32"),
            std::string::npos);
}

TEST(Job, TasksFromElsewhereAreToldWhatIsNearest) {
  EXPECT_NE(problem(R"({"task": "ner"})").find("; labels for single words"), std::string::npos);
  for (const TaskTraits& task : all_tasks())
    EXPECT_NE(problem(R"({"task": "ner"})").find(task.name), std::string::npos);
  EXPECT_NE(problem(R"({"task": "token-classification"})").find("the nearest is classify"), std::string::npos);
  EXPECT_NE(problem(R"({"task": "regression"})").find("the range divided into a few classes"), std::string::npos);
  EXPECT_NE(problem(R"({"task": "embeddings"})").find("the nearest is mlm"), std::string::npos);
  EXPECT_EQ(resolved(R"({"task": "text-classification"})").task, "classify");
  EXPECT_EQ(resolved(R"({"task": "Text-Generation"})").task, "language_model");
}

TEST(Job, FalseFlagsOfPrecisionAreFp32AsInHuggingFace) {
  const auto precision = [](const std::string& training, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> notes;
    return job_from_json_text(R"({"training": {)" + training + "}}", "job.json", overrides, notes).training.precision;
  };
  EXPECT_EQ(precision(R"("fp16": false, "bf16": false)"), "fp32");
  EXPECT_EQ(precision(R"("bf16": false)"), "fp32");
  EXPECT_EQ(precision(R"("fp16": false)"), "auto") << "which never is fp16";
  EXPECT_EQ(precision(R"("fp16": true, "bf16": false)"), "fp16");
  EXPECT_EQ(precision(R"("bf16": true)", {"training.bf16=false"}), "fp32");
  EXPECT_EQ(precision(R"("precision": "fp16")", {"training.fp16=false"}), "auto");
  EXPECT_EQ(precision(R"("precision": "tf32")", {"training.bf16=false"}), "tf32");
  EXPECT_EQ(precision("", {"training.bf16=false", "training.fp16=false"}), "fp32");
  EXPECT_EQ(problem(R"({"training": {"precision": "bf16", "bf16": false}})"),
            "job.json: training.bf16 is false, and training.precision says \"bf16\"; remove one of them");
  EXPECT_EQ(problem("{}", {"training.fp16=true", "training.bf16=true"}),
            "the command line: training.fp16 and training.bf16 are the same option, and both are given; remove one of "
            "them");
  std::vector<std::string> notes;
  job_from_json_text(R"({"training": {"fp16": false, "bf16": false}})", "job.json", {}, notes);
  EXPECT_EQ(notes.at(1), "job.json: read training.bf16 false as training.precision = \"fp32\"");
}

TEST(Job, PaddingIsSpelledAsInHuggingFaceToo) {
  const auto padding = [](const std::string& text) { return resolved(text).training.padding; };
  EXPECT_EQ(padding("{}"), "none");
  for (const char* word : {"none", "longest", "max_length"})
    EXPECT_EQ(padding(fmt::format(R"({{"training": {{"padding": "{}"}}}})", word)), word);
  EXPECT_EQ(padding(R"({"padding": "longest"})"), "longest");
  EXPECT_EQ(padding(R"({"data": {"padding": "max_length"}})"), "max_length");
  EXPECT_EQ(padding(R"({"training": {"padding": true}})"), "longest");
  EXPECT_EQ(padding(R"({"training": {"padding": false}})"), "none");
  EXPECT_EQ(padding(R"({"training": {"padding": "do_not_pad"}})"), "none");
  EXPECT_EQ(padding(R"({"training": {"pad_to_max_length": true}})"), "max_length");
  EXPECT_EQ(padding(R"({"data": {"max_length": 64}, "pad_to_max_length": true})"), "max_length");
  EXPECT_EQ(padding(R"({"training": {"pad_to_max_length": false}})"), "none");
  EXPECT_EQ(padding(R"({"training": {"padding": "longest", "pad_to_max_length": false}})"), "longest");
  for (const char* value : {"\"longer\"", "1", "[]", "\"\""}) {
    EXPECT_NE(
        problem(fmt::format(R"({{"training": {{"padding": {}}}}})", value)).find("one of none, longest, max_length"),
        std::string::npos)
        << problem(fmt::format(R"({{"training": {{"padding": {}}}}})", value));
  }
  EXPECT_NE(problem(R"({"training": {"pad_to_max_length": 1}})").find("expected true or false"), std::string::npos);
  EXPECT_NE(problem(R"({"training": {"precision": true}})"), "") << "no other word is a flag";
}

TEST(Job, AVocabularyThatIsTrainedIsLowerCaseOnlyWhereItIsWordPiece) {
  const auto lowercase = [](const std::string& text) {
    std::vector<std::string> notes;
    return job_from_json_text(text, "job.json", {}, notes).data.lowercase;
  };
  EXPECT_TRUE(lowercase(R"({"task": "classify"})"));
  EXPECT_TRUE(lowercase(R"({"task": "mlm", "model": {"type": "distilbert"}})"));
  EXPECT_FALSE(lowercase(R"({"task": "classify", "data": {"do_lower_case": false}})"));
  EXPECT_FALSE(lowercase(R"({"task": "mlm", "model": {"type": "roberta"}})"));
  EXPECT_FALSE(lowercase(R"({})"));
  EXPECT_FALSE(lowercase(R"({"task": "classify", "data": {"tokenizer": "vocab.txt"}})"));
  for (const char* text : {R"({"task": "mlm", "model": {"type": "roberta"}, "data": {"lowercase": true}})",
                           R"({"do_lower_case": true})"}) {
    EXPECT_NE(
        problem(text).find("data.lowercase = true is not possible: a byte-level BPE that is trained has capitals"),
        std::string::npos)
        << problem(text);
  }
  EXPECT_EQ(problem(R"({"task": "classify", "data": {"tokenizer": "vocab.txt", "lowercase": true}})"), "");
}

TEST(Job, WhatHasNoEffectIsTold) {
  const auto told = [](const std::string& text) {
    std::vector<std::string> notes;
    job_from_json_text(text, "job.json", {}, notes);
    return notes.empty() ? "" : notes.back();
  };
  EXPECT_EQ(told(R"({"training": {"optimizer": "adamw", "muon_momentum": 0.9}})"),
            "training.muon_momentum = 0.9 has no effect without optimizer muon, without LoRA");
  EXPECT_EQ(
      told(R"({"data": {"validation_fraction": 0}, "training": {"eval_steps": 20}})"),
      "training.eval_steps = 20 has no effect without validation data (data.validation_fraction is 0, and there is "
      "no data.validation)");
  EXPECT_NE(problem(R"({"data": {"validation_fraction": 0}, "training": {"early_stopping_patience": 3}})")
                .find("training.early_stopping_patience does not apply without validation data"),
            std::string::npos);
  EXPECT_NE(problem(R"({"task": "classify", "data": {"document": "line"}})").find("data.document does not apply"),
            std::string::npos);
  EXPECT_NE(problem(R"({"task": "classify", "model": {"d_model": 256, "num_kv_heads": 2}})")
                .find("model.num_kv_heads = 2: a bert has as many as num_heads, 4"),
            std::string::npos);
}

TEST(Job, WhatBriskWroteOutIsReadWithoutANote) {
  for (const char* text : {R"({"training": {"optimizer": "adamw"}})", R"({"task": "classify"})", "{}"}) {
    Job job = resolved(text);
    std::vector<std::string> notes;
    job_from_json_text(job_to_json_text(job), "job.json", {}, notes);
    EXPECT_TRUE(notes.empty()) << notes.front();
  }
}

TEST(Job, FractionsAreToldWhereTheyBelong) {
  EXPECT_NE(problem(R"({"training": {"num_train_epochs": 1.5}})").find("write \"stop\": \"1.5e\""), std::string::npos);
  EXPECT_NE(problem(R"({"training": {"warmup_steps": 0.1}})").find("is \"warmup_ratio\": 0.1"), std::string::npos);
  EXPECT_NE(problem(R"({"training": {"eval_steps": 0.2}})").find("a number of optimizer steps"), std::string::npos);
}

TEST(Job, NoWarmUpStepsAreNoWarmUpUnlessARatioIsGiven) {
  const auto warm_up = [](const std::string& training, const std::vector<std::string>& overrides = {}) {
    std::vector<std::string> notes;
    return warmup_steps_of(
        job_from_json_text(R"({"training": {)" + training + "}}", "job.json", overrides, notes).training, 1000);
  };
  EXPECT_EQ(warm_up(R"("warmup_steps": 0)"), 0);
  EXPECT_EQ(warm_up(R"("warmup_steps": 0, "warmup_ratio": 0.2)"), 200) << "as Trainer means it";
  EXPECT_EQ(warm_up(R"("warmup_ratio": 0.2)", {"training.warmup_steps=0"}), 0);
  EXPECT_EQ(warm_up(R"("warmup_steps": 0)", {"training.warmup_ratio=0.1"}), 100);
  EXPECT_EQ(warm_up(R"("warmup_steps": 30, "warmup_ratio": 0.2)"), 30);
}

TEST(Job, HeadsThatDoNotDivideTheWidthNameBothAndWhatWorks) {
  const std::string text = problem(R"({"model": {"d_model": 256, "num_heads": 6}})");
  EXPECT_NE(text.find("model.d_model = 256 is not divisible by model.num_heads = 6"), std::string::npos) << text;
  EXPECT_NE(text.find("num_heads = 8 or d_model = 258"), std::string::npos) << text;
  const std::string groups = problem(R"({"model": {"d_model": 256, "num_heads": 8, "num_kv_heads": 3}})");
  EXPECT_NE(groups.find("use num_kv_heads = 2"), std::string::npos) << groups;
  const std::string odd = problem(R"({"model": {"d_model": 30, "num_heads": 2, "positions": "rotary"}})");
  EXPECT_NE(odd.find("30 / 2 = 15 is odd: use num_heads = 3"), std::string::npos) << odd;
  EXPECT_NE(problem(R"({"model": {"d_model": 15, "positions": "rotary"}})").find("use d_model = 30"),
            std::string::npos);
}

TEST(Job, EveryHeadSuggestionWorks) {
  for (int64_t width = 1; width <= 300; ++width) {
    Job job;
    job.model.d_model = width;
    resolve_defaults(job);
    EXPECT_EQ(width % job.model.num_heads, 0) << width;
    Job rotary;
    rotary.model.d_model = 2 * width;
    rotary.model.positions = "rotary";
    resolve_defaults(rotary);
    EXPECT_EQ(2 * width / rotary.model.num_heads % 2, 0) << width;
  }
}

TEST(Job, DefaultsThatWereChosenAreTold) {
  Job job = job_from_json_text(R"({"model": {"d_model": 512}})", "job.json");
  const std::vector<std::string> lines = resolve_defaults(job);
  EXPECT_EQ(lines.at(0), "model.num_heads = 8 (d_model / 64)");
  EXPECT_EQ(lines.at(1), "model.num_kv_heads = 8 (num_heads)");
  EXPECT_EQ(lines.at(2), "model.d_ff = 2048 (4 d_model)");
  EXPECT_DOUBLE_EQ(job.training.learning_rate, 2.8e-3);
  EXPECT_TRUE(resolve_defaults(job).empty()) << "a second call has nothing left to choose";
}

TEST(Job, WarmUpIsTheStepsGivenOrAShareOfAll) {
  TrainingOptions training;
  EXPECT_EQ(warmup_steps_of(training, 1000), 50);
  training.warmup_ratio = 0;
  EXPECT_EQ(warmup_steps_of(training, 1000), 0);
  training.warmup_steps = 30;
  EXPECT_EQ(warmup_steps_of(training, 1000), 30);
  EXPECT_EQ(warmup_steps_of(training, 10), 10);
}

TEST(Job, AStrideBeyondTheLengthWouldLeaveTokensOut) {
  EXPECT_NE(problem(R"({"training": {"max_length": 64, "window_stride": 65}})")
                .find("training.window_stride = 65 is more than training.max_length = 64"),
            std::string::npos);
  EXPECT_EQ(resolved(R"({"training": {"max_length": 64, "window_stride": 32}})").training.window_stride, 32);
}

TEST(Job, TheReferenceOfMuHasTheDefectsOfItsFirstProgramUnlessTheJobSaysOtherwise) {
  const TrainingOptions plain = resolved(R"({"model": {"type": "mu"}})").training;
  EXPECT_EQ(plain.window_stride, 0);
  EXPECT_EQ(plain.schedule_ratio, 0);
  EXPECT_FALSE(plain.drop_incomplete_accumulation);
  const TrainingOptions defects = resolved(R"({"model": {"type": "mu", "reference": true}})").training;
  EXPECT_EQ(defects.window_stride, 64);
  EXPECT_EQ(defects.schedule_ratio, 4);
  EXPECT_TRUE(defects.drop_incomplete_accumulation);
  const TrainingOptions said =
      resolved(R"({"model": {"type": "mu", "reference": true}, "training": {"window_stride": 128,
      "schedule_ratio": 1, "drop_incomplete_accumulation": false}})")
          .training;
  EXPECT_EQ(said.window_stride, 128);
  EXPECT_EQ(said.schedule_ratio, 1);
  EXPECT_FALSE(said.drop_incomplete_accumulation);
}

TEST(Job, WrittenOutReadsBackTheSame) {
  Job job = resolved(R"({"model": {"type": "llama", "d_model": 384, "bias": true}, "data": {"train": ["a.txt", "b/"]},
                         "training": {"learning_rate": 3.3e-4, "warmup_steps": 7}, "comment": "\"quoted\""})");
  const std::string text = job_to_json_text(job);
  const Job again = job_from_json_text(text, "again");
  EXPECT_EQ(job_to_json_text(again), text);
  EXPECT_EQ(again.model.norm, "rmsnorm");
  EXPECT_TRUE(again.model.bias);
  EXPECT_EQ(again.data.train, job.data.train);
  EXPECT_EQ(again.training.learning_rate, job.training.learning_rate);
}

TEST(Job, NotYetResolvedReadsBackTheSameToo) {
  const std::string text = job_to_json_text(Job{});
  EXPECT_NE(text.find("\"warmup_steps\": \"auto\""), std::string::npos);
  EXPECT_EQ(job_to_json_text(job_from_json_text(text, "again")), text);
}

TEST(Job, DamagedInAnyWayLoadsOrSaysWhatIsWrong) {
  const std::string whole = job_to_json_text(Job{});
  uint64_t state = 1;
  const auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  int64_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (uint64_t change = 0; change <= random(3); ++change) {
      const size_t at = random(text.size());
      switch (random(4)) {
        case 0: text[at] = static_cast<char>(random(256)); break;
        case 1: text.erase(at, 1 + random(40)); break;
        case 2: text.insert(at, text.substr(random(text.size()), random(40))); break;
        default: text.insert(at, std::string(1, "{}[],:\"0e-"[random(10)]));
      }
    }
    try {
      Job job = job_from_json_text(text, "job.json");
      resolve_defaults(job);
    } catch (const UserError& error) {
      ++refused;
      EXPECT_GT(std::string(error.what()).size(), 10u);
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(problem(R"({"training": {"learning_rate": 1e400}})"),
            "job.json: number overflow parsing '1e400'; write a smaller number");
}

TEST(Job, TakesNothingFromTheCommandLineThatItCannotSave) {
  EXPECT_EQ(problem("{}", {"data.train=a\xFF"}),
            "--set data.train: the value is not valid UTF-8, which JSON requires; rename the file or folder it names");
}

TEST(Job, NestedDeeperThanAStackIsRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string nested;
    for (int i = 0; i < 100'000; ++i) nested += open;
    EXPECT_EQ(problem("{\"comment\": " + nested), "job.json: objects and lists are nested more than 32 levels deep");
  }
}

TEST(Job, OfManyProblemsNamesTheFirst) {
  const auto job_of = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += fmt::format("\"qqqq{}\": 1,", i);
    return text + "\"name\": \"a\"}";
  };
  EXPECT_EQ(problem(job_of(100'000)), "job.json: an object has more than 1000 keys");
  const std::string message = problem(job_of(900));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 50);
  EXPECT_TRUE(message.ends_with("\n... further problems are not listed")) << message.substr(message.size() - 100);
}

TEST(Job, ABookForAKeyIsRefusedAtOnce) {
  const std::clock_t begin = std::clock();
  EXPECT_NE(problem("{\"" + std::string(3'000'000, 'q') + "\": 1}").find("unknown key"), std::string::npos);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);
}

TEST(Job, FileGivesTheRunItsName) {
  const std::string path = testing::TempDir() + "/small_run.json";
  write_file_atomically(path, "{}");
  std::vector<std::string> notes;
  Job job = load_job(path, {"training.batch_size=64"}, notes);
  resolve_defaults(job);
  EXPECT_EQ(job.training.batch_size, 64);
  EXPECT_EQ(job.output, "runs/small_run");
  remove_file(path);
  EXPECT_THROW(load_job(path, {}, notes), UserError);
}

TEST(Job, TheExamplesLoad) {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(repository() + "/examples")) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    std::vector<std::string> notes;
    Job job = load_job(entry.path().string(), {}, notes);
    resolve_defaults(job);
    EXPECT_EQ(job.name, entry.path().stem().string());
    const bool has_keys_of_others = job.name == "document-translate";  // a job for Hugging Face's trainer, as it is
    for (const std::string& note : notes)
      EXPECT_TRUE(note.starts_with("defaults with ") || has_keys_of_others) << entry.path() << ": " << note;
  }
  EXPECT_GE(count, 9);
  std::vector<std::string> notes;
  const Job production = load_job(repository() + "/examples/production.json", {}, notes);
  EXPECT_EQ(production.model.d_model, 512);
  EXPECT_EQ(production.model.vocab_size, 32000);
  EXPECT_EQ(production.training.batch_size, 64);
}

TEST(JobSources, ArePathsOrObjectsWithSettingsOfTheirOwn) {
  const Job job = resolved(R"({"data": {"train": ["a.txt", {"path": "b/", "weight": 2.5, "text_field": "x.y"}]}})");
  ASSERT_EQ(job.data.train.size(), 2u);
  EXPECT_EQ(job.data.train[0], DataSource("a.txt"));
  EXPECT_EQ(job.data.train[1].path, "b/");
  EXPECT_EQ(job.data.train[1].weight, 2.5);
  EXPECT_EQ(job.data.train[1].text_field, "x.y");
  EXPECT_EQ(job.data.train[1].document, "");
  EXPECT_EQ(resolved(R"({"data": {"train": "a.txt"}})").data.train, std::vector<DataSource>{DataSource("a.txt")});
  EXPECT_EQ(resolved(R"({"data": {"train": {"path": "a.txt", "document": "paragraph"}}})").data.train[0].document,
            "block");
  std::vector<std::string> notes;
  EXPECT_EQ(job_from_json_text("{}", "job.json", {"data.train=2024"}, notes).data.train[0].path, "2024");
  EXPECT_EQ(job_from_json_text("{}", "job.json", {R"(data.train="2024")"}, notes).data.train[0].path, "2024")
      << "a string of JSON, too";
  EXPECT_EQ(
      job_from_json_text("{}", "job.json", {R"(data.train=[{"path": "x", "weight": 3}])"}, notes).data.train[0].weight,
      3);
}

TEST(JobSources, AreWrittenAsTheyWereRead) {
  const Job job = resolved(R"({"data": {"train": ["a \"b\".txt", {"path": "c", "weight": 0.5, "document": "line"}]}})");
  const auto train = nlohmann::json::parse(job_to_json_text(job)).at("data").at("train");
  EXPECT_EQ(train, nlohmann::json::parse(R"(["a \"b\".txt", {"path": "c", "weight": 0.5, "document": "line"}])"));
  EXPECT_EQ(job_from_json_text(job_to_json_text(job), "job.json").data.train, job.data.train);
}

TEST(JobSources, OfAnyNameAreWrittenSoThatTheyCanBeRead) {
  const Job job = resolved(R"({"data": {"train": ["two\nlines\t\u0001", {"path": "back\\slash\"", "weight": 2}]}})");
  EXPECT_EQ(job_from_json_text(job_to_json_text(job), "job.json").data.train, job.data.train);
  EXPECT_EQ(problem(R"({"data": {"train": [{"path": ""}]}})"), "job.json: data.train[0]: path is missing");
  EXPECT_EQ(problem(R"({"data": {"train": {"path": null}}})"), "job.json: data.train: path is missing");
}

TEST(JobSources, NameTheItemAndTheKeyThatIsWrong) {
  EXPECT_EQ(
      problem(R"({"data": {"train": ["a", {"path": "b", "weight": 0}]}})"),
      "job.json: data.train[1]: weight: found 0, expected a number above 0 to 1000; leave it out for the default, 1");
  EXPECT_EQ(problem(R"({"data": {"train": {"path": "b", "wieght": 1}}})"),
            "job.json: data.train: wieght: unknown key; did you mean weight?");
  EXPECT_EQ(problem(R"({"data": {"train": [{"weight": 1}]}})"), "job.json: data.train[0]: path is missing");
  EXPECT_EQ(problem(R"({"data": {"train": [3]}})"),
            "job.json: data.train[0]: found 3, expected a string, or a list of strings and objects such as "
            "{\"path\": \"...\", \"weight\": 1}");
  EXPECT_EQ(problem(R"({"data": {"train": 3}})").find("job.json: data.train: found 3, expected a string, or a list"),
            0u);
}

TEST(JobSchema, HasEveryOptionAndEverySpelling) {
  const auto schema = nlohmann::json::parse(job_schema());
  EXPECT_EQ(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
  const auto& properties = schema.at("properties");
  EXPECT_EQ(schema.at("additionalProperties"), false);
  EXPECT_EQ(properties.at("training").at("additionalProperties"), false);
  EXPECT_EQ(properties.at("training").at("properties").at("batch_size").at("default"), 16);
  EXPECT_EQ(properties.at("training").at("properties").at("max_length").at("minimum"), 1);
  Job job;
  for (const Option& option : declare_job_options(job)) {
    std::vector<std::string> paths = {option.path};
    for (const std::string& alias : option.aliases) paths.push_back(option.alias_path(alias));
    for (const Option::Flag& flag : option.flags) paths.push_back(option.alias_path(flag.name));
    for (const std::string& path : paths) {
      const size_t dot = path.find('.');
      const auto& place = dot == std::string::npos ? properties : properties.at(path.substr(0, dot)).at("properties");
      const std::string name = path.substr(dot + 1);
      ASSERT_TRUE(place.contains(name)) << path;
      if (place.at(name).contains("$ref")) {
        const std::string target = place.at(name).at("$ref").get<std::string>().substr(1);
        EXPECT_TRUE(schema.contains(nlohmann::json::json_pointer(target))) << path;
      }
    }
    EXPECT_FALSE(option.help.empty()) << option.path;
  }
}

TEST(Job, NullSectionsAreLeftOut) { EXPECT_EQ(problem(R"({"model": null, "training": null})"), ""); }

TEST(Job, TakesBackWhatTheFileSaysOfItsData) {
  std::vector<std::string> notes;
  const Job job = job_from_json_text(
      R"({"task": "classify", "data": {"train": "a.csv", "validation": "b.csv"},
                                         "training": {"batch_size": 7, "teacher": "big"}})",
      "job.json", {"data.validation=null", "training.teacher=null", "training.batch_size=null"}, notes);
  EXPECT_TRUE(job.data.validation.empty());
  EXPECT_EQ(job.training.teacher, "");
  EXPECT_EQ(job.training.batch_size, 32) << "the default of this task";
  EXPECT_FALSE(job.given.contains("data.validation"));
}

TEST(Job, NamesTheLargestInteger) {
  const std::string text = problem(R"({"training": {"seed": 18446744073709551615}})");
  EXPECT_NE(text.find("the largest is 9007199254740992"), std::string::npos) << text;
}

TEST(Job, ShowsHowToSetAKey) {
  const std::string text = problem("{}", {"foo"});
  EXPECT_NE(text.find("--set model.d_model=256"), std::string::npos) << text;
}

TEST(CacheDirectory, OfAJobIsTheRuntimesUnlessItSaysSo) {
  Runtime runtime({.cache_directory = "/var/cache/ours"});
  const RuntimeScope scope(runtime);
  Job job = job_from_json_text(R"({"output": "runs/here"})", "job.json");
  resolve_defaults(job);
  EXPECT_EQ(job.data.cache_dir, "") << "a run that is moved to another machine keeps its tokens there";
  EXPECT_EQ(cache_directory(job.data), "/var/cache/ours");
  job.data.cache_dir = "here";
  EXPECT_EQ(cache_directory(job.data), "here");
}

TEST(JobReference, InTheDocumentationIsTheDeclarations) {
  const std::string path = repository() + "/docs/job.md";
  const char* write = std::getenv("BRISK_WRITE_JOB_REFERENCE");
  if (write != nullptr && *write != '\0') write_file_atomically(path, job_reference_markdown());
  EXPECT_EQ(test::contents_of(path), job_reference_markdown()) << "run scripts/make_job_reference.sh";
}

TEST(JobReference, OfWhatMayChangeOnResumeIsTheDeclarations) {
  const std::string path = repository() + "/docs/running.md", text = test::contents_of(path);
  const std::string start = "<!-- Generated by scripts/make_job_reference.sh: -->\n\n";
  const size_t begin = text.find(start);
  ASSERT_NE(begin, std::string::npos);
  const size_t table = begin + start.size(), end = text.find("\n\n", table) + 1;
  const char* write = std::getenv("BRISK_WRITE_JOB_REFERENCE");
  if (write != nullptr && *write != '\0') {
    write_file_atomically(path, text.substr(0, table) + resume_keys_markdown() + text.substr(end));
  } else {
    EXPECT_EQ(text.substr(table, end - table), resume_keys_markdown()) << "run scripts/make_job_reference.sh";
  }
  for (const char* key : {"eval_steps", "logging_steps", "save_steps", "max_steps", "num_epochs", "stop"})
    EXPECT_NE(resume_keys_markdown().find(key), std::string::npos) << key;
}

}  // namespace
}  // namespace brisk
