#include "base/files/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = testing::TempDir() + "/brisk_files_" + std::to_string(getpid());
    remove_directory_tree(folder);
    make_directories(folder);
  }
  void TearDown() override { remove_directory_tree(folder); }

  int64_t files_in_folder() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }

  static std::string problem(const std::function<void()>& action) { return test::message_of<UserError>(action); }

  std::string folder;
};

TEST_F(Files, WrittenAtomicallyReadBackTheSame) {
  const std::string contents = std::string("a\0b\n", 4) + std::string(200000, 'x');
  write_file_atomically(folder + "/a", contents);
  EXPECT_EQ(read_file(folder + "/a"), contents);
  write_file_atomically(folder + "/a", "new");
  EXPECT_EQ(read_file(folder + "/a"), "new");
  EXPECT_EQ(files_in_folder(), 1) << "the side file is gone";
}

TEST_F(Files, NotCommittedLeaveTheOldOneAndNothingElse) {
  write_file_atomically(folder + "/a", "old");
  {
    AtomicFile file(folder + "/a");
    file.write("half of the ne");
    EXPECT_EQ(file.size(), 14);
  }
  EXPECT_EQ(read_file(folder + "/a"), "old");
  EXPECT_EQ(files_in_folder(), 1);
}

TEST_F(Files, AWriteThatFailsKeepsTheOldOne) {
  write_file_atomically(folder + "/a", "old");
  // A limit on the size of files fails a write as a full disk does.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text = problem([&] { write_file_atomically(folder + "/a", std::string(10000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(text.starts_with(folder + "/a: cannot write it: ")) << text;
  EXPECT_EQ(read_file(folder + "/a"), "old");
  EXPECT_EQ(files_in_folder(), 1);
}

TEST_F(Files, ErrorsNameThePathTheReasonAndTheFix) {
  EXPECT_EQ(problem([&] { read_file(folder + "/none"); }),
            folder +
                "/none: cannot open it: No such file or directory; check the path, relative ones start at the current "
                "folder");
  EXPECT_NE(problem([&] { read_file(folder); }).find("name a file, not a folder"), std::string::npos);
  write_file_atomically(folder + "/a", "");
  EXPECT_NE(problem([&] { make_directories(folder + "/a/b"); }).find("cannot make the folder: Not a directory"),
            std::string::npos);
  EXPECT_NE(problem([&] { make_directories(folder + "/a"); }).find("Not a directory"), std::string::npos);
  EXPECT_NE(problem([&] { write_file_atomically(folder + "/none/b", ""); }).find("cannot create it"),
            std::string::npos);
  EXPECT_NE(explain_errno(ENOSPC).find("free some space"), std::string::npos);
  EXPECT_NE(explain_errno(EROFS).find("another file system"), std::string::npos);
}

TEST_F(Files, AFolderWithoutPermissionSaysSo) {
  ASSERT_EQ(chmod(folder.c_str(), 0555), 0);
  const uid_t user = geteuid();
  constexpr uid_t kNobody = 65534;
  if (user == 0) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }  // root may write anywhere
  const std::string text = problem([&] { write_file_atomically(folder + "/a", "x"); });
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  chmod(folder.c_str(), 0755);
  EXPECT_NE(text.find("Permission denied; change its permissions"), std::string::npos) << text;
}

TEST_F(Files, WithoutASizeAreReadToTheirEnd) {
  EXPECT_NE(read_file("/proc/self/status").find("VmRSS"), std::string::npos);
}

TEST_F(Files, MappedShowTheirBytes) {
  write_file_atomically(folder + "/a", "hello");
  MappedFile file(folder + "/a");
  file.advise_sequential();
  EXPECT_EQ(file.text(), "hello");
  EXPECT_EQ(file.bytes().size(), 5u);
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_EQ(file.size(), 0);
  // A file replaced while it is mapped stays readable: the old one lives until it is unmapped.
  write_file_atomically(folder + "/a", "other");
  EXPECT_EQ(moved.text(), "hello");
}

TEST_F(Files, MappedAndThenCutShortAreNamedBeforeTheyAreRead) {
  write_file_atomically(folder + "/a", std::string(10000, 'x'));
  const MappedFile file(folder + "/a");
  EXPECT_NO_THROW(file.check_size());
  std::filesystem::resize_file(folder + "/a", 20000);
  EXPECT_NO_THROW(file.check_size()) << "what is mapped is all there";
  std::filesystem::resize_file(folder + "/a", 9999);
  try {
    file.check_size();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(folder + "/a: it had 10000 bytes when it was opened and has 9999 now"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(Files, EmptyAreMappedAsNothing) {
  write_file_atomically(folder + "/a", "");
  EXPECT_EQ(MappedFile(folder + "/a").size(), 0);
  EXPECT_EQ(MappedFile(folder + "/a").text(), "");
  EXPECT_THROW(MappedFile(folder + "/none"), UserError);
}

TEST_F(Files, FoldersAreMadeWithTheirParents) {
  make_directories(folder + "/a/b/c");
  EXPECT_TRUE(is_directory(folder + "/a/b/c"));
  make_directories(folder + "/a/b/c");
  make_directories(folder + "/d/");
  EXPECT_TRUE(is_directory(folder + "/d"));
}

TEST_F(Files, RenamedReplaceTheirTarget) {
  write_file_atomically(folder + "/a", "a");
  write_file_atomically(folder + "/b", "b");
  rename_file(folder + "/a", folder + "/b");
  EXPECT_EQ(read_file(folder + "/b"), "a");
  EXPECT_FALSE(file_exists(folder + "/a"));
  EXPECT_EQ(file_size(folder + "/b"), 1);
}

TEST_F(Files, ThatAreLinksStayLinks) {
  write_file_atomically(folder + "/target", "old");
  std::filesystem::create_symlink("target", folder + "/link");
  write_file_atomically(folder + "/link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  EXPECT_EQ(read_file(folder + "/target"), "new");
  EXPECT_EQ(files_in_folder(), 2);
}

TEST_F(Files, ThatAreNoFilesAreWrittenToAndNotReplaced) {
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  const int reader = ::open((folder + "/pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(folder + "/pipe", "text");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(folder + "/pipe"));
  EXPECT_EQ(files_in_folder(), 1);
}

}  // namespace
}  // namespace brisk
