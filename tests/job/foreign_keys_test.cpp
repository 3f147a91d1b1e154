// What somebody who comes from Hugging Face's Trainer brings along.
#include "job/foreign_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "job/job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

// TrainingArguments as Trainer writes them out, at their defaults. `output_dir` aside, which has none.
const std::map<std::string, std::string> kTrainingArguments = {
    {"accelerator_config", R"({"split_batches": false, "even_batches": true})"},
    {"activation_checkpointing_kwargs", "null"},
    {"adafactor", "false"},
    {"adam_beta1", "0.9"},
    {"adam_beta2", "0.999"},
    {"adam_epsilon", "1e-08"},
    {"auto_find_batch_size", "false"},
    {"average_tokens_across_devices", "true"},
    {"batch_eval_metrics", "false"},
    {"bf16", "false"},
    {"bf16_full_eval", "false"},
    {"data_seed", "null"},
    {"dataloader_drop_last", "false"},
    {"dataloader_in_order", "true"},
    {"dataloader_multiprocessing_context", "null"},
    {"dataloader_num_workers", "0"},
    {"dataloader_persistent_workers", "false"},
    {"dataloader_pin_memory", "true"},
    {"dataloader_prefetch_factor", "null"},
    {"ddp_backend", "null"},
    {"ddp_broadcast_buffers", "null"},
    {"ddp_bucket_cap_mb", "null"},
    {"ddp_find_unused_parameters", "null"},
    {"ddp_static_graph", "null"},
    {"ddp_timeout", "1800"},
    {"debug", "[]"},
    {"deepspeed", "null"},
    {"disable_tqdm", "false"},
    {"do_eval", "true"},
    {"do_predict", "false"},
    {"do_train", "true"},
    {"eval_accumulation_steps", "null"},
    {"eval_delay", "0"},
    {"eval_do_concat_batches", "true"},
    {"eval_on_start", "false"},
    {"eval_steps", "null"},
    {"eval_strategy", "\"epoch\""},
    {"eval_use_gather_object", "false"},
    {"fp16", "false"},
    {"fp16_backend", "\"auto\""},
    {"fp16_full_eval", "false"},
    {"fp16_opt_level", "\"O1\""},
    {"fsdp", "[]"},
    {"fsdp_config", R"({"min_num_params": 0, "xla": false})"},
    {"fsdp_min_num_params", "0"},
    {"fsdp_transformer_layer_cls_to_wrap", "null"},
    {"full_determinism", "false"},
    {"gradient_accumulation_steps", "1"},
    {"gradient_checkpointing", "false"},
    {"gradient_checkpointing_kwargs", "null"},
    {"greater_is_better", "true"},
    {"group_by_length", "true"},
    {"half_precision_backend", "\"auto\""},
    {"hub_always_push", "false"},
    {"hub_model_id", "null"},
    {"hub_private_repo", "null"},
    {"hub_revision", "null"},
    {"hub_strategy", "\"every_save\""},
    {"hub_token", "\"<HUB_TOKEN>\""},
    {"ignore_data_skip", "false"},
    {"include_for_metrics", "[]"},
    {"include_inputs_for_metrics", "false"},
    {"include_num_input_tokens_seen", "false"},
    {"include_tokens_per_second", "false"},
    {"jit_mode_eval", "false"},
    {"label_names", "null"},
    {"label_smoothing_factor", "0.0"},
    {"learning_rate", "2e-05"},
    {"length_column_name", "\"length\""},
    {"liger_kernel_config", "null"},
    {"load_best_model_at_end", "true"},
    {"local_rank", "0"},
    {"log_level", "\"passive\""},
    {"log_level_replica", "\"warning\""},
    {"log_on_each_node", "true"},
    {"logging_dir", "\"runs/Jan01\""},
    {"logging_first_step", "false"},
    {"logging_nan_inf_filter", "true"},
    {"logging_steps", "500"},
    {"logging_strategy", "\"steps\""},
    {"lr_scheduler_kwargs", "{}"},
    {"lr_scheduler_type", "\"linear\""},
    {"max_grad_norm", "1.0"},
    {"max_steps", "-1"},
    {"metric_for_best_model", "\"f1\""},
    {"mp_parameters", "\"\""},
    {"neftune_noise_alpha", "null"},
    {"no_cuda", "false"},
    {"num_train_epochs", "3.0"},
    {"optim", "\"adamw_torch\""},
    {"optim_args", "null"},
    {"optim_target_modules", "null"},
    {"overwrite_output_dir", "true"},
    {"parallelism_config", "null"},
    {"past_index", "-1"},
    {"per_device_eval_batch_size", "64"},
    {"per_device_train_batch_size", "16"},
    {"per_gpu_eval_batch_size", "null"},
    {"prediction_loss_only", "false"},
    {"project", "\"huggingface\""},
    {"push_to_hub", "true"},
    {"push_to_hub_model_id", "null"},
    {"push_to_hub_organization", "null"},
    {"push_to_hub_token", "\"<PUSH_TO_HUB_TOKEN>\""},
    {"ray_scope", "\"last\""},
    {"remove_unused_columns", "true"},
    {"report_to", "[\"tensorboard\"]"},
    {"restore_callback_states_from_checkpoint", "false"},
    {"resume_from_checkpoint", "null"},
    {"run_name", "\"sentiment\""},
    {"save_on_each_node", "false"},
    {"save_only_model", "false"},
    {"save_safetensors", "true"},
    {"save_steps", "500"},
    {"save_strategy", "\"epoch\""},
    {"save_total_limit", "null"},
    {"seed", "42"},
    {"skip_memory_metrics", "true"},
    {"split_batches", "null"},
    {"tf32", "null"},
    {"torch_compile", "false"},
    {"torch_compile_backend", "null"},
    {"torch_compile_mode", "null"},
    {"torch_empty_cache_steps", "null"},
    {"torchdynamo", "null"},
    {"tpu_metrics_debug", "false"},
    {"tpu_num_cores", "null"},
    {"trackio_bucket_id", "null"},
    {"trackio_space_id", "\"trackio\""},
    {"trackio_static_space_id", "null"},
    {"use_cpu", "false"},
    {"use_ipex", "false"},
    {"use_legacy_prediction_loop", "false"},
    {"use_liger_kernel", "false"},
    {"use_mps_device", "false"},
    {"warmup_ratio", "0.06"},
    {"warmup_steps", "0"},
    {"weight_decay", "0.0"},
};

