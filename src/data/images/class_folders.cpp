#include "data/images/class_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/text/plural.h"
#include "image/image_file.h"

namespace brisk {

std::vector<std::string> images_of_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> images;
  std::error_code problem;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator at(folder, options, problem), end; !problem && at != end;
       at.increment(problem)) {
    if (at->is_regular_file() && is_image_file(at->path().string()) && !at->path().filename().string().starts_with('.'))
      images.push_back(at->path().string());
  }
  if (problem) user_error("{}: cannot list it: {}", folder, problem.message());
  std::sort(images.begin(), images.end());
  return images;
}

std::string unread_images_note(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr const char* kUnread[] = {".bmp", ".gif", ".tif", ".tiff", ".avif", ".heic", ".jp2", ".jxl", ".svg"};
  std::set<std::string> kinds;
  int64_t count = 0;
  std::error_code problem;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator at(folder, options, problem), end; !problem && at != end;
       at.increment(problem)) {
    std::string kind = at->path().extension().string();
    for (char& c : kind) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (std::find(std::begin(kUnread), std::end(kUnread), kind) == std::end(kUnread)) continue;
    kinds.insert(kind);
    ++count;
  }
  if (count == 0) return "";
  return fmt::format("{}: {} {} {}, which brisk does not read: left out; convert {} to PNG or JPEG", folder,
                     plural(count, "file"), count == 1 ? "is" : "are", fmt::join(kinds, ", "),
                     count == 1 ? "it" : "them");
}

bool is_class_folder(const std::string& path) {
  namespace fs = std::filesystem;
  if (!is_directory(path)) return false;
  bool images = false, tables = false;
  std::error_code problem;
  for (fs::directory_iterator at(path, problem), end; !problem && at != end; at.increment(problem)) {
    if (at->is_directory() && !images_of_folder(at->path().string()).empty()) return true;
    images = images || is_image_file(at->path().string());
    tables = tables || is_table_file(at->path().string());
  }
  return images && !tables;  // of no class: open_class_folders says so
}

ImageTable open_class_folders(const std::string& folder, const std::string& cache_directory) {
  namespace fs = std::filesystem;
  const fs::path root = fs::absolute(folder).lexically_normal();
  std::string lines;
  std::set<std::string> classes;
  for (const std::string& image : images_of_folder(root.string())) {
    const fs::path path = fs::path(image).lexically_relative(root);
    const auto parts = std::distance(path.begin(), path.end());
    if (parts < 2) {
      user_error("{}: an image that is in no folder of a class; {} is to have a folder for each class, with its images",
                 image, folder);
    }
    const std::string label = path.begin()->string();
    classes.insert(label);
    const nlohmann::ordered_json line = {{"image", path.string()}, {"label", label}};
    lines += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  if (classes.size() < 2) {
    user_error("{}: images of {} alone; a classifier learns two classes or more, each a folder of images in it", folder,
               classes.empty() ? "no class" : "the class \"" + *classes.begin() + "\"");
  }
  make_directories(cache_directory);
  const std::string path = fmt::format("{}/classes-{:016x}.jsonl", cache_directory, hash_bytes(lines));
  if (!file_exists(path)) write_file_atomically(path, lines);
  return open_image_table({.paths = {path},
                           .image_field = "image",
                           .label_field = "label",
                           .labelled = true,
                           .image_folder = root.string()});
}

}  // namespace brisk
