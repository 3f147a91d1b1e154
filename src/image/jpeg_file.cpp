#include <fmt/format.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "image/decoders.h"

#if BRISK_HAVE_JPEG
#include <jpeglib.h>
#endif

namespace brisk {

bool is_jpeg(ImageBytes bytes) { return bytes.size() >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF; }

// The frame header (SOFn), behind any number of other segments.
ImageSize jpeg_size(ImageBytes bytes) {
  for (size_t at = 2; at + 9 <= bytes.size();) {
    if (bytes[at] != 0xFF) throw DecodeError("no JPEG segment where one was expected");
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xFF) {  // filler
      ++at;
      continue;
    }
    if (marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {  // without a length
      at += 2;
      continue;
    }
    if (marker == 0xD9 || marker == 0xDA) throw DecodeError("a JPEG file without a frame header");
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) return {bytes[at + 5] << 8 | bytes[at + 6], bytes[at + 7] << 8 | bytes[at + 8]};
    const size_t length = static_cast<size_t>(bytes[at + 2]) << 8 | bytes[at + 3];
    if (length < 2) throw DecodeError("a JPEG segment without a length");
    at += 2 + length;
  }
  throw DecodeError("it ends within its header");
}

#if BRISK_HAVE_JPEG

namespace {

// As PngReading: libjpeg leaves what fails by longjmp.
struct JpegReading {
  jpeg_error_mgr errors = {};
  std::jmp_buf leave;
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  jpeg_decompress_struct jpeg = {};
  uint8_t* pixels = nullptr;   // of the image
  uint8_t* ink_row = nullptr;  // of four colours
  char problem[JMSG_LENGTH_MAX] = {};

  ~JpegReading() { jpeg_destroy_decompress(&jpeg); }  // also where it was never made
};

// A baseline file has one scan, a progressive one about ten; each goes over all of the image.
constexpr int kMostScans = 200;

JpegReading& reading_of(j_common_ptr jpeg) { return *static_cast<JpegReading*>(jpeg->client_data); }

[[noreturn]] void leave_jpeg(JpegReading& reading, const char* problem) {
  std::snprintf(reading.problem, sizeof reading.problem, "%s", problem);
  std::longjmp(reading.leave, 1);
}

[[noreturn]] void jpeg_failed(j_common_ptr jpeg) {
  JpegReading& reading = reading_of(jpeg);
  (*jpeg->err->format_message)(jpeg, reading.problem);
  std::longjmp(reading.leave, 1);
}

void set_up_jpeg(JpegReading& reading) {
  jpeg_create_decompress(&reading.jpeg);
  reading.jpeg.src = &reading.source;
  reading.jpeg.progress = &reading.progress;
  jpeg_read_header(&reading.jpeg, TRUE);
  // (YCCK becomes CMYK in libjpeg; the rest of the way is ours.)
  reading.jpeg.out_color_space = reading.jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
}

// Ink as light, in the arithmetic of PIL.
void write_ink_row(const uint8_t* ink, int64_t width, bool inverted, uint8_t* out) {
  const auto product = [](int a, int b) {
    const int sum = a * b + 128;
    return ((sum >> 8) + sum) >> 8;
  };
  for (int64_t x = 0; x < width; ++x, ink += 4, out += kColors) {
    const int flip = inverted ? 255 : 0, white = 255 - (ink[3] ^ flip);
    for (int color = 0; color < kColors; ++color)
      out[color] = static_cast<uint8_t>(white - product(ink[color] ^ flip, white));
  }
}

void read_jpeg_rows(JpegReading& reading) {
  jpeg_decompress_struct& jpeg = reading.jpeg;
  jpeg_start_decompress(&jpeg);
  const int64_t width = jpeg.output_width;
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* to = reading.pixels + int64_t{jpeg.output_scanline} * width * kColors;
    JSAMPROW row = reading.ink_row != nullptr ? reading.ink_row : to;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (reading.ink_row != nullptr) write_ink_row(reading.ink_row, width, jpeg.saw_Adobe_marker != 0, to);
  }
}

template <typename Step>
bool try_jpeg(JpegReading& reading, Step step) {
  if (setjmp(reading.leave) != 0) return false;
  step(reading);
  return true;
}

}  // namespace

void decode_jpeg(ImageBytes bytes, Image& image) {
  JpegReading reading;
  reading.jpeg.err = jpeg_std_error(&reading.errors);
  reading.jpeg.client_data = &reading;
  reading.errors.error_exit = jpeg_failed;
  reading.errors.output_message = [](j_common_ptr) {};  // warnings; PIL is silent on them, too
  reading.source.next_input_byte = bytes.data();
  reading.source.bytes_in_buffer = bytes.size();
  reading.source.init_source = [](j_decompress_ptr) {};
  reading.source.term_source = [](j_decompress_ptr) {};
  reading.source.resync_to_restart = jpeg_resync_to_restart;
  reading.source.fill_input_buffer = [](j_decompress_ptr jpeg) -> boolean {
    leave_jpeg(reading_of(reinterpret_cast<j_common_ptr>(jpeg)), "the file ends early");
  };
  reading.source.skip_input_data = [](j_decompress_ptr jpeg, long count) {
    if (count <= 0) return;
    if (static_cast<size_t>(count) > jpeg->src->bytes_in_buffer)
      leave_jpeg(reading_of(reinterpret_cast<j_common_ptr>(jpeg)), "the file ends early");
    jpeg->src->next_input_byte += count;
    jpeg->src->bytes_in_buffer -= static_cast<size_t>(count);
  };
  reading.progress.progress_monitor = [](j_common_ptr jpeg) {
    const auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
    if (decompress->input_scan_number > kMostScans) leave_jpeg(reading_of(jpeg), "it has more than 200 scans");
  };
  if (!try_jpeg(reading, set_up_jpeg)) throw DecodeError(reading.problem);
  if (reading.jpeg.image_height != image.height || reading.jpeg.image_width != image.width) {
    throw DecodeError("two headers that say different sizes");
  }
  image.pixels.resize(static_cast<size_t>(image.height * image.width * kColors));
  reading.pixels = image.pixels.data();
  std::vector<uint8_t> ink;
  if (reading.jpeg.num_components == 4) {
    ink.resize(static_cast<size_t>(image.width) * 4);
    reading.ink_row = ink.data();
  }
  if (!try_jpeg(reading, read_jpeg_rows)) throw DecodeError(reading.problem);
}

#else

void decode_jpeg(ImageBytes, Image&) {
  throw DecodeError("brisk was built without libjpeg and reads no JPEG; convert it to PNG, or build with libjpeg-dev");
}

#endif

}  // namespace brisk
