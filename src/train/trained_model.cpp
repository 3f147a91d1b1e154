#include "train/trained_model.h"

#include "base/error.h"
#include "train/model_config.h"
#include "train/model_source.h"

namespace brisk {

std::unique_ptr<TrainedModel> open_trained_model(const std::string& path, const std::string& tokenizer_path) {
  const ModelSource source = open_model_source(path);
  auto model = std::make_unique<TrainedModel>();
  model->job = source.job;
  model->tokenizer = tokenizer_path.empty() ? source.tokenizer() : load_tokenizer(tokenizer_path);
  if (model->tokenizer->vocab_size() > source.model.vocab_size) {
    user_error(
        "{}: a vocabulary of {}, but the tokenizer has {} entries: name the one it was trained with (--tokenizer)",
        path, source.model.vocab_size, model->tokenizer->vocab_size());
  }
  model->decoder = std::make_unique<Decoder>(decoder_config(source.model), model->store);
  model->store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  source.load_into(model->store);
  model->source = source.place;
  return model;
}

}  // namespace brisk
