// Each option of a job, once. Defaults stand in job/job.h.
#include "job/job_options.h"

namespace brisk {

namespace {

void declare_top(Job& job, std::vector<Option>& all) {
  all.push_back(Option("name", job.name, "name of the run").automatic("the job file's name without .json"));
  all.push_back(Option("task", job.task, "what is learned")
                    .one_of({"language_model", "classify", "mlm"})
                    .same_as("lm", "language_model")
                    .same_as("classification", "classify")
                    .same_as("text_classification", "classify")
                    .same_as("sequence_classification", "classify")
                    .same_as("masked_lm", "mlm")
                    .same_as("causal_lm", "language_model"));
  all.push_back(Option("comment", job.comment, "free text, for people"));
  all.push_back(Option("output", job.output, "the run directory: checkpoints, tokenizer, metrics")
                    .automatic("runs/ and the name")
                    .also({"output_dir", "run_dir", "out_dir", "training.output_dir"}));
  all.push_back(
      Option("device", job.device,
             "where it runs: `cpu`, an NVIDIA GPU (`cuda` or `gpu`, or `cuda:1` where there are several), or `auto`: a "
             "GPU where there is one")
          .also({"training.device"}));
}

void declare_model(ModelOptions& model, std::vector<Option>& all) {
  all.push_back(
      Option("model.type", model.type,
             "the architecture; `gpt2` is a decoder with the defaults of this table, `llama` one whose defaults "
             "are rmsnorm, swiglu, rotary, no bias and an output projection of its own; bert, distilbert and roberta "
             "are encoders, for the tasks classify and mlm, whose default is bert")
          .one_of({"decoder", "bert", "distilbert", "roberta"})
          .same_as("gpt2", "decoder")
          .same_as("gpt", "decoder")
          .same_as("llama", "decoder")
          .same_as("transformer", "decoder")
          .also({"model_type", "architecture"}));
  all.push_back(Option("model.d_model", model.d_model, "width of the model")
                    .at_least(1)
                    .at_most(65536)
                    .also({"hidden_size", "n_embd", "dim", "hidden_dim", "embedding_dim", "embed_dim", "width"}));
  all.push_back(Option("model.num_layers", model.num_layers, "transformer layers")
                    .at_least(1)
                    .at_most(1000)
                    .also({"n_layers", "n_layer", "num_hidden_layers", "layers", "depth"}));
  all.push_back(Option("model.num_heads", model.num_heads, "attention heads")
                    .at_least(1)
                    .at_most(4096)
                    .automatic(0, "d_model / 64, or the nearest number that divides d_model")
                    .also({"n_heads", "n_head", "num_attention_heads", "heads"}));
  all.push_back(
      Option("model.num_kv_heads", model.num_kv_heads, "key/value heads; fewer than num_heads share them in groups")
          .at_least(1)
          .at_most(4096)
          .automatic(0, "num_heads")
          .also({"n_kv_heads", "num_key_value_heads"}));
  all.push_back(Option("model.d_ff", model.d_ff, "width inside the feed-forward layers")
                    .at_least(1)
                    .at_most(1048576)
                    .automatic(0, "4 d_model; with swiglu 8/3 d_model, rounded up to a multiple of 64")
                    .also({"intermediate_size", "ffn_dim", "n_inner", "d_hidden", "ffn_hidden_size",
                           "feed_forward_size", "dim_feedforward"}));
  all.push_back(Option("model.vocab_size", model.vocab_size,
                       "entries of the vocabulary; a smaller one is used where the text does not support so many")
                    .at_least(1)
                    .at_most(16777216)
                    .also({"n_vocab", "vocabulary_size", "data.vocab_size"}));
  all.push_back(Option("model.norm", model.norm, "normalisation before each sub-layer and at the end")
                    .one_of({"layernorm", "rmsnorm"})
                    .same_as("layer_norm", "layernorm")
                    .same_as("rms_norm", "rmsnorm")
                    .also({"norm_type", "normalization"}));
  all.push_back(Option("model.activation", model.activation,
                       "of the feed-forward layers; gelu is the tanh form, gelu_erf the exact one")
                    .one_of({"gelu", "gelu_erf", "swiglu", "relu"})
                    .same_as("gelu_new", "gelu")
                    .same_as("gelu_tanh", "gelu")
                    .same_as("gelu_pytorch_tanh", "gelu")
                    .same_as("silu", "swiglu")
                    .also({"activation_function", "hidden_act"}));
  all.push_back(Option("model.positions", model.positions,
                       "how positions are told apart: a learned table, rotation of queries and keys, or not at all")
                    .one_of({"learned", "rotary", "none"})
                    .same_as("absolute", "learned")
                    .same_as("rope", "rotary")
                    .also({"position_embedding_type", "position_embedding", "pos_encoding", "positional_encoding"}));
  all.push_back(Option("model.tie_embeddings", model.tie_embeddings,
                       "the output projection is the token embedding, one matrix for both")
                    .also({"tie_word_embeddings", "tie_weights", "weight_tying"}));
  all.push_back(Option("model.bias", model.bias,
                       "linear layers and layernorm have biases; false where norm is rmsnorm, unless given")
                    .also({"use_bias"}));
  all.push_back(Option("model.dropout", model.dropout, "share of activations dropped in training")
                    .at_least(0)
                    .below(1)
                    .also({"dropout_rate", "hidden_dropout_prob", "resid_pdrop", "training.dropout"}));
  all.push_back(Option("model.norm_epsilon", model.norm_epsilon, "added to the variance")
                    .above(0)
                    .at_most(1)
                    .also({"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps", "norm_eps"}));
  all.push_back(Option("model.rope_theta", model.rope_theta, "base of the rotary frequencies")
                    .above(1)
                    .also({"rotary_base", "rope_base"}));
  all.push_back(Option("model.context", model.context,
                       "longest text the model reads, and the rows of its table of learned positions")
                    .at_least(1)
                    .at_most(16777216)
                    .automatic(0, "training.max_length")
                    .in("tokens"));
  all.push_back(Option("model.from", model.from,
                       "a trained model to start from: a run, a checkpoint, a Hugging Face folder, a .gguf or llama2.c "
                       "file; the other keys of model and the tokenizer come from it")
                    .automatic("new weights")
                    .also({"checkpoint", "init_from", "pretrained", "model_name_or_path", "training.init_from"}));
}

void declare_batches(TrainingOptions& training, std::vector<Option>& all) {
  all.push_back(Option("training.max_length", training.max_length,
                       "longest sequence, never padded; a longer document is cut into chunks, so that all of it is "
                       "learned from (also "
                       "with mlm); of a text to classify, the rest is cut off")
                    .at_least(1)
                    .at_most(1048576)
                    .in("tokens")
                    .also({"max_seq_len", "max_seq_length", "block_size", "seq_len", "seq_length", "sequence_length",
                           "context_length", "model.max_position_embeddings", "model.n_positions", "model.n_ctx",
                           "model.block_size", "model.max_seq_len", "model.max_length", "model.context_length",
                           "data.max_length"}));
  all.push_back(Option("training.batch_size", training.batch_size,
                       "sequences of a batch; times gradient_accumulation_steps they form an optimizer step; auto sets "
                       "measure_micro_batch, too")
                    .at_least(1)
                    .at_most(1048576)
                    .automatic(0, "4096 tokens: 4096 / max_length, at least 1")
                    .in("sequences")
                    .also({"per_device_train_batch_size", "train_batch_size", "data.batch_size"}));
  all.push_back(
      Option("training.gradient_accumulation_steps", training.gradient_accumulation_steps,
             "batches of an optimizer step; the gradient is that of one batch as large")
          .at_least(1)
          .at_most(65536)
          .in("batches")
          .also({"grad_accum_steps", "accumulate_grad_batches", "accumulation_steps", "grad_accumulation_steps"}));
  all.push_back(Option("training.num_epochs", training.num_epochs, "passes over the training data")
                    .at_least(1)
                    .at_most(1e6)
                    .automatic(0, "1, unless stop says how long")
                    .also({"num_train_epochs", "epochs", "n_epochs", "max_epochs"}));
  all.push_back(Option("training.max_steps", training.max_steps,
                       "end after so many optimizer steps, in whichever epoch; 0: num_epochs decides")
                    .at_least(0)
                    .in("optimizer steps")
                    .also({"max_iters", "train_steps", "num_train_steps", "total_steps"}));
  all.push_back(Option("training.stop", training.stop,
                       "how long to train, in place of num_epochs and max_steps: `2e` epochs, `500u` optimizer steps, "
                       "`10Mt` tokens (K, M, G), `30m` time (s, m, h), all of the run included; or --stop")
                    .automatic("num_epochs or max_steps decides")
                    .also({"stop_after", ".stop"}));
}

void declare_optimizer(TrainingOptions& training, std::vector<Option>& all) {
  all.push_back(
      Option("training.optimizer", training.optimizer,
             "the update rule: muon for matrices between hidden layers and AdamW for the rest, or AdamW for "
             "all (then lr_scheduler is cosine and batch_size 32, unless given); of the tasks classify and mlm "
             "adamw, with lr_scheduler linear, warmup_ratio 0.1, weight_decay 0.01 and beta2 0.999, unless given")
          .one_of({"muon", "adamw"})
          .same_as("adamw_torch", "adamw")
          .same_as("adamw_torch_fused", "adamw")
          .same_as("AdamW", "adamw")
          .also({"optim"}));
  all.push_back(Option("training.learning_rate", training.learning_rate,
                       "the highest rate of the schedule, for what AdamW updates")
                    .above(0)
                    .at_most(10)
                    .automatic(0,
                               "sqrt(256 / d_model) times 4e-3 with muon, 1e-3 with adamw or lora_rank; a tenth of it "
                               "with model.from, unless lora_rank is given; classify 5e-5 with model.from, 5e-4 "
                               "sqrt(256 / d_model) without; mlm 1e-4 and 1e-3 sqrt(256 / d_model)")
                    .also({"lr", "max_lr", "peak_lr", "learning_rate_init"}));
  all.push_back(Option("training.muon_learning_rate", training.muon_learning_rate,
                       "the highest rate of the schedule, for what Muon updates; it serves all widths")
                    .above(0)
                    .at_most(10)
                    .automatic(0, "0.01; a tenth of it with model.from")
                    .also({"muon_lr", "matrix_lr"}));
  all.push_back(Option("training.muon_momentum", training.muon_momentum, "memory of the mean gradient in Muon")
                    .at_least(0)
                    .below(1));
  all.push_back(Option("training.lr_scheduler", training.lr_scheduler,
                       "the rate after warm-up; wsd (warm-up, stable, decay) is constant, then linear")
                    .one_of({"constant", "linear", "cosine", "wsd"})
                    .same_as("constant_with_warmup", "constant")
                    .same_as("warmup_stable_decay", "wsd")
                    .also({"lr_scheduler_type", "scheduler", "lr_schedule"}));
  all.push_back(Option("training.decay_ratio", training.decay_ratio,
                       "share of all steps, the last ones, in which wsd falls linearly; before it is constant")
                    .above(0)
                    .at_most(1)
                    .also({"decay_fraction", "cooldown_fraction", "cooldown_ratio"}));
  all.push_back(Option("training.warmup_steps", training.warmup_steps, "steps in which the rate rises from zero")
                    .at_least(0)
                    .automatic(-1, "warmup_ratio of all steps")
                    .in("optimizer steps")
                    .also({"warmup_iters", "num_warmup_steps", "warmup"}));
  all.push_back(
      Option("training.warmup_ratio", training.warmup_ratio, "share of all steps, where warmup_steps is not given")
          .at_least(0)
          .at_most(1)
          .also({"warmup_fraction"}));
  all.push_back(Option("training.min_learning_rate_ratio", training.min_learning_rate_ratio,
                       "linear, cosine and wsd end at this share of learning_rate")
                    .at_least(0)
                    .at_most(1)
                    .also({"min_lr_ratio", "min_lr_rate"}));
  all.push_back(Option("training.weight_decay", training.weight_decay, "of matrices; norms and biases have none")
                    .at_least(0)
                    .at_most(10)
                    .also({"wd"}));
  all.push_back(Option("training.beta1", training.beta1, "memory of the mean gradient")
                    .at_least(0)
                    .below(1)
                    .also({"adam_beta1"}));
  all.push_back(Option("training.beta2", training.beta2, "memory of the mean squared gradient")
                    .at_least(0)
                    .below(1)
                    .also({"adam_beta2"}));
  all.push_back(Option("training.adam_epsilon", training.adam_epsilon, "added to the root of the mean square")
                    .above(0)
                    .at_most(1)
                    .also({"adam_eps", "epsilon"}));
  all.push_back(
      Option("training.max_grad_norm", training.max_grad_norm, "the gradient's norm is clipped to this; 0: never")
          .at_least(0)
          .also({"grad_clip", "gradient_clip", "clip_grad_norm", "gradient_clip_val", "grad_norm_clip"}));
  all.push_back(
      Option("training.label_smoothing", training.label_smoothing, "share of the target spread over the vocabulary")
          .at_least(0)
          .below(1)
          .also({"label_smoothing_factor"}));
  all.push_back(Option("training.precision", training.precision,
                       "of matrix operands; weights, gradients and optimizer state stay fp32; auto takes the fastest "
                       "measured; tf32 and "
                       "fp8 are for GPUs (docs/running.md)")
                    .one_of({"auto", "fp32", "tf32", "bf16", "fp16", "fp8"})
                    .same_as("float32", "fp32")
                    .same_as("no", "fp32")
                    .same_as("tensorfloat32", "tf32")
                    .same_as("bfloat16", "bf16")
                    .same_as("float16", "fp16")
                    .flag("bf16", "bf16")
                    .flag("fp16", "fp16")
                    .also({"dtype", "mixed_precision", "torch_dtype"}));
  all.push_back(Option("training.master_weights", training.master_weights,
                       "false: the weights of the layers are kept in bf16 alone, without a copy in fp32, and updates "
                       "are rounded by chance; on a GPU, with precision bf16 or fp8")
                    .also({"fp32_master_weights"}));
  all.push_back(
      Option(
          "training.gradient_checkpointing", training.gradient_checkpointing,
          "keep the activations of every n-th layer and recompute the rest: less memory, more time; true is 1, 0 off")
          .at_least(0)
          .at_most(1000)
          .or_flag()
          .in("layers")
          .also({"activation_checkpointing", "checkpoint_every_n_layers", "model.gradient_checkpointing"}));
  all.push_back(Option("training.seed", training.seed, "of the initial weights, the order of the data and dropout")
                    .at_least(0)
                    .also({"random_seed", ".seed"}));
}

void declare_fine_tuning(TrainingOptions& training, std::vector<Option>& all) {
  all.push_back(Option("training.train_layers", training.train_layers,
                       "of a model that comes from model.from, train the last so many layers, the final norm and an "
                       "output projection of its own; the rest is frozen; 0: train everything")
                    .at_least(0)
                    .at_most(1000)
                    .in("layers")
                    .also({"unfrozen_layers", "trainable_layers"}));
  all.push_back(Option("training.lora_rank", training.lora_rank,
                       "of a model that comes from model.from, train low-rank adapters of this rank and freeze the "
                       "weights; 0: no adapters")
                    .at_least(0)
                    .at_most(4096)
                    .also({"lora_r"}));
  all.push_back(Option("training.lora_alpha", training.lora_alpha, "adapters are multiplied by lora_alpha / lora_rank")
                    .above(0)
                    .automatic(0, "2 lora_rank"));
  all.push_back(Option("training.lora_matrices", training.lora_matrices,
                       "matrices with adapters, of `qkv`, `attention_out`, `up` and `down`")
                    .automatic("all four")
                    .also({"lora_target_modules", "target_modules"}));
}

void declare_course(TrainingOptions& training, std::vector<Option>& all) {
  all.push_back(Option("training.eval_steps", training.eval_steps, "evaluate each so many steps; 0: after each epoch")
                    .at_least(0)
                    .in("optimizer steps")
                    .also({"eval_interval", "evaluation_steps", "eval_every"}));
  all.push_back(Option("training.logging_steps", training.logging_steps, "a line of metrics.jsonl each so many steps")
                    .at_least(1)
                    .in("optimizer steps")
                    .also({"log_interval", "log_every", "log_steps"}));
  all.push_back(
      Option("training.save_steps", training.save_steps, "save a checkpoint each so many steps; 0: after each epoch")
          .at_least(0)
          .in("optimizer steps")
          .also({"save_interval", "save_every", "checkpoint_steps"}));
  all.push_back(Option("training.save_minutes", training.save_minutes,
                       "save a checkpoint besides when the last one is so old; 0: never")
                    .at_least(0)
                    .at_most(1e6)
                    .in("minutes"));
  all.push_back(Option("training.save_total_limit", training.save_total_limit,
                       "checkpoints kept: the last so many, and the best; 0: all")
                    .at_least(0)
                    .in("checkpoints")
                    .also({"keep_checkpoints", "max_checkpoints"}));
  all.push_back(Option("training.load_best_model_at_end", training.load_best_model_at_end,
                       "the run ends with the weights of the best validation"));
  all.push_back(Option("training.best_by", training.best_by,
                       "the validation metric that decides which model is the best, and early stopping: any that the "
                       "task evaluates, such as loss, accuracy or f1 (the lower loss between equals); accuracy where "
                       "the task is classify")
                    .also({"metric_for_best_model"}));
  all.push_back(Option("training.early_stopping_patience", training.early_stopping_patience,
                       "end after so many evaluations without a better one (best_by); 0: never")
                    .at_least(0)
                    .in("evaluations")
                    .also({"patience"}));
  all.push_back(
      Option("training.divergence_guard", training.divergence_guard,
             "skip updates that are not finite, or whose gradient norm or loss is far above the last ones'; "
             "when they repeat, go back to the last good checkpoint at half the rate; off for classify unless given")
          .also({"guard"}));
  all.push_back(Option("training.divergence_gradient_ratio", training.divergence_gradient_ratio,
                       "an update is skipped when its gradient norm is above so many times the median of the last 64")
                    .above(1));
  all.push_back(Option("training.divergence_rollbacks", training.divergence_rollbacks,
                       "go back so many times at most, then stop; 0: stop at the first divergence")
                    .at_least(0)
                    .at_most(100));
  all.push_back(
      Option("training.sample_prompts", training.sample_prompts,
             "texts that the model continues at each evaluation, to samples.jsonl, TensorBoard and the terminal")
          .also({"sample_prompt", "prompts"}));
  all.push_back(Option("training.sample_tokens", training.sample_tokens,
                       "length of these samples; given without prompts: one sample, from an empty text")
                    .at_least(1)
                    .at_most(65536)
                    .automatic(0, "64 where there are prompts, otherwise no samples")
                    .in("tokens"));
  all.push_back(Option("training.tensorboard", training.tensorboard,
                       "write event files that TensorBoard reads, in the run directory under tensorboard/"));
  all.push_back(Option("training.histogram_steps", training.histogram_steps,
                       "histograms of parameters and gradients for TensorBoard each so many steps; 0: none")
                    .at_least(0)
                    .in("optimizer steps")
                    .also({"histogram_interval", "histogram_freq"}));
  all.push_back(Option("training.num_workers", training.num_workers,
                       "threads that prepare batches; 0: none besides the training thread")
                    .at_least(0)
                    .at_most(256)
                    .in("threads")
                    .also({"dataloader_num_workers", "data.num_workers"}));
  all.push_back(Option("training.micro_batch_tokens", training.micro_batch_tokens,
                       "token rows computed at once; changes memory and speed, never the result")
                    .at_least(1)
                    .at_most(16777216)
                    .automatic(0, "brisk chooses, at most 4096, on a GPU 65536")
                    .in("tokens"));
  all.push_back(
      Option("training.measure_micro_batch", training.measure_micro_batch,
             "time a few micro-batch sizes at the start and keep the fastest; changes speed, never the result"));
  all.push_back(Option("training.threads", training.threads, "threads that compute")
                    .at_least(1)
                    .at_most(4096)
                    .automatic(0, "all cores")
                    .in("threads")
                    .also({"num_threads", "n_threads"}));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> job_sections() {
  return {{"", "A training job of brisk."},
          {"model", "The network."},
          {"training", "How it is trained, evaluated, saved and computed."},
          {"data", "What it learns from."}};
}

std::vector<Option> declare_job_options(Job& job) {
  std::vector<Option> all;
  declare_top(job, all);
  declare_model(job.model, all);
  declare_encoder(job.model, all);
  declare_batches(job.training, all);
  declare_optimizer(job.training, all);
  declare_fine_tuning(job.training, all);
  declare_encoder_training(job.training, all);
  declare_course(job.training, all);
  declare_data(job.data, all);
  return all;
}

}  // namespace brisk
