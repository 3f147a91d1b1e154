#include "report/page/sample_image.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/base64.h"
#include "image/image_file.h"
#include "image/png_writer.h"
#include "image/process.h"

namespace brisk {

namespace {

constexpr int64_t kMostWidth = 480, kMostHeight = 640;

}  // namespace

std::string sample_image(const std::string& path) {
  Image image;
  try {
    image = read_image(path);
  } catch (const UserError&) {
    return {};
  }
  const double scale = std::min({1.0, static_cast<double>(kMostWidth) / static_cast<double>(image.width),
                                 static_cast<double>(kMostHeight) / static_cast<double>(image.height)});
  if (scale < 1) {
    const auto scaled = [scale](int64_t size) {
      return std::max<int64_t>(1, static_cast<int64_t>(scale * static_cast<double>(size)));
    };
    image = resize_image(image, scaled(image.height), scaled(image.width), Resampling::bilinear);
  }
  return "data:image/png;base64," + encode_base64(png_bytes(image));
}

}  // namespace brisk
