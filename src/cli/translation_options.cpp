#include "cli/translation_options.h"

#include <CLI/CLI.hpp>
#include <string>

#include "cli/limits.h"

namespace brisk {

void add_translation_options(CLI::App& command, TranslateOptions& options) {
  command.add_option("--beam", options.beam, "Width of beam search; 1 always takes the likeliest token")
      ->capture_default_str()
      ->check(between(1, 256));
  command
      .add_option(
          "--length-penalty", options.length_penalty,
          "A translation's score is the sum of its log probabilities / tokens^penalty: more favours longer ones")
      ->capture_default_str()
      ->check(between(-10, 10));
  command
      .add_option_function<std::string>(
          "--early-stopping",
          [&options](const std::string& rule) {
            options.early_stopping = rule == "first"   ? EarlyStopping::first
                                     : rule == "never" ? EarlyStopping::never
                                                       : EarlyStopping::heuristic;
          },
          "When a search ends that has as many translations as beams: heuristic (when the best unfinished one "
          "would score worse), first (at once) or never (when none can score better)")
      ->default_str("heuristic")
      ->check(CLI::IsMember({"heuristic", "first", "never"}));
  command
      .add_option(
          "--max-tokens", options.max_tokens,
          "Maximum tokens of a translation (default: three times as many as the text has, and ten; of an image, as many "
          "as the model writes)")
      ->check(at_least(1));
}

}  // namespace brisk
