// The options that only encoders and their tasks (classify, mlm) have.
#include "job/job_options.h"

namespace brisk {

void declare_encoder(ModelOptions& model, std::vector<Option>& all) {
  all.push_back(Option("model.attention_dropout", model.attention_dropout,
                       "of an encoder: share of attention weights dropped in training")
                    .at_least(0)
                    .below(1)
                    .automatic(-1, "dropout")
                    .also({"attention_probs_dropout_prob"}));
  all.push_back(Option("model.classifier_dropout", model.classifier_dropout,
                       "of a classifier: share of the values before its last product dropped in training")
                    .at_least(0)
                    .below(1)
                    .automatic(-1, "dropout; 0.2 with distilbert")
                    .also({"seq_classif_dropout"}));
  all.push_back(Option("model.token_types", model.token_types,
                       "of an encoder: kinds of tokens that have a vector of their own (first text, second text)")
                    .at_least(0)
                    .at_most(16)
                    .automatic(-1, "bert 2, distilbert 0, roberta 1")
                    .also({"type_vocab_size"}));
  all.push_back(Option("model.num_labels", model.num_labels, "of a classifier: its classes")
                    .at_least(2)
                    .at_most(1048576)
                    .automatic(0, "those of the training data")
                    .also({"num_classes", "n_classes", "data.num_labels"}));
}

void declare_encoder_training(TrainingOptions& training, std::vector<Option>& all) {
  all.push_back(Option("training.class_weights", training.class_weights,
                       "of a classifier: balanced makes each class count in the loss as if all were equally frequent")
                    .one_of({"none", "balanced"})
                    .also({"class_weight"}));
  all.push_back(Option("training.teacher", training.teacher,
                       "of a classifier: a trained classifier of the same classes (a run, a checkpoint, a Hugging Face "
                       "folder) whose answers are learned besides the labels")
                    .automatic("none")
                    .also({"distill_from", "teacher_model", "distillation_teacher"}));
  all.push_back(Option("training.distillation_weight", training.distillation_weight,
                       "share of the loss that the teacher's answers have: a in a T^2 KL + (1 - a) cross-entropy")
                    .above(0)
                    .at_most(1)
                    .also({"distillation_alpha", "alpha"}));
  all.push_back(Option("training.distillation_temperature", training.distillation_temperature,
                       "both models' logits are divided by it before they are compared: T")
                    .above(0)
                    .at_most(1000)
                    .also({"temperature"}));
  all.push_back(Option("training.freeze", training.freeze,
                       "of an encoder from model.from: what stays as it is, the embeddings, or these and the first so "
                       "many layers")
                    .at_least(1)
                    .at_most(1000)
                    .or_word("none", -1)
                    .or_word("embeddings", 0)
                    .in("layers")
                    .also({"freeze_layers", "frozen_layers"}));
  all.push_back(Option("training.frozen_dropout", training.frozen_dropout,
                       "with training.freeze: frozen embeddings and layers drop activations in training as the others "
                       "do; false: they are the same function in every step"));
  all.push_back(
      Option("training.cache_frozen", training.cache_frozen,
             "of a classifier with training.freeze and without frozen_dropout: what the frozen layers make of "
             "the texts is computed once, where the run reads them more than once, and kept in "
             "data.cache_dir; changes speed, never the result"));
  all.push_back(Option("training.first_row_only", training.first_row_only,
                       "of an encoder: the last layer computes only the rows whose outputs are used (the first of each "
                       "text, or the masked ones); changes speed, never the result"));
  all.push_back(Option("training.mlm_probability", training.mlm_probability,
                       "of the task mlm: share of tokens to predict, of which 80 % are masked, 10 % replaced by others")
                    .above(0)
                    .below(1)
                    .also({"mask_probability", "masking_rate"}));
  all.push_back(Option("training.whole_word_masking", training.whole_word_masking,
                       "of the task mlm: the pieces of a word are masked together"));
}

void declare_table(DataOptions& data, std::vector<Option>& all) {
  all.push_back(Option("data.label_field", data.label_field,
                       "of the task classify: the column or key that holds the label, words or numbers")
                    .automatic("found by its name (label, sentiment, class, ...) or its values")
                    .also({"label_column", "label_key", "target_field"}));
  all.push_back(Option("data.pair_field", data.pair_field,
                       "of the task classify: the column or key of a second text, for pairs of texts")
                    .automatic("none")
                    .also({"text_pair_field", "second_text_field", "pair_column"}));
}

}  // namespace brisk
