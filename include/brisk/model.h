// A trained model, loaded for use: generation, prediction, translation, evaluation, export.
//
//   brisk::LoadedModel model(runtime, "runs/bible");
//   std::cout << model.generate("In the beginning", {.max_tokens = 100}).text << "\n";
//   std::cout << brisk::metrics_text(model.evaluate({"held-out.txt"}).metrics, "loss") << "\n";
//
//   brisk::LoadedModel classifier(runtime, "runs/reviews", {.as_trained = true});
//   classifier.predict({{"a fine film"}}, [&](std::span<const brisk::Prediction> answers) {
//     std::cout << classifier.labels()[answers[0].label] << "\n";
//   });
#pragma once

#include <brisk/error.h>
#include <brisk/metrics.h>
#include <brisk/tokenizer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

class Runtime;

struct LoadOptions {
  std::string tokenizer = {};    // to use instead of the model's own
  std::string device = "cpu";    // cpu, cuda (or gpu), cuda:1, or auto: a GPU if there is one
  bool as_trained = false;       // compute in the number format of the run, where this machine has it; else in fp32
  bool allow_nonfinite = false;  // open it even if weights of it are NaN or infinite
};

struct GenerateOptions {
  int64_t max_tokens = 100;
  double temperature = 0.8;  // 0: always the likeliest token
  int64_t top_k = 0;         // of the k likeliest only; 0: all
  double top_p = 1.0;        // of the fewest likeliest whose probabilities reach p
  double min_p = 0.0;        // of those at least p times as likely as the likeliest
  double repetition_penalty =
      1.0;  // > 1: tokens already in the text become less likely, each once however often it stands there
  uint64_t seed = 1;
  bool stop_at_end = true;             // at the end-of-document token
  bool ignore_end = false;             // that token is never drawn, so that the text goes on
  std::vector<std::string> stop = {};  // ends where the new text has one of these, and before it
};

struct Generated {
  std::string text;          // the prompt and what follows
  std::vector<TokenId> ids;  // without the start token
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
  bool ended = false;           // the model ended the document itself
  std::string stopped_at = {};  // which of GenerateOptions::stop ended it; empty: none
  // What a text longer than the model reads at once has lost.
  int64_t context = 0;         // tokens that it reads at once, here
  int64_t prompt_dropped = 0;  // first tokens of the prompt that were left out
  int64_t restarts = 0;        // times that it went on from the last half of the text alone
  double seconds = 0;
};

// When beam search ends that has as many finished texts as beams (generate's early_stopping in transformers).
enum class EarlyStopping {
  heuristic,  // when the best unfinished one would score worse than the worst of them if it ended now (False there)
  first,      // at once (True)
  never       // when no unfinished one can come to a better score, however long it becomes ("never")
};

struct TranslateOptions {
  int64_t beam = 4;             // width of beam search; 1: always the likeliest token
  double length_penalty = 1.0;  // a translation's score is the sum of its log probabilities / tokens^this
  EarlyStopping early_stopping = EarlyStopping::heuristic;
  int64_t n_best = 1;  // translations of each text, the best first; at most `beam`
  int64_t max_tokens =
      0;  // of a translation; 0: three times as many as its text has, and ten; of an image: all it can write
  // Draws the tokens at random instead; n_best is how many translations are drawn of each text.
  bool sample = false;
  double temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  uint64_t seed = 1;
};

struct Translated {
  struct Text {
    std::string text;
    double score = 0;    // the sum of its log probabilities / tokens^length_penalty
    int64_t tokens = 0;  // with its end token
    bool ended = true;   // false: it was cut at max_tokens, or at what the model writes
  };
  std::vector<Text> best;  // TranslateOptions::n_best, or fewer where the search found no more
  int64_t source_tokens = 0;
  int64_t parts = 1;  // that a text longer than the model reads was divided into; 0 of an empty one
};

struct TranslateTotals {
  int64_t texts = 0, empty = 0;
  int64_t source_tokens = 0, tokens = 0;
  int64_t divided = 0;  // texts that are longer than the model reads, which were translated in parts
  int64_t cut = 0;      // translations that were cut before they ended
};

struct TextOrPair {
  std::string text, pair = {};
};

struct PredictOptions {
  int64_t max_length = 0;                        // tokens of a text, the rest is cut off; 0: as in training
  std::string text_field = {}, pair_field = {};  // columns of a table; empty: as in training
};

struct Prediction {
  size_t label = 0;                   // of labels()
  std::vector<double> probabilities;  // of every label
};

struct PredictTotals {
  int64_t texts = 0, tokens = 0;    // or images, and rows of patches
  int64_t cut = 0, max_length = 0;  // texts that are longer than so many tokens, and lost their end
};

