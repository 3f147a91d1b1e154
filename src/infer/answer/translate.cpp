#include "infer/answer/translate.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text/unicode.h"

namespace brisk {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::string_view without_spaces_around(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Where a part may end: after a space, and there also whether a sentence ends before it.
struct Cut {
  size_t at;
  bool ends_sentence;
};
std::vector<Cut> cuts_of(std::string_view text) {
  std::vector<Cut> cuts;
  for (size_t at = 1; at < text.size(); ++at) {
    if (!is_space(text[at - 1]) || is_space(text[at])) continue;
    size_t end = at;
    while (end > 0 && is_space(text[end - 1])) --end;
    const std::string_view before = text.substr(0, end);
    const bool ends = before.ends_with('.') || before.ends_with('!') || before.ends_with('?') ||
                      before.ends_with("\u2026") || before.ends_with('\"');
    cuts.push_back({at, ends});
  }
  return cuts;
}

// Sources that are tokens already.
class SourceTexts final : public Sequences {
 public:
  explicit SourceTexts(std::span<const std::vector<TokenId>> texts) : texts_(texts) {
    for (const std::vector<TokenId>& text : texts) totals_.add(std::ssize(text));
  }
  int64_t count() const override { return std::ssize(texts_); }
  int64_t rows(int64_t index, int /*set*/) const override { return std::ssize(texts_[static_cast<size_t>(index)]); }
  LengthTotals totals(int /*set*/) const override { return totals_; }
  void append(int64_t index, int64_t /*epoch*/, int32_t sequence, MicroBatch& batch) const override {
    append_rows(batch.sets[0], texts_[static_cast<size_t>(index)], {}, sequence);
  }

 private:
  std::span<const std::vector<TokenId>> texts_;
  LengthTotals totals_;
};

}  // namespace

TranslationText text_of(const TrainedModel& model) {
  return {*model.tokenizer, model.writes_with(),
          pair_frame_of(*model.tokenizer, model.writes_with(), model.job.model.first_token)};
}

std::vector<Translated::Text> texts_of(std::span<const BeamSearch::Found> found, const Tokenizer& tokenizer,
                                       int64_t most) {
  std::vector<Translated::Text> texts;
  for (const BeamSearch::Found& one : found.first(std::min(found.size(), static_cast<size_t>(most)))) {
    texts.push_back({.text = tokenizer.decode(one.tokens),
                     .score = one.score,
                     .tokens = std::ssize(one.tokens) + (one.ended ? 1 : 0),
                     .ended = one.ended});
  }
  return texts;
}

std::vector<std::vector<TokenId>> source_parts(std::string_view text, const Tokenizer& tokenizer, int64_t most) {
  // Of a long text only so much is looked at for the next part: a token is rarely longer.
  constexpr int64_t kMostBytesOfToken = 32;
  std::vector<std::vector<TokenId>> parts;
  std::vector<TokenId> tokens;
  const auto fits = [&](std::string_view part) {
    tokens.clear();
    tokenizer.encode(without_spaces_around(part), tokens);
    return std::ssize(tokens) <= most;
  };
  for (text = without_spaces_around(text); !text.empty();) {
    const std::string_view window = text.substr(0, static_cast<size_t>(kMostBytesOfToken * most));
    const bool whole = window.size() == text.size();
    size_t end = window.size();
    if (!whole || !fits(window)) {
      // The longest beginning that fits and ends between words; after a sentence where one ends in its second half.
      const std::vector<Cut> cuts = cuts_of(window);
      const auto after =
          std::ranges::partition_point(cuts, [&](const Cut& cut) { return fits(window.substr(0, cut.at)); });
      end = after == cuts.begin() ? 0 : std::prev(after)->at;
      for (auto cut = after; cut != cuts.begin() && 2 * std::prev(cut)->at > end; --cut) {
        if (!std::prev(cut)->ends_sentence) continue;
        end = std::prev(cut)->at;
        break;
      }
    }
    if (end == 0) {  // a word that is longer than all that fits: its characters
      size_t begin = 0, stop = window.size();
      while (begin + 1 < stop) {
        const size_t middle = begin + (stop - begin) / 2;
        (fits(window.substr(0, middle)) ? begin : stop) = middle;
      }
      const auto is_inside = [&](size_t at) {
        return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
      };
      for (end = begin; end > 0 && is_inside(end);) --end;
      if (end == 0) ++end;  // a character of more tokens than fit
      if (end == 1) {
        while (is_inside(end)) ++end;
      }
    }
    fits(window.substr(0, end));
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(most)));
    if (!tokens.empty()) parts.push_back(tokens);
    text = without_spaces_around(text.substr(end));
  }
  return parts;
}

