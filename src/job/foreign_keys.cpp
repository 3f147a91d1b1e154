#include "job/foreign_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/parse_json.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;
using Answer = ForeignAnswer;

// What a key is for that changes nothing here.
constexpr const char* kProcesses = "`brisk launch` or mpirun says how many processes train, each on one device";
constexpr const char* kNoPadding =
    "nothing is padded here unless training.padding says so, and a batch is filled by length as it comes";
constexpr const char* kPyTorch = "it tunes PyTorch, which brisk does not use";
constexpr const char* kHub =
    "nothing is uploaded; `brisk export RUN --format huggingface --output FOLDER` writes what can be";
constexpr const char* kEvaluationBatches =
    "evaluations are divided to fit into memory, and their result does not depend on how";
constexpr const char* kLoader = "brisk's loader reads tokens from a file and needs no tuning";
constexpr const char* kLogs = "metrics.jsonl, TensorBoard and the report hold every logging_steps-th step";
constexpr const char* kTable = "columns are chosen by data.text_field and data.label_field; the others are not read";
constexpr const char* kClasses = "classes are those of the training data, and in the run's labels.json";
constexpr const char* kTokens = "the tokenizer's own special tokens are used";
constexpr const char* kTokenizer = "the tokenizer's own files decide";
constexpr const char* kOff = "switched off, and brisk does not have it";
constexpr const char* kCommands = "`brisk train` trains and evaluates; `brisk eval` and `brisk predict` do the rest";

// A value that asks for nothing.
bool is_off(const Json& value) {
  if (value.is_null() || value == false || value == "" || value == "no" || value == "none" || value == "off")
    return true;
  if (value.is_number()) return value == 0 || value == -1;
  return value.is_structured() && value.empty();
}

std::function<Answer(const std::string&)> by_value(std::function<Answer(const Json&)> answer) {
  return [answer = std::move(answer)](const std::string& json) {
    const Json value = parse_json_or_discard(json);
    return answer(value);
  };
}

class KeyTable {
 public:
  void ignore(const char* reason, std::initializer_list<const char*> names) {
    for (const char* name : names)
      keys_.push_back({name, [reason](const std::string&) { return Answer::ignored(reason); }});
  }

  // Unless the value switches it off.
  void refuse(const std::string& reason, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      keys_.push_back({name, by_value([reason](const Json& value) {
                         return is_off(value) ? Answer::ignored(kOff) : Answer::refused(reason);
                       })});
    }
  }

  void answer(std::initializer_list<const char*> names, const std::function<Answer(const Json&)>& body) {
    for (const char* name : names) keys_.push_back({name, by_value(body)});
  }

  std::vector<ForeignKey> take() { return std::move(keys_); }

 private:
  std::vector<ForeignKey> keys_;
};

// "steps" leaves it to the option; `every` is what evaluates or saves so often.
Answer strategy(const Json& value, const std::string& option, const std::string& every) {
  if (value == "epoch") return Answer::used(option, "\"epoch\"");
  if (value == "no" || value == "none" || value == false) return Answer::used(option, "\"end\"");
  if (value == "steps") return Answer::ignored(fmt::format("{} says how often, in optimizer steps", every));
  if (value == "best") return Answer::ignored("the best model is always kept (training.load_best_model_at_end)");
  return Answer::refused("expected \"epoch\", \"steps\" or \"no\"");
}

Answer report_to(const Json& value) {
  bool tensorboard = false;
  std::vector<std::string> others;
  for (const Json& item : value.is_array() ? value : Json::array({value})) {
    const std::string name = item.is_string() ? item.get<std::string>() : item.dump();
    if (name == "tensorboard" || name == "all") {
      tensorboard = true;
    } else if (name != "none") {
      others.push_back(name);
    }
  }
  if (!others.empty()) {
    return Answer::ignored(fmt::format(
        "{} is not reported to: brisk sends nothing anywhere; TensorBoard events, metrics.jsonl and `brisk report` hold "
        "the same",
        fmt::join(others, " or ")));
  }
  return Answer::used("training.tensorboard", tensorboard ? "true" : "false");
}

