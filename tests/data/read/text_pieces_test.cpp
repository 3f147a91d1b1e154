#include "data/read/text_pieces.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/read/source_files.h"
#include "support/byte_tokenizer.h"
#include "support/packed_text.h"
#include "text/pipeline/words.h"

namespace brisk {
namespace {

using Texts = std::vector<std::string>;

// Documents, their parts joined again; checks that pieces follow each other.
Texts read_documents(const Source& source, size_t* parts = nullptr) {
  TextPieceReader reader(source, {}, cut_between_words);
  Texts texts;
  TextPiece piece;
  SourcePosition expected;
  bool open = false;
  while (reader.next(piece)) {
    if (piece.begin.file != expected.file) expected = {piece.begin.file, 0, 1};
    EXPECT_EQ(piece.begin.offset, expected.offset);
    EXPECT_EQ(piece.begin.line, expected.line);
    expected = piece.end;
    EXPECT_EQ(piece.opens, !open);
    open = !piece.closes;
    if (parts != nullptr && !(piece.opens && piece.closes)) ++*parts;
    for_each_document(source, piece,
                      [&](std::string_view text) { piece.opens ? texts.emplace_back(text) : texts.back() += text; });
  }
  EXPECT_FALSE(open);
  return texts;
}

Texts whole_documents(std::string text, DocumentRule rule) {
  make_line_ends_plain(text);
  std::vector<std::string_view> views;
  append_text_documents(text, rule, views);
  return {views.begin(), views.end()};
}

// Words, lines and blank lines of very different sizes.
std::string rough_text(uint64_t seed, size_t size) {
  std::string text = "\n \n";
  for (uint64_t i = 0; text.size() < size; ++i) {
    const uint64_t draw = mix64(seed ^ mix64(i));
    text += fmt::format("w{}", draw % 1000);
    if (draw % 7 == 0) text += "\n";
    if (draw % 700 == 0) text += "\n \r\n";
    if (draw % 11 == 0) text += "  ";
    if (draw % 7 != 0) text += " ";
    if (draw % 20011 == 0) text += std::string(700000, 'x') + " " + std::string(300000, 'y');  // long without a break
  }
  return text + "end \n\n  \n";
}

TEST(TextPieces, GiveTheDocumentsOfTheWholeFileWhateverTheRule) {
  const ScratchFolder folder;
  for (const uint64_t seed : {1, 2, 3}) {
    const std::string text = rough_text(seed, 4 << 20);
    const std::string path = folder.write(fmt::format("{}.txt", seed), text);
    const std::string packed = folder.write(fmt::format("{}.txt.gz", seed), gzipped(text, 1));
    for (const DocumentRule rule : {DocumentRule::kFile, DocumentRule::kBlock, DocumentRule::kLine}) {
      EXPECT_TRUE(read_documents(Source({{path}, "text", rule})) == whole_documents(text, rule))
          << seed << name_of(rule);
      EXPECT_TRUE(read_documents(Source({{packed}, "text", rule})) == whole_documents(text, rule)) << seed;
    }
  }
}

TEST(TextPieces, LongDocumentsOfEveryKindComeInParts) {
  const ScratchFolder folder;
  std::string line;
  for (int i = 0; line.size() < (3u << 20); ++i) line += fmt::format("word{} ", i);
  std::string lines = line;
  for (size_t i = 60; i < lines.size(); i += 61) lines[i] = '\n';
  const std::string text = "short\n\n" + line + "\n\nlast\n";
  for (const auto& [rule, contents] : {std::pair{DocumentRule::kLine, text}, std::pair{DocumentRule::kBlock, text},
                                       std::pair{DocumentRule::kBlock, "a\n\n" + lines + "\n\nb"},
                                       std::pair{DocumentRule::kFile, lines + "\n\n \n"}}) {
    size_t parts = 0;
    const Source source({{folder.write("a.txt", contents)}, "text", rule});
    EXPECT_TRUE(read_documents(source, &parts) == whole_documents(contents, rule)) << name_of(rule);
    EXPECT_GT(parts, 3u);
  }
}

TEST(TextPieces, ALineOfJsonIsNeverCut) {
  const ScratchFolder folder;
  const std::string lines = "{\"text\": \"a\"}\n{\"text\": \"" + std::string(5 << 20, 'x') + "\"}\n{\"text\": \"b\"}";
  const Texts texts = read_documents(Source({{folder.write("a.jsonl", lines)}, "text", DocumentRule::kFile}));
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[1].size(), 5u << 20);
  EXPECT_EQ(texts[2], "b");
}

TEST(TextPieces, ALineOfJsonWithoutAnEndIsRefusedBeforeItFillsTheMemory) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"");
  std::filesystem::resize_file(path, int64_t{300} << 20);  // zeros, which take no room on the disk
  const Source source({{path}, "text", DocumentRule::kLine});
  TextPieceReader reader(source, {}, cut_between_words);
  TextPiece piece;
  ASSERT_TRUE(reader.next(piece));
  const std::string message = user_error_of([&] { reader.next(piece); });
  EXPECT_HAS(message, "a.jsonl: line 2: a document larger than 64");
}

