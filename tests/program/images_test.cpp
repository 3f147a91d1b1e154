// Models that read images, as a user meets them: lines of text that are recognised, pages that are translated, digits that are
// told apart; what is said about images that cannot work.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <sstream>

#include "program/support/small_job.h"
#include "support/text_images.h"

namespace brisk::program {
namespace {

namespace fs = std::filesystem;

Json recogniser_job() {
  return {{"task", "image_to_text"},
          {"model",
           {{"type", "vision_encoder_decoder"},
            {"image_size", {16, 64}},
            {"patch_size", 8},
            {"encoder_d_model", 32},
            {"encoder_layers", 1},
            {"encoder_heads", 2},
            {"d_model", 32},
            {"num_layers", 1},
            {"num_heads", 2},
            {"vocab_size", 300},
            {"dropout", 0}}},
          {"training",
           {{"max_length", 32},
            {"batch_size", 8},
            {"max_steps", 12},
            {"learning_rate", 2e-3},
            {"precision", "fp32"},
            {"logging_steps", 1},
            {"eval_steps", 6},
            {"eval_translations", 4},
            {"sample_translations", 2},
            {"threads", 1}}},
          {"data", {{"train", "lines/lines.tsv"}, {"validation_fraction", 0.2}}}};
}

Json digit_job() {
  return {{"task", "classify"},
          {"model",
           {{"type", "vit"},
            {"image_size", 24},
            {"patch_size", 8},
            {"d_model", 32},
            {"num_layers", 1},
            {"num_heads", 2},
            {"dropout", 0}}},
          {"training",
           {{"batch_size", 20},
            {"max_steps", 10},
            {"learning_rate", 2e-3},
            {"precision", "fp32"},
            {"logging_steps", 1},
            {"threads", 1}}},
          {"data", {{"train", "digits/train"}, {"validation", "digits/test"}}}};
}

size_t count_of_lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

class Images : public ::testing::Test {
 protected:
  Outcome train(const Json& job, std::vector<std::string> more = {"--output", "run"}) {
    write_job(folder, job);
    std::vector<std::string> arguments = {"train", "job.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_brisk(arguments, folder);
  }

  std::string refusal(const Json& job) {
    const Outcome outcome = train(job, {"--output", "refused"});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_FALSE(fs::exists(folder / "refused"));
    const size_t at = outcome.err.rfind("brisk: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at);
  }

  void make_lines(int64_t count = 40) { test::make_line_folder(folder / "lines", count, 1); }

  TemporaryFolder folder;
};

TEST_F(Images, AreTrainedOnEvaluatedReadAndShown) {
  make_lines();
  Json job = recogniser_job();
  job["training"]["best_by"] = "cer";
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  for (const char* words : {"images       32, read as 16 x 64 pixels, 16 patches of 8 x 8",
                            "image cache:", "image:", "brisk predict run --images"})
    EXPECT_TRUE(has(trained.err, words)) << words << "\n" << trained.err;
  const Json summary = read_json(folder / "run/summary.json");
  for (const char* name : {"loss", "accuracy", "bleu", "chrf", "cer", "steds", "bleu_text"})
    EXPECT_TRUE(summary["best"].contains(std::string("validation_") + name)) << name;
  EXPECT_EQ(read_json(folder / "run/job.json")["data"]["image_field"], "image");

  const Outcome read = run_brisk({"predict", "run", "--images", "lines/images", "--beam", "1"}, folder);
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(count_of_lines(read.out), 40u);
  EXPECT_TRUE(read.out.starts_with("lines/images/00000.pgm\t")) << read.out;
  EXPECT_EQ(run_brisk({"predict", "run", "--images", "lines/lines.tsv", "--beam", "1"}, folder).out, read.out);
  const Outcome files =
      run_brisk({"predict", "run", "--images", "lines/images", "--output", "read", "--beam", "1"}, folder);
  ASSERT_EQ(files.exit_code, 0) << files.err;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "read"), {}), 40);
  EXPECT_TRUE(fs::exists(folder / "read/00039.md"));

