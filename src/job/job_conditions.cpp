#include "job/job_conditions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace brisk {

namespace {

// "task classify or mlm": the tasks that are like that.
Condition with_task(const Job& job, const std::function<bool(const TaskTraits&)>& is_like,
                    const std::string& otherwise) {
  std::vector<std::string> names;
  for (const TaskTraits& task : all_tasks()) {
    if (is_like(task)) names.push_back(task.name);
  }
  return {fmt::format("task {}", fmt::join(names, " or ")),
          [&job, is_like] { return is_like(traits_of_task(job.task)); },
          [&job, otherwise] { return fmt::format("to task {} ({})", job.task, otherwise); }};
}

bool pairs_texts(const TaskTraits& task) { return task.trains_encoder_decoder && task.reads_texts; }

std::function<std::string()> not_for_type(const Job& job, const std::string& otherwise) {
  return [&job, otherwise] { return fmt::format("to model.type {} ({})", job.model.type, otherwise); };
}

bool trains_vocabulary(const Job& job) {
  return job.data.tokenizer.empty() && job.model.from.empty() && has_texts(traits_of_task(job.task), job.model.type);
}

}  // namespace

Condition with_labels(const Job& job, const std::string& otherwise) {
  return with_task(
      job, [](const TaskTraits& task) { return task.has_labels; }, otherwise);
}

Condition with_masked_tokens(const Job& job) {
  return with_task(
      job, [](const TaskTraits& task) { return task.masks_tokens; }, "it masks no tokens");
}

Condition with_encoder_task(const Job& job) {
  return with_task(
      job, [](const TaskTraits& task) { return task.trains_encoder; }, "it trains a decoder");
}

Condition with_encoder_decoder_task(const Job& job) {
  return with_task(
      job, [](const TaskTraits& task) { return task.trains_encoder_decoder; }, "it trains no encoder-decoder");
}

Condition with_pairs_of_texts(const Job& job) { return with_task(job, pairs_texts, "it has no pairs of texts"); }

Condition with_single_texts(const Job& job, const std::string& otherwise) {
  return with_task(
      job, [](const TaskTraits& task) { return !pairs_texts(task); }, otherwise);
}

Condition with_texts_of_images(const Job& job) {
  return with_task(
      job, [](const TaskTraits& task) { return task.trains_encoder_decoder && task.reads_images; },
      "it has no images with texts");
}

Condition with_encoder(const Job& job, const std::string& otherwise) {
  return {"an encoder", [&job] { return job.model.is_encoder(); }, not_for_type(job, otherwise)};
}

Condition with_decoder(const Job& job, const std::string& otherwise) {
  return {"a decoder", [&job] { return !job.model.is_encoder() && !job.model.is_encoder_decoder(); },
          not_for_type(job, otherwise)};
}

Condition with_encoder_decoder(const Job& job) {
  return {"an encoder-decoder", [&job] { return job.model.is_encoder_decoder(); },
          not_for_type(job, "it is no encoder-decoder")};
}

Condition with_images(const Job& job) {
  return {"a model that reads images", [&job] { return reads_images(job.model.type); },
          not_for_type(job, "it reads texts")};
}

Condition with_image_classifier(const Job& job) {
  return {"a classifier of images", [&job] { return reads_images(job.model.type) && job.model.is_encoder(); },
          not_for_type(job, "it is no classifier of images")};
}

Condition with_image_to_text_model(const Job& job) {
  return {"an encoder-decoder that reads images",
          [&job] { return reads_images(job.model.type) && job.model.is_encoder_decoder(); },
          not_for_type(job, "it does not read images to write texts")};
}

Condition with_texts(const Job& job) {
  return {"a model that reads texts",
          [&job] { return !reads_images(job.model.type) || traits_of_task(job.task).trains_encoder_decoder; },
          not_for_type(job, "it reads images")};
}

Condition with_type(const Job& job, const std::string& type) {
  return {"model.type " + type, [&job, type] { return job.model.type == type; }};
}

Condition with_adaptable_layers(const Job& job) {
  return {"layers of GPT-2's or Llama's shape",
          [&job] { return !has_fixed_layers(job.model.type) && !job.model.is_encoder_decoder(); },
          not_for_type(job, "all of it is trained")};
}

Condition with_reference(const Job& job) {
  return {"model.reference", [&job] { return job.model.reference; }};
}

Condition with_source_model(const Job& job) {
  return {"model.from", [&job] { return !job.model.from.empty(); },
          [] { return "without model.from (it would freeze untrained weights)"; }};
}

Condition with_own_wordpiece(const Job& job) {
  return {"a WordPiece vocabulary that is trained",
          [&job] { return trains_vocabulary(job) && !job.model.has_byte_level_vocabulary(); },
          [&job] {
            return trains_vocabulary(job) ? fmt::format("with the byte-level BPE of model.type {}", job.model.type)
                                          : std::string("with a tokenizer that is given: its own files decide");
          }};
}

Condition with_own_bpe(const Job& job) {
  return {"a byte-level BPE that is trained",
          [&job] { return trains_vocabulary(job) && job.model.has_byte_level_vocabulary(); }};
}

Condition with_optimizer(const Job& job, const std::string& optimizer) {
  return {"optimizer " + optimizer, [&job, optimizer] { return job.training.optimizer == optimizer; }};
}

Condition with_adapters(const Job& job) {
  return {"training.lora_rank", [&job] { return job.training.lora_rank > 0; }};
}

Condition with_frozen_layers(const Job& job) {
  return {"training.freeze", [&job] { return job.training.freeze >= 0; }};
}

Condition with_validation(const Job& job) {
  return {"validation data", [&job] { return !job.data.validation.empty() || job.data.validation_fraction > 0; },
          [] { return "without validation data (data.validation_fraction is 0, and there is no data.validation)"; }};
}

Condition with_evaluations(const Job& job) {
  Condition condition = with_validation(job);
  return {"validation data or samples",
          [&job, evaluated = condition.holds] {
            return evaluated() || job.training.sample_tokens > 0 || !job.training.sample_prompts.empty();
          },
          condition.otherwise};
}

Condition with_teacher(const Job& job) {
  return {"training.teacher", [&job] { return !job.training.teacher.empty(); }};
}

}  // namespace brisk
