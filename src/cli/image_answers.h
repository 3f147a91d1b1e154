// What `brisk predict --images` writes: the texts of images, or their classes, in the order of the images.
//
//   add_image_options(*command, arguments->of_images);
//   predict_images(runtime, model, "scans", arguments.of_images);
#pragma once

#include <brisk/model.h>

#include <cstddef>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace brisk {

struct ImageArguments {
  std::string output;          // a folder that gets a file for each image; "": standard output
  std::string suffix = ".md";  // of these files
  bool json = false, skip_broken = false;
  TranslateOptions options;
};

// --output, --suffix, --json, --skip-broken and how texts are searched
void add_image_options(CLI::App& command, ImageArguments& arguments);

void predict_images(Runtime& runtime, LoadedModel& model, const std::string& images, const ImageArguments& arguments);

// JSON lines with the label and all probabilities, and the name of the image where these are of images.
void print_predictions(const LoadedModel& model, std::span<const Prediction> predictions,
                       std::span<const std::string> images);

}  // namespace brisk
