// brisk against transformers: the VisionEncoderDecoderModels that scripts/make_vision_folders.py writes give the same logits
// here, and are written again as they were; and parts of them begin new models.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/files/files.h"
#include "hub/formats/safetensors.h"
#include "hub/huggingface/vision_encoder_decoder.h"
#include "infer/architecture/architecture.h"
#include "infer/open/model_parts.h"
#include "infer/open/model_source.h"
#include "models/dimtda.h"
#include "models/vision_encoder_decoder.h"
#include "support/image_to_text_job.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using namespace brisk::testing;
using Json = nlohmann::ordered_json;

std::string vision_folder(const std::string& name) { return std::string(BRISK_GOLDEN) + "/vision/" + name; }

class OpenedVisionFolder {
 public:
  explicit OpenedVisionFolder(const std::string& path)
      : source(open_model_source(path)), model(make_model(source.config, store)) {
    store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
    source.load_into(store, NonFinite::refuse);
  }

  std::vector<float> logits(const Image& image, const std::vector<int32_t>& tokens) {
    const ImageLayout layout = source.config.get_if<VisionEncoderDecoderConfig>()->image_layout();
    const RandomImages images(layout, {}, 2);
    MicroBatch batch = images.empty();
    images.append({image}, tokens, std::vector<int32_t>(tokens.size(), 0), 0, batch);
    const int64_t rows = layout.images[0].rows(), count = std::ssize(tokens);
    const BatchLayout sets = image_text_layout(layout, {.rows = static_cast<double>(count), .longest = count});
    ForwardRun run(store, {.rows = sets.capacities({rows, 1, rows})},
                   [&](Tape& tape) { return model->conditional()->logits(tape); });
    Ledger ledger;
    run.forward(batch, ledger);
    std::vector<float> values;
    run.read(values);
    return values;
  }

  ModelSource source;
  ParameterStore store;
  std::unique_ptr<Model> model;
};

class ForeignVisionModel : public ::testing::TestWithParam<std::string> {
 protected:
  const Threads one_{1};
  const std::string path_ = vision_folder(GetParam());
  const Json golden_ = Json::parse(test::contents_of(path_ + "/golden.json"));

  void expect_golden_logits(OpenedVisionFolder& folder) {
    const auto size = golden_.at("size").get<std::vector<int64_t>>();
    Image image(size[0], size[1]);
    image.pixels = golden_.at("image").get<std::vector<uint8_t>>();
    const std::vector<float> found = folder.logits(image, golden_.at("target").get<std::vector<int32_t>>());
    size_t i = 0;
    for (const Json& row : golden_.at("logits")) {
      for (const Json& expected : row) {
        ASSERT_LT(i, found.size());
        EXPECT_NEAR(found[i++], expected.get<float>(), 1e-4);
      }
    }
    EXPECT_EQ(i, found.size());
  }
};

TEST_P(ForeignVisionModel, HasTheLogitsOfTransformers) {
  OpenedVisionFolder folder(path_);
  expect_golden_logits(folder);
  EXPECT_EQ(folder.source.job.task, "image_to_text");
  EXPECT_EQ(folder.source.model.first_token, 2);
}

TEST_P(ForeignVisionModel, IsWrittenAsItWas) {
  OpenedVisionFolder folder(path_);
  const test::ScratchFolder scratch;
  const std::string written = scratch / "written";
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(path_);
  write_huggingface_vision_encoder_decoder(written, folder.source.model, folder.store, *tokenizer,
                                           SafetensorsType::f32);
  const SafetensorsFile before(path_ + "/model.safetensors"), after(written + "/model.safetensors");
  for (const SafetensorsEntry& entry : before.entries()) {
    const SafetensorsEntry* same = after.find(entry.name);
    // Nobody reads a pooler; numbers of distances are computed.
    const bool is_other = entry.name.find("pooler.") != std::string::npos || entry.name.ends_with("position_index");
    if (same == nullptr && is_other) continue;
    ASSERT_NE(same, nullptr) << entry.name;
    EXPECT_EQ(same->shape, entry.shape) << entry.name;
    ASSERT_EQ(same->bytes, entry.bytes) << entry.name;
    EXPECT_EQ(std::memcmp(same->data, entry.data, static_cast<size_t>(entry.bytes)), 0) << entry.name;
  }
  OpenedVisionFolder again(written);
  EXPECT_TRUE(is_same_config(again.source.config, folder.source.config));
  expect_golden_logits(again);
}

INSTANTIATE_TEST_SUITE_P(Golden, ForeignVisionModel,
                         ::testing::Values("vit_gpt2", "dit_bert", "swin_trocr", "donut_mbart"),
                         [](const auto& info) { return info.param; });

