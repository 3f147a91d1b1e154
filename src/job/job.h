// A job: everything that decides a training run, resolved from one JSON file and the command line.
//
//   std::vector<std::string> notes;
//   Job job = load_job("job.json", {"training.batch_size=64"}, notes);   // UserError on any problem
//   for (const std::string& line : resolve_defaults(job)) say("{}", line);   // "model.num_heads = 4 (d_model / 64)"
//   write_file_atomically(job.output + "/job.json", job_to_json_text(job));
//
// The structs below hold the defaults; everything else about an option (spellings, range, help, where it applies, other
// defaults there, whether it may change on resume) stands in its one declaration in job/job_*_options.cpp. From the two
// come parsing, checking, error messages, the JSON schema and docs/job.md. A value of 0 or "" that means "brisk chooses"
// is filled by resolve_defaults.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "job/options/named_numbers.h"

namespace brisk {

// The network; the defaults are GPT-2's shape. `"type": "llama"` in a job has other defaults, and the resolved type is
// "decoder". Some keys have one value in an encoder (bert, distilbert, roberta), and most of them in mu.
struct ModelOptions {
  std::string type = "decoder";  // decoder | mu | bert | distilbert | roberta | encoder_decoder
  int64_t d_model = 256;
  int64_t num_layers = 4;
  int64_t num_heads = 0;     // 0: d_model / 64
  int64_t num_kv_heads = 0;  // 0: num_heads
  int64_t d_ff = 0;          // 0: 4 d_model; swiglu: 8/3 d_model, rounded up to 64
  int64_t vocab_size = 8192;
  std::string norm = "layernorm";     // layernorm | rmsnorm
  std::string activation = "gelu";    // gelu (tanh form) | gelu_erf | swiglu | relu | swish | geglu
  std::string positions = "learned";  // learned | rotary | none | sinusoidal | interleaved_sinusoidal | relative
  bool tie_embeddings = true;         // the output projection is the token embedding
  bool bias = true;                   // of linear layers and layernorm
  double dropout = 0.0;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
  int64_t context = 0;           // longest text, and rows of the table of learned positions; 0: training.max_length
  std::string from;              // a trained model to start from; empty: new weights
  bool allow_nonfinite = false;  // of `from`, and of the teacher: weights that are NaN or infinite

  bool reference = false;  // of mu: as it was first written, with its defects
  static constexpr const char* kNotALanguageModel =
      "model.reference: this model sees the tokens that it predicts, so its perplexity and accuracy are not a language "
      "model's (docs/mu.md)";

  // Of encoders.
  double attention_dropout = -1;   // -1: dropout; of encoder-decoders, too
  double classifier_dropout = -1;  // -1: dropout
  int64_t token_types = -1;        // rows of the table of token types; -1: bert 2, distilbert 0, roberta 1
  int64_t num_labels = 0;          // classes; 0: those of the training data

  // Of encoder-decoders, of which the sizes above are the decoder's. 0: the encoder has the same.
  int64_t encoder_d_model = 0, encoder_layers = 0, encoder_heads = 0, encoder_d_ff = 0;
  int64_t head_width = 0;                                  // 0: d_model / num_heads, of each
  int64_t source_vocab_size = 0;                           // with a table of its own; 0: vocab_size
  int64_t source_context = 0;                              // longest source; 0: context
  bool share_embeddings = true;                            // source and target have one table
  std::string norm_position = "pre";                       // pre | post
  bool embedding_norm = false;                             // a norm after the embeddings
  bool scale_embeddings = true;                            // times the square root of the width
  bool scale_attention = true;                             // scores by 1 / the square root of head_width
  bool scale_outputs = false;                              // of the last layer by 1 / the square root of d_model
  int64_t position_offset = 0;                             // unused rows at the beginning of the table of positions
  int64_t relative_buckets = 32, relative_distance = 128;  // of relative positions
  std::string output_bias = "none";                        // none | fixed | trained
  bool output_transform = false;  // a matrix, the activation and a norm before the output projection
  int64_t first_token = -1;       // that the decoder reads before a target; -1: the tokenizer says
  double activation_dropout = 0, final_dropout = 0;

