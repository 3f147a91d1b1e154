// Zstandard files, of one frame or several.
#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/read/plain_reader.h"

#ifdef BRISK_HAVE_ZSTD

#include <zstd.h>
#include <zstd_errors.h>

namespace brisk {

namespace {

class ZstdReader : public ByteReader {
 public:
  explicit ZstdReader(const std::string& path) : input_(path), stream_(ZSTD_createDStream()) {
    BRISK_CHECK(stream_ != nullptr, "ZSTD_createDStream");
  }
  ~ZstdReader() override { ZSTD_freeDStream(stream_); }

  int64_t disk_position() const override { return input_.used(); }

  size_t read(char* out, size_t size) override {
    if (size == 0) return 0;
    ZSTD_outBuffer output = {out, size, 0};
    while (output.pos == 0) {
      const bool more = !input_.bytes().empty() || input_.refill();
      if (!more && !inside_frame_) {
        if (frames_ > 0) return 0;
        user_error("{}: cut short: no zstd data in it; copy or download the file again", input_.path());
      }
      const std::string_view bytes = input_.bytes();
      ZSTD_inBuffer in = {bytes.data(), bytes.size(), 0};
      const size_t code = ZSTD_decompressStream(stream_, &output, &in);
      input_.use(in.pos);
      if (ZSTD_isError(code)) fail(code, static_cast<int64_t>(output.pos));
      frames_ += code == 0 ? 1 : 0;
      // Without input the call only empties what it holds; when nothing came of that, the file ended too early.
      if (!more && output.pos == 0 && code != 0) {
        user_error(
            "{}: cut short: the zstd data ends after {} bytes, in the middle ({} of text came before); copy or "
            "download the file again",
            input_.path(), input_.used(), format_bytes(static_cast<double>(text_bytes_)));
      }
      inside_frame_ = code != 0;
    }
    text_bytes_ += static_cast<int64_t>(output.pos);
    input_.check_expansion(text_bytes_);
    return output.pos;
  }

 private:
  [[noreturn]] void fail(size_t code, int64_t text_of_this_call) const {
    const ZSTD_ErrorCode reason = ZSTD_getErrorCode(code);
    if (reason == ZSTD_error_prefix_unknown && text_bytes_ + text_of_this_call == 0 && frames_ == 0) {
      user_error("{}: not zstd data, despite its name; rename it, or compress it again with zstd", input_.path());
    }
    if (reason == ZSTD_error_frameParameter_windowTooLarge) {
      user_error(
          "{}: it was compressed with a window of more than 128 MiB (zstd --long or --ultra), which reading it would "
          "take in memory; compress it again without (unzstd --long=31 --stdout FILE | zstd > NEW)",
          input_.path());
    }
    user_error("{}: damaged near byte {} of {} ({}; {} of text came before); copy or download the file again",
               input_.path(), input_.used(), file_size(input_.path()), ZSTD_getErrorName(code),
               format_bytes(static_cast<double>(text_bytes_ + text_of_this_call)));
  }

  PackedInput input_;
  ZSTD_DStream* stream_;
  bool inside_frame_ = false;
  int64_t frames_ = 0, text_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ByteReader> open_zstd_reader(const std::string& path) { return std::make_unique<ZstdReader>(path); }

}  // namespace brisk

#else

namespace brisk {

std::unique_ptr<ByteReader> open_zstd_reader(const std::string& path) {
  user_error("{}: brisk was built without zstd; install libzstd-dev and build it again, or unpack the file (unzstd)",
             path);
}

}  // namespace brisk

#endif
