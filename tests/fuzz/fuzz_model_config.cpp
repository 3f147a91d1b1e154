#include "fuzz/fuzz_input.h"
#include "hub/huggingface/decoder_config.h"
#include "hub/huggingface/encoder_config.h"
#include "hub/model_limits.h"

using namespace brisk;

namespace {

// A model that is accepted is one that a job could have.
void check(const ModelOptions& model) {
  using namespace model_limits;
  const auto within = [](int64_t size, int64_t most) { return size >= 1 && size <= most; };
  fuzz::require(within(model.d_model, kWidest) && within(model.num_layers, kMostLayers), "width and depth");
  fuzz::require(within(model.num_heads, kMostHeads) && model.d_model % model.num_heads == 0, "heads of equal width");
  fuzz::require(within(model.num_kv_heads, kMostHeads) && model.num_heads % model.num_kv_heads == 0, "equal groups");
  fuzz::require(within(model.d_ff, kWidestInside) && within(model.vocab_size, kLargestVocabulary), "sizes");
  fuzz::require(within(model.context, kLongestContext), "the context");
  fuzz::require(model.norm_epsilon > 0 && model.norm_epsilon <= kLargestEpsilon, "epsilon");
  fuzz::require(model.rope_theta > kLeastRopeTheta, "rotary positions");
  fuzz::require(model.num_labels >= 0 && model.num_labels <= kMostLabels, "labels");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string content(fuzz::text_of(data, size));
  fuzz::unless_refused([&] { check(read_decoder_config(ConfigReader("config.json", content)).model); });
  fuzz::unless_refused([&] {
    const HuggingFaceEncoderConfig config = read_encoder_config(ConfigReader("config.json", content));
    check(config.model);
    fuzz::require(std::ssize(config.labels) == config.model.num_labels, "a name for each label");
    fuzz::unless_refused([&] { check_problem(config, "folder"); });
  });
  return 0;
}
