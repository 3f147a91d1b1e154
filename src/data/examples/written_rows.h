// The usable rows of a table as they were written, for rows whose tokens are cached: references, say, which tokens may not give
// back as they were.
//
//   WrittenRows rows(table);
//   const TableRow& row = rows.at(examples.row_of(i));      // in ascending order
#pragma once

#include <cstdint>

#include "data/table/input_table.h"

namespace brisk {

class WrittenRows {
 public:
  // The table must outlive it, and have texts with pairs.
  explicit WrittenRows(const InputTable& table) : rows_(table) {}
  // Of the usable rows; lives until the next call. UserError where the files are shorter than they were.
  const TableRow& at(int64_t number);

 private:
  TableRowReader rows_;
  TableRow row_;
  int64_t number_ = -1;
};

}  // namespace brisk
