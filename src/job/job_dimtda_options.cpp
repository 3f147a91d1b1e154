// The options of DIMTDA (models/dimtda.h) that no other model has, and its defaults of those that others have, too.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "job/job_conditions.h"
#include "job/job_options.h"

namespace brisk {

namespace {

Option& option_in(std::vector<Option>& all, const std::string& path) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Option& option) { return option.path == path; });
  BRISK_CHECK(found != all.end(), "no option {}", path);
  return *found;
}

}  // namespace

void declare_dimtda_options(Job& job, std::vector<Option>& all) {
  ModelOptions& model = job.model;
  const Condition dimtda = with_type(job, "dimtda");
  // The page's encoder is Nougat-small's, the decoder as BERT's.
  const std::pair<const char*, Option::Value> defaults[] = {{"model.d_model", int64_t{512}},
                                                            {"model.num_layers", int64_t{3}},
                                                            {"model.num_heads", int64_t{8}},
                                                            {"model.vocab_size", int64_t{52000}},
                                                            {"model.activation", "gelu_erf"},
                                                            {"model.positions", "learned"},
                                                            {"model.norm_epsilon", 1e-12},
                                                            {"model.norm_position", "post"},
                                                            {"model.embedding_norm", true},
                                                            {"model.scale_embeddings", false},
                                                            {"model.token_types", int64_t{1}},
                                                            {"model.output_transform", true},
                                                            {"model.output_bias", "trained"},
                                                            {"model.context", int64_t{1536}},
                                                            {"model.encoder_d_model", int64_t{128}},
                                                            {"model.image_encoder", "swin"},
                                                            {"model.image_size", std::vector<int64_t>{896, 672}},
                                                            {"model.encoder_depths", std::vector<int64_t>{2, 2, 14, 2}},
                                                            {"model.encoder_final_norm", false},
                                                            {"training.max_length", int64_t{1536}}};
  for (const auto& [path, value] : defaults) option_in(all, path).default_with(dimtda, value);
  option_in(all, "model.image_encoder")
      .must_with(
          dimtda, [&model] { return model.image_encoder == "swin"; }, "swin, for the page; the layout's is a beit");

  const auto size = [&](const std::string& name, int64_t& field, const std::string& help, int64_t most) -> Option& {
    return all.emplace_back("model." + name, field, help, OnResume::fixed)
        .at_least(1)
        .at_most(static_cast<double>(most))
        .only_with(dimtda);
  };
  size("layout_image_size", model.layout_image_size, "side of the image that the layout encoder reads", 65536)
      .in("pixels")
      .same_in_smoke_test();
  size("layout_patch_size", model.layout_patch_size, "side of the patches that the layout encoder divides it into",
       1024)
      .in("pixels")
      .same_in_smoke_test();
  size("layout_d_model", model.layout_d_model, "width of the layout encoder, a BEiT", 65536).smoke_test_rule([&model] {
    if (model.type == "dimtda") std::tie(model.layout_d_model, model.layout_heads) = std::pair(64, 2);
  });
  size("layout_layers", model.layout_layers, "number of the layout encoder's layers", 1000).smoke_test_rule([&model] {
    if (model.type == "dimtda") model.layout_layers = std::min<int64_t>(2, model.layout_layers);
  });
  size("layout_heads", model.layout_heads, "number of attention heads of the layout encoder", 4096)
      .same_in_smoke_test();  // layout_d_model changes both
  size("layout_d_ff", model.layout_d_ff, "width of the hidden layer inside the layout encoder's feed-forward blocks",
       1048576)
      .automatic(0, "4 layout_d_model")
      .smoke_test_value(0);
  all.emplace_back("model.layout_processor", model.layout_processor,
                   "what is done to an image before the layout encoder reads it, as image_processor says it",
                   OnResume::fixed)
      .automatic("resized to layout_image_size (bilinear), pixels from -1 to 1")
      .only_with(dimtda)
      .same_in_smoke_test();
  all.emplace_back("model.layout_encoder_from", model.layout_encoder_from,
                   "trained model that the layout encoder begins as, as image_encoder_from", OnResume::fixed)
      .with_source(WithSource::leaves)
      .automatic("new weights")
      .only_with(dimtda)
      .same_in_smoke_test();
  size("queries", model.queries, "number of learned queries that read each encoder; the official model has 1024", 65536)
      .also({"num_queries", "num_query_tokens"})
      .smoke_test_rule([&model] {
        if (model.type == "dimtda") model.queries = std::min<int64_t>(16, model.queries);
      });
  size("query_width", model.query_width, "width of the queries; the official model has 1024", 65536)
      .smoke_test_rule([&model] {
        if (model.type == "dimtda") std::tie(model.query_width, model.query_heads) = std::pair(64, 2);
      });
  size("query_heads", model.query_heads, "number of attention heads of the queries", 4096)
      .same_in_smoke_test();  // query_width changes both
  size("query_d_ff", model.query_d_ff, "width of the hidden layer inside the queries' feed-forward block", 1048576)
      .automatic(0, "2 query_width")
      .smoke_test_value(0);
}

}  // namespace brisk
