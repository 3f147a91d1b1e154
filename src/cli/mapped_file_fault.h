// The handler of last resort for files that shrink while they are mapped (base/files/files.h): a message that names the
// file, and exit code 2, instead of a bare "Bus error".
//
//   int main() { handle_mapped_file_faults(); ... }
#pragma once

namespace brisk {

void handle_mapped_file_faults();

}  // namespace brisk
