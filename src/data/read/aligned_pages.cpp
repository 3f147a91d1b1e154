#include "data/read/aligned_pages.h"

#include <map>

#include "base/error.h"
#include "base/files/files.h"
#include "data/read/byte_reader.h"
#include "data/read/source_files.h"

namespace brisk {

namespace {

constexpr size_t kMostPageBytes = size_t{64} << 20;

std::map<std::string, std::string> pages_of(const std::string& folder) {
  std::map<std::string, std::string> pages;  // path by page
  for (const std::string& name : names_in(folder)) {
    const std::string path = folder + "/" + name;
    if (name.starts_with('.') || is_directory(path)) continue;
    const std::string plain = unpacked_name(name);
    const std::string page = plain.substr(0, plain.rfind('.'));
    const auto [found, is_new] = pages.try_emplace(page, path);
    if (!is_new)
      user_error("{}: {} is the same page by its name; leave one of them in the folder", path, found->second);
  }
  return pages;
}

std::string read_page(const std::string& path) {
  std::string text;
  if (!fill_buffer(*open_byte_reader(path), kMostPageBytes, text)) {
    user_error("{}: it has more than 64 MiB of text: is it a page?", path);
  }
  check_text(path, text, 0, 1);
  return std::string(without_byte_order_mark(text));
}

}  // namespace

AlignedPages::AlignedPages(const std::vector<std::string>& folders) : texts_(folders.size()) {
  for (const std::string& folder : folders) {
    if (!is_directory(folder))
      user_error("{}: not a folder, but another of the arguments is one; give folders or files", folder);
  }
  for (auto& [name, path] : pages_of(folders[0])) pages_.push_back({name, {path}});
  for (size_t i = 1; i < folders.size(); ++i) {
    const std::map<std::string, std::string> others = pages_of(folders[i]);
    for (Page& page : pages_) {
      const auto found = others.find(page.name);
      if (found == others.end()) {
        user_error("{}: there is no file {}.* in {}; give each page a file of the same name", page.paths[0], page.name,
                   folders[i]);
      }
      page.paths.push_back(found->second);
    }
    unmatched_ += static_cast<int64_t>(others.size() - pages_.size());
  }
}

bool AlignedPages::next() {
  if (next_ == pages_.size()) return false;
  const Page& page = pages_[next_++];
  for (size_t i = 0; i < page.paths.size(); ++i) texts_[i] = read_page(page.paths[i]);
  return true;
}

}  // namespace brisk
