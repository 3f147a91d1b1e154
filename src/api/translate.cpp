#include "infer/answer/translate.h"

#include <brisk/model.h>

#include <utility>

#include "api/input_lines.h"
#include "api/loaded_model.h"
#include "base/error.h"
#include "base/terminal/terminal.h"
#include "data/read/byte_reader.h"
#include "data/table/input_table.h"
#include "train/task/task.h"

namespace brisk {

namespace {

// Collects texts, translates a few hundred at a time, and hands on the translations in the order of the texts.
class TranslationStream {
 public:
  TranslationStream(Translator& translator, const TranslateOptions& options,
                    const LoadedModel::OnTranslations& on_translations)
      : translator_(translator), options_(options), on_translations_(in_callers_mode(on_translations)) {
    tokens_before_ = translator.tokens();
  }

  void add(std::string_view text) {
    waiting_.emplace_back(text);
    bytes_ += std::ssize(text);
    if (waiting_.size() >= kMost || bytes_ >= kMostBytes) flush();
  }

  void flush() {
    if (waiting_.empty()) return;
    std::vector<Translated> answers;
    translator_.translate(waiting_, options_, [&](size_t, Translated answer) { answers.push_back(std::move(answer)); });
    for (const Translated& answer : answers) {
      ++totals_.texts;
      totals_.empty += answer.parts == 0 ? 1 : 0;
      totals_.divided += answer.parts > 1 ? 1 : 0;
      totals_.source_tokens += answer.source_tokens;
      totals_.cut += answer.best.front().ended ? 0 : 1;
    }
    on_translations_(answers);
    waiting_.clear();
    bytes_ = 0;
  }

  TranslateTotals finish() {
    flush();
    totals_.tokens = translator_.tokens() - tokens_before_;
    return totals_;
  }

 private:
  static constexpr size_t kMost = 512;
  static constexpr int64_t kMostBytes = int64_t{1} << 20;

  Translator& translator_;
  TranslateOptions options_;
  const LoadedModel::OnTranslations on_translations_;
  std::vector<std::string> waiting_;
  int64_t bytes_ = 0, tokens_before_ = 0;
  TranslateTotals totals_;
};

Translator& translator_of(std::unique_ptr<Translator>& translator, const TrainedModel& model) {
  if (!translator) translator = make_task(model.job)->open_translator(model);
  return *translator;
}

}  // namespace

void check_translate_options(const TranslateOptions& options) {
  if (options.sample || options.n_best <= options.beam) return;
  user_error("{} {}: beam search of width {} finds no more than {}; use {} {} or more", option_name("n_best"),
             options.n_best, options.beam, options.beam, option_name("beam"), options.n_best);
}

TranslateTotals LoadedModel::translate(const std::vector<std::string>& texts, const OnTranslations& on_translations,
                                       const TranslateOptions& options) {
  const Content::Scope scope(*content_);
  check_translate_options(options);
  TranslationStream stream(translator_of(content_->translator, *content_->model), options, on_translations);
  for (const std::string& text : texts) stream.add(text);
  return stream.finish();
}

TranslateTotals LoadedModel::translate_file(const std::string& path, const OnTranslations& on_translations,
                                            const TranslateOptions& options) {
  const Content::Scope scope(*content_);
  check_translate_options(options);
  TranslationStream stream(translator_of(content_->translator, *content_->model), options, on_translations);
  if (is_table_file(path)) {
    const DataOptions& trained = content_->model->job.data;
    const bool known = trained.train_target.empty();  // its tables had these columns
    const InputTable table(
        {.paths = {path}, .text_field = known ? trained.source_field : "", .labelled = false, .of_job = false});
    for (const std::string& note : table.notes()) say("{}", note);
    TableRowReader rows(table);
    TableRow row;
    while (rows.next(row)) stream.add(row.text);
  } else {
    const auto reader = open_byte_reader(path);
    for_each_input_line([&](char* out, size_t size) { return reader->read(out, size); }, path,
                        [&](std::string_view line) { stream.add(line); }, [] {});
  }
  return stream.finish();
}

TranslateTotals LoadedModel::translate_lines(const std::function<size_t(char* out, size_t size)>& read,
                                             const OnTranslations& on_translations, const TranslateOptions& options) {
  const Content::Scope scope(*content_);
  check_translate_options(options);
  TranslationStream stream(translator_of(content_->translator, *content_->model), options, on_translations);
  for_each_input_line(
      in_callers_mode(read), "standard input", [&](std::string_view line) { stream.add(line); },
      [&] { stream.flush(); });  // a reader at the other end of a pipe
  return stream.finish();
}

}  // namespace brisk
