// Any of the measures of texts against their references, by name: what `brisk score --metrics` and a task compute.
//
//   TextScores scores({.kinds = text_score_kinds_from("bleu,cer", "--metrics")});
//   scores.add(hypothesis, reference);
//   scores.merge(other_threads);
//   scores.add_statistics(numbers_of_another_rank);    // of statistics(): counts that add up in any order
//   for (TextScoreKind kind : scores.options().kinds) print(info_of(kind).name, scores.value(kind));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "score/bleu.h"
#include "score/chrf.h"
#include "score/error_rate.h"
#include "score/steds.h"

namespace brisk {

enum class TextScoreKind : uint8_t {
  kBleu,
  kChrf,
  kCer,           // character error rate
  kWer,           // word error rate
  kSteds,         // structure of Markdown
  kBleuMarkdown,  // BLEU of the page on one line without the marks of Markdown: DIMTDA's BLEU
  kBleuText,      // the same without tables and mathematics: its BLEU-PT
};

struct TextScoreInfo {
  TextScoreKind kind;
  const char* name;   // "bleu_text"
  const char* label;  // "BLEU of text"
  const char* description;
  bool higher_is_better;
  bool is_share;            // of which 0.05 is 5 %; others go to 100
  bool several_references;  // a hypothesis may have them
};
std::span<const TextScoreInfo> text_score_infos();
const TextScoreInfo& info_of(TextScoreKind kind);

// "bleu,chrf"; UserError of a name that is none, of one given twice and of none at all, which names `option`.
std::vector<TextScoreKind> text_score_kinds_from(std::string_view names, std::string_view option);

struct TextScoreOptions {
  std::vector<TextScoreKind> kinds = {TextScoreKind::kBleu, TextScoreKind::kChrf};
  BleuOptions bleu = {};  // of all three BLEU
  ChrfOptions chrf = {};
  bool lowercase = false;  // of error rates
};

class TextScores {
 public:
  explicit TextScores(TextScoreOptions options = {});

  void add(std::string_view hypothesis, std::string_view reference) { add(hypothesis, {&reference, 1}); }
  // Of kinds that do not have several references the first counts.
  void add(std::string_view hypothesis, std::span<const std::string_view> references);
  void merge(const TextScores& other);

  // All that the scores depend on, of as many numbers for the same kinds; add_statistics() adds those of other pairs.
  std::vector<int64_t> statistics() const;
  void add_statistics(std::span<const int64_t> numbers);

  double value(TextScoreKind kind) const;           // of one of the kinds
  std::string signature(TextScoreKind kind) const;  // of those that have one; else empty
  const TextScoreOptions& options() const { return options_; }
  const Bleu* bleu(TextScoreKind kind) const;  // of one of the kinds that is a BLEU; else nullptr

 private:
  bool has(TextScoreKind kind) const;

  TextScoreOptions options_;
  Bleu bleu_, bleu_markdown_, bleu_text_;
  Chrf chrf_;
  ErrorRate characters_, words_;
  Steds steds_;
};

}  // namespace brisk