  const Outcome measured = run_brisk({"eval", "run", "--data", "lines/lines.tsv", "--beam", "1", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  EXPECT_GT(Json::parse(measured.out)["cer"].get<double>(), 0);

  const Outcome reported = run_brisk({"report", "run"}, folder);
  ASSERT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_TRUE(has(read_text(folder / "run/report.html"), "<img src=\"data:image/png;base64,"));
}

TEST_F(Images, OfAResumedRunGiveTheSameCurve) {
  make_lines();
  Json job = recogniser_job();
  job["training"]["save_steps"] = 5;
  ASSERT_EQ(train(job, {"--output", "whole"}).exit_code, 0);
  ASSERT_EQ(train(recogniser_job(), {"--output", "again"}).exit_code, 0);
  EXPECT_EQ(curve_of(folder / "whole"), curve_of(folder / "again"));
  // Killed after its first checkpoint, and resumed.
  job = recogniser_job();
  job["training"]["save_steps"] = 5;
  write_job(folder, job);
  Process process({"train", "job.json", "--output", "killed"}, folder);
  ASSERT_TRUE(process.wait_for("step 6/")) << process.finish().err;
  process.send(SIGKILL);
  process.finish();
  const Outcome resumed = run_brisk({"train", "job.json", "--output", "killed", "--resume"}, folder);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(curve_of(folder / "killed"), curve_of(folder / "whole"));
  EXPECT_EQ(last_model_bytes(folder / "killed"), last_model_bytes(folder / "whole"));
}

// A BEiT has no norm at its end: what it writes is fp32, and what is kept of it has the format of the run.
TEST_F(Images, OfFrozenEncodersWithoutALastNormAreKeptInTheFormatOfTheRun) {
  make_lines(24);
  Json job = recogniser_job();
  job["model"]["image_encoder"] = "beit";
  job["training"]["precision"] = "bf16";
  ASSERT_EQ(train(job, {"--output", "first"}).exit_code, 0);
  job["model"] = {{"from", "first"}};
  job["training"]["freeze_encoders"] = true;
  const Outcome cached = train(job, {"--output", "cached"});
  ASSERT_EQ(cached.exit_code, 0) << cached.err;
  EXPECT_TRUE(has(cached.err, "frozen image encoders: what they make of the images was computed")) << cached.err;
  job["training"]["cache_frozen"] = false;
  ASSERT_EQ(train(job, {"--output", "computed"}).exit_code, 0);
  const std::vector<Json> one = curve_of(folder / "cached"), other = curve_of(folder / "computed");
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    if (!one[i].contains("loss")) continue;
    EXPECT_NEAR(one[i]["loss"].get<double>(), other[i]["loss"].get<double>(), 2e-2) << i;
  }
}

TEST_F(Images, ThatAreNoneAndPlacesThatAreNoneAreNamed) {
  make_lines(24);
  ASSERT_EQ(train(recogniser_job()).exit_code, 0);
  write_text(folder / "scan.bmp", "BM, and so on");
  const Outcome bmp = run_brisk({"predict", "run", "--images", "scan.bmp"}, folder);
  EXPECT_EQ(bmp.exit_code, 2);
  EXPECT_TRUE(has(bmp.err, "scan.bmp: it is a BMP image; expected an image: PNG")) << bmp.err;
  fs::copy(folder / "lines/images/00000.pgm", folder / "a\nb.pgm");
  EXPECT_TRUE(run_brisk({"predict", "run", "--images", "a\nb.pgm"}, folder).out.starts_with("a b.pgm\t"));
  const Outcome text = run_brisk({"generate", "run", "--prompt", "a"}, folder);
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_TRUE(has(text.err, "`brisk predict run --images FOLDER`")) << text.err;

  Json job = recogniser_job();
  job["data"]["images"] = "nowhere";
  EXPECT_TRUE(has(refusal(job), "data.images = nowhere: there is no such folder"));
  job = recogniser_job();
  job["model"]["image_processor"] = R"({"sharpen": 1})";
  EXPECT_TRUE(has(refusal(job), "model.image_processor: sharpen = 1"));
}

TEST_F(Images, GiveTheSameResultWithoutACacheAndWithOtherWorkers) {
  make_lines(24);
  Json job = recogniser_job();
  ASSERT_EQ(train(job, {"--output", "usual"}).exit_code, 0);
  job["data"]["image_cache"] = 0;
  for (const int workers : {0, 2}) {
    job["training"]["dataloader_num_workers"] = workers;
    ASSERT_EQ(train(job, {"--output", "other", "--overwrite"}).exit_code, 0);
    EXPECT_EQ(curve_of(folder / "other"), curve_of(folder / "usual")) << workers;
  }
}

TEST_F(Images, GiveTheSameCurveHoweverABatchIsDivided) {
  make_lines(32);
  Json job = recogniser_job();
  job["model"].update({{"image_encoder", "swin"},
                       {"image_size", {32, 64}},
                       {"patch_size", 4},
                       {"encoder_d_model", 16},
                       {"encoder_depths", {2, 1}},
                       {"encoder_stage_heads", {2, 4}},
                       {"window_size", 4}});
  for (const char* key : {"encoder_layers", "encoder_heads"}) job["model"].erase(key);
  job["training"]["eval_steps"] = 12;
  const Outcome plain = train(job, {"--output", "plain"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const std::vector<std::vector<std::string>> others = {
      {"training.gradient_checkpointing=1"},
      {"training.batch_size=4", "training.gradient_accumulation_steps=2"},
      {"training.micro_batch_tokens=256"}};
  for (const std::vector<std::string>& settings : others) {
    std::vector<std::string> more = {"--output", "other", "--overwrite"};
    for (const std::string& setting : settings) more.insert(more.end(), {"--set", setting});
    const Outcome outcome = train(job, more);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::vector<Json> one = step_lines(metrics_of(folder / "plain")),
                            same = step_lines(metrics_of(folder / "other"));
    ASSERT_EQ(one.size(), same.size()) << settings.front();
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_NEAR(one[i]["loss"].get<double>(), same[i]["loss"].get<double>(), 1e-5) << settings.front();
  }
}

TEST_F(Images, OfFrozenEncodersAreComputedOnceWithTheSameResult) {
  make_lines(24);
  ASSERT_EQ(train(recogniser_job(), {"--output", "first"}).exit_code, 0);
  Json job = recogniser_job();
  job["model"] = {{"from", "first"}};
  job["training"]["freeze_encoders"] = true;
  job["training"]["max_steps"] = 10;
  const Outcome cached = train(job, {"--output", "cached"});
  ASSERT_EQ(cached.exit_code, 0) << cached.err;
  EXPECT_TRUE(has(cached.err, "frozen image encoders: what they make of the images was computed")) << cached.err;
  EXPECT_TRUE(has(train(job, {"--output", "again"}).err, "was in"));
  job["training"]["cache_frozen"] = false;
  const Outcome computed = train(job, {"--output", "computed"});
  ASSERT_EQ(computed.exit_code, 0) << computed.err;
  EXPECT_FALSE(has(computed.err, "frozen image encoders:")) << computed.err;
  const std::vector<Json> one = curve_of(folder / "cached"), other = curve_of(folder / "computed");
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    for (const char* name : {"loss", "validation_loss", "validation_cer"}) {
      if (!one[i].contains(name)) continue;
      EXPECT_NEAR(one[i][name].get<double>(), other[i][name].get<double>(), 1e-4) << name << " " << i;
    }
  }
}

TEST_F(Images, AreReadAlikeByTwoProcesses) {
  make_lines(24);
  Json job = recogniser_job();
  job["training"]["logical_ranks"] = 2;
  ASSERT_EQ(train(job, {"--output", "one"}).exit_code, 0);
  write_job(folder, job);
  const Outcome two = run_brisk({"launch", "--ranks", "2", "--", "train", "job.json", "--output", "two"}, folder);
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(curve_of(folder / "two"), curve_of(folder / "one"));
}

TEST_F(Images, OfAFewPagesAreLearnedByHeart) {
  test::make_page_folder(folder / "pages", 4, 1);
  Json job = {{"task", "image_to_text"},
              {"model",
               {{"type", "dimtda"},
                {"image_size", {64, 128}},
                {"encoder_d_model", 16},
                {"encoder_depths", {1, 1}},
                {"encoder_stage_heads", {2, 4}},
                {"window_size", 4},
                {"layout_image_size", 32},
                {"layout_patch_size", 16},
                {"layout_d_model", 32},
                {"layout_layers", 1},
                {"layout_heads", 2},
                {"queries", 8},
                {"query_width", 32},
                {"query_heads", 2},
                {"d_model", 48},
                {"num_layers", 1},
                {"num_heads", 2},
                {"dropout", 0},
                {"vocab_size", 320}}},
              {"training",
               {{"per_device_train_batch_size", 2},
                {"gradient_accumulation_steps", 2},
                {"eval_strategy", "steps"},
                {"eval_steps", 200},
                {"save_strategy", "steps"},
                {"save_steps", 100},
                {"logging_steps", 50},
                {"dataloader_num_workers", 1},
                {"load_best_model_at_end", true},
                {"label_smoothing", 0},
                {"max_steps", 200},
                {"max_length", 64},
                {"optimizer", "adamw"},
                {"learning_rate", 3e-3},
                {"divergence_guard", false},
                {"precision", "fp32"},
                {"threads", 1}}},
              {"data", {{"images", "pages/imgs"}, {"texts", "pages/texts"}, {"validation_fraction", 0}}}};
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome read =
      run_brisk({"predict", "run", "--images", "pages/imgs", "--output", "read", "--suffix", ".mmd"}, folder);
  ASSERT_EQ(read.exit_code, 0) << read.err;
  for (const auto& page : fs::directory_iterator(folder / "pages/texts")) {
    const std::string name = page.path().filename().string();
    EXPECT_EQ(read_text((folder / "read/") + name), read_text(page.path().string())) << name;
  }
}

TEST_F(Images, InFoldersAreDividedByTheSplitFile) {
  test::make_page_folder(folder / "pages", 20, 1);
  Json job = recogniser_job();
  job["data"] = {{"images", "pages/imgs"}, {"texts", "pages/texts"}, {"split", "pages/split.json"}};
  job["training"]["max_length"] = 64;
  const Outcome trained = train(job);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.err, "images       16")) << trained.err;
  EXPECT_TRUE(has(trained.err, "validation   2 images")) << trained.err;
  const Outcome measured = run_brisk({"eval", "run", "--data", "pages/split.json", "--beam", "1", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
}

TEST_F(Images, AreToldApart) {
  test::make_digit_folder(folder / "digits", 100, 1);
  const Outcome trained = train(digit_job());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_TRUE(has(trained.err, "10 classes")) << trained.err;
  EXPECT_FALSE(fs::exists(folder / "run/tokenizer.json"));
  const Outcome answers = run_brisk({"predict", "run", "--images", "digits/test"}, folder);
  ASSERT_EQ(answers.exit_code, 0) << answers.err;
  EXPECT_EQ(count_of_lines(answers.out), 20u);
  const Json first = Json::parse(answers.out.substr(0, answers.out.find('\n')));
  EXPECT_TRUE(has(first["image"], "digits/test/0/"));
  EXPECT_EQ(first["probabilities"].size(), 10u);
  const Outcome measured = run_brisk({"eval", "run", "--data", "digits/test", "--json"}, folder);
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const Json summary = read_json(folder / "run/summary.json");
  EXPECT_NEAR(Json::parse(measured.out)["loss"].get<double>(), summary["best"]["validation_loss"].get<double>(), 1e-5);
}

TEST_F(Images, OfAClassifierThatIsResumedGiveTheSameCurve) {
  test::make_digit_folder(folder / "digits", 60, 1);
  Json job = digit_job();
  job["training"]["save_steps"] = 3;
  ASSERT_EQ(train(job, {"--output", "whole"}).exit_code, 0);
  write_job(folder, job);
  Process process({"train", "job.json", "--output", "killed"}, folder);
  ASSERT_TRUE(process.wait_for("step 4/")) << process.finish().err;
  process.send(SIGKILL);
  process.finish();
  const Outcome resumed = run_brisk({"train", "job.json", "--output", "killed", "--resume"}, folder);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(curve_of(folder / "killed"), curve_of(folder / "whole"));
}

TEST_F(Images, OfAnotherKindOfModelAreRefused) {
  test::make_digit_folder(folder / "digits", 20, 1);
  make_lines(4);
  Json job = digit_job();
  job["model"]["type"] = "bert";
  EXPECT_TRUE(has(refusal(job), "model.image_size")) << refusal(job);
  job = digit_job();
  job["training"]["prune_last_layer"] = false;
  EXPECT_TRUE(has(refusal(job), "training.prune_last_layer")) << refusal(job);
  job = recogniser_job();
  job["training"]["batch_size"] = 1 << 20;
  job["training"]["gradient_accumulation_steps"] = 1 << 10;
  EXPECT_TRUE(has(refusal(job), "training.batch_size: the pixels of a step of 1,073,741,824 images")) << refusal(job);
  job = recogniser_job();
  job["model"]["type"] = "encoder_decoder";
  EXPECT_TRUE(has(refusal(job), "task image_to_text cannot train model.type = encoder_decoder")) << refusal(job);
  job = recogniser_job();
  job["task"] = "translate";
  EXPECT_TRUE(has(refusal(job), "task translate cannot train model.type = vision_encoder_decoder")) << refusal(job);
}

TEST_F(Images, ThatCannotBeReadAreNamedOrSkipped) {
  make_lines(30);
  write_text(folder / "lines/images/00003.pgm", "no image at all");
  EXPECT_TRUE(has(refusal(recogniser_job()), "00003.pgm"));
  Json job = recogniser_job();
  job["data"]["broken_images"] = "skip";
  const Outcome skipped = train(job);
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_TRUE(has(skipped.err, "00003.pgm")) << skipped.err;
  const Outcome refused = run_brisk({"predict", "run", "--images", "lines/images"}, folder);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "00003.pgm")) << refused.err;
  const Outcome read =
      run_brisk({"predict", "run", "--images", "lines/images", "--skip-broken", "--beam", "1"}, folder);
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(count_of_lines(read.out), 29u);
  EXPECT_EQ(run_brisk({"predict", "run", "--images", "nowhere"}, folder).exit_code, 2);
  EXPECT_TRUE(has(run_brisk({"predict", "run", "a text"}, folder).err, "--images"));
  const Outcome translated = run_brisk({"translate", "run", "a text"}, folder);
  EXPECT_EQ(translated.exit_code, 2);
  EXPECT_TRUE(has(translated.err, "--images")) << translated.err;
}

TEST_F(Images, FoldersWithoutTheirOtherHalfAreRefused) {
  test::make_page_folder(folder / "pages", 10, 1);
  Json job = recogniser_job();
  job["data"] = {{"texts", "pages/texts"}};
  EXPECT_TRUE(has(refusal(job), "data.images")) << refusal(job);
  job["data"] = {{"split", "pages/split.json"}, {"images", "pages/imgs"}};
  EXPECT_TRUE(has(refusal(job), "data.texts")) << refusal(job);
  job["data"] = {{"images", "pages/imgs"}, {"texts", "pages/texts"}, {"train", "other.tsv"}};
  EXPECT_TRUE(has(refusal(job), "not both")) << refusal(job);
}

TEST_F(Images, AreSmokeTested) {
  make_lines();
  write_job(folder, recogniser_job());
  const Outcome smoke = run_brisk({"train", "job.json", "--smoke-test"}, folder);
  EXPECT_EQ(smoke.exit_code, 0) << smoke.err << smoke.out;
}

}  // namespace
}  // namespace brisk::program
