// Folders of text files that belong together by their names: pages that a model wrote, and their references.
//
//   AlignedPages pages({"output", "reference"});       // output/7.md and reference/7.mmd are page "7"
//   while (pages.next()) use(pages.name(), pages.text(0), pages.text(1));
//
// The files of the first folder are the pages, by name; what other folders have besides is not read and counted (unmatched()).
// A page that another folder lacks, two files of a folder that differ only in their extension (.gz and .zst are none), and
// what is not UTF-8 are a UserError. Hidden files and folders within are passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

class AlignedPages {
 public:
  explicit AlignedPages(const std::vector<std::string>& folders);

  int64_t count() const { return static_cast<int64_t>(pages_.size()); }
  int64_t unmatched() const { return unmatched_; }

  bool next();  // false at the end
  const std::string& name() const { return pages_[next_ - 1].name; }
  std::string_view text(size_t folder) const { return texts_[folder]; }  // until next()

 private:
  struct Page {
    std::string name;                // without an extension
    std::vector<std::string> paths;  // of each folder
  };
  std::vector<Page> pages_;
  size_t next_ = 0;
  int64_t unmatched_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace brisk