  // Of models that read images: of their image encoder. Its width, layers, heads and d_ff are encoder_d_model, ... of an
  // encoder-decoder, and d_model, ... of a classifier; of swin, its first stage's width is.
  std::string image_encoder = "vit";  // vit | beit | dit | swin
  std::vector<int64_t> image_size;    // one number, or height and width; empty: 224
  int64_t patch_size = 16;
  std::string image_processor;                               // the text of a preprocessor_config.json, or its path
  std::string encoder_positions = "learned";                 // learned | relative | shared_relative | none
  std::vector<int64_t> encoder_depths, encoder_stage_heads;  // of swin; empty: 2, 2, 6, 2; width / 32
  double mlp_ratio = 4;                                      // of swin
  int64_t window_size = 7;                                   // of swin
  double encoder_norm_epsilon = 1e-12;
  bool qkv_bias = true;
  double layer_scale = 0;
  bool encoder_final_norm = true;
  std::string pooling = "class";  // class | mean

  // Of encoder-decoders that read images.
  bool bridge = true;  // a matrix leads from the encoder's width to the decoder's, where they differ
  // Trained models that parts of it begin as; empty: new weights.
  std::string image_encoder_from, layout_encoder_from, decoder_from;
  // Of those with a second image encoder, for the layout of a page (a BEiT), and with learned queries that read both encoders.
  int64_t layout_image_size = 224, layout_patch_size = 16;
  int64_t layout_d_model = 768, layout_layers = 12, layout_heads = 12, layout_d_ff = 0;  // 0: 4 layout_d_model
  std::string layout_processor;                                                          // as image_processor
  int64_t queries = 256, query_width = 512, query_heads = 8, query_d_ff = 0;             // 0: 2 query_width

  bool is_encoder() const;          // by the table of architectures (job/tables.h)
  bool is_encoder_decoder() const;  // likewise
  // Of the vocabulary that is trained for it where none is given: otherwise it is WordPiece.
  bool has_byte_level_vocabulary() const { return !is_encoder() || type == "roberta"; }
};

struct TrainingOptions {
  int64_t max_length = 128;   // tokens a sequence
  int64_t window_stride = 0;  // tokens between the beginnings of two sequences of a document; 0: max_length
  int64_t batch_size = 16;    // sequences; times gradient_accumulation_steps they form an optimizer step; 0 ("auto"):
                              // 4096 tokens
  int64_t gradient_accumulation_steps = 1;
  bool drop_incomplete_accumulation = false;  // the batches at the end of an epoch that are too few for a step
  std::string padding = "none";  // none | longest | max_length: rows that are computed to measure what they cost
  int64_t num_epochs = 1;        // 0: 1, unless stop says how long
  int64_t max_steps = 0;         // optimizer steps; 0: as num_epochs says, otherwise it overrides num_epochs
  std::string
      stop;  // "2e", "500u", "10Mt" or "30m" (job/run_length.h), in place of the two above; num_epochs is 0 then

  std::string optimizer = "muon";  // muon | adamw
  double learning_rate = 0;        // of AdamW; 0: muon 4e-3, adamw and lora_rank 1e-3, times sqrt(256 / d_model)
  double muon_learning_rate = 0;   // of hidden matrices; 0: 0.01. Both are a tenth with model.from, but not lora_rank
  double muon_momentum = 0.95;
  std::string lr_scheduler = "wsd";      // constant | linear | cosine | wsd
  double schedule_ratio = 0;             // length of the schedule, in lengths of the run; 0: 1
  double decay_ratio = 0.5;              // of all optimizer steps: the falling end of wsd
  int64_t warmup_steps = -1;             // -1: from warmup_ratio (see warmup_steps_of)
  double warmup_ratio = 0.05;            // of all optimizer steps
  double min_learning_rate_ratio = 0.0;  // linear, cosine and wsd end at this share of learning_rate
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_epsilon = 1e-8;
  double max_grad_norm = 1.0;          // 0: no clipping
  double label_smoothing = 0.0;        // of text to text 0.1
  std::string precision = "auto";      // auto | fp32 | tf32 | bf16 | fp16 | fp8
  bool master_weights = true;          // false: layers' weights are bf16 alone, with stochastic rounding; on a GPU
  int64_t gradient_checkpointing = 0;  // 0: off; n: keep the activations of every n-th layer only
  int64_t seed = 1;
  int64_t logical_ranks = 0;  // parts of a step that are summed in a fixed order; 0: one for each process

