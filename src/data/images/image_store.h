// Images as a model reads them, decoded and processed by threads ahead of their use, and kept while there is room.
//
//   ImageStore store(rows.image_paths(), layout.images, {.threads = 2, .cache_bytes = int64_t{4} << 30});
//   store.prefetch(numbers);                       // soon wanted; returns at once
//   const ImageStore::Images page = store.get(7);  // for each ImageInput: the processed image
//
// What get() gives never depends on threads, hints or the cache. An image that cannot be read is an error of get().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "image/image.h"
#include "image/image_input.h"

namespace brisk {

struct ImageStoreOptions {
  int threads = 1;          // 0: images are decoded in get()
  int64_t cache_bytes = 0;  // processed images that may be kept; the first ones that were read are
};

class ImageStore {
 public:
  using Images = std::shared_ptr<const std::vector<Image>>;  // one for each input

  ImageStore(std::vector<std::string> paths, std::vector<ImageInput> inputs, const ImageStoreOptions& options);
  ~ImageStore();
  ImageStore(const ImageStore&) = delete;
  ImageStore& operator=(const ImageStore&) = delete;

  int64_t count() const;
  const std::vector<ImageInput>& inputs() const;
  const std::string& path(int64_t image) const;
  int64_t bytes_of_image() const;  // processed
  // "all 3,000 images fit ...", "1,200 of 9,000 images (13 %) ...": for the user.
  std::string cache_note() const;

  // Any number of threads may call these at once.
  void prefetch(std::span<const int64_t> images) const;
  Images get(int64_t image) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A share of the memory that is free now, for ImageStoreOptions::cache_bytes.
int64_t default_image_cache_bytes();

}  // namespace brisk
