// Gzip files, also several of them one after the other in one file, as pigz, bgzip and cat make them.
#include "base/error.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "data/read/plain_reader.h"

#ifdef BRISK_HAVE_ZLIB

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace brisk {

namespace {

class GzipReader : public ByteReader {
 public:
  explicit GzipReader(const std::string& path) : input_(path) {
    BRISK_CHECK(inflateInit2(&stream_, kGzipOnly) == Z_OK, "inflateInit2");
  }
  ~GzipReader() override { inflateEnd(&stream_); }

  int64_t disk_position() const override { return input_.used(); }

  size_t read(char* out, size_t size) override {
    if (ended_ || size == 0) return 0;
    const auto wanted = static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = wanted;
    while (stream_.avail_out == wanted) {
      if (input_.bytes().empty() && !input_.refill()) {
        if (!inside_member_ && members_ > 0) {
          ended_ = true;
          return 0;
        }
        user_error(
            "{}: cut short: the gzip data ends after {} bytes, in the middle ({} of text came before); copy or "
            "download the file again",
            input_.path(), input_.used(), format_bytes(static_cast<double>(text_bytes_)));
      }
      if (!inside_member_ && members_ > 0 && !next_member()) continue;
      step();
    }
    const size_t count = wanted - stream_.avail_out;
    text_bytes_ += static_cast<int64_t>(count);
    input_.check_expansion(text_bytes_);
    return count;
  }

 private:
  static constexpr int kGzipOnly = 15 + 16;

  // After a member: another one, or zeros that fill up a block of a tape. False if there is nothing to unpack yet.
  bool next_member() {
    size_t zeros = 0;
    while (zeros < input_.bytes().size() && input_.bytes()[zeros] == '\0') ++zeros;
    input_.use(zeros);
    if (input_.bytes().empty()) return false;
    inflateReset2(&stream_, kGzipOnly);
    return true;
  }

  void step() {
    const std::string_view bytes = input_.bytes();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    const uInt space_before = stream_.avail_out;
    inside_member_ = true;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    input_.use(bytes.size() - stream_.avail_in);
    if (code == Z_STREAM_END) {
      inside_member_ = false;
      ++members_;
      return;
    }
    if (code == Z_OK || (code == Z_BUF_ERROR && (stream_.avail_in == 0 || stream_.avail_out == 0))) return;
    if (text_bytes_ == 0 && members_ == 0 && stream_.avail_out == space_before && input_.used() <= 16) {
      user_error("{}: not gzip data, despite its name; rename it, or compress it again with gzip", input_.path());
    }
    user_error("{}: damaged at byte {} of {} ({}; {} of text came before); copy or download the file again",
               input_.path(), input_.used(), file_size(input_.path()),
               stream_.msg != nullptr ? stream_.msg : "not gzip data",
               format_bytes(static_cast<double>(text_bytes_ + (space_before - stream_.avail_out))));
  }

  PackedInput input_;
  z_stream stream_{};
  bool inside_member_ = false, ended_ = false;
  int64_t members_ = 0, text_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ByteReader> open_gzip_reader(const std::string& path) { return std::make_unique<GzipReader>(path); }

}  // namespace brisk

#else

namespace brisk {

std::unique_ptr<ByteReader> open_gzip_reader(const std::string& path) {
  user_error("{}: brisk was built without zlib; install zlib1g-dev and build it again, or unpack the file (gunzip -k)",
             path);
}

}  // namespace brisk

#endif
