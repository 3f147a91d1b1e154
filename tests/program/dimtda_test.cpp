// DIMTDA's two stages as its author trains them, with the keys of Hugging Face's training arguments: a translator of texts,
// then pages that begin with its decoder.
#include <gtest/gtest.h>

#include <filesystem>

#include "program/support/small_job.h"
#include "support/text_images.h"

namespace brisk::program {
namespace {

namespace fs = std::filesystem;

Json text_stage() {
  return {
      {"task", "translate"},
      {"model",
       {{"d_model", 32},
        {"num_layers", 2},
        {"num_heads", 2},
        {"d_ff", 64},
        {"context", 96},
        {"vocab_size", 300},
        {"norm_position", "post"},
        {"embedding_norm", true},
        {"positions", "learned"},
        {"activation", "gelu_erf"},
        {"norm_epsilon", 1e-12},
        {"token_types", 1},
        {"output_transform", true},
        {"output_bias", "trained"},
        {"scale_embeddings", false}}},
      {"training", {{"max_steps", 6}, {"batch_size", 8}, {"max_length", 96}, {"precision", "fp32"}, {"threads", 1}}},
      {"data", {{"train", "pairs.tsv"}}}};
}

Json page_stage() {
  return {{"task", "image_to_text"},
          {"model",
           {{"type", "dimtda"},
            {"image_size", {48, 64}},
            {"patch_size", 4},
            {"encoder_d_model", 16},
            {"encoder_depths", {2, 1}},
            {"encoder_stage_heads", {2, 2}},
            {"window_size", 2},
            {"layout_image_size", 32},
            {"layout_patch_size", 16},
            {"layout_d_model", 16},
            {"layout_layers", 1},
            {"layout_heads", 2},
            {"queries", 8},
            {"query_width", 32},
            {"query_heads", 2},
            {"d_model", 32},
            {"num_layers", 2},
            {"num_heads", 2},
            {"d_ff", 64},
            {"context", 96},
            {"decoder_from", "text"}}},
          {"training",
           {{"max_length", 96},
            {"per_device_train_batch_size", 4},
            {"per_device_eval_batch_size", 4},
            {"gradient_accumulation_steps", 2},
            {"num_train_epochs", 2},
            {"learning_rate", 5e-4},
            {"optim", "adamw_torch"},
            {"lr_scheduler_type", "linear"},
            {"warmup_ratio", 0.05},
            {"max_grad_norm", 1.0},
            {"eval_strategy", "steps"},
            {"eval_steps", 2},
            {"save_strategy", "steps"},
            {"save_steps", 2},
            {"logging_steps", 1},
            {"load_best_model_at_end", true},
            {"dataloader_num_workers", 2},
            {"gradient_checkpointing", true},
            {"predict_with_generate", true},
            {"generation_num_beams", 2},
            {"eval_translations", 2},
            {"precision", "fp32"},
            {"threads", 1}}},
          {"data", {{"images", "pages/imgs"}, {"texts", "pages/texts"}, {"split", "pages/split.json"}}}};
}

class DimtdaStages : public ::testing::Test {
 protected:
  DimtdaStages() {
    test::make_page_folder(folder / "pages", 20, 1);
    std::string pairs = "source\ttarget\n";
    for (int i = 0; i < 40; ++i) pairs += "das Haus " + std::to_string(i) + "\tthe house " + std::to_string(i) + "\n";
    write_text(folder / "pairs.tsv", pairs);
    const Outcome text = train(text_stage(), {"--output", "text"});
    EXPECT_EQ(text.exit_code, 0) << text.err;
  }

  Outcome train(const Json& job, std::vector<std::string> more) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"train", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  TemporaryFolder folder;
};

TEST_F(DimtdaStages, RunWithTheKeysOfHuggingFace) {
  const Outcome pages = train(page_stage(), {"--output", "pages_run"});
  ASSERT_EQ(pages.exit_code, 0) << pages.err;
  EXPECT_TRUE(has(pages.err, "model.decoder_from: text")) << pages.err;
  EXPECT_EQ(read_text(folder / "pages_run/tokenizer.json"), read_text(folder / "text/tokenizer.json"));
  const Outcome read = run_brisk({"predict", "pages_run", "--images", "pages/imgs", "--beam", "1"}, folder);
  ASSERT_EQ(read.exit_code, 0) << read.err;

  // Resumed, it needs the text stage no longer.
  ASSERT_EQ(train(page_stage(), {"--output", "part", "--set", "training.max_steps=2"}).exit_code, 0);
  fs::remove_all(fs::path(folder / "text"));
  const Outcome resumed = run_brisk({"train", "job.json", "--output", "part", "--resume"}, folder);
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

TEST_F(DimtdaStages, BeginWithPartsThatFitOrSayWhatDoesNot) {
  ASSERT_EQ(train(page_stage(), {"--output", "first"}).exit_code, 0);
  Json job = page_stage();
  job["model"]["image_encoder_from"] = job["model"]["layout_encoder_from"] = "first";
  job["training"]["freeze_encoders"] = true;
  // A Swin without a last norm writes f32, and what is kept of it is bf16.
  job["training"]["precision"] = "bf16";
  const Outcome frozen = train(job, {"--output", "frozen"});
  ASSERT_EQ(frozen.exit_code, 0) << frozen.err;
  EXPECT_TRUE(has(frozen.err, "what they make of the images was computed")) << frozen.err;
  const Outcome uncached = train(job, {"--output", "uncached", "--set", "training.cache_frozen=false"});
  ASSERT_EQ(uncached.exit_code, 0) << uncached.err;
  EXPECT_NEAR(read_json(folder / "frozen/summary.json")["loss"].get<double>(),
              read_json(folder / "uncached/summary.json")["loss"].get<double>(), 1e-3);
  EXPECT_TRUE(has(frozen.err, "model.layout_encoder_from: first")) << frozen.err;
  EXPECT_TRUE(has(frozen.err, "the rest is frozen")) << frozen.err;

  job["model"]["num_layers"] = 3;
  const Outcome refused = train(job, {"--output", "refused"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "decoder.layers.2.qkv.weight is not there")) << refused.err;
  EXPECT_FALSE(fs::exists(folder / "refused"));
  EXPECT_EQ(run_brisk({"export", "frozen", "--format", "huggingface", "--output", "x"}, folder).exit_code, 2);
  const Outcome text = run_brisk({"translate", "frozen"}, folder);
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_TRUE(has(text.err, "brisk predict frozen --images")) << text.err;
}

}  // namespace
}  // namespace brisk::program
