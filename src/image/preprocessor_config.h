// Hugging Face's preprocessor_config.json: ViTImageProcessor, DeiTImageProcessor, BeitImageProcessor, CLIPImageProcessor,
// DonutImageProcessor and NougatImageProcessor, and the feature extractors that they were called once.
//
//   const ImageProcessing processing = read_preprocessor_config(folder + "/preprocessor_config.json");
//   write_file_atomically(path, preprocessor_config_text(processing));
//
// A key that changes the pixels and that brisk cannot honour is a UserError that names it.
#pragma once

#include <string>
#include <string_view>

#include "image/image_input.h"

namespace brisk {

ImageProcessing read_preprocessor_config(const std::string& path);
ImageProcessing parse_preprocessor_config(std::string_view text, const std::string& name);
std::string preprocessor_config_text(const ImageProcessing& processing);

}  // namespace brisk