TEST(TextPieces, MayBeReadFromTheEndOfAnyOfThem) {
  const ScratchFolder folder;
  const std::string text = rough_text(5, 4 << 20);
  const Source source(
      {{folder.write("a.txt", text), folder.write("b.txt.gz", gzipped(text, 1))}, "text", DocumentRule::kBlock});
  TextPieceReader reader(source, {}, cut_between_words);
  std::vector<TextPiece> pieces;
  for (TextPiece piece; reader.next(piece); piece = {}) pieces.push_back(piece);
  ASSERT_GT(pieces.size(), 8u);
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (!pieces[i].closes) continue;
    TextPieceReader again(source, pieces[i].end, cut_between_words);
    TextPiece next;
    ASSERT_TRUE(again.next(next));
    EXPECT_TRUE(next.text == pieces[i + 1].text) << i;
    EXPECT_EQ(next.begin.line, pieces[i + 1].begin.line);
  }
}

TEST(Sample, OfALargeFileIsSpreadOverItAndNoMoreThanAsked) {
  const ScratchFolder folder;
  std::string text;
  size_t count = 0;
  while (text.size() < (20u << 20)) text += fmt::format("line number {} of the file\n", count++);
  Source source({{folder.write("a.txt", text)}, "text", DocumentRule::kLine});
  const TextSample sample = source.sample(4 << 20);
  EXPECT_FALSE(sample.whole);
  EXPECT_LE(sample.bytes, (4 << 20) + 1000);
  EXPECT_GT(sample.bytes, 3 << 20);
  std::array<int, 4> quarters{};
  for (const std::string_view line : sample.texts) {
    ASSERT_TRUE(line.starts_with("line number ")) << line;
    ++quarters[std::stoul(std::string(line.substr(12))) * 4 / count];
  }
  for (const int quarter : quarters) EXPECT_GT(quarter, 10);
}

TEST(Sample, NamesTheRightLineOfWhatIsWrong) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 400000; ++i) text += "{\"text\": \"some more text for a line\"}\n";
  text.replace(text.size() / 2 / 38 * 38 + 38 * 100, 1, "?");
  const int64_t line = static_cast<int64_t>(text.size() / 2 / 38 + 101);
  Source source({{folder.write("a.jsonl", text)}});
  EXPECT_HAS(user_error_of([&] { source.sample(4 << 20); }), fmt::format("a.jsonl: line {}: ", line));
}

TEST(Sample, OfVeryManySmallFilesTakesSomeOfThem) {
  const ScratchFolder folder;
  for (int i = 0; i < 200; ++i) folder.write(fmt::format("in/{}.txt", i), std::string(10000, 'a') + "\n");
  Source source({{folder / "in"}});
  const TextSample sample = source.sample(500000);
  EXPECT_FALSE(sample.whole);
  EXPECT_GT(sample.texts.size(), 3u);
  EXPECT_LT(sample.bytes, 600000);
}

TEST(MixedFolder, ReadsWhatIsTextAndCountsTheRest) {
  const ScratchFolder folder;
  folder.write("in/a.txt", "one\n");
  folder.write("in/b.jsonl", "{\"text\": \"two\"}\n");
  folder.write("in/c.txt.gz", gzipped("three\n"));
  folder.write("in/d.json.gz", gzipped("{\"text\": \"four\"}\n"));
  folder.write("in/deep/e.ndjson", "{\"text\": \"five\"}\n");
  for (const char* name : {"in/x.png", "in/deep/y.png", "in/z.csv", "in/w.tar.gz", "in/README"})
    folder.write(name, "?");
  Source source({{folder / "in"}, "text", DocumentRule::kLine});
  EXPECT_EQ(read_documents(source), (Texts{"one", "two", "three", "four", "five"}));
  const std::string notes = fmt::format("{}", fmt::join(source.notes(), "\n"));
  EXPECT_HAS(notes, "5 files were skipped, not text by their names: 1 .csv, 2 .png, 1 .tar.gz, 1 no extension");
}

}  // namespace
}  // namespace brisk
