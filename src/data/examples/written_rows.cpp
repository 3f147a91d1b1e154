#include "data/examples/written_rows.h"

#include "base/error.h"
#include "data/read/source_files.h"

namespace brisk {

const TableRow& WrittenRows::at(int64_t number) {
  BRISK_CHECK(number >= number_, "row {} after row {}", number, number_);
  while (number_ < number) {
    if (!rows_.next(row_)) user_error("{}: it has fewer rows than before", rows_.path());
    number_ += has_text(row_.text) && has_text(row_.pair) ? 1 : 0;
  }
  return row_;
}

}  // namespace brisk
