#include <brisk/model.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/command.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "cli/model_options.h"
#include "cli/on_one_line.h"
#include "cli/translation_options.h"

namespace brisk {

namespace {

struct TranslateArguments {
  ModelArguments model;
  std::string text, data;
  TranslateOptions options;
  bool has_text = false, json = false;
};

// Standard input and, where it is a file, how much of it is read.
class StandardInput {
 public:
  StandardInput() {
    struct stat facts {};
    if (::fstat(STDIN_FILENO, &facts) == 0 && S_ISREG(facts.st_mode)) total_ = facts.st_size;
  }
  size_t read(char* out, size_t size) {
    for (;;) {
      const ssize_t count = ::read(STDIN_FILENO, out, size);
      if (count >= 0) {
        done_ += count;
        return static_cast<size_t>(count);
      }
      if (errno != EINTR) throw UserError(fmt::format("standard input: cannot read it: {}", std::strerror(errno)));
    }
  }
  void show(LogSink& log, double seconds) const {
    if (total_ > 0) log.work({"translations", done_, total_, static_cast<double>(done_) / std::max(1e-9, seconds)});
  }

 private:
  int64_t done_ = 0, total_ = 0;
};

// `first`: the number of the first of them among all texts.
void print_answers(std::span<const Translated> answers, const TranslateArguments& arguments, int64_t first) {
  for (const Translated& answer : answers) {
    if (!arguments.json) {
      for (const Translated::Text& text : answer.best) {
        if (arguments.options.n_best > 1) fmt::print("{}\t{:.4f}\t", first, text.score);
        fmt::print("{}\n", on_one_line(text.text));
      }
      ++first;
      continue;
    }
    nlohmann::ordered_json json = {{"text", answer.best.front().text}, {"score", answer.best.front().score}};
    if (arguments.options.n_best > 1) {
      for (const Translated::Text& text : answer.best)
        json["best"].push_back({{"text", text.text}, {"score", text.score}, {"tokens", text.tokens}});
    }
    json["tokens"] = answer.best.front().tokens;
    json["ended"] = answer.best.front().ended;
    json["source_tokens"] = answer.source_tokens;
    json["parts"] = answer.parts;
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }
  std::fflush(stdout);
}

void run_translate(Runtime& runtime, const TranslateArguments& arguments) {
  LoadedModel model = open_model(runtime, arguments.model);
  say(runtime, "{}, computed in {}", model.source(), model.precision());
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  StandardInput input;
  const bool reads_input = !arguments.has_text && arguments.data.empty();
  int64_t number = 1;
  const auto print = [&](std::span<const Translated> answers) {
    runtime.log().clear_progress();
    print_answers(answers, arguments, number);
    number += std::ssize(answers);
    if (reads_input) input.show(runtime.log(), seconds());
  };
  TranslateTotals totals;
  if (arguments.has_text) {
    totals = model.translate({arguments.text}, print, arguments.options);
  } else if (reads_input) {
    totals =
        model.translate_lines([&](char* out, size_t size) { return input.read(out, size); }, print, arguments.options);
  } else {
    totals = model.translate_file(arguments.data, print, arguments.options);
  }
  runtime.log().clear_progress();
  const auto are = [](int64_t count, const char* one, const char* many) { return count == 1 ? one : many; };
  if (totals.empty > 0) {
    warn(runtime, "{} of {} text{} {} empty: answered by an empty line", totals.empty, totals.texts,
         are(totals.texts, "", "s"), are(totals.empty, "is", "are"));
  }
  if (totals.divided > 0) {
    warn(runtime, "{} of {} text{} {} longer than the model reads: translated in parts, which were joined by a space",
         totals.divided, totals.texts, are(totals.texts, "", "s"), are(totals.divided, "is", "are"));
  }
  if (totals.cut > 0) {
    warn(runtime, "{} of {} translation{} did not end by {}: cut there{}", totals.cut, totals.texts,
         are(totals.texts, "", "s"), are(totals.cut, "itself", "themselves"),
         arguments.options.max_tokens > 0 ? " (--max-tokens)" : " (--max-tokens allows more, if the model can)");
  }
  say(runtime, "{} text{} in {}: {:.1f} texts/s, {:.0f} tokens/s", totals.texts, are(totals.texts, "", "s"),
      format_duration(seconds()), static_cast<double>(totals.texts) / seconds(),
      static_cast<double>(totals.tokens) / seconds());
}

}  // namespace

void add_translate_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("translate", "Translate texts with a trained model of text to text");
  auto arguments = std::make_shared<TranslateArguments>();
  TranslateOptions& options = arguments->options;
  command->add_option("run", arguments->model.path, "Run directory, checkpoint, or Hugging Face folder of a translator")
      ->required();
  CLI::Option* text =
      command
          ->add_option("text", arguments->text,
                       "Text to translate (default: the lines of standard input, unless --data is given)")
          ->type_name("TEXT");
  command
      ->add_option(
          "--data", arguments->data,
          "Texts to translate: a file with one text per line, or a table (.csv, .tsv, .jsonl); also .gz and .zst")
      ->excludes(text);
  add_translation_options(*command, options);
  command
      ->add_option(
          "--n-best", options.n_best,
          "Number of translations of each text, the best first: lines of text number, score and text, with tabs between them")
      ->capture_default_str()
      ->check(between(1, 4096));
  CLI::Option* sample = command->add_flag("--sample", options.sample, "Draw the tokens at random instead of searching");
  command->add_option("--temperature", options.temperature, "Sampling temperature")
      ->capture_default_str()
      ->check(at_least(0))
      ->needs(sample);
  command->add_option("--top-k", options.top_k, "Sample from the k likeliest tokens only; 0 means all")
      ->capture_default_str()
      ->check(at_least(0))
      ->needs(sample);
  command->add_option("--top-p", options.top_p, "Sample from the fewest tokens whose probabilities add up to p")
      ->capture_default_str()
      ->check(between(1e-6, 1))
      ->needs(sample);
  command
      ->add_option("--min-p", options.min_p,
                   "Sample from tokens that are at least p times as likely as the likeliest; 0 means all")
      ->capture_default_str()
      ->check(between(0, 1))
      ->needs(sample);
  command->add_option("--seed", options.seed, "Random seed for sampling")
      ->capture_default_str()
      ->check(at_least(0))
      ->needs(sample);
  command->add_flag("--json", arguments->json, "Print one JSON object for each text on standard output");
  add_model_options(*command, arguments->model);
  command->footer(
      "Examples:\n"
      "  brisk translate runs/translate \"A man is riding a horse.\"\n"
      "  brisk translate runs/translate < test.en > test.de\n"
      "  brisk translate runs/translate --data test.en.gz --beam 8 --n-best 3 --json\n"
      "Answers come in the order of the texts, a line for each: also for an empty one.");
  command->callback([&runtime, arguments, text] {
    arguments->has_text = text->count() > 0;
    run_translate(runtime, *arguments);
  });
}

}  // namespace brisk
