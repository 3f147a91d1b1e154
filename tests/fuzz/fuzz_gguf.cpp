// A GGUF file: its values and tensors, the model it describes, its tokenizer.
#include "fuzz/tokenizer_use.h"
#include "hub/gguf/gguf_model.h"
#include "hub/gguf/gguf_tokenizer.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::unless_refused([&] {
    const GgufFile file("model.gguf", fuzz::bytes_of(data, size));
    for (const auto& [key, value] : file.values()) fuzz::require(file.value(key) == &value, "a value is found");
    for (const GgufTensor& tensor : file.tensors()) {
      fuzz::require(file.find(tensor.name) == &tensor, "a tensor is found by its name");
      fuzz::require(!gguf_type_name(tensor.type).empty(), "a type has a name");
      if (tensor.is_readable()) fuzz::sum_of_bytes(tensor.data, tensor.bytes);
    }
    fuzz::unless_refused([&] {
      Job job;
      job.model = GgufModel(GgufFile("model.gguf", fuzz::bytes_of(data, size))).options();
      const auto write_and_read = [&] {
        resolve_defaults(job);
        job_from_json_text(job_to_json_text(job), "job.json");
      };
      fuzz::require(fuzz::unless_refused(write_and_read), "a model that is read makes a job");
    });
    fuzz::use_tokenizer(*tokenizer_of(file), fuzz::text_of(data, size).substr(size / 2));
  });
  return 0;
}
