// The options of models that read images: of their image encoder.
#include <fmt/format.h>

#include <algorithm>

#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

Condition with_image_encoder(const Job& job, const std::vector<std::string>& kinds) {
  return {"image_encoder " + alternatives(kinds),
          [&job, kinds] {
            return reads_images(job.model.type) &&
                   std::find(kinds.begin(), kinds.end(), job.model.image_encoder) != kinds.end();
          },
          [&job] {
            return reads_images(job.model.type) ? "to model.image_encoder " + job.model.image_encoder
                                                : fmt::format("to model.type {} (it reads texts)", job.model.type);
          }};
}

}  // namespace

void declare_image_options(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  const Condition images = with_images(job), classifier = with_image_classifier(job);
  const Condition beit = with_image_encoder(job, {"beit"}), dit = with_image_encoder(job, {"dit"});
  const Condition beits = with_image_encoder(job, {"beit", "dit"}), swin = with_image_encoder(job, {"swin"});
  all.emplace_back("model.image_encoder", model.image_encoder,
                   "kind of the encoder that reads the image; dit is a beit with a table of positions", OnResume::fixed)
      .one_of({"vit", "beit", "dit", "swin"})
      .same_as("donut-swin", "swin")
      .default_with(with_type(job, "beit"), "beit")
      .default_with(with_type(job, "dit"), "dit")
      .default_with(with_type(job, "swin"), "swin")
      .must_with(
          classifier, [&model] { return model.image_encoder == model.type; }, "that of its name")
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("model.image_size", model.image_size,
                   "side of the image that the encoder reads, or its height and width: [896, 672]", OnResume::fixed)
      .at_least(1)
      .at_most(65536)
      .automatic("that of image_processor, otherwise 224")
      .in("pixels")
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("model.patch_size", model.patch_size, "side of the patches that an image is divided into",
                   OnResume::fixed)
      .at_least(1)
      .at_most(1024)
      .default_with(swin, int64_t{4})
      .in("pixels")
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back(
         "model.image_processor", model.image_processor,
         "what is done to an image before: a preprocessor_config.json, or what one holds; its size is image_size",
         OnResume::fixed)
      .automatic("resized to image_size (bilinear), pixels from -1 to 1")
      .only_with(images)
      .also({"preprocessor", "preprocessor_config"})
      .same_in_smoke_test();
  all.emplace_back(
         "model.encoder_positions", model.encoder_positions,
         "how the image encoder knows where a patch is: a learned table, a learned bias of attention for each "
         "distance (of each layer, or shared by all), or not at all; windows of swin always have such biases",
         OnResume::fixed)
      .one_of({"learned", "relative", "shared_relative", "none"})
      .same_as("absolute", "learned")
      .default_with(beit, "relative")
      .default_with(swin, "none")
      .must_with(
          with_image_encoder(job, {"vit"}), [&model] { return !model.encoder_positions.ends_with("relative"); },
          "learned or none")
      .must_with(
          swin, [&model] { return model.encoder_positions == "none"; }, "none besides the biases of its windows")
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("model.encoder_depths", model.encoder_depths,
                   "numbers of layers of the stages of swin; each stage has a quarter of the patches of the one before",
                   OnResume::fixed)
      .at_least(1)
      .at_most(1000)
      .automatic("[2, 2, 6, 2]")
      .only_with(swin)
      .also({"depths"})
      .smoke_test_rule([&model] {
        for (int64_t& depth : model.encoder_depths) depth = std::min<int64_t>(depth, 2);
      });
  all.emplace_back("model.encoder_stage_heads", model.encoder_stage_heads,
                   "numbers of attention heads of the stages of swin", OnResume::fixed)
      .at_least(1)
      .at_most(4096)
      .automatic("width of a stage / 32")
      .only_with(swin)
      .also({"stage_heads"})
      .smoke_test_rule([&model] { model.encoder_stage_heads.clear(); });
  all.emplace_back("model.mlp_ratio", model.mlp_ratio,
                   "width of the hidden layer inside the feed-forward blocks of swin, in widths of the stage",
                   OnResume::fixed)
      .above(0)
      .at_most(64)
      .only_with(swin)
      .same_in_smoke_test();
  all.emplace_back("model.window_size", model.window_size,
                   "rows and columns of the windows of patches within which swin attends", OnResume::fixed)
      .at_least(1)
      .at_most(1024)
      .only_with(swin)
      .same_in_smoke_test();
  all.emplace_back("model.encoder_norm_epsilon", model.encoder_norm_epsilon, "norm_epsilon of the image encoder",
                   OnResume::fixed)
      .above(0)
      .at_most(1)
      .default_with(swin, 1e-5)
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("model.qkv_bias", model.qkv_bias,
                   "add biases to the queries, keys and values of the image encoder (of a beit: queries and values)",
                   OnResume::fixed)
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back(
         "model.layer_scale", model.layer_scale,
         "initial value of the factors of what each half of a layer adds, one for each column (LayerScale); 0: "
         "there are none",
         OnResume::fixed)
      .at_least(0)
      .at_most(1)
      .default_with(beits, 0.1)
      .only_with(images)
      .also({"layer_scale_init_value"})
      .same_in_smoke_test();
  all.emplace_back("model.encoder_final_norm", model.encoder_final_norm,
                   "normalize what the last layer of the image encoder writes (Donut's swin does not)", OnResume::fixed)
      .default_with(beits, false)
      .only_with(images)
      .same_in_smoke_test();
  all.emplace_back("model.pooling", model.pooling,
                   "what a classifier of images reads: the row of the class token, or the mean of the patches' rows",
                   OnResume::fixed)
      .one_of({"class", "mean"})
      .same_as("cls", "class")
      .same_as("avg", "mean")
      .default_with(with_type(job, "beit"), "mean")
      .default_with(with_type(job, "dit"), "mean")
      .default_with(with_type(job, "swin"), "mean")
      .must_with(
          with_type(job, "swin"), [&model] { return model.pooling == "mean"; }, "the mean: it has no class token")
      .only_with(classifier)
      .same_in_smoke_test();
}

}  // namespace brisk
