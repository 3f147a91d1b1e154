#include "data/read/source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "data/token_store/token_cache.h"
#include "support/byte_tokenizer.h"

namespace brisk {
namespace {

using Texts = std::vector<std::string>;

Texts documents_of(const SourceOptions& options) {
  Source source(options);
  const TextSample sample = source.sample(int64_t{1} << 40);
  EXPECT_TRUE(sample.whole);
  return {sample.texts.begin(), sample.texts.end()};
}

Texts documents_of(const std::string& path, DocumentRule rule) { return documents_of({{path}, "text", rule}); }

// What a run says that trains on it.
std::string error_of(const SourceOptions& options) {
  const ScratchFolder folder;
  return user_error_of([&] {
    Source source(options);
    open_token_cache(source, ByteTokenizer(), folder.path());
  });
}

std::string notes_of(const SourceOptions& options) {
  const ScratchFolder folder;
  Source source(options);
  return fmt::format("{}", fmt::join(open_token_cache(source, ByteTokenizer(), folder.path()).notes, "\n"));
}

const char* const kPoem = "\n\none\ntwo\n  \n\nthree\r\n\r\nfour";

TEST(Source, ReadsALineABlockOrAFileAsADocument) {
  const ScratchFolder folder;
  const std::string path = folder.write("poem.txt", kPoem);
  EXPECT_EQ(documents_of(path, DocumentRule::kLine), (Texts{"one", "two", "three", "four"}));
  EXPECT_EQ(documents_of(path, DocumentRule::kBlock), (Texts{"one\ntwo", "three", "four"}));
  EXPECT_EQ(documents_of(path, DocumentRule::kFile), (Texts{"one\ntwo\n  \n\nthree\n\nfour"}));
}

TEST(Source, KeepsTheSpacesOfALineAndDropsAByteOrderMark) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "\xEF\xBB\xBF = Title = \n body\n");
  EXPECT_EQ(documents_of(path, DocumentRule::kLine), (Texts{" = Title = ", " body"}));
}

TEST(Source, AutoChoosesBlocksWhereBlankLinesSeparateParagraphs) {
  const ScratchFolder folder;
  const SourceOptions options{{folder.write("wiki.txt", " \n = Title = \n \n Text .\n More .\n \n = = Two = = \n")}};
  EXPECT_EQ(documents_of(options), (Texts{" = Title = ", " Text .\n More .", " = = Two = = "}));
  EXPECT_HAS(notes_of(options), "a document is a block between blank lines (auto: 3 blocks");
}

TEST(Source, AutoChoosesLinesWhereThereIsNoBlankLineOrAStrayOne) {
  const ScratchFolder folder;
  std::string verses;
  for (int i = 0; i < 500; ++i) verses += fmt::format("verse {}\n", i);
  const SourceOptions plain{{folder.write("bible.txt", verses)}};
  EXPECT_EQ(documents_of(plain).size(), 500u);
  EXPECT_HAS(notes_of(plain), "a document is a line (auto: 500 lines, none of them blank)");
  const SourceOptions stray{{folder.write("stray.txt", verses + "\n" + verses)}};
  EXPECT_EQ(documents_of(stray).size(), 1000u);
  EXPECT_HAS(notes_of(stray), "almost none of them blank");
}

TEST(Source, AutoChoosesFilesWhereThereAreManySmallOnes) {
  const ScratchFolder folder;
  for (int i = 0; i < 10; ++i) folder.write(fmt::format("reviews/{}.txt", i), "good\n\nfilm\n");
  const SourceOptions options{{folder / "reviews"}};
  EXPECT_EQ(documents_of(options), Texts(10, "good\n\nfilm"));
  EXPECT_HAS(notes_of(options), "a document is a file (auto: 10 text files");
}

TEST(Source, ReadsADocumentALineFromJsonLines) {
  const ScratchFolder folder;
  const std::string path =
      folder.write("a.jsonl", "{\"text\": \"a\\nb\", \"id\": 1}\n\n{\"text\": \"\"}\r\n{\"text\": \"\\u00e9\"}");
  EXPECT_EQ(documents_of(path, DocumentRule::kAuto), (Texts{"a\nb", "\xC3\xA9"}));
  EXPECT_EQ(documents_of(path, DocumentRule::kFile), (Texts{"a\nb", "\xC3\xA9"}));
  EXPECT_HAS(notes_of({{path}}), "1 object with an empty \"text\" was skipped");
  const std::string other = folder.write("b.jsonl", "{\"body\": \"x\"}\n");
  EXPECT_EQ(documents_of({{other}, "body", DocumentRule::kAuto}), (Texts{"x"}));
}

