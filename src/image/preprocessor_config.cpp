#include "image/preprocessor_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostImageSide = 16384;
constexpr std::array<float, kColors> kImageNetMean = {0.485f, 0.456f, 0.406f}, kImageNetStd = {0.229f, 0.224f, 0.225f};

// What a file that leaves a key out means.
ImageProcessing defaults_of(const std::string& type) {
  ImageProcessing processing;
  processing.type = type;
  if (type == "BeitImageProcessor") processing.resampling = Resampling::bicubic;
  if (type == "DeiTImageProcessor") {
    processing.resampling = Resampling::bicubic;
    processing.height = processing.width = 256;
    processing.center_crop = true;
  }
  if (type == "CLIPImageProcessor") {
    processing.resampling = Resampling::bicubic;
    processing.keep_aspect = true;
    processing.center_crop = true;
    processing.mean = {0.48145466f, 0.4578275f, 0.40821073f};
    processing.std = {0.26862954f, 0.26130258f, 0.27577711f};
  }
  if (type == "DonutImageProcessor" || type == "NougatImageProcessor") {
    processing.keep_aspect = processing.thumbnail = processing.pad = true;
    processing.height = 2560;
    processing.width = 1920;
  }
  if (type == "NougatImageProcessor") {
    processing.crop_margin = true;
    processing.thumbnail_resampling = Resampling::bicubic;
    processing.height = 896;
    processing.width = 672;
    processing.mean = kImageNetMean;
    processing.std = kImageNetStd;
  }
  return processing;
}

bool is_of_documents(const ImageProcessing& processing) {
  return processing.type == "DonutImageProcessor" || processing.type == "NougatImageProcessor";
}

// Say nothing of the pixels of an image that is read as RGB.
constexpr const char* kWithoutEffect[] = {"image_processor_type",
                                          "feature_extractor_type",
                                          "processor_class",
                                          "_processor_class",
                                          "_valid_processor_keys",
                                          "do_convert_rgb",
                                          "data_format",
                                          "input_data_format",
                                          "return_tensors",
                                          "device",
                                          "do_reduce_labels",
                                          "reduce_labels",
                                          "disable_grouping",
                                          "default_to_square",
                                          "auto_map"};

class PreprocessorReader {
 public:
  PreprocessorReader(const Json& json, const std::string& name) : json_(json), name_(name) {}

  ImageProcessing read() {
    ImageProcessing processing = defaults_of(type());
    const bool documents = is_of_documents(processing);
    flag("do_resize", processing.resize);
    flag("do_center_crop", processing.center_crop);
    resampling(processing);
    size("size", processing, documents);
    crop_size(processing);
    if (!processing.center_crop) processing.crop_height = processing.crop_width = ImageProcessing().crop_height;
    if (documents) {
      flag("do_thumbnail", processing.thumbnail);
      flag("do_align_axis", processing.align_long_axis);
      flag("do_align_long_axis", processing.align_long_axis);
      flag("do_pad", processing.pad);
    }
    if (processing.type == "NougatImageProcessor") flag("do_crop_margin", processing.crop_margin);
    normalization(processing);
    for (const auto& [key, value] : json_.items()) {
      const bool off = value.is_null() || (value.is_boolean() && !value.get<bool>());
      if (!off && std::find(known_.begin(), known_.end(), key) == known_.end() && !has_no_effect(key))
        refuse(key, "brisk does not do this; leave it out where it is not needed");
    }
    check_size_is_fixed(processing);
    return processing;
  }

 private:
  template <typename... Args>
  [[noreturn]] void refuse(const std::string& key, std::string_view what) const {
    user_error("{}: {} = {}: {}", name_, key, json_in_message(json_.at(key)), what);
  }

  static bool has_no_effect(const std::string& key) {
    return std::any_of(std::begin(kWithoutEffect), std::end(kWithoutEffect),
                       [&](const char* name) { return key == name; });
  }

