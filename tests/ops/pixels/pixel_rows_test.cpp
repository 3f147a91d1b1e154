#include "ops/pixels/pixel_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/numeric.h"

namespace brisk {
namespace {

using testing::Matrix;
using testing::Ragged;

TEST(PixelRows, AreNormalisedByColorAndZeroInClassRows) {
  const Ragged rows({3, 3});
  const PixelRowsOptions options{.patch = 2, .mean = {0.5f, 0.25f, 0}, .std = {0.5f, 0.25f, 2}, .class_row = true};
  std::vector<uint8_t> pixels(6 * 12);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(37 * i);
  for (const DType type : {DType::f32, DType::bf16}) {
    Matrix y(6, 12, type), expected(6, 12, type);
    cpu::pixel_rows({options, pixels.data(), rows.view(), y});
    ref::pixel_rows({options, pixels.data(), rows.view(), expected});
    testing::expect_close(y, expected, 0, "y");
    const double tolerance = type == DType::f32 ? 1e-6 : 1e-2;
    for (int64_t r = 0; r < 6; ++r) {
      for (int64_t c = 0; c < 12; ++c) {
        const auto color = static_cast<size_t>(c / 4);
        const double number =
            (pixels[static_cast<size_t>(12 * r + c)] / 255.0 - options.mean[color]) / options.std[color];
        EXPECT_NEAR(y.get(r, c), r % 3 == 0 ? 0 : number, tolerance * 4) << r << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace brisk