TEST(Source, LargeJsonLinesComeInOrder) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 60000; ++i) lines += fmt::format("{{\"text\": \"document number {} of a large file\"}}\n", i);
  ASSERT_GT(lines.size(), 2u << 20);  // more than one piece of work
  const Texts texts = documents_of(folder.write("a.jsonl", lines), DocumentRule::kAuto);
  ASSERT_EQ(texts.size(), 60000u);
  for (int i = 0; i < 60000; ++i) ASSERT_EQ(texts[i], fmt::format("document number {} of a large file", i));
}

TEST(Source, ExpandsFoldersAndGlobsSortedAndEachFileOnce) {
  const ScratchFolder folder;
  const std::string b = folder.write("b.txt", "b"), deep = folder.write("deep/er/a.txt", "a");
  const std::string json = folder.write("deep/c.jsonl", "{\"text\":\"c\"}");
  folder.write("deep/image.png", "x");
  folder.write(".hidden/d.txt", "d");
  EXPECT_EQ(expand_paths({folder.path()}), (Texts{b, json, deep}));
  EXPECT_EQ(expand_paths({folder / "*.txt"}), (Texts{b}));
  EXPECT_EQ(expand_paths({folder / "**/*.txt"}), (Texts{b, deep}));
  EXPECT_EQ(expand_paths({folder / "deep/*"}), (Texts{json, deep}));
  EXPECT_EQ(expand_paths({b, folder / "?.txt", folder / "./b.txt"}).size(), 1u);
  const std::string odd = folder.write("odd[1].txt", "x");
  EXPECT_EQ(expand_paths({odd}), (Texts{odd}));
}

TEST(Source, GlobsMayBeRelative) {
  const ScratchFolder folder;
  folder.write("in/a.txt", "a");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Texts found = expand_paths({"*/*.txt"}), everywhere = expand_paths({"**/*.txt"});
  std::filesystem::current_path(before);
  EXPECT_EQ(found, (Texts{"in/a.txt"}));
  EXPECT_EQ(everywhere, (Texts{"in/a.txt"}));
}

TEST(SourceErrors, NameWhatIsMissing) {
  const ScratchFolder folder;
  EXPECT_HAS(error_of({{folder / "none.txt"}}), "none.txt: no such file or folder");
  EXPECT_HAS(error_of({{folder / "*.txt"}}), "*.txt: no file matches");
  EXPECT_HAS(error_of({{}}), "name a file");
  folder.write("images/a.png", "x");
  const std::string message = error_of({{folder / "images"}});
  EXPECT_HAS(message, "images: no .txt or .jsonl file");
  EXPECT_HAS(message, "found only .png");
  EXPECT_HAS(error_of({{"/dev/null"}}), "/dev/null: not a regular file");
}

TEST(SourceErrors, SayThatAFileHasNoText) {
  const ScratchFolder folder;
  EXPECT_HAS(error_of({{folder.write("empty.txt", "")}}), "empty.txt: the file is empty");
  EXPECT_HAS(error_of({{folder.write("blank.txt", "\n \n\t\n")}}),
             "blank.txt: there is no text in it, only blank lines");
  EXPECT_HAS(error_of({{folder.write("blank.jsonl", "{\"text\": \" \"}\n")}}), "empty \"text\" fields");
  folder.write("all/a.txt", "");
  EXPECT_HAS(error_of({{folder / "all"}}), "every file is empty");
  folder.write("all/b.txt", "\n");
  EXPECT_HAS(error_of({{folder / "all"}}), "no text in any of the files");
}

TEST(SourceErrors, AnEmptyFileAmongOthersIsLeftOutWithANote) {
  const ScratchFolder folder;
  folder.write("in/a.txt", "text\n");
  folder.write("in/b.txt", "");
  EXPECT_EQ(documents_of({{folder / "in"}}), (Texts{"text"}));
  EXPECT_HAS(notes_of({{folder / "in"}}), "1 empty files were skipped");
}

