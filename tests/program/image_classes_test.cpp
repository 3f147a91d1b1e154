// Classifiers of images, as a user meets them: folders of classes, the smoke test, the folder that is exported.
#include <gtest/gtest.h>

#include <filesystem>

#include "program/support/small_job.h"
#include "support/text_images.h"

namespace brisk::program {
namespace {

namespace fs = std::filesystem;

class ImageClasses : public ::testing::Test {
 protected:
  Outcome train(int64_t images, std::vector<std::string> more = {"--output", "run"}) {
    test::make_digit_folder(folder / "digits", images, 1);
    write_job(folder, job);
    more.insert(more.begin(), {"train", "job.json"});
    return run_brisk(more, folder);
  }

  TemporaryFolder folder;
  Json job = {
      {"task", "classify"},
      {"model",
       {{"type", "vit"}, {"image_size", 24}, {"patch_size", 8}, {"d_model", 32}, {"num_layers", 1}, {"num_heads", 2}}},
      {"training", {{"batch_size", 10}, {"max_steps", 4}, {"precision", "fp32"}, {"threads", 1}}},
      {"data", {{"train", "digits/train"}, {"validation", "digits/test"}}}};
};

TEST_F(ImageClasses, GoThroughASmokeTest) {
  const Outcome outcome = train(400, {"--smoke-test"});  // more than the subset, one class after another
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "everything works")) << outcome.err;
}

TEST_F(ImageClasses, MayHaveTheSameNamesInTwoFolders) {
  test::make_digit_folder(folder / "digits", 20, 1);
  fs::remove_all(folder / "digits/test");
  fs::copy(folder / "digits/train", folder / "digits/test", fs::copy_options::recursive);
  write_job(folder, job);
  EXPECT_FALSE(has(run_brisk({"train", "job.json", "--output", "run"}, folder).err, "also in data.train"));
  job["data"]["validation"] = "digits/train";
  EXPECT_TRUE(
      has(train(20, {"--output", "same"}).err, "20 of the 20 images of data.validation are also in data.train"));
}

TEST_F(ImageClasses, NeedAFolderForEach) {
  job["data"] = {{"train", "digits/train/3"}};
  const Outcome outcome = train(20);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "in no folder of a class")) << outcome.err;
}

TEST_F(ImageClasses, AreExportedWithTheSizeOfTheirProcessor) {
  job["model"].erase("image_size");
  job["model"]["image_processor"] = R"({"size": {"height": 24, "width": 24}})";
  ASSERT_EQ(train(20).exit_code, 0);
  const Outcome exported = run_brisk({"export", "run", "--format", "huggingface", "--output", "exported"}, folder);
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_EQ(read_json(folder / "exported/config.json")["image_size"], 24);
  EXPECT_TRUE(has(exported.err, "AutoImageProcessor.from_pretrained")) << exported.err;
  EXPECT_FALSE(has(exported.err, "AutoTokenizer")) << exported.err;
}

}  // namespace
}  // namespace brisk::program