void add_evaluation(KeyTable& keys) {
  keys.answer({"eval_strategy", "evaluation_strategy"},
              [](const Json& value) { return strategy(value, "training.eval_steps", "training.eval_steps"); });
  keys.answer({"save_strategy"},
              [](const Json& value) { return strategy(value, "training.save_steps", "training.save_steps"); });
  keys.ignore(kEvaluationBatches,
              {"per_device_eval_batch_size", "per_gpu_eval_batch_size", "eval_batch_size", "eval_accumulation_steps",
               "eval_do_concat_batches", "eval_use_gather_object", "batch_eval_metrics", "prediction_loss_only",
               "use_legacy_prediction_loop", "past_index", "bf16_full_eval", "fp16_full_eval", "jit_mode_eval"});
  keys.ignore("every metric knows which way is better", {"greater_is_better"});
  keys.ignore("accuracy, F1 and the loss are always evaluated; training.best_by chooses by which",
              {"metric_name", "compute_metrics", "include_inputs_for_metrics", "include_for_metrics", "metric"});
  keys.refuse("evaluations begin with training.eval_steps", {"eval_delay", "eval_on_start"});
  keys.answer({"early_stopping"}, [](const Json& value) {
    if (value.is_number_integer() && value > 0 && value < 1'000'000)
      return Answer::used("training.early_stopping_patience", value.dump());
    if (is_off(value)) return Answer::used("training.early_stopping_patience", "0");
    return Answer::refused("set training.early_stopping_patience, to 3 evaluations without a better one, for example");
  });
  keys.refuse("any better value counts; early_stopping_patience says after how many evaluations without one it stops",
              {"early_stopping_threshold"});
  keys.refuse("text is generated by `brisk generate`, or at evaluations with training.sample_prompts",
              {"generation_config"});
  keys.ignore("where a model writes a text of what it reads, evaluations have training.eval_translations of them",
              {"predict_with_generate"});
  keys.ignore("a text of an evaluation is at most as long as the model writes (model.context)",
              {"generation_max_length"});
  keys.answer({"generation_num_beams"}, [](const Json& value) {
    return is_off(value) ? Answer::ignored(kOff) : Answer::used("training.eval_beam", value.dump());
  });
}

void add_course(KeyTable& keys) {
  keys.answer({"do_train"}, [](const Json& value) {
    return value == false ? Answer::refused("`brisk train` trains; to evaluate a trained model, `brisk eval`")
                          : Answer::ignored(kCommands);
  });
  keys.ignore(kCommands, {"do_eval", "do_predict"});
  keys.answer({"resume_from_checkpoint"}, [](const Json& value) {
    return is_off(value) ? Answer::ignored("--resume continues a run")
                         : Answer::refused(
                               "continue a run with `brisk train RUN --resume`; start from another model's "
                               "weights with model.from");
  });
  keys.ignore("an existing run is only replaced with --overwrite on the command line", {"overwrite_output_dir"});
  keys.refuse("cut the file (head -n 1001 train.csv > part.csv), or end sooner with training.stop",
              {"max_train_samples", "max_samples", "max_eval_samples", "max_predict_samples", "max_val_samples"});
  keys.ignore("a checkpoint always has what it takes to resume, in safetensors",
              {"save_safetensors", "save_only_model", "save_on_each_node", "restore_callback_states_from_checkpoint",
               "enable_jit_checkpoint"});
  keys.refuse("a resumed run goes on with the data where it stopped", {"ignore_data_skip"});
  keys.ignore("training.seed is the seed of the data's order, too", {"data_seed", "shuffle_seed"});
  keys.ignore("the same job gives the same result on the same machine with as many threads", {"full_determinism"});
  keys.ignore("the training data is always shuffled", {"shuffle", "shuffle_train_dataset"});
  keys.answer({"report_to"}, report_to);
  keys.ignore("TensorBoard's events are in the folder tensorboard/ of the run", {"logging_dir"});
  keys.ignore(kLogs, {"logging_strategy", "logging_first_step", "logging_nan_inf_filter", "log_level",
                      "log_level_replica", "log_on_each_node", "include_tokens_per_second",
                      "include_num_input_tokens_seen", "no_deprecation_warnings"});
  keys.ignore("the progress line is shown in a terminal only", {"disable_tqdm"});
  keys.ignore("brisk measures memory always", {"skip_memory_metrics"});
  keys.ignore("brisk sends nothing anywhere", {"project", "trackio_space_id", "trackio_bucket_id",
                                               "trackio_static_space_id", "wandb_project", "use_wandb", "wandb"});
  keys.ignore(kHub,
              {"push_to_hub", "push_to_hub_model_id", "push_to_hub_organization", "push_to_hub_token", "hub_model_id",
               "hub_strategy", "hub_token", "hub_private_repo", "hub_always_push", "hub_revision"});
}

