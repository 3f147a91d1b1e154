#include "base/files/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/append_file.h"
#include "base/files/file_lock.h"
#include "base/files/record_log.h"
#include "base/files/unfinished_folder.h"
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
  EXPECT_EQ(read_file(folder + "/a", file_kind::job), contents);
  write_file_atomically(folder + "/a", "new");
  EXPECT_EQ(read_file(folder + "/a", file_kind::job), "new");
  EXPECT_EQ(files_in_folder(), 1) << "the side file is gone";
}

TEST_F(Files, NotCommittedLeaveTheOldOneAndNothingElse) {
  write_file_atomically(folder + "/a", "old");
  {
    AtomicFile file(folder + "/a");
    file.write("half of the ne");
    EXPECT_EQ(file.size(), 14);
  }
  EXPECT_EQ(read_file(folder + "/a", file_kind::job), "old");
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
  EXPECT_EQ(read_file(folder + "/a", file_kind::job), "old");
  EXPECT_EQ(files_in_folder(), 1);
}

TEST_F(Files, ErrorsNameThePathTheReasonAndTheFix) {
  EXPECT_EQ(problem([&] { read_file(folder + "/none", file_kind::job); }),
            folder +
                "/none: cannot open it: No such file or directory; check the path, relative ones start at the current "
                "folder");
  EXPECT_NE(problem([&] { read_file(folder, file_kind::job); }).find("name a file, not a folder"), std::string::npos);
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
  EXPECT_NE(read_file("/proc/self/status", file_kind::job).find("VmRSS"), std::string::npos);
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
  EXPECT_EQ(read_file(folder + "/b", file_kind::job), "a");
  EXPECT_FALSE(file_exists(folder + "/a"));
  EXPECT_EQ(file_size(folder + "/b"), 1);
}

TEST_F(Files, LargerThanTheirKindAllowsAreRefusedBeforeTheyAreRead) {
  write_file_atomically(folder + "/sparse", "");
  std::filesystem::resize_file(folder + "/sparse", uint64_t{1} << 40);  // takes no place on the disk
  EXPECT_EQ(problem([&] { read_file(folder + "/sparse", file_kind::config); }),
            folder +
                "/sparse: it has 1.00 TiB, and a model's configuration has at most 64.0 MiB; it is another file or "
                "damaged: name the right one, or copy it again");
  const FileKind tiny = {"a tiny file", 5};
  write_file_atomically(folder + "/a", "12345");
  EXPECT_EQ(read_file(folder + "/a", tiny), "12345");
  write_file_atomically(folder + "/a", "123456");
  EXPECT_TRUE(test::has(problem([&] { read_file(folder + "/a", tiny); }), "a tiny file has at most 5 B"));
  // Without a size: seen while it is read.
  EXPECT_TRUE(test::has(problem([&] { read_file("/proc/self/status", tiny); }), "it has more, and a tiny file has"));
}

// Each would wait for ever, or never end, if it were opened and read.
TEST_F(Files, ThatAreNoFilesAreRefusedAtOnceByEveryReader) {
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder + "/zeros");
  std::filesystem::create_symlink("pipe", folder + "/link");
  const int sock = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(folder.size() + 7, sizeof(address.sun_path));
  std::strcpy(address.sun_path, (folder + "/socket").c_str());
  ASSERT_EQ(::bind(sock, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::vector<std::pair<std::string, std::string>> kinds = {{folder + "/pipe", "a pipe (FIFO)"},
                                                                  {folder + "/link", "a pipe (FIFO)"},
                                                                  {folder + "/zeros", "a device"},
                                                                  {"/dev/zero", "a device"},
                                                                  {folder + "/socket", "a socket"}};
  for (const auto& [path, kind] : kinds) {
    const std::string expected =
        path + ": it is " + kind + ", expected a file; copy what it holds to a file, and name that";
    EXPECT_EQ(problem([&, &path = path] { read_file(path, file_kind::job); }), expected);
    EXPECT_EQ(problem([&, &path = path] { const MappedFile file(path); }), expected);
    EXPECT_EQ(problem([&, &path = path] { open_regular_file(path); }), expected);
  }
  ::close(sock);
}

TEST_F(Files, APipeThatTheProcessWasStartedWithIsRead) {
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "{}", 2), 2);
  ::close(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_TRUE(is_inherited_pipe(name));
  EXPECT_EQ(read_file(name, file_kind::job), "{}");
  EXPECT_FALSE(is_inherited_pipe(folder));
  std::filesystem::create_symlink(name, folder + "/link");  // somebody else's file cannot ask for it
  EXPECT_TRUE(test::has(problem([&] { read_file(folder + "/link", file_kind::job); }), "it is a pipe"));
  ::close(ends[0]);
}

