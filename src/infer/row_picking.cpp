#include "infer/row_picking.h"

namespace brisk {

RowPicking first_row_picking(int64_t sequences_per_step) {
  // An evaluation packs as many short texts as fit: 512 rows after the last layer are a few MiB.
  constexpr int64_t kUsual = 512;
  RowPicking picking;
  picking.most_sequences = std::max(kUsual, sequences_per_step);
  picking.picked = [](const RowCapacity& tokens) { return RowCapacity{tokens.sequences, tokens.sequences, 1}; };
  return picking;
}

}  // namespace brisk
