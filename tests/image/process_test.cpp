#include "image/process.h"

#include "base/error.h"
#include "base/machine/isa.h"
#include "image/golden_images.h"
#include "image/preprocessor_config.h"
#include "image/resize.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::bytes_of;
using test::golden_images;
using test::pattern;

TEST(ResizedImages, AreThoseOfPillow) {
  for (const auto& golden : golden_images()["resized"]) {
    const Image image = resize_image(pattern(golden["height"], golden["width"]), golden["to_height"],
                                     golden["to_width"], static_cast<Resampling>(golden["resample"].get<int>()));
    EXPECT_EQ(test::largest_gap(image.pixels, bytes_of(golden["pixels"])), 0)
        << golden["height"] << " x " << golden["width"] << " to " << golden["to_height"] << " x " << golden["to_width"]
        << " by " << golden["resample"];
  }
}

TEST(ResizedImages, AreTheSameWithEveryInstructionSet) {
  if (best_isa() < Isa::avx2) GTEST_SKIP() << "the processor has no AVX2";
  for (const Resampling resampling : {Resampling::bilinear, Resampling::lanczos}) {
    for (const int64_t width : {1, 2, 7, 40}) {
      for (const int64_t to : {1, 3, 8, 61}) {
        const Image image = pattern(9, width);
        const ResizeWeights across = resize_weights(width, to, resampling), down = resize_weights(9, to, resampling);
        Image rows(9, to), rows_ref(9, to), columns(to, to), columns_ref(to, to);
        avx2::resize_rows(image, across, rows);
        ref::resize_rows(image, across, rows_ref);
        ASSERT_EQ(rows, rows_ref) << width << " to " << to;
        avx2::resize_columns(rows, down, columns);
        ref::resize_columns(rows, down, columns_ref);
        ASSERT_EQ(columns, columns_ref) << width << " to " << to;
      }
    }
  }
}

TEST(ProcessedImages, AreThoseOfHuggingFacesProcessors) {
  for (const auto& golden : golden_images()["processed"]) {
    const ImageProcessing processing = parse_preprocessor_config(golden["config"].dump(), "preprocessor_config.json");
    const Image image =
        process_image(pattern(golden["height"], golden["width"], golden["margin"]), processing, "pattern");
    EXPECT_EQ(image.height, golden["to_height"]);
    EXPECT_EQ(image.width, golden["to_width"]);
    EXPECT_EQ(test::largest_gap(image.pixels, bytes_of(golden["pixels"])), 0)
        << golden["config"] << " of " << golden["height"] << " x " << golden["width"];
  }
}

TEST(ProcessedImages, OfOneColourKeepTheirMargin) {
  ImageProcessing nougat = parse_preprocessor_config(
      R"({"image_processor_type": "NougatImageProcessor", "size": {"height": 6, "width": 4}})", "a");
  const Image blank = process_image(Image(3, 3), nougat, "a");
  EXPECT_EQ(blank, Image(6, 4));
}

TEST(ProcessedImages, ThatAreFarTooLongAreRefused) {
  ImageProcessing donut;
  donut.type = "DonutImageProcessor";
  donut.keep_aspect = donut.thumbnail = donut.pad = true;
  EXPECT_PRED2(test::has, test::message_of<UserError>([&] { process_image(Image(10000, 1), donut, "long.png"); }),
               "long.png: an image of 1 x 10000 pixels would be resized to 224 x 2240000");
}

TEST(Patches, AreInTheOrderOfAConvolutionsWeight) {
  Image image(4, 6);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i);
  std::vector<uint8_t> pixels = {99};
  append_patches(image, ImageInput::resized(4, 6, 2, true), pixels);
  ASSERT_EQ(pixels.size(), 1u + 7 * 12);
  EXPECT_EQ(pixels[0], 99) << "what is there stays";
  for (size_t i = 1; i <= 12; ++i) EXPECT_EQ(pixels[i], 0) << "the class row";
  // The second patch: columns 2 and 3 of rows 0 and 1; red first.
  EXPECT_EQ(std::vector<uint8_t>(pixels.begin() + 25, pixels.begin() + 37),
            (std::vector<uint8_t>{6, 9, 24, 27, 7, 10, 25, 28, 8, 11, 26, 29}));
  // The first patch of the second row of patches.
  EXPECT_EQ(pixels[1 + 12 * 4], 36);
}

}  // namespace
}  // namespace brisk