Translator::Translator(const ConditionalModel& model, const ParameterStore& store, TranslationText text)
    : text_(std::move(text)),
      most_source_(model.max_memory_rows()),
      generator_(model, store, text_.frame, text_.target.vocab_size()) {
  const int64_t read = text_.frame.source_rows(1);
  if (most_source_ >= read) return;
  user_error(
      "the model reads texts of at most {} tokens: with special tokens a word takes {}; use a model of longer texts "
      "(model.source_context)",
      most_source_, read);
}

Translated Translator::joined(std::span<const std::vector<TokenId>> sources,
                              std::span<const std::vector<Translated::Text>> parts) const {
  Translated answer;
  answer.parts = std::ssize(parts);
  if (parts.empty()) {
    answer.best.emplace_back();
    return answer;
  }
  for (const std::vector<TokenId>& source : sources)
    answer.source_tokens += std::ssize(source) - text_.frame.source_rows(0);
  if (parts.size() == 1) {
    answer.best = parts.front();
    return answer;
  }
  size_t most = 0;
  for (const std::vector<Translated::Text>& part : parts) most = std::max(most, part.size());
  for (size_t rank = 0; rank < most; ++rank) {
    Translated::Text& whole = answer.best.emplace_back();
    for (const std::vector<Translated::Text>& part : parts) {
      const Translated::Text& text = part[std::min(rank, part.size() - 1)];
      if (!whole.text.empty() && !text.text.empty()) whole.text += ' ';
      whole.text += text.text;
      whole.score += text.score;
      whole.tokens += text.tokens;
      whole.ended = whole.ended && text.ended;
    }
  }
  return answer;
}

void Translator::translate(std::span<const std::string> texts, const TranslateOptions& options,
                           const OnAnswer& on_answer) {
  // The texts, or parts of them, in their order.
  std::vector<std::vector<TokenId>> sources;  // with special tokens
  std::vector<ConditionalGenerator::Request> requests;
  std::vector<size_t> first;  // of each text
  const int64_t room = most_source_ - text_.frame.source_rows(0);
  for (size_t i = 0; i < texts.size(); ++i) {
    first.push_back(sources.size());
    for (const std::vector<TokenId>& tokens : source_parts(texts[i], text_.source, room)) {
      const size_t part = sources.size() - first.back();
      sources.push_back(text_.frame.source(tokens, most_source_));
      const int64_t usual = 3 * std::ssize(sources.back()) + 10;
      requests.push_back({.number = texts_seen_ + i,
                          .part = part,
                          .most_tokens = options.max_tokens > 0 ? options.max_tokens : usual});
    }
  }
  first.push_back(sources.size());
  texts_seen_ += texts.size();

  std::vector<std::vector<Translated::Text>> best(sources.size());
  generator_.generate(SourceTexts(sources), {}, requests, options,
                      [&](int64_t index, std::span<const BeamSearch::Found> all) {
                        best[static_cast<size_t>(index)] = texts_of(all, text_.target, options.n_best);
                      });
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t count = first[i + 1] - first[i];
    on_answer(i, joined(std::span(sources).subspan(first[i], count), std::span(best).subspan(first[i], count)));
  }
}

}  // namespace brisk
