// The image that a sample is the text of, small enough to be part of a page.
//
//   body += html("<img src=\"{}\" alt=\"{}\">", sample_image("scans/17.png"), "scans/17.png");
#pragma once

#include <string>

namespace brisk {

// A data URI; nothing where the image cannot be read any more.
std::string sample_image(const std::string& path);

}  // namespace brisk