void add_machine(KeyTable& keys) {
  keys.answer({"use_cpu", "no_cuda"}, [](const Json& value) {
    return value == true ? Answer::used("device", "\"cpu\"")
                         : Answer::ignored("device auto takes a GPU if there is one");
  });
  keys.refuse("brisk trains on CPUs and NVIDIA GPUs",
              {"use_mps_device", "use_ipex", "tpu_num_cores", "xpu_backend", "use_habana", "use_hpu"});
  keys.ignore(kProcesses, {"local_rank",
                           "world_size",
                           "n_gpu",
                           "_n_gpu",
                           "num_processes",
                           "ddp_backend",
                           "ddp_find_unused_parameters",
                           "ddp_bucket_cap_mb",
                           "ddp_broadcast_buffers",
                           "ddp_timeout",
                           "ddp_static_graph",
                           "average_tokens_across_devices",
                           "accelerator_config",
                           "fsdp_config",
                           "fsdp_min_num_params",
                           "fsdp_transformer_layer_cls_to_wrap",
                           "dispatch_batches",
                           "split_batches",
                           "ray_scope",
                           "mp_parameters",
                           "sharded_ddp",
                           "parallel_mode"});
  keys.refuse(
      "each process has the whole model; training.gradient_checkpointing, precision bf16 and a smaller "
      "micro_batch_tokens save memory",
      {"deepspeed", "fsdp", "parallelism_config"});
  keys.ignore(kPyTorch, {"torch_compile",
                         "torch_compile_backend",
                         "torch_compile_mode",
                         "torchdynamo",
                         "torch_empty_cache_steps",
                         "tpu_metrics_debug",
                         "debug",
                         "compile",
                         "backend",
                         "use_liger_kernel",
                         "liger_kernel_config",
                         "half_precision_backend",
                         "fp16_backend",
                         "fp16_opt_level",
                         "gradient_checkpointing_kwargs",
                         "activation_checkpointing_kwargs",
                         "attn_implementation",
                         "low_cpu_mem_usage",
                         "use_flash_attention_2",
                         "use_cache"});
  keys.answer({"tf32"}, [](const Json& value) {
    return Answer::ignored(value == true ? "training.precision tf32 computes in it, on a GPU"
                                         : "tf32 is only used with training.precision tf32");
  });
  keys.ignore("the memory is planned before the first step, and a batch of any size is divided to fit",
              {"auto_find_batch_size"});
}

