#include "bench/bench_image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/as_ranks.h"
#include "cli/bench_image_command.h"
#include "cli/bench_output.h"
#include "train/engine/process_group.h"

namespace brisk {

namespace {

struct ImageBenchArguments {
  ImageBenchOptions options;
  std::string image_size;
  bool json = false;
};

// "896x672", or "224" for both sides.
std::vector<int64_t> image_size_from(const std::string& text) {
  std::vector<int64_t> sides;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    int64_t side = 0;
    const auto [stop, problem] = std::from_chars(text.data() + begin, text.data() + end, side);
    if (problem != std::errc() || stop != text.data() + end || side < 1 || side > 16384 || sides.size() == 2) {
      user_error("--image-size {}: expected a height and a width such as 896x672, of 1 to 16384 pixels", text);
    }
    sides.push_back(side);
    begin = end + 1;
  }
  return sides;
}

void run_image(ImageBenchArguments& arguments, Ranks& ranks) {
  ImageBenchOptions& options = arguments.options;
  options.processes = &ranks.group();
  if (!arguments.image_size.empty()) options.image_size = image_size_from(arguments.image_size);
  const ImageBenchResult result = bench_image(options);
  if (ranks.rank() > 0) return;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"shape", options.shape},
                                   {"batch", options.batch},
                                   {"optimizer", options.optimizer},
                                   {"unit", result.writes_texts ? "pages" : "images"},
                                   {"rows_per_second", result.rows_per_second}};
    if (result.writes_texts) json["text_tokens_per_second"] = result.text_tokens_per_second;
    print_json(std::move(json), result);
  } else {
    print_text(options.shape, fmt::format("{:.2f} images/s, ", result.rows_per_second), result);
  }
}

}  // namespace

void add_bench_image(CLI::App& bench, Runtime& runtime) {
  CLI::App* command = bench.add_subcommand(
      "image", "Time training of a model of images, of a known shape, on images made up in memory");
  auto arguments = std::make_shared<ImageBenchArguments>();
  ImageBenchOptions& options = arguments->options;
  command
      ->add_option("--shape", options.shape,
                   fmt::format("Shape of the model: {}", fmt::join(image_bench_shapes(), ", ")))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--batch", options.batch, "Images per optimizer step")
      ->capture_default_str()
      ->check(between(1, 1 << 16));
  command
      ->add_option("--image-size", arguments->image_size,
                   "Height and width of the images, such as 896x672 (default: those of the shape)")
      ->type_name("HEIGHTxWIDTH");
  command->add_option("--classes", options.classes, "Number of a classifier's classes")
      ->capture_default_str()
      ->check(between(2, 1 << 24));
  command->add_option("--length", options.length, "Tokens of an image's text, on average")
      ->capture_default_str()
      ->check(between(2, 1 << 20));
  command->add_option("--dropout", options.dropout, "Fraction of activations set to zero at random")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.99));
  command->add_flag("--frozen", options.frozen, "Do not train image encoders");
  command->add_flag("--checkpointing", options.checkpointing,
                    "Compute every layer again in the backward pass, to save memory");
  command->add_option("--optimizer", options.optimizer, "Optimizer: adamw (as in bench/peers) or muon")
      ->capture_default_str()
      ->check(CLI::IsMember({"adamw", "muon"}));
  command->add_option("--seconds", options.seconds, "How long to measure, in seconds; at least 2 steps")
      ->capture_default_str()
      ->check(above(0));
  add_run_options(command, arguments);
  command->footer(
      "Examples:\n"
      "  brisk bench image --shape vit-base --batch 64 --json\n"
      "  brisk bench image --shape dimtda --device cuda --precision bf16");
  command->callback(
      [&runtime, arguments] { run_as_ranks(runtime, [&](Ranks& ranks) { run_image(*arguments, ranks); }); });
}

}  // namespace brisk
