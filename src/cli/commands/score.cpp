#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/run_on_pool.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "cli/messages.h"
#include "data/read/aligned_lines.h"
#include "data/read/aligned_pages.h"
#include "score/text_scores.h"

namespace brisk {

namespace {

struct ScoreArguments {
  std::string hypotheses;
  std::vector<std::string> references;
  std::string metrics = "bleu,chrf", tokenizer = "13a", smoothing = "exp";
  std::optional<double> smooth_value;
  int64_t word_order = 0;
  bool lowercase = false, json = false;
  int64_t threads = 0;
};

// Texts of all files, to be scored by all threads at the same time.
struct Batch {
  static constexpr size_t kMostBytes = size_t{4} << 20, kMostTexts = 8192;

  std::vector<std::vector<std::string>> texts;  // a hypothesis and its references
  size_t count = 0, bytes = 0;

  bool is_full() const { return count >= kMostTexts || bytes >= kMostBytes; }

  template <typename Source>
  void add(const Source& source, size_t files) {
    if (count == texts.size()) texts.emplace_back(files);
    for (size_t i = 0; i < files; ++i) {
      texts[count][i] = source.text(i);
      bytes += source.text(i).size();
    }
    ++count;
  }
};

void score_batch(const Batch& batch, std::vector<TextScores>& scores) {
  run_on_pool([&](int thread) {
    std::vector<std::string_view> references;
    for (size_t i = thread; i < batch.count; i += scores.size()) {
      const std::vector<std::string>& texts = batch.texts[i];
      references.assign(texts.begin() + 1, texts.end());
      scores[thread].add(texts[0], references);
    }
  });
}

// The scores of all lines or pages, and how many there are.
template <typename Source>
std::pair<TextScores, int64_t> score_all(Source& source, size_t files, const TextScoreOptions& options) {
  std::vector<TextScores> scores(thread_pool().size(), TextScores(options));
  Batch batch;
  int64_t texts = 0;
  for (bool more = true; more;) {
    batch.count = batch.bytes = 0;
    while (!batch.is_full() && (more = source.next())) batch.add(source, files);
    throw_if_cancelled();
    score_batch(batch, scores);
    texts += static_cast<int64_t>(batch.count);
  }
  for (size_t i = 1; i < scores.size(); ++i) scores[0].merge(scores[i]);
  return {std::move(scores[0]), texts};
}

std::string path_of(const std::string& given) { return given == "-" ? "/dev/stdin" : given; }

TextScoreOptions options_of(const ScoreArguments& arguments) {
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
  TextScoreOptions options{.kinds = text_score_kinds_from(arguments.metrics, "--metrics"),
                           .bleu = bleu_options,
                           .chrf = chrf_options,
                           .lowercase = arguments.lowercase};
  for (const TextScoreKind kind : options.kinds) {
    const TextScoreInfo& info = info_of(kind);
    if (arguments.references.size() > 1 && !info.several_references) {
      user_error("--metrics: {} compares with one reference, found {} times --references; leave {} out or give one",
                 info.name, arguments.references.size(), info.name);
    }
  }
  return options;
}

void print_lines(const TextScores& scores) {
  const auto print_bleu = [](const char* label, const Bleu& bleu) {
    const BleuScore score = bleu.score();
    fmt::print("{}|{} = {:.2f} {}\n", label, bleu.signature(), score.score, score.details());
  };
  for (const TextScoreKind kind : scores.options().kinds) {
    const TextScoreInfo& info = info_of(kind);
    if (const Bleu* bleu = scores.bleu(kind)) {
      print_bleu(info.label, *bleu);
    } else if (kind == TextScoreKind::kChrf) {
      fmt::print("{}|{} = {:.2f}\n", chrf_name(scores.options().chrf), scores.signature(kind), scores.value(kind));
    } else if (info.is_share) {
      fmt::print("{} = {:.2f} %\n", info.label, 100 * scores.value(kind));
    } else {
      fmt::print("{} = {:.2f}\n", info.label, scores.value(kind));
    }
  }
}

nlohmann::ordered_json json_of(const TextScores& scores) {
  nlohmann::ordered_json json;
  for (const TextScoreKind kind : scores.options().kinds) json[info_of(kind).name] = scores.value(kind);
  for (const TextScoreKind kind : scores.options().kinds) {
    const std::string signature = scores.signature(kind);
    if (signature.empty()) continue;
    json[kind == TextScoreKind::kBleu ? "signature" : fmt::format("{}_signature", info_of(kind).name)] = signature;
  }
  if (const Bleu* bleu = scores.bleu(TextScoreKind::kBleu)) {
    const BleuScore score = bleu->score();
    json["precisions"] = score.precisions;
    json["matches"] = score.statistics.matches;
    json["totals"] = score.statistics.totals;
    json["brevity_penalty"] = score.brevity_penalty;
    json["length_ratio"] = score.length_ratio();
    json["hypothesis_length"] = score.statistics.hypothesis_length;
    json["reference_length"] = score.statistics.reference_length;
  }
  return json;
}

void run_score(Runtime& runtime, const ScoreArguments& arguments) {
  const TextScoreOptions options = options_of(arguments);
  set_threads(runtime, arguments.threads);
  std::vector<std::string> paths = {path_of(arguments.hypotheses)};
  for (const std::string& path : arguments.references) paths.push_back(path_of(path));
  if (std::ranges::count(paths, "/dev/stdin") > 1) {
    user_error("--hypotheses and --references: standard input is named twice; it can be read once");
  }
  const size_t files = paths.size();
  const bool are_pages = std::ranges::any_of(paths, is_directory);
  std::optional<std::pair<TextScores, int64_t>> scored;
  if (are_pages) {
    AlignedPages pages(paths);
    if (pages.count() == 0) user_error("{}: there are no files in the folder: nothing to score", paths[0]);
    if (const int64_t more = pages.unmatched(); more > 0) {
      warn(runtime, "{} file{} of the references {} no hypothesis: not scored", more, more == 1 ? "" : "s",
           more == 1 ? "has" : "have");
    }
    scored = score_all(pages, files, options);
  } else {
    AlignedLines lines(paths);
    scored = score_all(lines, files, options);
  }
  const auto& [scores, texts] = *scored;
  if (texts == 0) user_error("{}: the file is empty: there is nothing to score", arguments.hypotheses);
  if (!arguments.json) return print_lines(scores);
  nlohmann::ordered_json json = json_of(scores);
  json[are_pages ? "pages" : "lines"] = texts;
  fmt::print("{}\n", json.dump());
}

}  // namespace

void add_score_command(CLI::App& app, Runtime& runtime) {
  CLI::App* command =
      app.add_subcommand("score", "Compare texts with references: BLEU and chrF as sacreBLEU, error rates, structure");
  auto arguments = std::make_shared<ScoreArguments>();
  command
      ->add_option(
          "--hypotheses", arguments->hypotheses,
          "File to score, a text a line (.txt or any other, .gz, .zst; - for standard input), or folder of pages")
      ->required();
  command
      ->add_option("-r,--references", arguments->references,
                   "File with a reference for each line, or folder with a file for each page; give several for several "
                   "references")
      ->required();
  command
      ->add_option(
          "--metrics", arguments->metrics,
          "What to compute, with commas between: bleu, chrf, cer (character error rate), wer (of words), steds "
          "(structure of Markdown), bleu_markdown, bleu_text (without tables and mathematics)")
      ->capture_default_str();
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
      "  brisk score --hypotheses - -r a.en -r b.en --chrf-word-order 2 --json < output.en\n"
      "  brisk score --hypotheses pages --references zh_mmd --metrics bleu_markdown,bleu_text,steds,cer --json");
  command->callback([&runtime, arguments] { run_score(runtime, *arguments); });
}

}  // namespace brisk
