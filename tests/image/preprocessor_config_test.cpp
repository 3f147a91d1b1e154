#include "image/preprocessor_config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/files.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

ImageProcessing parse(const std::string& text) { return parse_preprocessor_config(text, "preprocessor_config.json"); }
std::string config_refusal(const std::string& text) {
  return test::message_of<UserError>([&] { parse(text); });
}

// As google/vit-base-patch16-224, microsoft/dit-base and facebook/nougat-small have it.
TEST(PreprocessorConfig, OfWellKnownModelsIsRead) {
  const ImageProcessing vit = parse(R"({"do_normalize": true, "do_rescale": true, "do_resize": true,
      "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "ViTImageProcessor", "image_std": [0.5, 0.5, 0.5],
      "resample": 2, "rescale_factor": 0.00392156862745098, "size": {"height": 224, "width": 224}})");
  EXPECT_EQ(vit, ImageProcessing());
  const ImageProcessing dit = parse(R"({"crop_size": {"height": 224, "width": 224}, "do_center_crop": false,
      "do_normalize": true, "do_reduce_labels": false, "do_rescale": true, "do_resize": true,
      "feature_extractor_type": "BeitFeatureExtractor", "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
      "resample": 2, "rescale_factor": 0.00392156862745098, "size": 224})");
  EXPECT_EQ(dit.type, "BeitImageProcessor");
  EXPECT_EQ(dit.fingerprint(), vit.fingerprint());
  const ImageProcessing nougat = parse(R"({"data_format": "channels_first", "do_align_long_axis": false,
      "do_crop_margin": true, "do_normalize": true, "do_pad": true, "do_rescale": true, "do_resize": true,
      "do_thumbnail": true, "image_mean": [0.485, 0.456, 0.406], "image_processor_type": "NougatImageProcessor",
      "image_std": [0.229, 0.224, 0.225], "processor_class": "NougatProcessor", "resample": 2,
      "rescale_factor": 0.00392156862745098, "size": {"height": 896, "width": 672}})");
  EXPECT_TRUE(nougat.crop_margin && nougat.thumbnail && nougat.pad && nougat.keep_aspect);
  EXPECT_EQ(nougat.output_height(), 896);
  EXPECT_EQ(nougat.output_width(), 672);
  EXPECT_FLOAT_EQ(nougat.mean[1], 0.456f);
}

TEST(PreprocessorConfig, WrittenAndReadAgainIsTheSame) {
  for (const char* text :
       {R"({})", R"({"image_processor_type": "DeiTImageProcessor"})",
        R"({"image_processor_type": "CLIPImageProcessor"})",
        R"({"image_processor_type": "DonutImageProcessor", "size": [1920, 2560], "do_align_long_axis": true})",
        R"({"image_processor_type": "NougatImageProcessorFast", "do_crop_margin": false})",
        R"({"image_processor_type": "BeitImageProcessor", "crop_size": {"height": 7, "width": 9}})",
        R"({"image_processor_type": "BeitImageProcessor", "do_normalize": false, "do_rescale": false, "size": 30})"}) {
    const ImageProcessing processing = parse(text);
    EXPECT_EQ(parse(preprocessor_config_text(processing)), processing) << text;
  }
}

TEST(PreprocessorConfig, AnotherFactorIsPartOfMeanAndDeviation) {
  // (x / 127.5 - 1) / 1
  const ImageProcessing processing =
      parse(R"({"rescale_factor": 0.00784313725490196, "image_mean": [1, 1, 1], "image_std": 1})");
  EXPECT_FLOAT_EQ(processing.mean[0], 0.5f);
  EXPECT_FLOAT_EQ(processing.std[0], 0.5f);
  const ImageProcessing plain = parse(R"({"do_rescale": false, "do_normalize": false})");
  EXPECT_FLOAT_EQ(plain.mean[2], 0);
  EXPECT_FLOAT_EQ(plain.std[2], 1 / 255.0f);
}

TEST(PreprocessorConfig, ThatCannotBeHonouredIsRefusedByTheKey) {
  EXPECT_PRED2(test::has, config_refusal(R"({"image_processor_type": "ConvNextImageProcessor"})"),
               "ConvNextImageProcessor");
  EXPECT_PRED2(test::has, config_refusal(R"({"crop_pct": 0.875})"), "crop_pct = 0.875: brisk does not do this");
  EXPECT_PRED2(test::has, config_refusal(R"({"do_thumbnail": true})"), "do_thumbnail");
  EXPECT_PRED2(test::has, config_refusal(R"({"do_resize": false})"), "different sizes");
  EXPECT_PRED2(test::has, config_refusal(R"({"size": {"shortest_edge": 224}})"), "different sizes");
  EXPECT_PRED2(test::has, config_refusal(R"({"size": {"longest_edge": 224}})"), "size = ");
  EXPECT_PRED2(test::has, config_refusal(R"({"size": {"height": 1e9, "width": 4}})"), "expected sides of 1 to 16384");
  EXPECT_PRED2(test::has, config_refusal(R"({"resample": 9})"), "resample = 9: expected 0 (nearest)");
  EXPECT_PRED2(test::has, config_refusal(R"({"image_std": [0, 1, 1]})"), "image_std");
  EXPECT_PRED2(test::has, config_refusal(R"({"image_mean": [0, 1]})"), "expected three numbers");
  EXPECT_PRED2(test::has, config_refusal(R"({"do_resize": 1})"), "expected true or false");
  EXPECT_PRED2(test::has, config_refusal("[]"), "expected an object");
  EXPECT_EQ(config_refusal(R"({"do_sample_frames": false, "pad_size": null, "do_pad": false})"), "");
}

TEST(PreprocessorConfig, IsReadFromItsFile) {
  const test::ScratchFolder folder;
  const std::string path = folder.write("preprocessor_config.json", preprocessor_config_text(ImageProcessing()));
  EXPECT_EQ(read_preprocessor_config(path), ImageProcessing());
}

}  // namespace
}  // namespace brisk
