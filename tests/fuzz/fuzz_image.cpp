// An image file of any format.
#include "fuzz/fuzz_input.h"
#include "image/image_file.h"
#include "image/process.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  fuzz::unless_refused([&] {
    const ImageHeader header = image_header(bytes, "fuzz");
    fuzz::require(header.height > 0 && header.width > 0 && header.height * header.width <= kMostImagePixels,
                  "the header has a size that may be read");
    // (A JPEG file of few bytes may have many blocks of one colour: larger ones are decoded for no less time than they take.)
    constexpr int64_t kMostPixels = int64_t{1} << 18;
    if (header.height * header.width > kMostPixels) return;
    const Image image = decode_image(bytes, "fuzz");
    fuzz::require(image.height == header.height && image.width == header.width, "the image has the size of its header");
    fuzz::require(std::ssize(image.pixels) == image.height * image.width * kColors, "and all its pixels");
    fuzz::sum_of_bytes(image.pixels.data(), std::ssize(image.pixels));
    const ImageInput input = ImageInput::resized(6, 4, 2, true);
    std::vector<uint8_t> pixels;
    append_patches(process_image(image, input.processing, "fuzz"), input, pixels);
    fuzz::require(std::ssize(pixels) == input.rows() * input.cols(), "it becomes a row for each patch");
  });
  return 0;
}