  // nullptr: it is not there, or null.
  const Json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  std::string type() {
    const char* key = json_.contains("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
    const Json* found = find(key);
    if (found == nullptr) return "ViTImageProcessor";
    if (!found->is_string()) refuse(key, "expected a name");
    std::string type = found->get<std::string>();
    for (const char* ending : {"Fast", "Pil", "FeatureExtractor", "ImageProcessor"}) {
      if (type.ends_with(ending)) type.resize(type.size() - std::string_view(ending).size());
    }
    for (const char* known : {"ViT", "DeiT", "Beit", "CLIP", "Donut", "Nougat"}) {
      if (type == known) return type + "ImageProcessor";
    }
    refuse(key,
           "brisk has ViTImageProcessor, DeiTImageProcessor, BeitImageProcessor, CLIPImageProcessor, "
           "DonutImageProcessor and NougatImageProcessor");
  }

  void flag(const char* key, bool& value) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) refuse(key, "expected true or false");
    value = found->get<bool>();
  }

  int64_t side(const char* key, const Json& value) const {
    if (!value.is_number_integer() || value.get<double>() < 1 ||
        value.get<double>() > static_cast<double>(kMostImageSide))
      refuse(key, fmt::format("expected sides of 1 to {} pixels", kMostImageSide));
    return value.get<int64_t>();
  }

  void resampling(ImageProcessing& processing) {
    const Json* found = find("resample");
    if (found == nullptr) return;
    if (!found->is_number_integer() || found->get<double>() < 0 || found->get<double>() > 5)
      refuse("resample", "expected 0 (nearest), 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 (Hamming)");
    processing.resampling = static_cast<Resampling>(found->get<int>());
    if (processing.type == "DonutImageProcessor") processing.thumbnail_resampling = processing.resampling;
  }

  // {"height", "width"}, {"shortest_edge"} or a number; of documents also [width, height].
  void size(const char* key, ImageProcessing& processing, bool documents) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (found->is_number()) {
      processing.height = processing.width = side(key, *found);
    } else if (found->is_array() && found->size() == 2) {
      processing.width = side(key, found->at(documents ? 0 : 1));
      processing.height = side(key, found->at(documents ? 1 : 0));
    } else if (found->is_object() && found->size() == 2 && found->contains("height") && found->contains("width")) {
      processing.height = side(key, found->at("height"));
      processing.width = side(key, found->at("width"));
      if (!documents) processing.keep_aspect = false;
    } else if (found->is_object() && found->size() == 1 && found->contains("shortest_edge") && !documents) {
      processing.height = processing.width = side(key, found->at("shortest_edge"));
      processing.keep_aspect = true;
    } else {
      refuse(key, "expected {\"height\": ..., \"width\": ...} or {\"shortest_edge\": ...}");
    }
  }

  void crop_size(ImageProcessing& processing) {
    const Json* found = find("crop_size");
    if (found == nullptr) return;
    if (found->is_number()) {
      processing.crop_height = processing.crop_width = side("crop_size", *found);
    } else if (found->is_object() && found->size() == 2 && found->contains("height") && found->contains("width")) {
      processing.crop_height = side("crop_size", found->at("height"));
      processing.crop_width = side("crop_size", found->at("width"));
    } else {
      refuse("crop_size", "expected {\"height\": ..., \"width\": ...}");
    }
  }

  std::optional<std::array<double, kColors>> three(const char* key) {
    const Json* found = find(key);
    if (found == nullptr) return std::nullopt;
    std::array<double, kColors> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      const bool one = found->is_number();
      if (!one && (!found->is_array() || found->size() != values.size() || !found->at(i).is_number()))
        refuse(key, "expected three numbers, of red, green and blue");
      values[i] = (one ? *found : found->at(i)).get<double>();
      if (!std::isfinite(values[i]) || std::abs(values[i]) > 1e6) refuse(key, "expected three numbers of usual size");
    }
    return values;
  }

  // (x factor - mean) / std as (x / 255 - mean') / std'.
  void normalization(ImageProcessing& processing) {
    bool rescale = true, normalize = true;
    flag("do_rescale", rescale);
    flag("do_normalize", normalize);
    double factor = 1.0 / 255;
    if (const Json* found = find("rescale_factor")) {
      if (!found->is_number() || !(found->get<double>() > 1e-6) || found->get<double>() > 1e6)
        refuse("rescale_factor", "expected a number above 0");
      factor = found->get<double>();
    }
    if (!rescale) factor = 1;
    const auto mean = three("image_mean"), std = three("image_std");
    const double scale = std::abs(255 * factor - 1) < 1e-6 ? 1 : 255 * factor;
    for (size_t i = 0; i < processing.mean.size(); ++i) {
      const double of_mean = !normalize ? 0 : mean ? (*mean)[i] : double{processing.mean[i]};
      const double of_std = !normalize ? 1 : std ? (*std)[i] : double{processing.std[i]};
      if (of_std <= 0) refuse("image_std", "expected numbers above 0");
      processing.mean[i] = static_cast<float>(of_mean / scale);
      processing.std[i] = static_cast<float>(of_std / scale);
    }
  }

  // A model reads images of one size.
  void check_size_is_fixed(const ImageProcessing& processing) const {
    const auto every_size = [&](const std::string& what) {
      user_error("{}: {}: images would keep different sizes, and a model reads images of one size", name_, what);
    };
    if (processing.center_crop) return;
    if (!processing.resize) every_size("do_resize = false without do_center_crop");
    if (!processing.keep_aspect) return;
    if (!processing.pad) every_size("the shortest edge alone is resized, without do_center_crop or do_pad");
    if (!processing.thumbnail) every_size("do_pad without do_thumbnail");
  }

  const Json& json_;
  const std::string& name_;
  std::vector<std::string> known_;
};

