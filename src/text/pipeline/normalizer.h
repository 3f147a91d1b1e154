// The "normalizer" of a tokenizer.json: what is done to a text before it is split.
//
//   const Normalizer normalizer(json, "tokenizer.json: normalizer");   // UserError if unsupported
//   normalizer.apply("Éa")                                             // "ea" for NFD, Lowercase, StripAccents
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace brisk {

class Normalizer {
 public:
  Normalizer();  // changes nothing
  Normalizer(const nlohmann::json& component, const std::string& place);
  ~Normalizer();
  Normalizer(Normalizer&&) noexcept;
  Normalizer& operator=(Normalizer&&) noexcept;

  bool changes_nothing() const { return steps_.empty(); }
  std::string apply(std::string_view text) const;

 private:
  struct Step;
  void add(const nlohmann::json& component, const std::string& place, int depth);

  std::vector<Step> steps_;
};

}  // namespace brisk
