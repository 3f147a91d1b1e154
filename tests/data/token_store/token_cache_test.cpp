#include "data/token_store/token_cache.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>

#include "base/runtime.h"
#include "data/token_store/content_hash.h"
#include "data/token_store/file_memo.h"
#include "data/token_store/text_hash.h"
#include "data/token_store/token_file.h"
#include "support/byte_tokenizer.h"
#include "support/packed_text.h"
#include "support/sanitized.h"

namespace brisk {
namespace {

std::string text_of(const TokenStream& stream, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens(static_cast<size_t>(stream.tokens()));
  stream.copy(0, stream.tokens(), tokens.data());
  return tokenizer.decode(tokens);
}

// Of each document, and where the last one ends.
std::vector<int64_t> starts_of(const TokenStream& stream) {
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < stream.documents(); ++i) starts.push_back(stream.document_rows(i).begin);
  starts.push_back(stream.rows());
  return starts;
}

TokenCache open(const std::string& path, const ScratchFolder& folder, const Tokenizer& tokenizer,
                DocumentRule rule = DocumentRule::kLine) {
  Source source({{path}, "text", rule});
  return open_token_cache(source, tokenizer, folder / "cache");
}

// Counts the texts it is given.
class CountingTokenizer : public ByteTokenizer {
 public:
  using ByteTokenizer::ByteTokenizer;
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    ++texts;
    ByteTokenizer::encode(text, out);
  }
  mutable std::atomic<int> texts{0};
};

// Writes a space before every text, as SentencePiece does: a document may not be cut.
class PrefixTokenizer : public ByteTokenizer {
 public:
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    out.push_back(' ');
    ByteTokenizer::encode(text, out);
  }
};

// Calls back while a text is tokenized, once.
class InterruptingTokenizer : public ByteTokenizer {
 public:
  explicit InterruptingTokenizer(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  void encode(std::string_view text, std::vector<TokenId>& out) const override {
    std::call_once(once_, meanwhile_);
    ByteTokenizer::encode(text, out);
  }

 private:
  std::function<void()> meanwhile_;
  mutable std::once_flag once_;
};

TEST(TokenStream, OpensEachDocumentWithItsEndTokenAndClosesWithOne) {
  const auto stream = TokenStream::from_documents({{1, 2}, {3}}, 0);
  std::vector<int32_t> tokens(6);
  stream->copy(0, 6, tokens.data());
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 1, 2, 0, 3, 0}));
  EXPECT_EQ(starts_of(*stream), (std::vector<int64_t>{0, 3, 5}));
  EXPECT_EQ(stream->rows(), 5);
  EXPECT_EQ(stream->documents(), 2);
  EXPECT_EQ(stream->document_rows(1).size(), 2);
  EXPECT_THROW(stream->copy(4, 3, tokens.data()), InternalError);
}

TEST(TokenCache, HoldsTheStreamOfTheDocuments) {
  const ScratchFolder folder;
  const ByteTokenizer tokenizer;
  const TokenCache cache = open(folder.write("a.txt", "ab\nc\n"), folder, tokenizer);
  EXPECT_EQ(text_of(*cache.stream, tokenizer), "|ab|c|");
  EXPECT_EQ(starts_of(*cache.stream), (std::vector<int64_t>{0, 3, 5}));
  EXPECT_EQ(cache.stream->token(3), 256);
  EXPECT_FALSE(cache.reused);
}

std::string with_windows_lines(const std::string& text) {
  std::string windows;
  for (const char letter : text) windows += letter == '\n' ? std::string("\r\n") : std::string(1, letter);
  return windows;
}

