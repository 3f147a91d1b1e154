#include "doctor/plan/known_models.h"

#include <algorithm>
#include <array>

namespace brisk {

namespace {

constexpr int64_t kWords = 30522, kRobertaWords = 50265;  // BERT's uncased vocabulary, RoBERTa's

constexpr std::array kModels = {
    KnownModel{"BERT-tiny", "google/bert_uncased_L-2_H-128_A-2", "bert", 2, 128, 2, 512, kWords},
    KnownModel{"BERT-mini", "google/bert_uncased_L-4_H-256_A-4", "bert", 4, 256, 4, 1024, kWords},
    KnownModel{"MiniLM-L6-H384", "nreimers/MiniLM-L6-H384-uncased", "bert", 6, 384, 12, 1536, kWords},
    KnownModel{"BERT-small", "google/bert_uncased_L-4_H-512_A-8", "bert", 4, 512, 8, 2048, kWords},
    KnownModel{"MiniLM-L12-H384", "microsoft/MiniLM-L12-H384-uncased", "bert", 12, 384, 12, 1536, kWords},
    KnownModel{"BERT-medium", "google/bert_uncased_L-8_H-512_A-8", "bert", 8, 512, 8, 2048, kWords},
    KnownModel{"DistilBERT", "distilbert/distilbert-base-uncased", "distilbert", 6, 768, 12, 3072, kWords},
    KnownModel{"DistilRoBERTa", "distilbert/distilroberta-base", "roberta", 6, 768, 12, 3072, kRobertaWords},
    KnownModel{"BERT-base", "google-bert/bert-base-uncased", "bert", 12, 768, 12, 3072, kWords},
    KnownModel{"RoBERTa-base", "FacebookAI/roberta-base", "roberta", 12, 768, 12, 3072, kRobertaWords},
    KnownModel{"BERT-large", "google-bert/bert-large-uncased", "bert", 24, 1024, 16, 4096, kWords},
};

}  // namespace

std::span<const KnownModel> known_models() { return kModels; }

Job job_with(const KnownModel& model, const Job& job, int64_t layers, int64_t vocabulary) {
  constexpr int64_t kPositions = 512;  // of all of them
  Job changed = job;
  ModelOptions options;
  options.type = model.type;
  options.num_layers = layers;
  options.d_model = model.width;
  options.num_heads = options.num_kv_heads = model.heads;
  options.d_ff = model.feed_forward;
  options.vocab_size = vocabulary;
  options.activation = "gelu_erf";
  options.dropout = 0.1;
  options.norm_epsilon = 1e-12;
  options.num_labels = job.model.num_labels;
  options.context = std::max(kPositions, job.training.max_length);
  changed.model = options;
  changed.data.lowercase = false;  // of a vocabulary that is trained: none is
  changed.training.freeze = -1;
  changed.training.train_layers = changed.training.lora_rank = 0;
  changed.training.lora_matrices.clear();
  changed.training.teacher.clear();
  resolve_defaults(changed);
  return changed;
}

}  // namespace brisk