  int64_t train_layers = 0;                // of model.from: the last so many layers; 0: everything
  int64_t lora_rank = 0;                   // of model.from: adapters of this rank instead of the weights; 0: none
  double lora_alpha = 0;                   // their scale times lora_rank; 0: 2 lora_rank
  std::vector<std::string> lora_matrices;  // qkv, attention_out, up, down; empty: all of them

  // Of encoders.
  // none | balanced: a class counts in the loss as if all were equally frequent; or a weight for each by its name
  NamedNumbers class_weights = {"none"};
  std::string teacher;               // of a classifier: a trained one whose answers are learned too; empty: none
  double distillation_weight = 0.5;  // their share of the loss
  double distillation_temperature = 2;
  int64_t freeze = -1;              // -1: nothing; 0: the embeddings; n: those and the first n layers
  bool freeze_encoders = false;     // of models of images: the image encoders
  bool frozen_dropout = false;      // what is frozen drops activations in training as the rest does
  bool cache_frozen = true;         // the activations of frozen layers are computed once and kept in a file
  bool prune_last_layer = true;     // the last layer computes only the rows whose outputs are used
  double mlm_probability = 0.15;    // share of tokens that are masked
  bool whole_word_masking = false;  // the pieces of a word are masked together

  int64_t eval_steps = -1;       // optimizer steps; 0: after each epoch; negative: train/run/plan/cadence.h
  int64_t logging_steps = 0;     // 0: every 10, and on the screen a line now and then
  int64_t save_steps = -1;       // optimizer steps; 0: after each epoch; negative: train/run/plan/cadence.h
  double save_minutes = 5;       // besides, when this long ago; 0: never
  int64_t save_total_limit = 2;  // last checkpoints kept besides the best; 0: all
  bool load_best_model_at_end = true;
  std::string best_by = "loss";         // a metric that the task evaluates
  int64_t early_stopping_patience = 0;  // evaluations without a better one; 0: never stop early

  bool divergence_guard = true;  // skip outlier updates; go back when they repeat (train/engine/divergence_guard.h)
  double divergence_gradient_ratio = 10;  // an outlier's gradient norm, in running medians
  int64_t divergence_rollbacks = 3;       // at most

  // Of text to text: pairs of the validation data that are translated at each evaluation, with so many beams, for BLEU and
  // chrF; and how many of them are shown.
  int64_t eval_translations = 500;
  int64_t eval_beam = 1;
  int64_t sample_translations = 3;

  std::vector<std::string> sample_prompts;  // texts to continue at each evaluation
  int64_t sample_tokens = 0;  // of each sample; 0: 64 where there are prompts. Without prompts: from an empty text
  double sample_temperature = 0.8;
  int64_t sample_top_k = 50;
  double sample_top_p = 1.0;
  double sample_repetition_penalty = 1.0;
  bool tensorboard = true;      // event files in the run directory
  int64_t histogram_steps = 0;  // optimizer steps between histograms of parameters and gradients; 0: never

  int64_t num_workers = 1;           // loader threads; 0: load on the training thread
  int64_t micro_batch_tokens = 0;    // token rows of a micro-batch; 0: brisk chooses
  bool measure_micro_batch = false;  // choose it by timing a few sizes; always with batch_size auto
  int64_t threads = 0;               // compute threads; 0: all cores
};

// Text to learn from. Sources given by their path alone are one source together.
struct DataSource {
  DataSource() = default;
  DataSource(std::string path) : path(std::move(path)) {}  // NOLINT: a path is a source wherever one is asked for
  bool operator==(const DataSource&) const = default;