TEST(TokenCache, TokensAreTheSameWhateverEndsALine) {
  const ScratchFolder folder;
  const ByteTokenizer tokenizer;
  std::string text = "one\ntwo\n\n three\n";
  for (int i = 0; text.size() < (size_t{3} << 20); ++i) text += fmt::format("word{}{}", i, i % 9 == 0 ? "\n" : " ");
  for (const DocumentRule rule : {DocumentRule::kFile, DocumentRule::kBlock, DocumentRule::kLine}) {
    const TokenCache lf = open(folder.write("lf.txt", text), folder, tokenizer, rule);
    const TokenCache crlf = open(folder.write("crlf.txt", with_windows_lines(text)), folder, tokenizer, rule);
    EXPECT_TRUE(text_of(*crlf.stream, tokenizer) == text_of(*lf.stream, tokenizer)) << name_of(rule);
    EXPECT_EQ(crlf.stream->document_hash(0), lf.stream->document_hash(0)) << name_of(rule);
  }
  const TokenCache lone = open(folder.write("lone.txt", "a\rb\r\r\nc"), folder, tokenizer, DocumentRule::kFile);
  EXPECT_EQ(text_of(*lone.stream, tokenizer), "|a\rb\r\nc|") << "only the CR of a line end goes";
}

TEST(TokenCache, OfTextWithWindowsLinesIsNotTheOneThatAnEarlierBriskMade) {
  // The key of a text with LF alone is still that of its bytes.
  const ScratchFolder folder;
  const std::string lf = folder.write("lf.txt", "a\nb\n"), crlf = folder.write("crlf.txt", "a\r\nb\r\n");
  EXPECT_EQ(text_content_hash(lf, ""), file_content_hash(lf, ""));
  EXPECT_NE(text_content_hash(crlf, ""), file_content_hash(crlf, ""));
  const std::string packed = folder.write("lf.txt.gz", gzipped("a\nb\n"));
  EXPECT_NE(text_content_hash(packed, ""), file_content_hash(packed, "")) << "it is not looked into";
}

TEST(TokenCache, IsWrittenOnceAndThenReusedWithoutReadingTheDocuments) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "ab\n\nc\n");
  const CountingTokenizer tokenizer;
  const TokenCache first = open(path, folder, tokenizer, DocumentRule::kAuto);
  const int texts = tokenizer.texts;
  EXPECT_GT(texts, 0);
  const TokenCache second = open(path, folder, tokenizer, DocumentRule::kAuto);
  EXPECT_TRUE(second.reused);
  EXPECT_EQ(tokenizer.texts, texts);
  EXPECT_EQ(second.path, first.path);
  EXPECT_EQ(second.notes, first.notes);  // the choice of `auto` is told every time
  ASSERT_EQ(second.notes.size(), 1u);
  EXPECT_HAS(second.notes[0], "a document is a block");
  EXPECT_EQ(text_of(*second.stream, tokenizer), "|ab|c|");
}

TEST(TokenCache, IsMadeAnewForOtherContentRuleOrTokenizer) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "ab\nc\n");
  const ByteTokenizer tokenizer;
  const std::string first = open(path, folder, tokenizer).path;
  const TokenCache other_rule = open(path, folder, tokenizer, DocumentRule::kFile);
  EXPECT_FALSE(other_rule.reused);
  EXPECT_EQ(text_of(*other_rule.stream, tokenizer), "|ab\nc|");
  EXPECT_FALSE(open(path, folder, ByteTokenizer(2)).reused);
  folder.write("a.txt", "ab\nd\n");
  const TokenCache changed = open(path, folder, tokenizer);
  EXPECT_FALSE(changed.reused);
  EXPECT_EQ(text_of(*changed.stream, tokenizer), "|ab|d|");
  folder.write("a.txt", "ab\nc\n");
  const TokenCache back = open(path, folder, tokenizer);
  EXPECT_TRUE(back.reused);
  EXPECT_EQ(back.path, first);
}

TEST(TokenCache, TakesTwoBytesATokenWhereTheVocabularyFitsAndFourOtherwise) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", std::string(1000, 'x') + "\n");
  const ByteTokenizer small(1, 65536), large(2, 65537);
  const TokenCache narrow = open(path, folder, small), wide = open(path, folder, large);
  EXPECT_EQ(narrow.stream->token(0), 65535);
  EXPECT_EQ(wide.stream->token(0), 65536);
  EXPECT_EQ(wide.stream->token(1), 'x');
  const auto size = [](const TokenCache& cache) {
    return static_cast<int64_t>(std::filesystem::file_size(cache.path));
  };
  EXPECT_NEAR(static_cast<double>(size(wide) - size(narrow)), 2 * 1002, 8);
}

