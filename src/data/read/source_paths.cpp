#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/files/files.h"
#include "data/read/byte_reader.h"
#include "data/read/source.h"
#include "data/read/source_files.h"

namespace brisk {

namespace fs = std::filesystem;

namespace {

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.empty() && name[0] == '.';
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_hidden(it->path())) entries.push_back(it->path());
  }
  if (error) {
    user_error("{}: cannot list the folder: {}; check its permissions", folder.string(), explain_errno(error.value()));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Folders reached by a symbolic link are left out: they may lead in a circle.
bool is_plain_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(fs::symlink_status(path, error));
}

std::string kind_of(const fs::path& path) {
  const std::string extension = lowercase_extension(path.string());
  const std::string inner = lowercase_extension(unpacked_name(path.string()));
  return extension.empty() ? "no extension" : inner == extension ? extension : inner + extension;
}

// The usable files of a folder; `others` counts the rest by extension.
void collect_folder(const fs::path& folder, const FileChoice& choice, std::vector<std::string>& found,
                    SkippedFiles& others) {
  for (const fs::path& entry : sorted_entries(folder)) {
    std::error_code error;
    if (is_plain_folder(entry)) {
      collect_folder(entry, choice, found, others);
    } else if (fs::is_regular_file(entry, error)) {
      if (choice.is_usable(entry.string())) {
        found.push_back(entry.string());
      } else {
        ++others[kind_of(entry)];
      }
    }
  }
}

// Matches the components of `pattern` from number `at` on against what is in `folder`.
void collect_glob(const fs::path& folder, const std::vector<std::string>& pattern, size_t at,
                  std::vector<fs::path>& found) {
  const bool last = at + 1 == pattern.size();
  if (pattern[at] == "**") {
    if (!last) collect_glob(folder, pattern, at + 1, found);
    for (const fs::path& entry : sorted_entries(folder.empty() ? "." : folder)) {
      const fs::path path = folder / entry.filename();
      if (is_plain_folder(path)) {
        collect_glob(path, pattern, at, found);
      } else if (last) {
        found.push_back(path);
      }
    }
    return;
  }
  if (!has_wildcard(pattern[at])) {
    const fs::path path = folder / pattern[at];
    std::error_code error;
    if (last ? fs::exists(path, error) : fs::is_directory(path, error)) {
      last ? found.push_back(path) : collect_glob(path, pattern, at + 1, found);
    }
    return;
  }
  std::error_code error;
  if (!fs::is_directory(folder.empty() ? "." : folder, error)) return;
  for (const fs::path& entry : sorted_entries(folder.empty() ? "." : folder)) {
    if (fnmatch(pattern[at].c_str(), entry.filename().c_str(), FNM_PERIOD) != 0) continue;
    const fs::path path = folder / entry.filename();
    if (last) {
      found.push_back(path);
    } else if (fs::is_directory(path, error)) {
      collect_glob(path, pattern, at + 1, found);
    }
  }
}

void add_folder(const std::string& folder, const FileChoice& choice, std::vector<std::string>& files,
                SkippedFiles& skipped) {
  SkippedFiles others;
  const size_t before = files.size();
  collect_folder(folder, choice, files, others);
  if (files.size() == before) {
    std::vector<std::string> kinds;
    for (const auto& [kind, count] : others) kinds.push_back(kind);
    user_error(
        "{}: no {} file, plain or compressed (.gz, .zst), in this folder or below it ({}); give the text "
        "in one of these, or name the files",
        folder, choice.kinds, kinds.empty() ? "it is empty" : fmt::format("found only {}", fmt::join(kinds, ", ")));
  }
  for (const auto& [kind, count] : others) skipped[kind] += count;
}

void add_glob(const std::string& glob, const FileChoice& choice, std::vector<std::string>& files,
              SkippedFiles& skipped) {
  std::vector<std::string> pattern;
  const fs::path path(glob);
  for (const fs::path& component : path.relative_path()) {
    if (!component.empty()) pattern.push_back(component.string());
  }
  std::vector<fs::path> found;
  collect_glob(path.root_path(), pattern, 0, found);
  if (found.empty()) {
    user_error("{}: no file matches (from the folder {}); check the pattern", glob, fs::current_path().string());
  }
  // Without this, a pattern such as data/* would fail over one stray file; with a name that says more than *, what
  // it matches is what the user means.
  const bool matches_any_name = pattern.back() == "*" || pattern.back() == "**";
  const size_t before = files.size();
  for (const fs::path& match : found) {
    std::error_code error;
    if (fs::is_directory(match, error)) {
      collect_folder(match, choice, files, skipped);
    } else if (!matches_any_name || choice.is_usable(match.string())) {
      files.push_back(match.string());
    } else {
      ++skipped[kind_of(match)];
    }
  }
  if (files.size() == before)
    user_error("{}: matches no {} file, plain or compressed; check the pattern", glob, choice.kinds);
}

}  // namespace

std::string lowercase_extension(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return extension;
}

const FileChoice kTextFiles = {is_text_file, ".txt or .jsonl"};

std::vector<std::string> expand_paths(const std::vector<std::string>& entries, SkippedFiles* skipped,
                                      const FileChoice& choice) {
  SkippedFiles uncounted;
  SkippedFiles& others = skipped != nullptr ? *skipped : uncounted;
  if (entries.empty()) user_error("no data: name a file, a folder or a glob");
  std::vector<std::string> files;
  for (const std::string& entry : entries) {
    std::error_code error;
    const fs::file_status status = fs::status(entry, error);
    if (fs::is_directory(status)) {
      add_folder(entry, choice, files, others);
    } else if (fs::exists(status)) {  // a name that exists is a name, whatever wildcards it holds
      if (!fs::is_regular_file(status)) user_error("{}: not a regular file; give a file, a folder or a glob", entry);
      files.push_back(entry);
    } else if (error && error != std::errc::no_such_file_or_directory) {
      user_error("{}: cannot be read: {}", entry, explain_errno(error.value()));
    } else if (has_wildcard(entry)) {
      add_glob(entry, choice, files, others);
    } else {
      user_error("{}: no such file or folder{}; check the name", entry,
                 entry.empty() || entry[0] == '/' ? "" : fmt::format(" (looked from {})", fs::current_path().string()));
    }
  }
  std::sort(files.begin(), files.end());
  std::set<fs::path> seen;
  std::erase_if(files, [&](const std::string& file) {
    std::error_code error;
    const fs::path real = fs::canonical(file, error);
    return !seen.insert(error ? fs::path(file) : real).second;
  });
  return files;
}

}  // namespace brisk
