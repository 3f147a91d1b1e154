#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "image/decoders.h"

namespace brisk {

namespace {

// As libwebp declares them (webp/decode.h): part of its binary interface since its first release.
struct WebpLibrary {
  int (*get_info)(const uint8_t* data, size_t size, int* width, int* height) = nullptr;
  uint8_t* (*decode_rgb_into)(const uint8_t* data, size_t size, uint8_t* out, size_t out_size, int stride) = nullptr;
  std::string missing;

  WebpLibrary() {
    void* library = nullptr;
    for (const char* name : {"libwebp.so.7", "libwebp.so.6", "libwebp.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library != nullptr) {
      get_info = reinterpret_cast<decltype(get_info)>(dlsym(library, "WebPGetInfo"));
      decode_rgb_into = reinterpret_cast<decltype(decode_rgb_into)>(dlsym(library, "WebPDecodeRGBInto"));
    }
    if (get_info == nullptr || decode_rgb_into == nullptr)
      missing =
          "WebP images need libwebp, which is not here: install it (package libwebp7), or convert the images to PNG";
  }
};

const WebpLibrary& webp_library() {
  static const WebpLibrary library;
  return library;
}

const WebpLibrary& webp_or_error() {
  if (!webp_library().missing.empty()) throw DecodeError(webp_library().missing);
  return webp_library();
}

}  // namespace

bool is_webp(ImageBytes bytes) {
  return bytes.size() >= 12 && std::memcmp(bytes.data(), "RIFF", 4) == 0 &&
         std::memcmp(bytes.data() + 8, "WEBP", 4) == 0;
}

const std::string& webp_missing() { return webp_library().missing; }

ImageSize webp_size(ImageBytes bytes) {
  int width = 0, height = 0;
  if (webp_or_error().get_info(bytes.data(), bytes.size(), &width, &height) == 0)
    throw DecodeError("its WebP header is damaged or ends early");
  return {height, width};
}

void decode_webp(ImageBytes bytes, Image& image) {
  image.pixels.resize(static_cast<size_t>(image.height * image.width * kColors));
  if (webp_or_error().decode_rgb_into(bytes.data(), bytes.size(), image.pixels.data(), image.pixels.size(),
                                      static_cast<int>(image.width * kColors)) == nullptr)
    throw DecodeError("its WebP data is damaged, ends early or is an animation");
}

}  // namespace brisk
