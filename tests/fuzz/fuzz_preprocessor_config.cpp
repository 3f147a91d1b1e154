// preprocessor_config.json.
#include "fuzz/fuzz_input.h"
#include "image/preprocessor_config.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::unless_refused([&] {
    const ImageProcessing processing = parse_preprocessor_config(fuzz::text_of(data, size), "fuzz");
    fuzz::require(processing.output_height() > 0 && processing.output_width() > 0, "images have a size");
    for (size_t i = 0; i < processing.std.size(); ++i)
      fuzz::require(processing.std[i] > 0 && processing.mean[i] == processing.mean[i], "pixels can be normalised");
    const ImageProcessing again = parse_preprocessor_config(preprocessor_config_text(processing), "again");
    fuzz::require(again == processing, "written and read again it is the same");
  });
  return 0;
}
