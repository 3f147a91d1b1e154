#include "fuzz/fuzz_input.h"
#include "infer/open/label_file.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string content(fuzz::text_of(data, size));
  for (const int64_t count : {0, 2, 3}) {
    fuzz::unless_refused([&] {
      const LabelSet labels = labels_from_json_text(content, "labels.json", count);
      fuzz::require(labels.count() >= 2 && (count == 0 || labels.count() == count), "as many as the model has");
      for (int64_t i = 0; i < labels.count(); ++i) {
        fuzz::require(labels.find(labels.name(i)) == i, "each has a name of its own");
      }
    });
  }
  return 0;
}
