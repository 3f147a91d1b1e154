#include "score/text_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "score/markdown_page.h"

namespace brisk {

namespace {

using Kind = TextScoreKind;
constexpr TextScoreInfo kInfos[] = {
    {.kind = Kind::kBleu,
     .name = "bleu",
     .label = "BLEU",
     .description = "N-grams in common with the reference, from 0 to 100, as sacreBLEU counts them",
     .higher_is_better = true,
     .several_references = true},
    {.kind = Kind::kChrf,
     .name = "chrf",
     .label = "chrF",
     .description = "Character n-grams in common with the reference, from 0 to 100",
     .higher_is_better = true,
     .several_references = true},
    {.kind = Kind::kCer,
     .name = "cer",
     .label = "Character error rate",
     .description = "Characters to insert, delete or substitute, of each of the references'",
     .is_share = true},
    {.kind = Kind::kWer,
     .name = "wer",
     .label = "Word error rate",
     .description = "Words to insert, delete or substitute, of each of the references'",
     .is_share = true},
    {.kind = Kind::kSteds,
     .name = "steds",
     .label = "STEDS",
     .description = "Similarity of the trees of headings and lines (Markdown), from 0 to 100",
     .higher_is_better = true},
    {.kind = Kind::kBleuMarkdown,
     .name = "bleu_markdown",
     .label = "BLEU of pages",
     .description = "BLEU without the marks of Markdown, each page as one line",
     .higher_is_better = true,
     .several_references = true},
    {.kind = Kind::kBleuText,
     .name = "bleu_text",
     .label = "BLEU of text",
     .description = "BLEU of pages without tables and mathematics",
     .higher_is_better = true,
     .several_references = true},
};

// The numbers of statistics, all of which are of int64_t.
template <typename Statistics>
constexpr size_t kNumbersOf = sizeof(Statistics) / sizeof(int64_t);

template <typename Statistics>
void append(const Statistics& statistics, std::vector<int64_t>& numbers) {
  static_assert(std::is_trivially_copyable_v<Statistics> && sizeof(Statistics) % sizeof(int64_t) == 0);
  numbers.resize(numbers.size() + kNumbersOf<Statistics>);
  std::memcpy(numbers.data() + numbers.size() - kNumbersOf<Statistics>, &statistics, sizeof(statistics));
}

template <typename Statistics>
Statistics take(std::span<const int64_t>& numbers) {
  BRISK_CHECK(numbers.size() >= kNumbersOf<Statistics>, "statistics of other scores");
  Statistics statistics;
  std::memcpy(static_cast<void*>(&statistics), numbers.data(), sizeof(statistics));
  numbers = numbers.subspan(kNumbersOf<Statistics>);
  return statistics;
}

}  // namespace

std::span<const TextScoreInfo> text_score_infos() { return kInfos; }

const TextScoreInfo& info_of(TextScoreKind kind) {
  const auto found = std::ranges::find(kInfos, kind, &TextScoreInfo::kind);
  BRISK_CHECK(found != std::end(kInfos), "a score without a name");
  return *found;
}

std::vector<TextScoreKind> text_score_kinds_from(std::string_view names, std::string_view option) {
  std::vector<TextScoreKind> kinds;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string_view name = names.substr(begin, end - begin);
    const auto found =
        std::ranges::find_if(kInfos, [&](const TextScoreInfo& info) { return std::string_view(info.name) == name; });
    if (found == std::end(kInfos)) {
      std::string known;
      for (const TextScoreInfo& info : kInfos) known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
      user_error("{}: found \"{}\", expected some of {}, with commas between them", option, name, known);
    }
    if (std::ranges::count(kinds, found->kind) > 0) user_error("{}: \"{}\" is there twice", option, name);
    kinds.push_back(found->kind);
    begin = end + 1;
  }
  return kinds;
}

