#include "image/image_input.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::has;
using test::message_of;

TEST(ImageInput, HasARowForEachPatchAndOneForTheClassToken) {
  const ImageInput base = ImageInput::resized(224, 224, 16, true);
  EXPECT_EQ(base.rows(), 197);
  EXPECT_EQ(base.cols(), 768);
  const ImageInput page = ImageInput::resized(896, 672, 4, false);
  EXPECT_EQ(page.rows(), 224 * 168);
  EXPECT_EQ(page.cols(), 48);
}

TEST(ImageInput, WhoseSidesAreNoWholePatchesOrNotDeliveredIsRefused) {
  const auto refusal = [](const ImageInput& input) {
    return message_of<UserError>([&] { check_image_input(input, "model.image"); });
  };
  EXPECT_PRED2(has, refusal(ImageInput::resized(224, 230, 16, true)),
               "model.image: images of 224 x 230 in patches of 16 x 16");
  ImageInput other = ImageInput::resized(224, 224, 16, true);
  other.processing.height = 256;
  EXPECT_PRED2(has, refusal(other), "the model reads images of 224 x 224, and their processing delivers 256 x 224");
  EXPECT_EQ(refusal(ImageInput::resized(896, 672, 4, false)), "");
}

TEST(ImageProcessing, FingerprintIsOfWhatDecidesThePixels) {
  ImageProcessing one, other;
  other.mean[0] = 0.1f;
  other.type = "BeitImageProcessor";
  other.crop_height = 7;  // nothing is cropped
  EXPECT_EQ(one.fingerprint(), other.fingerprint());
  other.center_crop = true;
  EXPECT_NE(one.fingerprint(), other.fingerprint());
}

}  // namespace
}  // namespace brisk
