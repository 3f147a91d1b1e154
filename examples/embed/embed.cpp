// Trains a tiny language model on a text, shows the loss as it falls, and continues a text with it.
//   embed TEXT RUN_DIRECTORY
#include <brisk/job.h>
#include <brisk/model.h>
#include <brisk/runtime.h>
#include <brisk/train.h>
#include <brisk/version.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Of what brisk tells, only the warnings.
class Warnings : public brisk::LogSink {
  void line(brisk::LogLevel level, std::string_view text) override {
    if (level == brisk::LogLevel::warning) std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  }
};

constexpr const char* kJob = R"({
  "device": "cpu",
  "model": {"d_model": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300},
  "training": {"max_length": 32, "batch_size": 8, "max_steps": 30, "logging_steps": 1}
})";

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: embed TEXT RUN_DIRECTORY\n");
    return 2;
  }
  try {
    std::printf("brisk %s\n", BRISK_VERSION_STRING);
    brisk::Runtime runtime({.threads = 2, .log = std::make_shared<Warnings>()});
    const std::vector<std::string> texts = {argv[1]};
    const auto job = brisk::TrainingJob::parse(
        runtime, kJob, {brisk::override_text("data.train", texts), brisk::override_text("output", argv[2])});

    brisk::TrainOptions options;
    options.on_step = [](const brisk::Progress& progress) {
      if (progress.step % 10 == 0) std::printf("step %d: loss %.3f\n", static_cast<int>(progress.step), progress.loss);
    };
    const brisk::TrainResult result = brisk::train(runtime, job, options);

    brisk::LoadedModel model(runtime, result.run_path);
    std::printf("%s\n", model.generate("the cat", {.max_tokens = 20, .temperature = 0}).text.c_str());
    return 0;
  } catch (const brisk::UserError& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 2;
  }
}