// A job's DIMTDA of parts that fit those folders.
ModelOptions model_of_parts() {
  Job job = job_from_json_text(
      R"({"task": "image_to_text",
          "model": {"type": "dimtda", "image_size": [16, 8], "patch_size": 2, "encoder_d_model": 4,
                    "encoder_depths": [2, 1], "encoder_stage_heads": [1, 2], "window_size": 2, "layout_image_size": 8,
                    "layout_patch_size": 4, "layout_d_model": 8, "layout_layers": 1, "layout_heads": 2, "layout_d_ff": 12,
                    "queries": 3, "query_width": 8, "query_heads": 2, "d_model": 8, "num_layers": 2, "num_heads": 2,
                    "d_ff": 12, "token_types": 2, "context": 10},
          "training": {"max_length": 10}})",
      "job.json");
  resolve_defaults(job);
  job.model.vocab_size = open_model_source(vision_folder("dit_bert")).model.vocab_size;
  return job.model;
}

TEST(ModelParts, BeginAsThoseOfTrainedModels) {
  ModelOptions options = model_of_parts();
  options.image_encoder_from = vision_folder("donut_mbart");
  options.layout_encoder_from = options.decoder_from = vision_folder("dit_bert");
  const Architecture& architecture = architecture_of(options);
  Job job;
  job.task = "image_to_text";
  job.model = options;
  const ModelConfig config = architecture.training_config(job);
  ParameterStore store;
  const auto model = make_model(config, store);
  store.allocate(cpu_device(), {}, DType::f32, ParameterStore::Purpose::inference);
  store.initialise(5);
  const std::vector<float> gate = values_of(cpu_device(), store.find("gate.weight")->master);
  check_model_parts(architecture.parts(options), config);
  EXPECT_EQ(load_model_parts(architecture.parts(options), store, NonFinite::refuse).size(), 3u);
  OpenedVisionFolder page(options.image_encoder_from), other(options.decoder_from);
  const auto expect_same = [&](const std::string& ours, const OpenedVisionFolder& folder, const std::string& theirs) {
    EXPECT_EQ(values_of(cpu_device(), store.find(ours)->master),
              values_of(cpu_device(), folder.store.find(theirs)->master))
        << ours;
  };
  expect_same("page_encoder.stages.1.layers.0.up.weight", page, "encoder.stages.1.layers.0.up.weight");
  expect_same("layout_encoder.layers.0.value.bias", other, "encoder.layers.0.value.bias");
  expect_same("target_embedding.weight", other, "target_embedding.weight");
  expect_same("decoder.layers.1.cross_kv.weight", other, "decoder.layers.1.cross_kv.weight");
  expect_same("head_dense.bias", other, "head_dense.bias");
  EXPECT_EQ(values_of(cpu_device(), store.find("gate.weight")->master), gate) << "of no part";
}

TEST(ModelParts, ThatDoNotFitAreNamedBeforeAnythingChanges) {
  for (const auto& [change, expected] : std::vector<std::pair<std::function<void(ModelOptions&)>, std::string>>{
           {[](ModelOptions& model) { model.layout_d_ff = 16; },
            "layout_encoder.layers.0.up.weight is 12 x 8 there and 16 x 8"},
           {[](ModelOptions& model) { model.layout_layers = 2; },
            "layout_encoder.layers.1.attention_norm.gain is not there"},
           {[](ModelOptions& model) { model.num_layers = 1; }, "model.decoder_from = "},
           {[](ModelOptions& model) { model.layout_encoder_from = "/nowhere"; }, "no such run directory"}}) {
    ModelOptions options = model_of_parts();
    options.layout_encoder_from = options.decoder_from = vision_folder("dit_bert");
    change(options);
    Job job;
    job.task = "image_to_text";
    job.model = options;
    const Architecture& architecture = architecture_of(options);
    const std::string message = test::message_of<UserError>(
        [&] { check_model_parts(architecture.parts(options), architecture.training_config(job)); });
    EXPECT_TRUE(test::has(message, expected)) << message;
  }
}

TEST(ForeignVisionModelConfig, SaysWhatIsNotSupported) {
  for (const auto& [part, key, value, expected] :
       std::vector<std::array<std::string, 4>>{{"decoder", "model_type", R"("llama")", "bert, gpt2, trocr or mbart"},
                                               {"decoder", "add_cross_attention", "false", "add_cross_attention"},
                                               {"decoder", "hidden_act", R"("mish")", "hidden_act"},
                                               {"encoder", "model_type", R"("resnet")", "model_type"},
                                               {"", "decoder_start_token_id", "99999", "decoder_start_token_id"}}) {
    const test::ScratchFolder scratch;
    std::filesystem::copy(vision_folder("dit_bert"), scratch / "model", std::filesystem::copy_options::recursive);
    Json config = Json::parse(test::contents_of(scratch / "model/config.json"));
    (part.empty() ? config : config[part])[key] = Json::parse(value);
    write_file_atomically(scratch / "model/config.json", config.dump());
    const std::string message = test::message_of<UserError>([&] { open_model_source(scratch / "model"); });
    EXPECT_TRUE(test::has(message, expected)) << key << ": " << message;
  }
}

}  // namespace
}  // namespace brisk