struct EvaluateOptions {
  int64_t max_length = 0;                                          // tokens of a sequence; 0: as in training
  std::string text_field = {}, label_field = {}, pair_field = {};  // columns of a table; empty: as in training
  std::string image_field = {};                                    // likewise
  // Of text to text, and of images to text.
  std::vector<std::string> target = {};  // files with the translation of each line of `data`; empty: `data` are tables
  std::string source_field = {}, target_field = {};  // columns of a table; empty: as in training
  bool translate = true;                             // for BLEU and chrF; false: the loss alone
  TranslateOptions translation = {};
  std::string bleu_tokenizer = {};  // 13a, intl, zh, char, none; empty: 13a
};

struct Evaluation {
  Metrics metrics;
  int64_t targets = 0;      // what the metrics are over
  std::string target_name;  // "tokens", "masked tokens", "examples"
  int64_t tokens = 0;       // that were computed
  int64_t max_length = 0;   // tokens of a sequence at most
  int64_t cut = 0;          // texts that are longer, and lost their end
  double seconds = 0;
  std::string details = {};       // tables for people; of a classifier: each class, and what was taken for what
  std::string details_json = {};  // the same as a JSON object
};

enum class ModelFormat { huggingface, gguf };
enum class WeightFormat { fp32, bf16, fp16 };

class BRISK_API LoadedModel {
 public:
  // `path`: a run directory (its best checkpoint), one of its checkpoints/step-... directories, a Hugging Face folder,
  // a GGUF file, or a llama2.c model file with the only tok*.bin next to it. The runtime must outlive the model.
  LoadedModel(Runtime& runtime, const std::string& path, const LoadOptions& options = {});
  ~LoadedModel();
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;

  const std::string& source() const;               // the checkpoint or file it was read from
  const std::string& task() const;                 // language_model, classify, mlm, translate, image_to_text
  const std::string& best_by() const;              // the metric it was chosen by
  const std::vector<std::string>& labels() const;  // of a classifier
  bool classifies_pairs() const;                   // of texts
  std::string precision() const;                   // the number format it computes in: "fp32"
  int64_t parameters() const;
  const Tokenizer& tokenizer() const;

  // Each of the following throws Cancelled where Runtime::cancel() is called meanwhile. Callbacks come from this thread.

  // Continues a text. `on_piece` gets the bytes of each new token as it is drawn. UserError where it is no language
  // model.
  Generated generate(std::string_view prompt, const GenerateOptions& options = {},
                     const std::function<void(std::string_view)>& on_piece = {});

  // Classifies texts. Answers come in the order of the texts, a few hundred at a time. UserError where it is no
  // classifier.
  using OnPredictions = std::function<void(std::span<const Prediction>)>;
  PredictTotals predict(const std::vector<TextOrPair>& texts, const OnPredictions& on_predictions,
                        const PredictOptions& options = {});
  // Of a table (.csv, .tsv, .jsonl) or of a file with a text per line; also .gz and .zst.
  PredictTotals predict_file(const std::string& path, const OnPredictions& on_predictions,
                             const PredictOptions& options = {});
  // Of lines as they come: `read` returns the number of bytes that are available, 0 at the end.
  PredictTotals predict_lines(const std::function<size_t(char* out, size_t size)>& read,
                              const OnPredictions& on_predictions, const PredictOptions& options = {});

  // Translates texts. Answers come in the order of the texts, a few hundred at a time. UserError where it is no model of text
  // to text. Of `translate_file`, a text is a line, or a row of a table; of `translate_lines`, a line as it comes: `read` returns
  // the number of bytes that are available, 0 at the end.
  using OnTranslations = std::function<void(std::span<const Translated>)>;
  TranslateTotals translate(const std::vector<std::string>& texts, const OnTranslations& on_translations,
                            const TranslateOptions& options = {});
  TranslateTotals translate_file(const std::string& path, const OnTranslations& on_translations,
                                 const TranslateOptions& options = {});
  TranslateTotals translate_lines(const std::function<size_t(char* out, size_t size)>& read,
                                  const OnTranslations& on_translations, const TranslateOptions& options = {});

  // Of models that read images (PNG, JPEG, WebP, PPM, PGM): the texts that a model writes of them, or their classes. Answers come
  // in the order of the images, some at a time. UserError where an image cannot be read: find_images() can leave those out.
  bool reads_images() const;
  TranslateTotals read_images(const std::vector<std::string>& images, const OnTranslations& on_texts,
                              const TranslateOptions& options = {});
  PredictTotals predict_images(const std::vector<std::string>& images, const OnPredictions& on_predictions);
  // The images of a folder and those in it, by their names; of a table (.csv, .tsv, .jsonl), in its column; or the image itself.
  // With `skip_broken`, without those that cannot be read, of which there is a warning.
  std::vector<std::string> find_images(const std::string& path, bool skip_broken = false) const;

  // On text, on a table with labels, or on one with images: files, folders or globs.
  Evaluation evaluate(const std::vector<std::string>& data, const EvaluateOptions& options = {});

  // Writes it for another program: a folder for Hugging Face's transformers, or a GGUF file for llama.cpp (Llama's shape
  // only). Returns the class that opens the folder there; of a file, nothing.
  std::string write(const std::string& path, ModelFormat format, WeightFormat weights = WeightFormat::fp32);

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace brisk