void add_optimizer(KeyTable& keys) {
  keys.refuse("brisk has the optimizers muon and adamw (training.optimizer)",
              {"adafactor", "optim_args", "optim_target_modules", "momentum", "nesterov"});
  keys.refuse("schedules have training.warmup_ratio, decay_ratio and min_learning_rate_ratio",
              {"lr_scheduler_kwargs", "lr_decay_iters", "min_lr"});
  keys.refuse("noise in the embeddings (NEFTune) is not implemented", {"neftune_noise_alpha"});
  keys.refuse("all parameters that are trained have one learning rate; training.freeze keeps layers as they are",
              {"layerwise_lr_decay", "llrd", "head_learning_rate", "embedding_learning_rate"});
  keys.ignore("AdamW's decay is decoupled from the gradient, always", {"correct_bias", "amsgrad"});
}

void add_data(KeyTable& keys) {
  keys.ignore(kNoPadding, {"group_by_length", "length_column_name", "sortish_sampler", "pad_to_multiple_of",
                           "train_sampling_strategy", "padding_side", "packing"});
  keys.ignore(kLoader, {"dataloader_drop_last", "dataloader_pin_memory", "dataloader_persistent_workers",
                        "dataloader_prefetch_factor", "dataloader_multiprocessing_context", "dataloader_in_order",
                        "preprocessing_num_workers", "overwrite_cache", "streaming", "pin_memory"});
  keys.ignore(kTable, {"remove_unused_columns", "label_names", "remove_splits", "remove_columns"});
  keys.ignore(kTokenizer, {"use_fast_tokenizer", "keep_linebreaks", "config_name"});
  keys.answer({"truncation"}, [](const Json& value) {
    return value == false ? Answer::refused("texts longer than training.max_length are cut; raise it instead")
                          : Answer::ignored("texts are cut at training.max_length, always");
  });
  keys.answer({"validation_split_percentage"}, [](const Json& value) {
    if (!value.is_number() || value < 0 || value > 50) return Answer::refused("set data.validation_fraction, 0 to 0.5");
    return Answer::used("data.validation_fraction", Json(value.get<double>() / 100).dump());
  });
  keys.refuse("brisk downloads nothing: get the files, and name them in data.train",
              {"dataset_name", "dataset_config_name", "dataset", "task_name", "train_split_name",
               "validation_split_name", "test_split_name", "dataset_text_field"});
  keys.refuse("evaluate the trained model on it: brisk eval RUN --data FILE", {"test_file", "test_files", "test"});
  keys.refuse("a document is a line with data.document = \"line\"", {"line_by_line"});
}

void add_model(KeyTable& keys) {
  keys.ignore(kClasses, {"id2label", "label2id", "label_list", "ignore_mismatched_sizes"});
  keys.ignore(kTokens, {"pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"});
  keys.ignore("it says how a file was written", {"architectures", "transformers_version", "_name_or_path"});
  keys.ignore("brisk downloads nothing, and runs no code of a model",
              {"model_revision", "revision", "token", "use_auth_token", "trust_remote_code"});
  keys.answer({"initializer_range"}, [](const Json& value) {
    const char* reason = "weights begin with a standard deviation of 0.02";
    return value == 0.02 ? Answer::ignored(reason) : Answer::refused(reason);
  });
  keys.answer({"problem_type"}, [](const Json& value) {
    const char* reason = "a text has one class of several (single-label classification)";
    return value == "single_label_classification" ? Answer::ignored(reason) : Answer::refused(reason);
  });
  keys.refuse("weights are loaded in the precision that training.precision says",
              {"load_in_8bit", "load_in_4bit", "quantization_config"});
  keys.refuse("to learn adapters, set training.lora_rank (and lora_alpha, lora_matrices)",
              {"use_peft", "use_lora", "peft_config", "lora_dropout", "lora_bias"});
}

}  // namespace

const std::vector<ForeignKey>& foreign_keys() {
  static const std::vector<ForeignKey> all = [] {
    KeyTable keys;
    add_evaluation(keys);
    add_course(keys);
    add_machine(keys);
    add_optimizer(keys);
    add_data(keys);
    add_model(keys);
    return keys.take();
  }();
  return all;
}

}  // namespace brisk
