// What says which images there are. The first line is "split" and a part, of a JSON file with lists of names; or a kind of table
// and what is read of it: "csv texts", "jsonl labels", with the columns of image and text or label where they are named.
#include <set>
#include <sstream>

#include "data/images/image_folders.h"
#include "fuzz/fuzz_input.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  const size_t cut = std::min(content.find('\n'), content.size());
  const std::string_view text = content.substr(std::min(cut + 1, content.size()));
  std::istringstream words{std::string(content.substr(0, cut))};
  std::string kind, what, said;
  TableOptions options{.images = true};
  words >> kind >> what >> options.text_field >> said;
  fuzz::unless_refused([&] {
    if (kind == "split") {
      const ImagePart part = what == "test"    ? ImagePart::test
                             : what == "train" ? ImagePart::train
                                               : ImagePart::validation;
      const std::vector<std::string> names = names_of_part(text, part, "split.json");
      fuzz::require(!names.empty() && std::set(names.begin(), names.end()).size() == names.size(),
                    "every name is there once");
      return;
    }
    options.labelled = what == "labels";
    (options.labelled ? options.label_field : options.pair_field) = said;
    std::string note;
    const TableFile file =
        find_columns("a." + (kind == "csv" || kind == "tsv" ? kind : "jsonl"), text, true, options, nullptr, note);
    fuzz::require(file.text >= 0 && (options.labelled ? file.label : file.pair) >= 0, "both columns were found");
    for_each_row(file, text, 0, 1, [&](const TableRow& row) {
      fuzz::require(row.line >= 1, "a row begins on a line");
      fuzz::sum_of_bytes(row.text.data(), std::ssize(row.text));
    });
  });
  return 0;
}
