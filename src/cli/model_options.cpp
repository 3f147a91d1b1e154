#include "cli/model_options.h"

#include <brisk/runtime.h>

#include <CLI/CLI.hpp>

#include "cli/device_option.h"
#include "cli/limits.h"
#include "cli/nonfinite_option.h"

namespace brisk {

void add_model_options(CLI::App& command, ModelArguments& arguments) {
  command.add_option("--tokenizer", arguments.tokenizer, "Tokenizer to use instead of the model's own");
  add_nonfinite_option(command, arguments.allow_nonfinite);
  add_threads_option(command, arguments.threads);
  add_device_option(command, arguments.device);
  command.add_flag("--fp32", arguments.fp32, "Compute in fp32 (default: the number format of the run)");
}

LoadedModel open_model(Runtime& runtime, const ModelArguments& arguments) {
  set_threads(runtime, arguments.threads);
  return {runtime,
          arguments.path,
          {.tokenizer = arguments.tokenizer,
           .device = arguments.device,
           .as_trained = !arguments.fp32,
           .allow_nonfinite = arguments.allow_nonfinite}};
}

}  // namespace brisk
