#include "job/job_options.h"

#include "job/job_conditions.h"

namespace brisk {

namespace {

void declare_top_options(Job& job, std::vector<Option>& all) {
  all.emplace_back("name", job.name, "name of the run", OnResume::may_change)
      .automatic("the job file's name without .json")
      .also({"run_name", "experiment_name", "training.run_name"})
      .everywhere()
      .same_in_smoke_test();
  std::vector<std::string> tasks;
  for (const TaskTraits& task : all_tasks()) tasks.push_back(task.name);
  all.emplace_back(
         "task", job.task,
         "what the model learns: to continue text (language_model), to sort texts or images into classes (classify), to "
         "fill in masked words, before it is fine-tuned (mlm), to translate texts (translate), or to write the text of an "
         "image (image_to_text)",
         OnResume::fixed)
      .one_of(tasks)
      .same_as("lm", "language_model")
      .same_as("causal_lm", "language_model")
      .same_as("clm", "language_model")
      .same_as("language_modeling", "language_model")
      .same_as("text_generation", "language_model")
      .same_as("classification", "classify")
      .same_as("text_classification", "classify")
      .same_as("sequence_classification", "classify")
      .same_as("sentiment_analysis", "classify")
      .same_as("image_classification", "classify")
      .same_as("masked_lm", "mlm")
      .same_as("masked_language_model", "mlm")
      .same_as("fill_mask", "mlm")
      .same_as("translation", "translate")
      .same_as("seq2seq", "translate")
      .same_as("seq2seq_lm", "translate")
      .same_as("summarization", "translate")
      .same_as("text2text_generation", "translate")
      .same_as("image_captioning", "image_to_text")
      .same_as("captioning", "image_to_text")
      .same_as("ocr", "image_to_text")
      .same_as("text_recognition", "image_to_text")
      .same_as("vision2seq", "image_to_text")
      .same_as("document_translation", "image_to_text")
      .not_a_choice({"ner", "token_classification", "named_entity_recognition", "pos", "pos_tagging", "tagging"},
                    "labels for single words are not supported; the nearest is classify, one class for a whole text")
      .not_a_choice({"regression", "text_regression", "sts", "stsb"},
                    "numbers are not predicted; the nearest is classify, with the range divided into a few classes")
      .not_a_choice({"multi_label", "multilabel", "multi_label_classification", "multilabel_classification"},
                    "several labels for a text are not supported; the nearest is classify, with a classifier for each")
      .not_a_choice({"embedding", "embeddings", "sentence_embeddings", "sentence_similarity", "feature_extraction",
                     "retrieval", "contrastive"},
                    "embeddings of texts are not trained; the nearest is mlm, which pretrains an encoder, or classify "
                    "with data.pair_field for pairs of texts")
      .not_a_choice({"question_answering", "qa", "squad", "multiple_choice", "zero_shot_classification"},
                    "answers are not picked out of a text; the nearest is classify with data.pair_field, a class for "
                    "each pair of texts")
      .not_a_choice({"sft", "instruction_tuning", "chat", "dpo", "rlhf", "ppo", "grpo", "reward"},
                    "the loss is that of all tokens; the nearest is language_model with model.from")
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("comment", job.comment, "free text for people; brisk does not read it", OnResume::may_change)
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back("output", job.output, "folder of the run: checkpoints, tokenizer, metrics; or --output",
                   OnResume::may_change)
      .automatic("runs/ and the name")
      .also({"output_dir", "run_dir", "out_dir", "training.output_dir"})
      .everywhere()
      .same_in_smoke_test();
  all.emplace_back(
         "device", job.device,
         "device to train on: `cpu`, an NVIDIA GPU (`cuda` or `gpu`; `cuda:1` for the second one), or `auto`: "
         "a GPU if there is one; or --device",
         OnResume::may_change)
      .also({"training.device"})
      .everywhere()
      .same_in_smoke_test();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> job_sections() {
  return {{"", "A training job of brisk."},
          {"model", "The network."},
          {"training", "How it is trained, evaluated, saved and computed."},
          {"data", "What it learns from."},
          {"baseline", "What the run is compared with at its end; `brisk doctor --apply` writes it."}};
}

std::vector<Option> declare_job_options(Job& job) {
  std::vector<Option> all;
  declare_top_options(job, all);
  declare_model_options(job, all);
  declare_image_options(job, all);
  declare_image_to_text_options(job, all);
  declare_training_options(job, all);
  declare_fine_tuning_options(job, all);
  declare_run_options(job, all);
  declare_data_options(job, all);
  declare_baseline_options(job, all);
  for (const ArchitectureTraits& architecture : all_architectures()) {
    if (architecture.declare_options != nullptr) architecture.declare_options(job, all);
  }
  return all;
}

Job with_found(Job job, const FoundValues& found) {
  take_found(declare_job_options(job), found);
  return job;
}

Job with_recalled(Job job, Job saved) {
  recall_found(declare_job_options(job), declare_job_options(saved));
  return job;
}

}  // namespace brisk