TEST(TokenCache, FallsBackToTheStartTokenWhereThereIsNoEndOfDocument) {
  class StartTokenizer : public ByteTokenizer {
   public:
    std::optional<TokenId> end_of_document() const override { return std::nullopt; }
    std::optional<TokenId> start_of_text() const override { return 7; }
  };
  const ScratchFolder folder;
  const TokenCache cache = open(folder.write("a.txt", "ab\n"), folder, StartTokenizer());
  EXPECT_EQ(cache.stream->token(0), 7);
  EXPECT_EQ(cache.stream->token(3), 7);
}

TEST(TokenCache, ThatIsDamagedAnywhereIsMadeAgainWithANote) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "some text\nand more of it\n");
  const ByteTokenizer tokenizer;
  const std::string cache_path = open(path, folder, tokenizer).path;
  std::ifstream file(cache_path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  file.close();
  ASSERT_TRUE(open(path, folder, tokenizer).reused);
  const auto expect_rebuilt = [&](const std::string& damaged, const std::string& what) {
    std::ofstream(cache_path, std::ios::binary | std::ios::trunc) << damaged;
    const TokenCache cache = open(path, folder, tokenizer);
    EXPECT_FALSE(cache.reused) << what;
    ASSERT_FALSE(cache.notes.empty()) << what;
    EXPECT_HAS(cache.notes[0], "made again");
    EXPECT_EQ(text_of(*cache.stream, tokenizer), "|some text|and more of it|") << what;
  };
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    expect_rebuilt(damaged, fmt::format("byte {} changed", byte));
  }
  for (const size_t size : {size_t{0}, size_t{10}, whole.size() / 2, whole.size() - 1}) {
    expect_rebuilt(whole.substr(0, size), fmt::format("cut to {} bytes", size));
  }
  expect_rebuilt(whole + "x", "a byte more");
  ASSERT_TRUE(open(path, folder, tokenizer).reused);
}

TEST(TokenCache, LeavesNothingBesideTheFile) {
  const ScratchFolder folder;
  open(folder.write("a.txt", "ab\n"), folder, ByteTokenizer());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
    EXPECT_EQ(entry.path().extension(), ".tokens");
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(TokenCache, SaysWhichFolderItCannotWrite) {
  const ScratchFolder folder;
  const std::string blocked = folder.write("file", "x") + "/cache";
  Source source({{folder.write("a.txt", "ab\n")}});
  const std::string message = user_error_of([&] { open_token_cache(source, ByteTokenizer(), blocked); });
  EXPECT_HAS(message, blocked);
  EXPECT_HAS(message, "data.cache_dir");
}

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < (1u << 20); ++i) text += fmt::format("Line {} of it, caf\xC3\xA9  and so on.\n", i);
  return text.substr(0, text.size() - 1);
}

TEST(TokenCache, CutsALongDocumentAmongTheCoresWithoutATrace) {
  const ScratchFolder folder;
  const std::string text = long_text();
  const std::vector<std::string_view> texts = {text};
  const auto trained = train_bpe(texts, {.vocab_size = 400});
  std::vector<TokenId> expected;
  expected.push_back(*trained.tokenizer->end_of_document());
  trained.tokenizer->encode(text, expected);
  expected.push_back(*trained.tokenizer->end_of_document());
  const TokenCache cache = open(folder.write("a.txt", text), folder, *trained.tokenizer, DocumentRule::kFile);
  std::vector<TokenId> found(static_cast<size_t>(cache.stream->tokens()));
  cache.stream->copy(0, cache.stream->tokens(), found.data());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(cache.stream->documents(), 1);

  const CountingTokenizer counting;
  open(folder / "a.txt", folder, counting, DocumentRule::kFile);
  EXPECT_GT(counting.texts, 4);  // it was cut
}

