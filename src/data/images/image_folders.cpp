#include "data/images/image_folders.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"
#include "base/text/printable.h"
#include "data/read/source_files.h"
#include "image/image_file.h"

namespace brisk {

namespace {

constexpr FileKind kImageText = {"the text of an image", 16 * file_kind::kMebibyte};
constexpr FileKind kImageSplit = {"a list of names", 256 * file_kind::kMebibyte};
constexpr size_t kNamesShown = 5;

struct PartKeys {
  const char* list;   // the key of the list in a split file
  const char* brief;  // as others do
};

PartKeys keys_of(ImagePart part) {
  switch (part) {
    case ImagePart::train: return {"train_name_list", "train"};
    case ImagePart::validation: return {"valid_name_list", "validation"};
    case ImagePart::test: return {"test_name_list", "test"};
    case ImagePart::all: break;
  }
  return {"", ""};
}

std::string image_stem(const std::string& name) { return is_image_file(name) ? name.substr(0, name.rfind('.')) : name; }

bool is_text_of_image(const std::string& name) {
  const std::string extension = lowercase_extension(name);
  return extension == ".mmd" || extension == ".md" || extension == ".txt" || extension == ".tex" ||
         extension == ".html";
}

// Files by their names without extensions. Two files of one name are refused: which is meant nobody can tell.
template <typename Wanted>
std::map<std::string, std::string> files_by_stem(const std::string& folder, const Wanted& wanted, const char* what) {
  if (!is_directory(folder)) user_error("{}: there is no such folder; expected one of {}", folder, what);
  std::map<std::string, std::string> files;
  for (const std::string& name : names_in(folder)) {
    if (name.starts_with('.') || !wanted(name)) continue;
    const auto [other, is_new] = files.emplace(name.substr(0, name.rfind('.')), name);
    if (!is_new) user_error("{}: '{}' and '{}' have the same name; remove one of them", folder, other->second, name);
  }
  if (files.empty()) user_error("{}: no {} in it", folder, what);
  return files;
}

std::string some_of(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kNamesShown, names.size()); ++i) shown.push_back(printable(names[i], 60));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kNamesShown ? ", ..." : "");
}

// Of what is in the table: which files, and when they were written.
uint64_t hash_of_files(const ImageFolders& folders, const std::vector<ImageAndText>& files) {
  uint64_t hash = hash_bytes(std::filesystem::absolute(folders.texts).lexically_normal().string());
  for (const ImageAndText& file : files) {
    struct stat facts {};
    const std::string path = folders.texts + "/" + file.text;
    if (::stat(path.c_str(), &facts) != 0) user_error("{}: cannot be read: {}", path, explain_errno(errno));
    hash = hash_bytes(file.image, hash_bytes(file.text, hash));
    hash = hash_mix(hash, static_cast<uint64_t>(facts.st_size));
    hash = hash_mix(hash, static_cast<uint64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 +
                              static_cast<uint64_t>(facts.st_mtim.tv_nsec));
  }
  return hash;
}

std::string text_of_file(const std::string& path) {
  std::string text = read_file(path, kImageText);
  check_text(path, text, 0, 1);
  text = std::string(without_byte_order_mark(text));
  make_line_ends_plain(text);
  return text;
}

void write_table(const ImageFolders& folders, const std::vector<ImageAndText>& files, const std::string& path) {
  AtomicFile table(path);
  std::vector<std::string> empty;
  for (const ImageAndText& file : files) {
    check_text(folders.images + "/" + file.image, file.image, 0, 1);  // that its name is UTF-8
    const std::string text = text_of_file(folders.texts + "/" + file.text);
    if (!has_text(text)) empty.push_back(file.text);
    table.write(nlohmann::ordered_json({{"image", file.image}, {"text", text}}).dump() + "\n");
  }
  if (empty.size() * 10 > files.size()) {
    user_error("{}: {} of {} files have no text in them: {}; fetch them again, or leave their images out",
               folders.texts, empty.size(), files.size(), some_of(empty));
  }
  table.commit();
}

}  // namespace

std::vector<std::string> names_of_part(std::string_view json, ImagePart part, const std::string& file) {
  const auto split = parse_json(json, file, "fetch the file again");
  const PartKeys keys = keys_of(part);
  if (!split.is_object()) user_error("{}: expected an object with \"{}\", a list of names", file, keys.list);
  const char* key = split.contains(keys.list) ? keys.list : keys.brief;
  if (!split.contains(key)) {
    std::vector<std::string> there;
    for (const auto& [name, value] : split.items()) there.push_back(name);
    user_error("{}: no list \"{}\"; it has {}", file, keys.list, there.empty() ? "nothing" : some_of(there));
  }
  const auto& list = split.at(key);
  if (!list.is_array() || list.empty()) user_error("{}: {}: expected a list of names, and at least one", file, key);
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const auto& name : list) {
    if (!name.is_string()) user_error("{}: {}: {}, expected a name", file, key, json_in_message(name));
    names.push_back(image_stem(name.get<std::string>()));
    if (!known.insert(names.back()).second) user_error("{}: {}: '{}' is in it twice", file, key, names.back());
  }
  return names;
}

std::vector<ImageAndText> pair_image_files(const ImageFolders& folders, ImagePart part,
                                           std::vector<std::string>& notes) {
  const auto images = files_by_stem(folders.images, is_image_file, "images (.png, .jpg, .webp, .ppm)");
  const auto texts = files_by_stem(folders.texts, is_text_of_image, "texts (.mmd, .md, .txt, .tex, .html)");
  std::vector<std::string> names;
  if (part == ImagePart::all) {
    for (const auto& [name, image] : images) names.push_back(name);
  } else {
    names = names_of_part(read_file(folders.split, kImageSplit), part, folders.split);
  }
  std::vector<ImageAndText> files;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto image = images.find(name), text = texts.find(name);
    if (image != images.end() && text != texts.end()) {
      files.push_back({image->second, text->second});
    } else {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    const std::string what = fmt::format("{} of {} names{} have no image in {} or no text in {}: {}", missing.size(),
                                         names.size(), part == ImagePart::all ? "" : " of " + folders.split,
                                         folders.images, folders.texts, some_of(missing));
    if (missing.size() * 10 > names.size()) user_error("{}; fetch the files that are missing", what);
    notes.push_back("skipped: " + what);
  }
  return files;
}

ImageTable open_image_folders(const ImageFolders& folders, ImagePart part, const std::string& cache_directory) {
  std::vector<std::string> notes;
  const std::vector<ImageAndText> files = pair_image_files(folders, part, notes);
  make_directories(cache_directory);
  const std::string path = fmt::format("{}/images-{:016x}.jsonl", cache_directory, hash_of_files(folders, files));
  if (!file_exists(path)) write_table(folders, files, path);
  notes.insert(notes.begin(),
               fmt::format("{} and {}: {} with {}", folders.images, folders.texts, plural(std::ssize(files), "image"),
                           files.size() == 1 ? "its text" : "their texts"));
  TableOptions options{.paths = {path}, .text_field = "image", .pair_field = "text", .labelled = false, .images = true};
  options.notes = std::move(notes);
  return {InputTable(std::move(options)), folders.images};
}

}  // namespace brisk
