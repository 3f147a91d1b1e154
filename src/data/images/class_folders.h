// Images that are sorted into a folder for each class: kinds/cat/001.jpg, kinds/dog/002.jpg.
//
//   if (is_class_folder("kinds")) ImageTable table = open_class_folders("kinds", cache_directory);    // as a table with labels
#pragma once

#include <string>

#include "data/images/image_table.h"

namespace brisk {

// A folder in which another one has images, however deep, or that has images and no table.
bool is_class_folder(const std::string& path);

// Writes the table into `cache_directory`, where it is not there yet, and opens it. UserError where there are images that are in
// no folder of a class, and where there is only one class.
ImageTable open_class_folders(const std::string& folder, const std::string& cache_directory);

// All images of a folder and those in it, by their names.
std::vector<std::string> images_of_folder(const std::string& folder);

// How many files in it are images of formats that are not read, which it is told; empty where there are none.
std::string unread_images_note(const std::string& folder);

}  // namespace brisk