  std::string path;        // a file, a folder or a glob
  double weight = 1;       // how often an epoch draws its sequences: 2: each twice, 0.5: half of them
  std::string text_field;  // empty: data.text_field
  std::string document;    // empty: data.document
};

struct DataOptions {
  std::vector<DataSource> train;
  std::vector<std::string> validation;  // empty: validation_fraction of train
  // Of text to text: the files whose lines are the translations of those of train, and of validation. Empty: both texts
  // are in the rows of one table.
  std::vector<std::string> train_target, validation_target;
  double validation_fraction = 0.05;
  std::string text_field = "text";         // of a .jsonl object; "article.body.text" for one inside others
  std::string document = "auto";           // file | block | line | auto
  std::string label_field;                 // of a classifier's table; empty: found by its name
  bool allow_unusual_labels = false;       // train on labels that look like measurements, lists or free text
  std::string pair_field;                  // a second text; empty: none
  std::string source_field, target_field;  // columns of a table of texts and their translations; empty: found
  // Of images: the column of their paths; where these begin, or a folder of images and one with the text of each, and the
  // JSON file that divides them.
  std::string image_field, images, texts, split;
  std::string broken_images = "refuse";  // refuse | skip
  int64_t image_cache = -1;              // MB of decoded images in memory; -1: brisk chooses
  std::string too_long = "skip";         // pairs of text to text that do not fit max_length: skip | cut
  std::string tokenizer;                 // path; empty: train a vocabulary of model.vocab_size entries
  std::string target_tokenizer;          // path, of the translations; empty: `tokenizer`
  bool separate_tokenizers = false;      // train one of the texts and one of the translations
  std::string tokenizer_kind = "bpe";    // of a decoder's vocabulary that is trained: bpe (byte-level) | word-bpe
  bool lowercase = false;                // of a WordPiece vocabulary that is trained, which has true by default
  std::string cache_dir;                 // of token files; empty: $XDG_CACHE_HOME/brisk or ~/.cache/brisk
};

// Of the job that this one was made of (brisk doctor --apply): what its run is compared with at the end. 0 and empty: not
// known.
struct BaselineOptions {
  std::string job;
  double tokens_per_second = 0, epoch_seconds = 0;
  std::string metric;
  double value = 0, low = 0, high = 0;
};

struct Job {
  std::string name;                     // empty: the job file's name without .json
  std::string task = "language_model";  // language_model | classify | mlm | translate | image_to_text
  std::string comment;                  // free text
  std::string output;                   // the run directory; empty: runs/<name>
  std::string device = "auto";          // auto | cpu | cuda | cuda:1
  ModelOptions model;
  TrainingOptions training;
  DataOptions data;
  BaselineOptions baseline;
  std::set<std::string> given;        // canonical keys that the file or --set named; not saved
  bool batch_is_of_a_device = false;  // batch_size was spelled per_device_train_batch_size; not saved
};

// Reads a job file and applies `overrides` ("training.batch_size=64") on top. `notes` gets a line for each other
// spelling understood ("job.json: model.n_layers is model.num_layers here") and each default that another key changed.
Job load_job(const std::string& path, const std::vector<std::string>& overrides, std::vector<std::string>& notes);

// The same from text; `source_name` stands in for the file in messages.
Job job_from_json_text(const std::string& text, const std::string& source_name);
Job job_from_json_text(const std::string& text, const std::string& source_name,
                       const std::vector<std::string>& overrides, std::vector<std::string>& notes);

// Every key with its value, canonical names; job_from_json_text reads it back to an equal job.
std::string job_to_json_text(const Job& job);

// Where its run goes: `output`, or a folder named after the job.
std::string run_directory_of(const Job& job);

// Fills what brisk chooses and checks what only the whole job can tell (d_model and num_heads, ...): UserError.
// Returns a line for each value filled. A second call fills nothing.
std::vector<std::string> resolve_defaults(Job& job);
std::string cache_directory(const DataOptions& data);  // data.cache_dir, or that one

// Warm-up of a run of `total_steps` optimizer steps: warmup_steps where given, otherwise warmup_ratio of them.
int64_t warmup_steps_of(const TrainingOptions& training, int64_t total_steps);

// JSON schema, draft 2020-12, other spellings included; and docs/job.md.
std::string job_schema();
std::string job_reference_markdown();
// The keys that may change when a run is resumed, as docs/running.md has them.
std::string resume_keys_markdown();

}  // namespace brisk
