// Text compressed as people find it, for tests of what reads it.
#pragma once

#include <zlib.h>
#if __has_include(<zstd.h>)
#include <zstd.h>
#endif

#include <stdexcept>
#include <string>

namespace brisk {

inline std::string gzipped(const std::string& text, int level = 6) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("gzip");
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("gzip");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

#if __has_include(<zstd.h>)
inline std::string zstandard(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3);
  if (ZSTD_isError(size)) throw std::runtime_error("zstd");
  packed.resize(size);
  return packed;
}
#endif

}  // namespace brisk