TEST_F(Files, ThatAreLinksAreNotWrittenThrough) {
  write_file_atomically(folder + "/target", "old");
  std::filesystem::create_symlink("target", folder + "/link");
  const std::string refused = folder + "/link: it is a symbolic link to target, and nothing is written through links";
  EXPECT_TRUE(problem([&] { write_file_atomically(folder + "/link", "new"); }).starts_with(refused));
  EXPECT_TRUE(problem([&] { AppendFile file(folder + "/link"); }).starts_with(refused));
  EXPECT_TRUE(problem([&] { RecordLog file(folder + "/link"); }).starts_with(refused));
  EXPECT_TRUE(problem([&] { FileLock file(folder + "/link"); }).starts_with(refused));
  EXPECT_EQ(test::contents_of(folder + "/target"), "old");
  std::filesystem::create_symlink("nothing", folder + "/dangling");
  EXPECT_THROW(write_file_atomically(folder + "/dangling", "new"), UserError);
  EXPECT_THROW(RecordLog(folder + "/dangling"), UserError);
  EXPECT_FALSE(file_exists(folder + "/nothing"));
}

TEST_F(Files, WithASecondNameAreReplacedButNeverChanged) {
  write_file_atomically(folder + "/a", "old");
  std::filesystem::create_hard_link(folder + "/a", folder + "/b");
  const std::string refused = folder + "/a: the file has 2 names (hard links)";
  EXPECT_TRUE(problem([&] { AppendFile file(folder + "/a"); }).starts_with(refused));
  EXPECT_TRUE(problem([&] { RecordLog file(folder + "/a"); }).starts_with(refused));
  write_file_atomically(folder + "/a", "new");
  EXPECT_EQ(test::contents_of(folder + "/a"), "new");
  EXPECT_EQ(test::contents_of(folder + "/b"), "old");
}

TEST_F(Files, ThatAreNoFilesAreNotWrittenInto) {
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);  // opening it would wait for a reader
  const std::string refused = folder + "/pipe: it is a pipe (FIFO), expected a file; remove it";
  EXPECT_EQ(problem([&] { write_file_atomically(folder + "/pipe", "x"); }), refused);
  EXPECT_EQ(problem([&] { AppendFile file(folder + "/pipe"); }), refused);
  EXPECT_EQ(problem([&] { RecordLog file(folder + "/pipe"); }), refused);
  EXPECT_EQ(problem([&] { FileLock file(folder + "/pipe"); }), refused);
}

TEST_F(Files, AFolderOfOursIsNoLink) {
  make_own_directory(folder + "/own");
  EXPECT_TRUE(is_directory(folder + "/own"));
  make_own_directory(folder + "/own");
  std::filesystem::create_directory_symlink("own", folder + "/link");
  EXPECT_TRUE(test::has(problem([&] { make_own_directory(folder + "/link"); }), "it is a symbolic link to own"));
}

TEST_F(Files, ThatTheUserNamesMayBeLinks) {
  write_file_atomically(folder + "/target", "old");
  std::filesystem::create_symlink("target", folder + "/link");
  write_file_atomically(folder + "/link", "new", Links::follow);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  EXPECT_EQ(test::contents_of(folder + "/target"), "new");
  EXPECT_EQ(files_in_folder(), 2);
}

TEST_F(Files, ThatTheUserNamesMayBePipesAndDevices) {
  ASSERT_EQ(::mkfifo((folder + "/pipe").c_str(), 0600), 0);
  const int reader = ::open((folder + "/pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(folder + "/pipe", "text", Links::follow);
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(folder + "/pipe"));
  EXPECT_EQ(files_in_folder(), 1);
  write_file_atomically("/dev/null", "text", Links::follow);
}

TEST_F(Files, OfAFolderThatIsUnfinishedAreMadeAgain) {
  const std::string path = folder + "/model";
  {
    UnfinishedFolder unfinished(path);
    EXPECT_TRUE(UnfinishedFolder::is(path));
    write_file_atomically(path + "/weights", "half of the model");
  }
  EXPECT_TRUE(UnfinishedFolder::is(path)) << "an error or a kill leaves it so";
  write_file_atomically(path + "/config.partial-12-7ffcd0", "of a killed process");
  write_file_atomically(path + "/my.partial-notes", "somebody's");
  UnfinishedFolder again(path);
  EXPECT_FALSE(file_exists(path + "/config.partial-12-7ffcd0"));
  EXPECT_TRUE(file_exists(path + "/my.partial-notes") && file_exists(path + "/weights"));
  again.finish();
  EXPECT_FALSE(UnfinishedFolder::is(path));
  write_file_atomically(path + "/config.partial-12-7ffcd0", "of another program");
  UnfinishedFolder(path).finish();
  EXPECT_TRUE(file_exists(path + "/config.partial-12-7ffcd0")) << "it was not unfinished";
}

TEST_F(Files, OfAFolderAreListed) {
  EXPECT_EQ(names_in(folder + "/none"), std::vector<std::string>());
  write_file_atomically(folder + "/b", "");
  write_file_atomically(folder + "/.a", "");
  make_directories(folder + "/c");
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{".a", "b", "c"}));
  EXPECT_NE(problem([&] { names_in(folder + "/b"); }), "");
}

TEST_F(Files, TwoObjectsThatWriteOneFileAtOnceDoNotMix) {
  AtomicFile first(folder + "/a"), second(folder + "/a");
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  EXPECT_EQ(test::contents_of(folder + "/a"), "first");
  EXPECT_EQ(files_in_folder(), 1);
}

}  // namespace
}  // namespace brisk
