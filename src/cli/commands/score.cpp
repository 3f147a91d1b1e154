#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/run_on_pool.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "data/read/aligned_lines.h"
#include "score/bleu.h"
#include "score/chrf.h"

namespace brisk {

namespace {

struct ScoreArguments {
  std::string hypotheses;
  std::vector<std::string> references;
  std::string tokenizer = "13a", smoothing = "exp";
  std::optional<double> smooth_value;
  int64_t word_order = 0;
  bool lowercase = false, json = false;
  int64_t threads = 0;
};

struct Scores {
  Bleu bleu;
  Chrf chrf;
};

// Lines of all files, to be scored by all threads at the same time.
struct Batch {
  static constexpr size_t kMostBytes = size_t{4} << 20, kMostLines = 8192;

  std::vector<std::vector<std::string>> lines;  // a hypothesis and its references
  size_t count = 0, bytes = 0;

  bool is_full() const { return count >= kMostLines || bytes >= kMostBytes; }

  void add(const AlignedLines& source, size_t files) {
    if (count == lines.size()) lines.emplace_back(files);
    for (size_t i = 0; i < files; ++i) {
      lines[count][i] = source.text(i);
      bytes += source.text(i).size();
    }
    ++count;
  }
};

void score_batch(const Batch& batch, std::vector<Scores>& scores) {
  run_on_pool([&](int thread) {
    std::vector<std::string_view> references;
    for (size_t i = thread; i < batch.count; i += scores.size()) {
      const std::vector<std::string>& lines = batch.lines[i];
      references.assign(lines.begin() + 1, lines.end());
      scores[thread].bleu.add(lines[0], references);
      scores[thread].chrf.add(lines[0], references);
    }
  });
}

std::string path_of(const std::string& given) { return given == "-" ? "/dev/stdin" : given; }

void run_score(Runtime& runtime, const ScoreArguments& arguments) {
  const BleuOptions bleu_options{.tokenizer = bleu_tokenizer_from(arguments.tokenizer, "--tokenize"),
                                 .lowercase = arguments.lowercase,
                                 .smoothing = bleu_smoothing_from(arguments.smoothing, "--smooth-method"),
                                 .smooth_value = arguments.smooth_value};
  const bool takes_value =
      bleu_options.smoothing == BleuSmoothing::kFloor || bleu_options.smoothing == BleuSmoothing::kAddK;
  if (arguments.smooth_value && !takes_value) {
    user_error("--smooth-value applies to --smooth-method floor and add-k only; remove it");
  }
  const ChrfOptions chrf_options{.word_order = static_cast<int>(arguments.word_order),
                                 .lowercase = arguments.lowercase};
  set_threads(runtime, arguments.threads);

  std::vector<std::string> paths = {path_of(arguments.hypotheses)};
  for (const std::string& path : arguments.references) paths.push_back(path_of(path));
  if (std::ranges::count(paths, "/dev/stdin") > 1) {
    user_error("--hypotheses and --references: standard input is named twice; it can be read once");
  }
  const size_t files = paths.size();
  AlignedLines source(std::move(paths));
  std::vector<Scores> scores(thread_pool().size(), Scores{Bleu(bleu_options), Chrf(chrf_options)});
  Batch batch;
  int64_t pairs = 0;
  for (bool more = true; more;) {
    batch.count = batch.bytes = 0;
    while (!batch.is_full() && (more = source.next())) batch.add(source, files);
    throw_if_cancelled();
    score_batch(batch, scores);
    pairs += static_cast<int64_t>(batch.count);
  }
  if (pairs == 0) user_error("{}: the file is empty: there is nothing to score", arguments.hypotheses);
  for (size_t i = 1; i < scores.size(); ++i) {
    scores[0].bleu.merge(scores[i].bleu);
    scores[0].chrf.merge(scores[i].chrf);
  }
  const auto& [bleu, chrf] = scores[0];
  const BleuScore score = bleu.score();
  const std::string bleu_signature = bleu.signature(), chrf_signature = chrf.signature();
  if (!arguments.json) {
    fmt::print("BLEU|{} = {:.2f} {}\n", bleu_signature, score.score, score.details());
    fmt::print("{}|{} = {:.2f}\n", chrf_name(chrf_options), chrf_signature, chrf.score());
    return;
  }
  const nlohmann::ordered_json json = {
      {"bleu", score.score},
      {"chrf", chrf.score()},
      {"signature", bleu_signature},
      {"chrf_signature", chrf_signature},
      {"precisions", score.precisions},
      {"matches", score.statistics.matches},
      {"totals", score.statistics.totals},
      {"brevity_penalty", score.brevity_penalty},
      {"length_ratio", score.length_ratio()},
      {"hypothesis_length", score.statistics.hypothesis_length},
      {"reference_length", score.statistics.reference_length},
      {"lines", pairs},
  };
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_score_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command = app.add_subcommand("score", "Compare translations with references: BLEU and chrF, as sacreBLEU");
  auto arguments = std::make_shared<ScoreArguments>();
  command
      ->add_option("--hypotheses", arguments->hypotheses,
                   "File to score, a translation a line (.txt or any other, .gz, .zst; - for standard input)")
      ->required();
  command
      ->add_option("-r,--references", arguments->references,
                   "File with a reference for each line; give several for several references a line")
      ->required();
  command
      ->add_option(
          "--tokenize", arguments->tokenizer,
          "BLEU's tokenizer: 13a (western languages), intl (all of Unicode's punctuation), zh (Chinese), char or "
          "none")
      ->capture_default_str()
      ->check(CLI::IsMember({"13a", "intl", "zh", "char", "none"}));
  command
      ->add_option("--smooth-method", arguments->smoothing,
                   "BLEU's smoothing of orders without a match: exp, floor, add-k or none")
      ->capture_default_str()
      ->check(CLI::IsMember({"exp", "floor", "add-k", "none"}));
  command->add_option("--smooth-value", arguments->smooth_value, "Value of floor (default: 0.1) or add-k (default: 1)")
      ->check(above(0));
  command
      ->add_option("--chrf-word-order", arguments->word_order, "Longest n-grams of words in chrF: 0, or 2 for chrF++")
      ->capture_default_str()
      ->check(between(0, kChrfMostWordOrders));
  command->add_flag("--lowercase", arguments->lowercase, "Ignore case");
  add_threads_option(*command, arguments->threads);
  command->add_flag("--json", arguments->json, "Print one JSON object on standard output");
  command->footer(
      "Examples:\n"
      "  brisk score --hypotheses output.de --references test.de\n"
      "  brisk score --hypotheses - -r a.en -r b.en --chrf-word-order 2 --json < output.en");
  command->callback([&runtime, arguments] { run_score(runtime, *arguments); });
}

}  // namespace brisk
