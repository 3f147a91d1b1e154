// Resizing a page as the processors of images do, and decoding image files:
//   BRISK_BENCH_IMAGES="page.png page.jpg" bench_image
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <sstream>

#include "image/image_file.h"
#include "image/process.h"

namespace {

using namespace brisk;

Image page() {
  Image image(1400, 1000);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7 + i / 3001);
  return image;
}

void resize_page(benchmark::State& state, Resampling resampling) {
  const Image image = page();
  for (auto _ : state) benchmark::DoNotOptimize(resize_image(image, state.range(0), state.range(1), resampling));
}

void read_file_of_image(benchmark::State& state, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(read_image(path));
}

void patches_of_page(benchmark::State& state) {
  const ImageInput input = ImageInput::resized(896, 672, 4, false);
  const Image image = process_image(page(), input.processing, "page");
  std::vector<uint8_t> pixels;
  for (auto _ : state) {
    pixels.clear();
    append_patches(image, input, pixels);
  }
}

const int kRegistered = [] {
  for (const auto& [name, resampling] :
       {std::pair{"resize/bilinear", Resampling::bilinear}, std::pair{"resize/bicubic", Resampling::bicubic}}) {
    benchmark::RegisterBenchmark(name, resize_page, resampling)
        ->Args({896, 672})
        ->Args({224, 224})
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("patches", patches_of_page)->Unit(benchmark::kMillisecond);
  const char* listed = std::getenv("BRISK_BENCH_IMAGES");
  std::istringstream paths(listed == nullptr ? "" : listed);
  for (std::string path; paths >> path;)
    benchmark::RegisterBenchmark(path.c_str(), read_file_of_image, path)->Unit(benchmark::kMillisecond);
  return 0;
}();

}  // namespace