TEST(TokenCache, NeverCutsWhereTheTokenizerWouldGiveOtherTokens) {
  const ScratchFolder folder;
  const std::string text = long_text();
  const PrefixTokenizer tokenizer;
  const TokenCache cache = open(folder.write("a.txt", text), folder, tokenizer, DocumentRule::kFile);
  EXPECT_EQ(text_of(*cache.stream, tokenizer), "| " + text + "|");
}

TEST(TokenCache, IsTheSameWhateverTheNumberOfThreads) {
  const ScratchFolder folder;
  std::string text = long_text() + "\n\n";
  for (int i = 0; i < 10000; ++i) text += fmt::format("short document {}\n\n", i);
  const std::string path = folder.write("a.txt", text);
  const ByteTokenizer tokenizer;
  const int threads = thread_pool().size();
  std::vector<std::string> contents;
  for (const int count : {1, 2, 3}) {
    Runtime::current().set_threads(count);
    const TokenCache cache = open(path, folder, tokenizer, DocumentRule::kBlock);
    EXPECT_FALSE(cache.reused);
    EXPECT_EQ(cache.stream->documents(), 10001);
    std::ifstream file(cache.path, std::ios::binary);
    contents.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::filesystem::remove(cache.path);
  }
  Runtime::current().set_threads(threads);
  EXPECT_EQ(contents[1], contents[0]);
  EXPECT_EQ(contents[2], contents[0]);
}

struct Killed {};

// Builds until `bytes` are done, then goes as a killed process does: nothing is cleaned up.
void build_and_die(const std::string& path, const ScratchFolder& folder, const Tokenizer& tokenizer, int64_t bytes,
                   DocumentRule rule) {
  Source source({{path}, "text", rule});
  const auto progress = [&](int64_t done, int64_t) {
    if (done >= bytes) throw Killed();
  };
  EXPECT_THROW(open_token_cache(source, tokenizer, folder / "cache", progress, 0), Killed);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TokenCacheResumed, IsTheFileThatOneProcessMakes) {
  const int threads = thread_pool().size();
  Runtime::current().set_threads(2);  // 4 MiB are tokenized at a time: with many more threads, all of a text
  std::string text;
  for (int i = 0; text.size() < (6u << 20); ++i) text += fmt::format("Line {} of many.\n{}", i, i % 9 == 0 ? "\n" : "");
  std::string lines;
  for (int i = 0; lines.size() < (6u << 20); ++i) lines += fmt::format("{{\"text\": \"Line {} of many.\"}}\n", i);
  for (const auto& [name, contents] : {std::pair{"a.txt", text}, std::pair{"a.txt.gz", gzipped(text, 1)},
                                       std::pair{"a.jsonl", lines}, std::pair{"a.jsonl.gz", gzipped(lines, 1)}}) {
    if (testing::kSanitized && name != std::string_view("a.txt") && name != std::string_view("a.jsonl.gz")) continue;
    const ScratchFolder folder, other;
    const std::string path = folder.write(name, contents);
    const CountingTokenizer tokenizer;
    const TokenCache whole = open(path, other, tokenizer, DocumentRule::kBlock);
    const int texts = tokenizer.texts.exchange(0);
    build_and_die(path, folder, tokenizer, std::ssize(contents) / 2, DocumentRule::kBlock);
    tokenizer.texts = 0;
    const TokenCache cache = open(path, folder, tokenizer, DocumentRule::kBlock);
    EXPECT_FALSE(cache.reused);
    EXPECT_TRUE(cache.resumed) << name;
    EXPECT_LT(tokenizer.texts, 0.9 * texts) << name;  // the first half was not done again
    EXPECT_GT(tokenizer.texts, 0) << name;
    EXPECT_TRUE(bytes_of(cache.path) == bytes_of(whole.path)) << name;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "cache"), {}), 1) << name;
  }
  Runtime::current().set_threads(threads);
}

