// Two pages of Markdown with a line "---" between them: their text, their trees, and how far they are
// from each other.
#include <cmath>

#include "base/text/unicode.h"
#include "fuzz/fuzz_input.h"
#include "score/markdown_page.h"
#include "score/steds.h"
#include "score/text_scores.h"

using namespace brisk;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content = fuzz::text_of(data, size);
  constexpr std::string_view kBetween = "\n---\n";
  const size_t cut = std::min(content.find(kBetween), content.size());
  const std::string_view first = content.substr(0, cut),
                         second = content.substr(std::min(cut + kBetween.size(), content.size()));
  for (const std::string_view page : {first, second}) {
    const std::string text = text_of_markdown(page);
    fuzz::require(text.find_first_of("#*_\n\r") == std::string::npos, "no marks and line ends are left");
    fuzz::require(find_invalid_utf8(page) || !find_invalid_utf8(text), "what was UTF-8 stays it");
  }
  const OrderedTree a = tree_of_markdown(first), b = tree_of_markdown(second);
  fuzz::require(a.size() >= 2 && b.size() >= 2, "a page has a root and a title");
  const int most = std::max(a.size(), b.size());
  if (most > 1500) return 0;  // seconds, where a sanitizer looks on
  TreeEditDistance distance;
  const int64_t edits = distance.between(a, b);
  fuzz::require(edits == distance.between(b, a), "a distance is the same in both directions");
  fuzz::require(edits >= most - std::min(a.size(), b.size()) && edits <= a.size() + b.size() - 2,
                "nodes are inserted and deleted");
  TextScores scores({.kinds = text_score_kinds_from("cer,wer,steds,bleu_markdown,bleu_text", "")});
  scores.add(first, second);
  for (const TextScoreKind kind : scores.options().kinds)
    fuzz::require(std::isfinite(scores.value(kind)), "a score is a number");
  return 0;
}