// As a person would write a float: 0.485, not 0.48500001430511475.
double short_number(float value) { return std::stod(fmt::format("{}", value)); }

}  // namespace

ImageProcessing parse_preprocessor_config(std::string_view text, const std::string& name) {
  const Json json = parse_json(text, name, "fetch the file again");
  if (!json.is_object()) user_error("{}: expected an object, as preprocessor_config.json has it", name);
  return PreprocessorReader(json, name).read();
}

ImageProcessing read_preprocessor_config(const std::string& path) {
  return parse_preprocessor_config(read_file(path, file_kind::config), path);
}

std::string preprocessor_config_text(const ImageProcessing& processing) {
  Json mean = Json::array(), std = Json::array();
  for (const float value : processing.mean) mean.push_back(short_number(value));
  for (const float value : processing.std) std.push_back(short_number(value));
  const bool documents = is_of_documents(processing);
  Json json = {{"image_processor_type", processing.type}};
  if (documents) {
    json["do_align_long_axis"] = processing.align_long_axis;
    if (processing.type == "NougatImageProcessor") json["do_crop_margin"] = processing.crop_margin;
    json["do_pad"] = processing.pad;
    json["do_thumbnail"] = processing.thumbnail;
  }
  json["do_resize"] = processing.resize;
  if (processing.keep_aspect && !documents) {
    json["size"] = {{"shortest_edge", processing.height}};
  } else {
    json["size"] = {{"height", processing.height}, {"width", processing.width}};
  }
  json["resample"] = static_cast<int>(processing.resampling);
  json["do_center_crop"] = processing.center_crop;
  if (processing.center_crop)
    json["crop_size"] = {{"height", processing.crop_height}, {"width", processing.crop_width}};
  json["do_rescale"] = true;
  json["rescale_factor"] = 1.0 / 255;
  json["do_normalize"] = true;
  json["image_mean"] = mean;
  json["image_std"] = std;
  return json.dump(2) + "\n";
}

}  // namespace brisk