TEST(SourceErrors, GiveTheByteAndTheLineOfWhatIsNoText) {
  const ScratchFolder folder;
  const std::string nul = error_of({{folder.write("a.txt", std::string("one\ntwo\0three\n", 14))}});
  EXPECT_HAS(nul, "a.txt: byte 7 (line 2): a NUL byte, so this is binary data");
  const std::string latin = error_of({{folder.write("b.txt", "one\ntwo\ncaf\xE9 au lait\n")}});
  EXPECT_HAS(latin, "b.txt: byte 11 (line 3): not UTF-8: found 0xE9");
  EXPECT_HAS(latin, "iconv -f latin1 -t utf-8");
  const std::string utf16 = error_of({{folder.write("c.txt", std::string("\xFF\xFEh\0i\0", 6))}});
  EXPECT_HAS(utf16, "iconv -f utf-16");
  std::string large(9 << 20, 'x');  // in the third piece of work
  for (size_t i = 80; i < large.size(); i += 81) large[i] = '\n';
  const size_t bad = large.size() - 100;
  large[bad] = '\xFF';
  EXPECT_HAS(error_of({{folder.write("d.txt", large)}}), fmt::format("d.txt: byte {} (line {})", bad, bad / 81 + 1));
}

TEST(SourceErrors, GiveTheLineOfBadJson) {
  const ScratchFolder folder;
  const std::string bad = error_of({{folder.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": oops}\n")}});
  EXPECT_HAS(bad, "a.jsonl: line 2: column 10: not valid JSON: ");
  EXPECT_EQ(bad.find("json.exception"), std::string::npos) << bad;
  const std::string missing = error_of({{folder.write("b.jsonl", "{\"title\": \"a\", \"body\": \"b\"}\n")}});
  EXPECT_HAS(missing, "b.jsonl: line 1: no field \"text\"; found: body, title");
  EXPECT_HAS(missing, "data.text_field");
  EXPECT_HAS(error_of({{folder.write("c.jsonl", "\n\n{\"text\": 3}\n")}}),
             "c.jsonl: line 3: field \"text\": expected a string, found a number");
  EXPECT_HAS(error_of({{folder.write("d.jsonl", "[1, 2]\n")}}), "d.jsonl: line 1: expected an object, found an array");
}

TEST(SourceErrors, TheFirstBadLineIsNamedWhateverTheThreadsDo) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 60000; ++i) lines += "{\"text\": \"some more text for a line of this file\"}\n";
  lines.replace(51 * 20000, 1, "?");  // line 20,001 and line 50,001
  lines.replace(51 * 50000, 1, "?");
  const std::string path = folder.write("a.jsonl", lines);
  for (int i = 0; i < 5; ++i) EXPECT_HAS(error_of({{path}}), "a.jsonl: line 20001: ");
}

TEST(SourceErrors, SayWhatToDoWithOtherKindsOfFiles) {
  const ScratchFolder folder;
  EXPECT_HAS(error_of({{folder.write("a.txt.xz", "x")}}), "a.txt.xz: expected .txt or .jsonl, plain or compressed");
  EXPECT_HAS(error_of({{folder.write("a.tar.gz", "x")}}), "an archive; unpack it first");
  EXPECT_HAS(error_of({{folder.write("a.csv", "x")}}), "a table");
  EXPECT_HAS(user_error_of([] { document_rule_from("page"); }), "data.document: expected auto, file, block or line");
}

TEST(SourceErrors, SayThatAFileMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_HAS(error_of({{path}}), "a.txt: cannot open it");
}

TEST(SourceHash, ChangesWithContentRuleAndFieldButNotWithNames) {
  const ScratchFolder folder;
  const std::string a = folder.write("a.txt", "one\ntwo\n"), same = folder.write("z.txt", "one\ntwo\n");
  const std::string b = folder.write("b.txt", "one\ntwO\n");
  const auto hash = [](const SourceOptions& options) { return Source(options).content_hash(); };
  EXPECT_EQ(hash({{a}}), hash({{same}}));
  EXPECT_NE(hash({{a}}), hash({{b}}));
  EXPECT_NE(hash({{a}}), hash({{a}, "text", DocumentRule::kLine}));
  EXPECT_NE(hash({{a}}), hash({{a, b}}));
  const std::string json = folder.write("a.jsonl", "{}\n");
  EXPECT_NE(hash({{json}, "text"}), hash({{json}, "body"}));
  EXPECT_EQ(hash({{a}, "text"}), hash({{a}, "body"}));  // plain text has no fields
}

}  // namespace
}  // namespace brisk
