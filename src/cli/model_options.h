// Which model a command asks, and how it is computed: the options that `brisk translate`, `predict` and `eval` share.
//
//   add_model_options(*command, arguments->model);
//   LoadedModel model = open_model(runtime, arguments.model);
#pragma once

#include <brisk/model.h>

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace brisk {

struct ModelArguments {
  std::string path, tokenizer;
  int64_t threads = 0;
  bool fp32 = false, allow_nonfinite = false;
  std::string device = "auto";
};

// --tokenizer, --allow-nonfinite, --threads, --device, --fp32
void add_model_options(CLI::App& command, ModelArguments& arguments);

LoadedModel open_model(Runtime& runtime, const ModelArguments& arguments);

}  // namespace brisk