TEST(TokenCacheResumed, StartsAnewWhereWhatIsThereIsDamaged) {
  std::string text;
  for (int i = 0; text.size() < (6u << 20); ++i) text += fmt::format("Line {} of many.\n", i);
  const ByteTokenizer tokenizer;
  const ScratchFolder other;
  const std::string whole = bytes_of(open(other.write("a.txt", text), other, tokenizer).path);
  for (const char* part : {".building", ".building-documents", ".building-journal"}) {
    const ScratchFolder folder;
    const std::string path = folder.write("a.txt", text);
    build_and_die(path, folder, tokenizer, 5 << 20, DocumentRule::kLine);
    int changed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
      if (!entry.path().string().ends_with(part)) continue;
      std::string bytes = bytes_of(entry.path());
      bytes[bytes.size() / 4] = static_cast<char>(bytes[bytes.size() / 4] ^ 1);
      std::ofstream(entry.path(), std::ios::binary) << bytes;
      ++changed;
    }
    ASSERT_EQ(changed, 1) << part;
    const TokenCache cache = open(path, folder, tokenizer);
    EXPECT_FALSE(cache.resumed) << part;
    EXPECT_TRUE(bytes_of(cache.path) == whole) << part;
  }
}

TEST(TokenCache, WhatKilledProcessesLeftAWeekAgoIsRemoved) {
  const ScratchFolder folder;
  const ByteTokenizer tokenizer;
  std::filesystem::create_directories(folder / "cache");
  const auto leave = [&](const std::string& name, int days) {
    const std::string path = folder / ("cache/" + name);
    std::ofstream(path) << "half";
    std::filesystem::last_write_time(path,
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * days));
    return path;
  };
  const std::string vocabulary = leave("bpe-ee83c16e5aa33b65-320.json.partial-12-7ffcd0", 8);
  const std::string tokens = leave("0123456789abcdef.tokens.building", 8);
  const std::string recent = leave("bpe-ee83c16e5aa33b65-320.json.partial-13-7ffcd0", 6);
  const std::string strange = leave("notes.partial-list", 8);
  open(folder.write("a.txt", "a text"), folder, tokenizer);
  EXPECT_FALSE(std::filesystem::exists(vocabulary) || std::filesystem::exists(tokens));
  EXPECT_TRUE(std::filesystem::exists(recent) && std::filesystem::exists(strange));
}

TEST(TokenCache, OfATextThatChangesMeanwhileIsNotKept) {
  std::string text;
  for (int i = 0; text.size() < (size_t{5} << 20); ++i)
    text += fmt::format("Line {} of the many lines that there are.\n", i);
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", text);
  const auto cut = [&] { std::filesystem::resize_file(path, 100000); };
  const auto cut_and_restore = [&] {
    cut();
    folder.write("a.txt", text);
  };
  const auto replace = [&] {
    folder.write("b.txt", text);
    std::filesystem::rename(folder / "b.txt", path);
  };
  for (const std::function<void()>& meanwhile :
       {std::function<void()>(cut), std::function<void()>(cut_and_restore), std::function<void()>(replace)}) {
    folder.write("a.txt", text);
    EXPECT_HAS(user_error_of([&] { open(path, folder, InterruptingTokenizer(meanwhile)); }), "changed while it was");
    EXPECT_TRUE(std::filesystem::is_empty(folder / "cache"));
  }
  folder.write("a.txt", text);
  EXPECT_FALSE(open(path, folder, ByteTokenizer()).reused);
}

TEST(TokenCacheResumed, StartsAnewWhereTheFileIsNotTheOneThatWasRead) {
  std::string text;
  for (int i = 0; text.size() < (6u << 20); ++i) text += fmt::format("Line {} of the many lines that there are.\n", i);
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", text);
  build_and_die(path, folder, ByteTokenizer(), 5 << 20, DocumentRule::kLine);
  folder.write("a.txt", text);  // whatever it was in between
  EXPECT_FALSE(open(path, folder, ByteTokenizer()).resumed);
}

