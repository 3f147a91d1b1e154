// The options of training what is trained already, of learning from a teacher, and of encoders.
#include <fmt/format.h>

#include <algorithm>

#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

void declare_decoder_fine_tuning(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back(
         "training.train_layers", training.train_layers,
         "train only this many of the last layers, the final norm and the output projection if it is not tied, and "
         "freeze the rest; 0: train everything",
         OnResume::fixed)
      .at_least(0)
      .at_most(1000)
      .in("layers")
      .only_with(with_decoder(job, "only a decoder's are; an encoder's layers are frozen by training.freeze"))
      .only_with(with_adaptable_layers(job))
      .only_with(with_source_model(job))
      .also({"unfrozen_layers", "trainable_layers"})
      .smoke_test_rule(
          [&job] { job.training.train_layers = std::min(job.training.train_layers, job.model.num_layers); });
  all.emplace_back("training.lora_rank", training.lora_rank,
                   "train low-rank adapters (LoRA) of this rank and freeze the weights; 0: no adapters",
                   OnResume::fixed)
      .at_least(0)
      .at_most(4096)
      .only_with(with_decoder(job, "only decoders have adapters here"))
      .only_with(with_adaptable_layers(job))
      .only_with(with_source_model(job))
      .also({"lora_r"})
      .same_in_smoke_test();
  all.emplace_back("training.lora_alpha", training.lora_alpha,
                   "scale of the adapters: their output is multiplied by lora_alpha / lora_rank", OnResume::fixed)
      .above(0)
      .automatic(0, "2 lora_rank")
      .used_with(with_adapters(job))
      .same_in_smoke_test();
  all.emplace_back("training.lora_matrices", training.lora_matrices,
                   "weight matrices that get adapters: any of `qkv`, `attention_out`, `up` and `down`", OnResume::fixed)
      .automatic("all four")
      .used_with(with_adapters(job))
      .also({"lora_target_modules", "target_modules"})
      .same_in_smoke_test();
}

void declare_classifier(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back("training.class_weights", training.class_weights,
                   "weight of each class in the loss: balanced makes rare classes count as much as frequent ones; or "
                   "weights by name, {\"spam\": 5, \"ham\": 1}, 1 for those that are not named",
                   OnResume::fixed)
      .one_of({"none", "balanced"})
      .above(0)
      .at_most(1e6)
      .only_with(with_labels(job))
      .also({"class_weight"})
      .same_in_smoke_test();
  all.emplace_back(
         "training.teacher", training.teacher,
         "distillation: a trained classifier of the same classes (a run, a checkpoint, a Hugging Face folder) "
         "whose predictions are learned in addition to the labels",
         OnResume::fixed)
      .automatic("none")
      .only_with(with_labels(job, "a teacher's predictions are classes"))
      .also({"distill_from", "teacher_model", "distillation_teacher"})
      .same_in_smoke_test();
  all.emplace_back("training.distillation_weight", training.distillation_weight,
                   "weight a of the teacher's predictions in the loss a T^2 KL + (1 - a) cross-entropy",
                   OnResume::fixed)
      .above(0)
      .at_most(1)
      .only_with(with_teacher(job))
      .also({"distillation_alpha", "alpha"})
      .same_in_smoke_test();
  all.emplace_back("training.distillation_temperature", training.distillation_temperature,
                   "temperature T that divides the logits of teacher and student before they are compared",
                   OnResume::fixed)
      .above(0)
      .at_most(1000)
      .only_with(with_teacher(job))
      .also({"temperature"})
      .same_in_smoke_test();
}

void declare_encoder_training(Job& job, std::vector<Option>& all) {
  TrainingOptions& training = job.training;
  all.emplace_back("training.freeze", training.freeze,
                   "parts of the pretrained model that are not trained: `embeddings`, or n for the embeddings and the "
                   "first n layers",
                   OnResume::fixed)
      .at_least(1)
      .at_most(1000)
      .or_word("none", -1)
      .or_word("embeddings", 0)
      .in("layers")
      .only_with(with_encoder(job, "a decoder's last layers are trained by training.train_layers"))
      .only_with(with_source_model(job))
      .also({"freeze_layers", "frozen_layers"})
      .smoke_test_rule([&job] { job.training.freeze = std::min(job.training.freeze, job.model.num_layers); });
  all.emplace_back("training.freeze_encoders", training.freeze_encoders,
                   "do not train the image encoders, which begin as trained ones", OnResume::fixed)
      .only_with(with_image_to_text_model(job))
      .only_with({"model.from or model.image_encoder_from",
                  [&job] { return !job.model.from.empty() || !job.model.image_encoder_from.empty(); },
                  [] { return "without model.from or model.image_encoder_from (it would freeze untrained weights)"; }})
      .also({"freeze_encoder", "freeze_image_encoder", "freeze_image_encoders"})
      .same_in_smoke_test();
  all.emplace_back("training.frozen_dropout", training.frozen_dropout,
                   "apply dropout in frozen layers, too; false: they run as in evaluation", OnResume::fixed)
      .only_with(with_encoder(job, "nothing of a decoder is frozen by training.freeze"))
      .only_with(with_texts(job))
      .only_with(with_frozen_layers(job))
      .same_in_smoke_test();
  all.emplace_back(
         "training.cache_frozen", training.cache_frozen,
         "compute the outputs of the frozen layers once and keep them in data.cache_dir, if the run needs them "
         "more than once; changes speed, never the result",
         OnResume::fixed)
      .only_with({"an encoder of texts, or a model that reads images and writes texts",
                  [&job] { return job.model.is_encoder() != reads_images(job.model.type); },
                  [&job] { return fmt::format("to model.type {} (no activations of it are cached)", job.model.type); }})
      .used_with({"training.freeze of a classifier without frozen_dropout, or training.freeze_encoders",
                  [&job, &training] {
                    const bool layers = training.freeze >= 0 && !training.frozen_dropout;
                    return training.freeze_encoders || (layers && traits_of_task(job.task).has_labels);
                  }})
      .same_in_smoke_test();
  all.emplace_back("training.prune_last_layer", training.prune_last_layer,
                   "compute in the last layer only the tokens whose outputs are used (the first of each text, or the "
                   "masked ones); changes speed, never the result",
                   OnResume::fixed)
      .only_with(with_encoder(job, "a decoder uses the outputs of all tokens"))
      .only_with(with_texts(job))
      .also({"first_row_only"})
      .same_in_smoke_test();
  all.emplace_back("training.mlm_probability", training.mlm_probability,
                   "fraction of tokens to predict; 80 % of them are masked, 10 % replaced by random ones, 10 % left as "
                   "they are",
                   OnResume::fixed)
      .above(0)
      .below(1)
      .only_with(with_masked_tokens(job))
      .also({"mask_probability", "masking_rate"})
      .same_in_smoke_test();
  all.emplace_back("training.whole_word_masking", training.whole_word_masking, "mask all tokens of a word together",
                   OnResume::fixed)
      .only_with(with_masked_tokens(job))
      .same_in_smoke_test();
}

}  // namespace

void declare_fine_tuning_options(Job& job, std::vector<Option>& all) {
  declare_decoder_fine_tuning(job, all);
  declare_classifier(job, all);
  declare_encoder_training(job, all);
}

}  // namespace brisk
