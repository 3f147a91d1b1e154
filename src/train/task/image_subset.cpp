#include "train/task/image_subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files/files.h"
#include "data/read/source_files.h"
#include "data/table/label_check.h"
#include "job/job_conditions.h"
#include "train/task/prepare_images.h"

namespace brisk {

namespace {

struct ImageCopy {
  int64_t rows = 0;
  double share = 1;
};

// How many rows of each class are copied, so that every class has some: a folder of classes has them one after another.
int64_t share_of_class(const ImageTable& images, int64_t most, int64_t most_of_class) {
  std::map<std::string, int64_t> of_class;
  TableRowReader rows(images.table);
  TableRow row;
  while (rows.next(row)) ++of_class[std::string(trimmed_label(row.label))];
  of_class.erase("");
  const int64_t classes = std::max<int64_t>(1, std::ssize(of_class));
  return std::min(most_of_class, std::max<int64_t>(1, most / classes));
}

// The first rows of each class, or of all; paths are absolute. Where `classes` has some already, only rows of these.
ImageCopy copy_image_rows(const ImageTable& images, int64_t most, int64_t most_of_class, bool labelled,
                          std::set<std::string>& classes, const std::string& path) {
  using Json = nlohmann::ordered_json;
  ImageCopy copy;
  if (labelled) most_of_class = share_of_class(images, most, most_of_class);
  const bool all = classes.empty();
  std::map<std::string, int64_t> of_class;
  std::string lines;
  int64_t seen = 0;
  TableRowReader rows(images.table);
  TableRow row;
  while (rows.next(row)) {
    ++seen;
    if (copy.rows >= most || !has_text(row.text)) continue;
    const std::string label(labelled ? trimmed_label(row.label) : "");
    if (!labelled && !has_text(row.pair)) continue;
    if (labelled && (label.empty() || (!all && !classes.contains(label)) || ++of_class[label] > most_of_class))
      continue;
    if (labelled && all) classes.insert(label);
    const std::filesystem::path image = std::filesystem::path(images.folder) / row.text;
    Json line = {{"image", std::filesystem::absolute(image).lexically_normal().string()}};
    line[labelled ? "label" : "text"] = labelled ? label : std::string(row.pair);
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    ++copy.rows;
  }
  write_file_atomically(path, lines);
  copy.share = static_cast<double>(copy.rows) / static_cast<double>(std::max<int64_t>(1, seen));
  return copy;
}

}  // namespace

SmokeSubset take_image_subset(const Job& job, const std::string& folder, const SubsetSize& size, Job& small) {
  const bool labelled = traits_of_task(job.task).has_labels;
  make_directories(folder);
  const std::string subset_path = folder + "/subset.jsonl", validation_path = folder + "/validation.jsonl";
  std::set<std::string> known;
  const ImageCopy copied = copy_image_rows(open_job_images(job, ImagePart::train), size.rows, size.rows_of_class,
                                           labelled, known, subset_path);
  SmokeSubset subset{.text = fmt::format("{} of the job's own images", copied.rows), .share = copied.share};
  subset.origin = {{subset_path, job.data.train.front().path}};
  small.data.train = {DataSource(subset_path)};
  small.data.images.clear();
  small.data.texts.clear();
  small.data.split.clear();
  small.data.image_field = "image";
  (labelled ? small.data.label_field : small.data.text_field) = labelled ? "label" : "text";
  small.data.validation.clear();
  const bool divides = job.data.validation.empty() && job.data.split.empty();
  if (size.validation_rows) small.data.validation_fraction = 0;
  const bool copies =
      size.validation_rows ? *size.validation_rows > 0 && (!divides || job.data.validation_fraction > 0) : !divides;
  if (copies) {
    const int64_t rows = size.validation_rows.value_or(size.rows);
    copy_image_rows(open_job_images(job, divides ? ImagePart::train : ImagePart::validation), rows,
                    size.validation_rows ? std::max<int64_t>(4, rows / 2) : size.rows_of_class, labelled, known,
                    validation_path);
    small.data.validation = {validation_path};
    subset.origin.emplace_back(validation_path,
                               job.data.validation.empty() ? job.data.train.front().path : job.data.validation.front());
  } else if (!size.validation_rows) {
    small.data.validation_fraction = std::max(0.1, small.data.validation_fraction);
  }
  return subset;
}

}  // namespace brisk
