// Notices files that change while they are read: what is made of them, a token file above all, must be of one state of
// each.
//
//   UnchangedFiles files;
//   files.add("corpus.txt");        // before the first byte is read
//   ...                             // hash it, read it, tokenize it
//   files.check();                  // UserError: it was written to, replaced or removed meanwhile
//
// A state is the file's device, inode, size, and times of modification and of status change to the nanosecond. The
// last of these cannot be set back, so a file that is cut and restored has changed, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brisk {

class UnchangedFiles {
 public:
  void add(const std::string& path);
  void check() const;

  // Of the states of all files: what an interrupted process made of them can be gone on with if it is the same.
  uint64_t fingerprint() const;

 private:
  struct File {
    std::string path, state;
  };
  std::vector<File> files_;
};

}  // namespace brisk
