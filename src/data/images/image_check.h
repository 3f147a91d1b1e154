// Whether images can be read, before a run begins, and a fingerprint of what they are.
//
//   ImageCheck check = check_images(paths, BrokenImages::refuse, cache_directory);    // reads headers; UserError
//   ImageCheck check = check_images(paths, BrokenImages::skip, cache_directory);      // decodes every image
//   check.broken;        // those to be left out, by number, ascending
//   check.fingerprint;   // of all files: sizes, and the first and the last 4 KiB of each
//
// All cores share the work, and the outcome is kept in `cache_directory` until a file changes (its size or its date).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/images/image_table.h"

namespace brisk {

// refuse: an image that cannot be read ends the run, by its header before it begins, by its body when it is wanted.
// skip: all images are decoded at the start, and those that cannot be are left out.
enum class BrokenImages : uint8_t { refuse, skip };

struct ImageCheck {
  std::vector<int64_t> broken;     // empty with `refuse`
  std::vector<std::string> notes;  // for the user: how many and which
  uint64_t fingerprint = 0;
};

// `skipping`: what messages say the user can do instead.
ImageCheck check_images(std::span<const std::string> paths, BrokenImages rule, const std::string& cache_directory,
                        const TokenizeProgress& progress = {},
                        const std::string& skipping = "data.broken_images = \"skip\"");

// `rows` without those whose image is broken: numbers of rows of rows.examples.data().
ImageRows without_images(const ImageRows& rows, std::span<const int64_t> broken);

}  // namespace brisk
