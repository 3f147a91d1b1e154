// A file that shrinks while it is mapped ends in a message that names it, not in "Bus error".
#include "cli/mapped_file_fault.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files/files.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

TEST(MappedFileFault, NamesTheFileAndExitsWithTheCodeOfAUserError) {
  const test::ScratchFolder folder;
  const std::string path = folder.path() + "/weights\n.bin";  // its control character is not for the terminal
  std::ofstream(path) << std::string(1 << 20, 'x');
  const MappedFile file(path);
  std::filesystem::resize_file(path, 4096);
  const auto read_what_is_gone = [&] {
    handle_mapped_file_faults();
    const volatile std::byte* last = file.data() + file.size() - 1;
    static_cast<void>(*last);
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(2), "weights.*another program cut it short");
}

}  // namespace
}  // namespace brisk