TEST(TokenCache, CutWhileItIsUsedIsAnErrorThatNamesIt) {
  const ScratchFolder folder;
  const TokenCache cache = open(folder.write("a.txt", "some text\n"), folder, ByteTokenizer());
  std::filesystem::resize_file(cache.path, 20);
  const std::string message = user_error_of([&] { cache.stream->token(3); });
  EXPECT_HAS(message, cache.path);
  EXPECT_HAS(message, "cut it short");
}

TEST(TokenCache, LeavesNothingUnfinishedWhereTheDataIsBad) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; text.size() < (12u << 20); ++i) text += fmt::format("Line {} of many.\n", i);
  Source source({{folder.write("a.txt", text + "caf\xE9\n")}, "text", DocumentRule::kLine});
  EXPECT_HAS(user_error_of([&] { open_token_cache(source, ByteTokenizer(), folder / "cache", {}, 0); }), "not UTF-8");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "cache"));
}

TEST(TokenCache, KnowsADocumentByItsTextHoweverLongAndWhereverItLies) {
  const ScratchFolder folder;
  std::string text = long_text() + long_text() + long_text();  // is read in parts
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string path = folder.write("a.txt", "short\n" + text + "\nanother\n" + text + "\nshort\n");
  const TokenCache cache = open(path, folder, ByteTokenizer());
  ASSERT_EQ(cache.stream->documents(), 5);
  EXPECT_EQ(cache.stream->document_hash(1), cache.stream->document_hash(3));
  EXPECT_EQ(cache.stream->document_hash(0), cache.stream->document_hash(4));
  EXPECT_NE(cache.stream->document_hash(0), cache.stream->document_hash(2));
  EXPECT_EQ(cache.stream->document_hash(0), text_hash("short"));
}

TEST(TextHash, DoesNotDependOnHowATextIsCut) {
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  for (size_t a = 0; a <= text.size(); ++a) {
    for (size_t b = a; b <= text.size(); ++b) {
      TextHash hash;
      hash.add(text.substr(0, a));
      hash.add(text.substr(a, b - a));
      hash.add(text.substr(b));
      ASSERT_EQ(hash.value(), text_hash(text));
    }
  }
  EXPECT_NE(text_hash(""), text_hash(std::string(1, '\0')));
  EXPECT_NE(text_hash(std::string(7, '\0')), text_hash(std::string(8, '\0')));
}

TEST(TokenStream, JoinsStreamsAndKeepsTheirRowsApart) {
  const auto joined = TokenStream::join(
      {TokenStream::from_documents({{1, 2}, {3}}, 0), TokenStream::from_documents({{4}}, 0)});  // 0 1 2 0 3 0 | 0 4 0
  EXPECT_EQ(joined->tokens(), 9);
  EXPECT_EQ(joined->rows(), 7);
  EXPECT_EQ(joined->documents(), 3);
  EXPECT_EQ(joined->parts(), 2);
  EXPECT_EQ(joined->part_documents(0), 2);
  EXPECT_EQ(joined->document_rows(1).end, 5);
  EXPECT_EQ(joined->document_rows(2).begin, 6);
  EXPECT_EQ(joined->document_rows(2).end, 8);
  EXPECT_EQ(joined->token(7), 4);
  std::vector<int32_t> tokens(4);
  EXPECT_THROW(joined->copy(4, 4, tokens.data()), InternalError);  // would reach into the next source
}

TEST(FileMemo, IsKeptForLargeSettledFilesUntilTheyChange) {
  const ScratchFolder folder;
  const std::string path = folder.write("a.txt", "some text");
  remember_about(folder.path(), path, "content", 7, 1);
  EXPECT_FALSE(recall_about(folder.path(), path, "content"));  // changed just now
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  remember_about(folder.path(), path, "content", 7);
  EXPECT_FALSE(recall_about(folder.path(), path, "content"));  // small
  remember_about(folder.path(), path, "content", 7, 1);
  EXPECT_EQ(recall_about(folder.path(), path, "content"), 7u);
  EXPECT_FALSE(recall_about(folder.path(), path, "whole"));
  folder.write("a.txt", "other text");
  EXPECT_FALSE(recall_about(folder.path(), path, "content"));
}

}  // namespace
}  // namespace brisk