TextScores::TextScores(TextScoreOptions options)
    : options_(std::move(options)),
      bleu_(options_.bleu),
      bleu_markdown_(options_.bleu),
      bleu_text_(options_.bleu),
      chrf_(options_.chrf),
      characters_(TextUnit::kCharacter, options_.lowercase),
      words_(TextUnit::kWord, options_.lowercase) {}

bool TextScores::has(TextScoreKind kind) const { return std::ranges::count(options_.kinds, kind) > 0; }

void TextScores::add(std::string_view hypothesis, std::span<const std::string_view> references) {
  BRISK_CHECK(!references.empty(), "a hypothesis without a reference");
  const auto add_text_to = [&](Bleu& bleu, MarkdownParts parts) {
    std::vector<std::string> texts;
    for (const std::string_view reference : references) texts.push_back(text_of_markdown(reference, parts));
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    bleu.add(text_of_markdown(hypothesis, parts), views);
  };
  for (const TextScoreKind kind : options_.kinds) {
    switch (kind) {
      case Kind::kBleu: bleu_.add(hypothesis, references); break;
      case Kind::kChrf: chrf_.add(hypothesis, references); break;
      case Kind::kCer: characters_.add(hypothesis, references[0]); break;
      case Kind::kWer: words_.add(hypothesis, references[0]); break;
      case Kind::kSteds: steds_.add(hypothesis, references[0]); break;
      case Kind::kBleuMarkdown: add_text_to(bleu_markdown_, MarkdownParts::kAll); break;
      case Kind::kBleuText: add_text_to(bleu_text_, MarkdownParts::kTextOnly); break;
    }
  }
}

void TextScores::merge(const TextScores& other) {
  bleu_.merge(other.bleu_);
  bleu_markdown_.merge(other.bleu_markdown_);
  bleu_text_.merge(other.bleu_text_);
  chrf_.merge(other.chrf_);
  characters_.merge(other.characters_);
  words_.merge(other.words_);
  steds_.merge(other.steds_);
}

std::vector<int64_t> TextScores::statistics() const {
  std::vector<int64_t> numbers;
  append(bleu_.statistics(), numbers);
  append(bleu_markdown_.statistics(), numbers);
  append(bleu_text_.statistics(), numbers);
  append(chrf_.statistics(), numbers);
  append(characters_.statistics(), numbers);
  append(words_.statistics(), numbers);
  append(steds_.statistics(), numbers);
  return numbers;
}

void TextScores::add_statistics(std::span<const int64_t> numbers) {
  bleu_.merge(take<BleuStatistics>(numbers));
  bleu_markdown_.merge(take<BleuStatistics>(numbers));
  bleu_text_.merge(take<BleuStatistics>(numbers));
  chrf_.merge(take<ChrfStatistics>(numbers));
  characters_.merge(take<ErrorStatistics>(numbers));
  words_.merge(take<ErrorStatistics>(numbers));
  steds_.merge(take<StedsStatistics>(numbers));
  BRISK_CHECK(numbers.empty(), "statistics of other scores");
}

double TextScores::value(TextScoreKind kind) const {
  BRISK_CHECK(has(kind), "a score that was not asked for");
  switch (kind) {
    case Kind::kBleu: return bleu_.score().score;
    case Kind::kChrf: return chrf_.score();
    case Kind::kCer: return characters_.rate();
    case Kind::kWer: return words_.rate();
    case Kind::kSteds: return steds_.score();
    case Kind::kBleuMarkdown: return bleu_markdown_.score().score;
    case Kind::kBleuText: return bleu_text_.score().score;
  }
  return 0;
}

const Bleu* TextScores::bleu(TextScoreKind kind) const {
  if (!has(kind)) return nullptr;
  if (kind == Kind::kBleu) return &bleu_;
  if (kind == Kind::kBleuMarkdown) return &bleu_markdown_;
  return kind == Kind::kBleuText ? &bleu_text_ : nullptr;
}

std::string TextScores::signature(TextScoreKind kind) const {
  if (const Bleu* of_kind = bleu(kind)) return of_kind->signature();
  return kind == Kind::kChrf ? chrf_.signature() : "";
}

}  // namespace brisk
