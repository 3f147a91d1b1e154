// What a model's image encoders make of the images of a job where they are not trained: computed once, on the device that
// trains and in the number format of the run, and cached next to the tokens of the texts.
//
//   FrozenImageEncoders frozen(job, compute_type, checkpoint, device);
//   if (frozen.count() > 0) sequences.read_features(frozen.features_of(rows, store, fingerprint, layout));
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/examples/examples.h"
#include "data/images/image_features.h"
#include "data/images/image_store.h"
#include "job/job.h"
#include "models/model.h"
#include "tensor/device.h"
#include "tensor/parameter.h"

namespace brisk {

class FrozenImageEncoders {
 public:
  // With the weights that the run begins with, or those of the checkpoint that it goes on from.
  FrozenImageEncoders(const Job& job, DType compute_type, const std::string& checkpoint, Device& device);

  int64_t file_bytes(const ExampleSet& rows) const;
  bool are_there(const ExampleSet& rows, const std::string& fingerprint) const;
  // Of `rows`, whose images the store has, all the others have none. Made where they are missing.
  std::shared_ptr<const ImageFeatures> features_of(const ExampleSet& rows, const ImageStore& store,
                                                   const std::string& fingerprint) const;

 private:
  struct Encoder {
    int set = 0;
    int64_t rows = 0, width = 0;  // of an image
  };
  uint64_t key_of(const std::string& fingerprint, size_t encoder) const;
  ExampleActivationsShape shape_of(const ExampleSet& rows, size_t encoder) const;
  void make(const ExampleSet& rows, const ImageStore& store, size_t encoder, ExampleActivationsWriter& writer) const;

  ImageLayout layout_;
  ParameterStore store_;
  std::unique_ptr<Model> model_;
  std::vector<Encoder> encoders_;
  uint64_t weights_key_ = 0;
};

}  // namespace brisk
