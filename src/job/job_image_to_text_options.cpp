// The options of models that read an image and write a text, besides those of their image encoder and their decoder.
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

void declare_image_to_text_options(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  const Condition writes = with_image_to_text_model(job);
  all.emplace_back(
         "model.bridge", model.bridge,
         "where the encoder's width is not the decoder's, a matrix leads from one to the other; false: the keys and "
         "values of cross-attention are made of the encoder's (TrOCR)",
         OnResume::fixed)
      .only_with(writes)
      .same_in_smoke_test();
  const auto part = [&](const std::string& name, std::string& field, const std::string& help) -> Option& {
    return all.emplace_back("model." + name, field, help, OnResume::fixed)
        .with_source(WithSource::leaves)
        .automatic("new weights")
        .only_with(writes)
        .same_in_smoke_test();
  };
  part(
      "image_encoder_from", model.image_encoder_from,
      "trained model that the image encoder begins as: a Hugging Face folder or a run, of an image encoder or of a model that "
      "has one; with its preprocessor_config.json, unless image_processor is given")
      .also({"encoder_from"});
  part(
      "decoder_from", model.decoder_from,
      "trained model that the decoder begins as: a run of task translate or image_to_text, or a Hugging Face folder of an "
      "encoder-decoder; with its tokenizer, unless data.tokenizer is given");
}

}  // namespace brisk
