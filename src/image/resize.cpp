#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/machine/isa.h"
#include "image/process.h"

namespace brisk {

namespace {

// The filters, with an edge of one input pixel at 1.
double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

double box_filter(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

double bilinear_filter(double x) { return std::max(0.0, 1 - std::abs(x)); }

double hamming_filter(double x) {
  x = std::abs(x);
  return x >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * std::cos(std::numbers::pi * x));
}

double bicubic_filter(double x) {
  constexpr double a = -0.5;  // the slope at 1
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

double lanczos_filter(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

struct Filter {
  double (*value)(double);
  double support;
};

Filter filter_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::box: return {box_filter, 0.5};
    case Resampling::bilinear: return {bilinear_filter, 1};
    case Resampling::hamming: return {hamming_filter, 1};
    case Resampling::bicubic: return {bicubic_filter, 2};
    case Resampling::lanczos: return {lanczos_filter, 3};
    case Resampling::nearest: break;
  }
  BRISK_CHECK(false, "no filter of resampling {}", static_cast<int>(resampling));
  return {};
}

// The pixel under the middle of each output pixel; the places are added up, as PIL does.
std::vector<int64_t> nearest_places(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  std::vector<int64_t> places;
  double place = scale * 0.5;
  for (int64_t i = 0; i < out; ++i, place += scale) places.push_back(std::min(static_cast<int64_t>(place), in - 1));
  return places;
}

Image nearest(const Image& image, int64_t height, int64_t width) {
  const std::vector<int64_t> columns = nearest_places(image.width, width), rows = nearest_places(image.height, height);
  Image out(height, width);
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* from = image.row(rows[static_cast<size_t>(y)]);
    uint8_t* to = out.row(y);
    for (int64_t x = 0; x < width; ++x)
      std::copy_n(from + columns[static_cast<size_t>(x)] * kColors, kColors, to + x * kColors);
  }
  return out;
}

}  // namespace

ResizeWeights resize_weights(int64_t in, int64_t out, Resampling resampling) {
  const Filter filter = filter_of(resampling);
  const double scale = static_cast<double>(in) / static_cast<double>(out), wide = std::max(scale, 1.0);
  const double support = filter.support * wide;  // wider where pixels are summed up: that is the antialiasing
  ResizeWeights weights;
  weights.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  weights.values.assign(static_cast<size_t>(out * weights.stride), 0);
  std::vector<double> shares(static_cast<size_t>(weights.stride));
  for (int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max(int64_t{0}, static_cast<int64_t>(center - support + 0.5));
    const auto end = std::min(in, static_cast<int64_t>(center + support + 0.5));
    double total = 0;
    for (int64_t j = first; j < end; ++j) {
      const double share = filter.value((static_cast<double>(j) - center + 0.5) * (1 / wide));
      shares[static_cast<size_t>(j - first)] = share;
      total += share;
    }
    int32_t* values = weights.values.data() + i * weights.stride;
    for (int64_t j = 0; j < end - first; ++j) {
      const double share = total == 0 ? shares[static_cast<size_t>(j)] : shares[static_cast<size_t>(j)] / total;
      values[j] = static_cast<int32_t>(share * (1 << ResizeWeights::kBits) + (share < 0 ? -0.5 : 0.5));
    }
    weights.spans.push_back({first, end - first});
  }
  return weights;
}

Image resize_image(const Image& image, int64_t height, int64_t width, Resampling resampling) {
  BRISK_CHECK(height > 0 && width > 0 && image.height > 0 && image.width > 0, "{} x {} to {} x {}", image.height,
              image.width, height, width);
  if (height == image.height && width == image.width) return image;
  if (resampling == Resampling::nearest) return nearest(image, height, width);
  const bool fast = active_isa() >= Isa::avx2;
  const auto rows = fast ? avx2::resize_rows : ref::resize_rows;
  const auto columns = fast ? avx2::resize_columns : ref::resize_columns;
  const Image* from = &image;
  Image narrowed;
  if (width != image.width) {
    narrowed = Image(image.height, width);
    rows(image, resize_weights(image.width, width, resampling), narrowed);
    from = &narrowed;
  }
  if (height == image.height) return narrowed;
  Image out(height, width);
  columns(*from, resize_weights(image.height, height, resampling), out);
  return out;
}

}  // namespace brisk
