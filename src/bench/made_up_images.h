// Images and what belongs to them made up in memory, for benchmarks: as fast as data can be, and the same ones on every machine.
//
//   auto pages = std::make_shared<const MadeUpImages>(layout, MadeUpImages::Texts{.mean_length = 512, .vocabulary = 52000}, 256);
//   auto photos = std::make_shared<const MadeUpImages>(layout, MadeUpImages::Labels{.classes = 1000}, 256);
//
// Row sets are those of data/images/image_sequences.h. Texts have from half to one and a half times their mean length;
// bench/peers/image_torch.py makes up the same lengths.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "data/batch/sequences.h"
#include "image/image.h"
#include "image/image_input.h"

namespace brisk {

class MadeUpImages final : public Sequences {
 public:
  struct Texts {
    int64_t mean_length = 0, vocabulary = 0;
    int64_t batch = 1;  // after so many images the lengths begin again
  };
  struct Labels {
    int64_t classes = 0;
  };

  MadeUpImages(ImageLayout layout, std::variant<Texts, Labels> of_each, int64_t count);

  int64_t count() const override { return count_; }
  int sets() const override;
  int64_t rows(int64_t index, int set = 0) const override;
  LengthTotals totals(int set = 0) const override;
  void append(int64_t index, int64_t epoch, int32_t sequence, MicroBatch& batch) const override;

  bool has_texts() const { return std::holds_alternative<Texts>(of_each_); }

 private:
  int64_t text_rows(int64_t index) const;

  ImageLayout layout_;
  std::variant<Texts, Labels> of_each_;
  int64_t count_;
  std::vector<std::vector<Image>> images_;  // of each input, a few
};

}  // namespace brisk
