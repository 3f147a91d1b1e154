// The files of two folders that belong together, and the lists of names that divide them (image_table.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/images/image_table.h"

namespace brisk {

// The names of a part, without the extensions that images have: {"train_name_list": ["a", "b.png"], "valid_name_list": [...],
// "test_name_list": [...]}. UserError, naming the file, where the list is not there, is empty or has a name twice.
std::vector<std::string> names_of_part(std::string_view json, ImagePart part, const std::string& file);

struct ImageAndText {
  std::string image, text;  // file names, without their folders
};
// UserError where there are none, or where more than one in ten of the part's names is not in both folders; `notes` says
// how many others are left out.
std::vector<ImageAndText> pair_image_files(const ImageFolders& folders, ImagePart part,
                                           std::vector<std::string>& notes);

}  // namespace brisk
