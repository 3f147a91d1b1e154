// How the rows of an image lie: a grid of patches, row by row, divided into windows within which rows see each other.
//
// Shifted windows begin `shift` rows and columns further down and right, so that what is left at the edges are smaller
// windows: with shift 2, a grid of 6 x 6 and windows of 3 x 3 has these regions. (Swin moves the grid around and masks what
// does not belong together, which is the same.)
//
//   a a b b b c      Region 4, that of e: rows (2, 2) to (4, 4), and its places in the window are all nine.
//   a a b b b c      Region 0, that of a: rows (0, 0) to (1, 1), and its places are the last two rows and columns
//   d d e e e f      of a window. Places count row by row: a bias of attention has a number for each pair of them.
//   d d e e e f
//   d d e e e f      One window over the whole grid may have a further row before the grid's, the class token's: its
//   g g h h h i      place is 0, and the others' are one higher.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace brisk {

struct GridRegion {
  int32_t row = 0, col = 0;    // of the grid, where it begins
  int32_t rows = 0, cols = 0;  // of it
  int32_t place_row = 0, place_col = 0;
};

// Always inlined: kernels of several instruction sets use it (ops/cpu/by_isa.h).
struct GridWindows {
  int32_t height = 1, width = 1;                // of the grid
  int32_t window_height = 1, window_width = 1;  // divide these
  int32_t shift = 0;                            // less than a window
  bool class_row = false;                       // only with one window

  static GridWindows whole(int64_t height, int64_t width, bool class_row) {
    const auto h = static_cast<int32_t>(height), w = static_cast<int32_t>(width);
    return {h, w, h, w, 0, class_row};
  }
  static GridWindows of(int64_t height, int64_t width, int64_t window, int64_t shift) {
    const auto side = static_cast<int32_t>(window);
    return {static_cast<int32_t>(height), static_cast<int32_t>(width), side, side, static_cast<int32_t>(shift), false};
  }

  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t before() const { return class_row ? 1 : 0; }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t rows() const { return height * width + before(); }  // of a sequence
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t places() const {
    return window_height * window_width + before();
  }  // P: of a window
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t down() const { return height / window_height + (shift > 0 ? 1 : 0); }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t across() const { return width / window_width + (shift > 0 ? 1 : 0); }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t regions() const { return down() * across(); }  // of a sequence

  [[gnu::always_inline]] BRISK_HOST_DEVICE GridRegion region(int32_t number) const {
    GridRegion region;
    band(number / across(), height, window_height, region.row, region.rows, region.place_row);
    band(number % across(), width, window_width, region.col, region.cols, region.place_col);
    return region;
  }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t rows_of(const GridRegion& region) const {
    return region.rows * region.cols + before();
  }
  // Of the region's row `index`: its row within the sequence, and its place.
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t row_of(const GridRegion& region, int32_t index) const {
    if (index < before()) return 0;
    const int32_t at = index - before();
    return before() + (region.row + at / region.cols) * width + region.col + at % region.cols;
  }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t place_of(const GridRegion& region, int32_t index) const {
    if (index < before()) return 0;
    const int32_t at = index - before();
    return before() + (region.place_row + at / region.cols) * window_width + region.place_col + at % region.cols;
  }
  // The region's row that has a place; -1: none.
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t index_of(const GridRegion& region, int32_t place) const {
    if (place < before()) return 0;
    const int32_t at = place - before();
    const int32_t y = at / window_width - region.place_row, x = at % window_width - region.place_col;
    const bool inside = y >= 0 && y < region.rows && x >= 0 && x < region.cols;
    return inside ? before() + y * region.cols + x : -1;
  }
  // The region that a row of a sequence is in; the class row is in the first.
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t region_at(int32_t row) const {
    const int32_t at = row < before() ? 0 : row - before();
    const int32_t y = at / width, x = at % width;
    return band_at(y, window_height) * across() + band_at(x, window_width);
  }

 private:
  // Along one axis.
  [[gnu::always_inline]] BRISK_HOST_DEVICE void band(int32_t number, int32_t size, int32_t window, int32_t& begin,
                                                     int32_t& count, int32_t& place) const {
    const int32_t first = shift > 0 ? shift - window : 0;  // where the first window would begin
    const int32_t from = first + number * window, to = from + window;
    begin = from < 0 ? 0 : from;
    count = (to > size ? size : to) - begin;
    place = begin - from;
  }
  [[gnu::always_inline]] BRISK_HOST_DEVICE int32_t band_at(int32_t at, int32_t window) const {
    return shift > 0 ? (at + window - shift) / window : at / window;
  }
};

}  // namespace brisk
