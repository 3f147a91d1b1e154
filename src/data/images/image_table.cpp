#include "data/images/image_table.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/runtime.h"

namespace brisk {

namespace {

// The path of an image as tokens: its bytes.
class PathBytes final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    for (const char c : text) out.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) text += static_cast<char>(id);
    return text;
  }
  std::string piece(TokenId id) const override { return std::string(1, static_cast<char>(id)); }
  int64_t vocab_size() const override { return 256; }
  std::optional<TokenId> end_of_document() const override { return std::nullopt; }
  std::optional<TokenId> start_of_text() const override { return std::nullopt; }
  uint64_t fingerprint() const override { return hash_bytes("the bytes of a path"); }
  void save(const std::string& /*path*/) const override { BRISK_CHECK(false, "nothing to save"); }
};

const PathBytes& path_bytes() {
  static const PathBytes bytes;
  return bytes;
}

// The folder that all files are in.
std::string folder_of(const InputTable& table, const std::string& option) {
  std::string folder;
  for (size_t i = 0; i < table.files().size(); ++i) {
    const std::string of_file = std::filesystem::path(table.files()[i].path).parent_path().string();
    if (i > 0 && of_file != folder) {
      user_error(
          "{} and {} are in different folders, so where their images are is not clear; set {} to the folder that "
          "the paths of images begin at",
          table.files()[0].path, table.files()[i].path, option);
    }
    folder = of_file;
  }
  return folder;
}

}  // namespace

ImageTable open_image_table(const ImageTableOptions& options) {
  TableOptions of_table{.paths = options.paths,
                        .text_field = options.image_field,
                        .label_field = options.labelled ? options.label_field : "",
                        .pair_field = options.labelled ? "" : options.text_field,
                        .labelled = options.labelled,
                        .images = true,
                        .of_job = options.of_job};
  ImageTable images{InputTable(std::move(of_table)), options.image_folder};
  if (images.folder.empty())
    images.folder = folder_of(images.table, options.of_job ? "data.images" : option_name("images"));
  return images;
}

std::string ImageRows::image_path_of_row(int64_t row) const {
  const ExampleData& data = examples.data();
  std::vector<TokenId> bytes(static_cast<size_t>(data.lengths_of(row).first));
  if (!bytes.empty()) data.copy(data.place_of(row, 0), std::ssize(bytes), bytes.data());
  std::string path = path_bytes().decode(bytes);
  return path.starts_with('/') || folder.empty() ? path : folder + "/" + path;
}

std::vector<std::string> ImageRows::image_paths() const {
  std::vector<std::string> paths;
  for (int64_t row = 0; row < examples.data().rows(); ++row) paths.push_back(image_path_of_row(row));
  return paths;
}

ImageRows open_image_rows(const ImageTable& table, const Tokenizer* tokenizer, const std::string& cache_directory,
                          const TokenizeProgress& progress) {
  if (tokenizer == nullptr) return open_image_rows(table, LabelSet(), cache_directory, progress);
  BRISK_CHECK(table.table.has_pairs(), "images without texts");
  return {ExampleSet(open_examples(table.table, {path_bytes(), *tokenizer}, cache_directory, progress)), table.folder};
}

ImageRows open_image_rows(const ImageTable& table, const LabelSet& labels, const std::string& cache_directory,
                          const TokenizeProgress& progress) {
  return {ExampleSet(open_examples(table.table, path_bytes(), cache_directory, progress), path_bytes(), labels),
          table.folder};
}

}  // namespace brisk