std::string all_arguments() {
  std::vector<std::string> entries;
  for (const auto& [key, value] : kTrainingArguments) entries.push_back(fmt::format("\"{}\": {}", key, value));
  return fmt::format("{}", fmt::join(entries, ", "));
}

struct Loaded {
  Job job;
  std::string notes;
};

Loaded load(const std::string& text, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> notes;
  Job job = job_from_json_text(text, "job.json", overrides, notes);
  resolve_defaults(job);
  return {job, fmt::format("{}", fmt::join(notes, "\n"))};
}

std::string problem_of(const std::string& key, const std::string& value) {
  return test::message_of<UserError>([&] { load(fmt::format(R"({{"training": {{"{}": {}}}}})", key, value)); });
}

TEST(ForeignKeys, AllTrainingArgumentsAtOnceAreAReadablePage) {
  const Loaded loaded = load(R"({"task": "text-classification", "training": {)" + all_arguments() + "}}");
  EXPECT_EQ(loaded.job.name, "sentiment");
  EXPECT_EQ(loaded.job.training.precision, "fp32");
  EXPECT_EQ(loaded.job.training.num_epochs, 3);
  EXPECT_EQ(loaded.job.training.max_steps, 0);
  EXPECT_EQ(loaded.job.training.batch_size, 16);
  EXPECT_EQ(loaded.job.training.learning_rate, 2e-5);
  EXPECT_EQ(loaded.job.training.best_by, "f1");
  EXPECT_EQ(loaded.job.training.warmup_ratio, 0.06);
  EXPECT_EQ(loaded.job.training.warmup_steps, -1);
  EXPECT_EQ(loaded.job.training.seed, 42);
  EXPECT_EQ(loaded.job.training.eval_steps, 0);
  EXPECT_EQ(loaded.job.training.save_steps, 0) << "save_strategy epoch goes before save_steps 500";
  EXPECT_NE(loaded.notes.find("save_strategy \"epoch\" is training.save_steps = \"epoch\" here, in place of 500"),
            std::string::npos)
      << loaded.notes;
  EXPECT_NE(loaded.notes.find("ignored: group_by_length, length_column_name: nothing is padded here"),
            std::string::npos)
      << loaded.notes;
  EXPECT_EQ(loaded.notes.find("HUB_TOKEN"), std::string::npos);
  EXPECT_LT(loaded.notes.size(), 6000u) << loaded.notes;
  EXPECT_LT(std::count(loaded.notes.begin(), loaded.notes.end(), '\n'), 40) << loaded.notes;
}

