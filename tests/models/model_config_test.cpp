// A model's configuration as a value, and its fingerprint: another function, another fingerprint.
#include "models/model_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/error.h"
#include "models/decoder.h"
#include "models/encoder.h"

namespace brisk {
namespace {

template <typename Config>
using Changes = std::vector<std::function<void(Config&)>>;

// Each change alone gives a fingerprint of its own.
template <typename Config>
void expect_all_different(const Config& base, const Changes<Config>& changes) {
  std::set<uint64_t> seen = {fingerprint(base)};
  for (size_t i = 0; i < changes.size(); ++i) {
    Config changed = base;
    changes[i](changed);
    EXPECT_TRUE(seen.insert(fingerprint(changed)).second) << "change " << i;
  }
}

template <typename Config>
void expect_all_equal(const Config& base, const Changes<Config>& changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    Config changed = base;
    changes[i](changed);
    EXPECT_EQ(fingerprint(changed), fingerprint(base)) << "change " << i;
  }
}

TEST(ModelConfig, IsACopyOfWhatItWasMadeOf) {
  DecoderConfig decoder{.vocab_size = 10};
  ModelConfig config = decoder;
  const ModelConfig copy = config;
  config.get_if<DecoderConfig>()->vocab_size = 20;
  EXPECT_EQ(copy.get_if<DecoderConfig>()->vocab_size, 10);
  EXPECT_EQ(copy.get_if<EncoderConfig>(), nullptr);
}

TEST(ModelConfig, OfNoArchitectureMakesNothing) {
  ParameterStore store;
  EXPECT_THROW(make_model(ModelConfig(), store), InternalError);
}

TEST(Fingerprint, OfADecoderChangesWithEveryFieldThatChangesTheFunction) {
  DecoderConfig base{.vocab_size = 100};
  base.lora_rank = 4;
  expect_all_different<DecoderConfig>(
      base,
      {[](auto& c) { c.vocab_size = 101; }, [](auto& c) { c.d_model = 128; }, [](auto& c) { c.num_layers = 3; },
       [](auto& c) { c.num_heads = 8; }, [](auto& c) { c.num_kv_heads = 2; }, [](auto& c) { c.d_ff = 512; },
       [](auto& c) { c.max_length = 64; }, [](auto& c) { c.norm = NormKind::rms; },
       [](auto& c) { c.norm_epsilon = 1e-6; }, [](auto& c) { c.norm_epsilon = 1e-17; },
       [](auto& c) { c.feed_forward = DecoderConfig::FeedForward::swiglu; },
       [](auto& c) { c.positions = DecoderConfig::Positions::rotary; }, [](auto& c) { c.rope_theta = 500000; },
       [](auto& c) { c.bias = false; }, [](auto& c) { c.tie_embeddings = false; }, [](auto& c) { c.lora_rank = 8; },
       [](auto& c) { c.lora_scale = 2; }, [](auto& c) { c.lora_matrices = {"qkv"}; }});
}

TEST(Fingerprint, OfAnEncoderChangesWithEveryFieldThatChangesTheFunction) {
  expect_all_different<EncoderConfig>(
      EncoderConfig{.vocab_size = 100},
      {[](auto& c) { c.vocab_size = 101; }, [](auto& c) { c.d_model = 384; }, [](auto& c) { c.num_layers = 6; },
       [](auto& c) { c.num_heads = 6; }, [](auto& c) { c.d_ff = 1536; }, [](auto& c) { c.max_length = 128; },
       [](auto& c) { c.position_offset = 2; }, [](auto& c) { c.types = 2; }, [](auto& c) { c.norm_epsilon = 1e-5; },
       [](auto& c) { c.norm_epsilon = 1e-17; }, [](auto& c) { c.feed_forward = EncoderConfig::FeedForward::relu; },
       [](auto& c) { c.head = EncoderConfig::Head::relu; }, [](auto& c) { c.head = EncoderConfig::Head::roberta; },
       [](auto& c) { c.head = EncoderConfig::Head::mlm; }, [](auto& c) { c.head = EncoderConfig::Head::none; },
       [](auto& c) { c.num_labels = 5; }, [](auto& c) { c.cached_layers = 3; }});
}

TEST(Fingerprint, IsThatOfTheFunctionAndNotOfHowItIsTrained) {
  expect_all_equal<DecoderConfig>(DecoderConfig{.vocab_size = 100},
                                  {[](auto& c) { c.dropout = 0.5; }, [](auto& c) { c.trained_layers = 1; },
                                   [](auto& c) { c.lora_scale = 2; }});  // there are no adapters
  expect_all_equal<EncoderConfig>(
      EncoderConfig{.vocab_size = 100},
      {[](auto& c) { c.dropout = 0.5; }, [](auto& c) { c.attention_dropout = 0; },
       [](auto& c) { c.classifier_dropout = 0; }, [](auto& c) { c.prune_last_layer = false; },
       [](auto& c) { c.frozen_embeddings = true; }, [](auto& c) { c.frozen_layers = 2; },
       [](auto& c) { c.frozen_dropout = true; }});
}

TEST(Fingerprint, DiffersBetweenArchitecturesAndBetweenTextsDividedDifferently) {
  EXPECT_NE(fingerprint_of("decoder", 1, 2), fingerprint_of("encoder", 1, 2));
  EXPECT_NE(fingerprint_of("a", std::string("bc")), fingerprint_of("ab", std::string("c")));
  EXPECT_NE(fingerprint_of("a", 1, 2), fingerprint_of("a", 2, 1));
}

}  // namespace
}  // namespace brisk