TEST(ForeignKeys, AreUnderstoodWithoutASectionToo) {
  const Loaded loaded =
      load(R"({"task": "classify", "output_dir": "out", "model_name_or_path": "", )" + all_arguments() + "}");
  EXPECT_EQ(loaded.job.output, "out");
  EXPECT_EQ(loaded.job.training.learning_rate, 2e-5);
}

TEST(ForeignKeys, AreAnsweredWhateverTheirValue) {
  for (const ForeignKey& key : foreign_keys()) {
    for (const char* value :
         {"null", "true", "false", "0", "-1", "2.5", "\"\"", "\"word\"", "[]", "[1, \"a\"]", "{}", "{\"a\": null}"}) {
      const ForeignAnswer answer = key.answer(value);
      EXPECT_EQ(answer.verdict == ForeignAnswer::Verdict::used, answer.reason.empty()) << key.name << " = " << value;
    }
  }
}

TEST(ForeignKeys, ThatAskForWhatIsNotDoneAreRefused) {
  EXPECT_TRUE(problem_of("deepspeed", "\"ds.json\"")
                  .starts_with("job.json: training.deepspeed is not supported: each process has the whole model"));
  EXPECT_NE(problem_of("neftune_noise_alpha", "5").find("not implemented"), std::string::npos);
  EXPECT_NE(problem_of("max_train_samples", "1000").find("head -n"), std::string::npos);
  EXPECT_NE(problem_of("early_stopping", "true").find("early_stopping_patience"), std::string::npos);
  EXPECT_NE(problem_of("eval_strategy", "\"sometimes\"").find("\"epoch\", \"steps\" or \"no\""), std::string::npos);
  EXPECT_NE(problem_of("do_train", "false").find("brisk eval"), std::string::npos);
  EXPECT_EQ(problem_of("neftune_noise_alpha", "0"), "") << "that switches it off";
}

TEST(ForeignKeys, AreTakenForNoOtherOption) {
  for (const char* key : {"local_rank", "per_device_eval_batch_size", "eval_accumulation_steps", "do_eval"}) {
    const Loaded loaded = load(fmt::format(R"({{"training": {{"{}": 1}}}})", key));
    EXPECT_NE(loaded.notes.find(fmt::format("job.json: ignored: {}: ", key)), std::string::npos) << loaded.notes;
  }
}

TEST(ForeignKeys, SetWhatTheyMean) {
  EXPECT_EQ(load(R"({"training": {"use_cpu": true}})").job.device, "cpu");
  EXPECT_EQ(load(R"({"training": {"early_stopping": 4}})").job.training.early_stopping_patience, 4);
  EXPECT_FALSE(load(R"({"training": {"report_to": "none"}})").job.training.tensorboard);
  EXPECT_TRUE(load(R"({"training": {"report_to": "wandb"}})").job.training.tensorboard);
  EXPECT_EQ(load(R"({"data": {"validation_split_percentage": 10}})").job.data.validation_fraction, 0.1);
  const Job end = load(R"({"training": {"evaluation_strategy": "no", "eval_steps": 20}})").job;
  EXPECT_GT(end.training.eval_steps, 1'000'000);
  EXPECT_EQ(load(R"({"training": {"eval_strategy": "steps", "eval_steps": 20}})").job.training.eval_steps, 20);
  EXPECT_EQ(load(R"({"training": {"eval_strategy": "epoch"}})", {"training.eval_steps=7"}).job.training.eval_steps, 7)
      << "the command line goes before the file";
  EXPECT_EQ(load(R"({"training": {"eval_steps": 7}})", {"eval_strategy=epoch"}).job.training.eval_steps, 0);
}

}  // namespace
}  // namespace brisk
