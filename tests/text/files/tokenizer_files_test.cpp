#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/load_and_encode.h"
#include "support/sample_text.h"
#include "support/scratch_folder.h"
#include "text/tokenizer.h"
#include "text/unicode/byte_alphabet.h"

namespace brisk {
namespace {

using test::contents_of;
using test::ScratchFolder;
using testing::encode;
using testing::load_error;

#define EXPECT_ERROR(path, ...)                                                                         \
  do {                                                                                                  \
    const std::string message = load_error(path);                                                       \
    for (const char* part : {__VA_ARGS__}) EXPECT_NE(message.find(part), std::string::npos) << message; \
  } while (false)

// GPT-2's byte order puts the printable bytes first; then " t", "he", " the" and the special token.
struct Gpt2Fixture {
  nlohmann::json vocabulary = nlohmann::json::object();
  std::string merges = "#version: 0.2\nĠ t\nh e\nĠt he\n";

  Gpt2Fixture() {
    int next_id = 0;
    const auto add = [&](const std::string& token) { vocabulary[token] = next_id++; };
    const auto is_printable = [](int byte) { return (byte > 32 && byte < 127) || (byte > 160 && byte != 173); };
    for (const bool printable : {true, false}) {
      for (int byte = 0; byte < 256; ++byte) {
        if (is_printable(byte) == printable) add(byte_alphabet_encode(std::string(1, static_cast<char>(byte))));
      }
    }
    for (const char* token : {"Ġt", "he", "Ġthe", "<|endoftext|>"}) add(token);
  }

  void write(const ScratchFolder& directory) const {
    directory.write("encoder.json", vocabulary.dump());
    directory.write("vocab.bpe", merges);
  }
};

TEST(ByteAlphabet, WritesEveryByteReadably) {
  EXPECT_EQ(byte_alphabet_encode(" cat\n"), "ĠcatĊ");
  EXPECT_EQ(byte_alphabet_encode("é"), "Ã©");
  std::string all(256, '\0');
  for (int byte = 0; byte < 256; ++byte) all[byte] = static_cast<char>(byte);
  EXPECT_EQ(byte_alphabet_decode(byte_alphabet_encode(all)), all);
  EXPECT_EQ(byte_alphabet_decode("a b"), std::nullopt);  // a bare space
  EXPECT_EQ(byte_alphabet_decode("中"), std::nullopt);
  EXPECT_EQ(byte_alphabet_decode("\xFF"), std::nullopt);
}

TEST(TokenizerFiles, SavedAndLoadedIsTheSame) {
  const ScratchFolder directory;
  const std::string text = testing::prose(5000, 1) + testing::tricky_text(5000, 2);
  const std::string_view view = text;
  const auto trained = train_bpe({&view, 1}, {.vocab_size = 1200}).tokenizer;
  trained->save(directory / "tokenizer.json");
  for (const std::string& path : {directory / "tokenizer.json", directory.path()}) {
    const auto loaded = load_tokenizer(path);
    EXPECT_EQ(loaded->fingerprint(), trained->fingerprint());
    EXPECT_EQ(loaded->vocab_size(), trained->vocab_size());
    EXPECT_EQ(loaded->end_of_document(), trained->end_of_document());
    EXPECT_EQ(encode(*loaded, text), encode(*trained, text));
  }
}

TEST(TokenizerFiles, ReadsGpt2Files) {
  const ScratchFolder directory;
  Gpt2Fixture().write(directory);
  for (const std::string& path : {directory.path(), directory / "encoder.json", directory / "vocab.bpe"}) {
    const auto tokenizer = load_tokenizer(path);
    EXPECT_EQ(tokenizer->vocab_size(), 260);
    EXPECT_EQ(tokenizer->end_of_document(), 259);
    // "!" is GPT-2's id 0 and "t" 83; the space is 220.
    EXPECT_EQ(encode(*tokenizer, "the the t!\n"), (std::vector<TokenId>{83, 257, 258, 256, 0, 198}));
    EXPECT_EQ(tokenizer->piece(258), " the");
    EXPECT_EQ(tokenizer->piece(220), " ");
  }
}

// GPT-2's own vocabulary has both words.
TEST(TokenizerFiles, ReadsGpt2FilesWithWordsThatOtherFilesHaveAsKeys) {
  const ScratchFolder directory;
  Gpt2Fixture fixture;
  for (const char* merge : {"m o", "d e", "mo de", "mode l", "f o", "r m", "a t", "fo rm", "form at"}) {
    const std::string pair = merge;
    std::string token = pair;
    token.erase(token.find(' '), 1);
    fixture.vocabulary[token] = fixture.vocabulary.size();
    fixture.merges += pair + "\n";
  }
  fixture.write(directory);
  for (const char* name : {"encoder.json", "vocab.bpe"}) {
    const auto tokenizer = load_tokenizer(directory / name);
    EXPECT_EQ(encode(*tokenizer, "modelformat"), (std::vector<TokenId>{263, 268})) << name;
  }
}

TEST(TokenizerFiles, ReadsGpt2FilesByTheirOtherNames) {
  const ScratchFolder directory;
  const Gpt2Fixture fixture;
  directory.write("vocab.json", fixture.vocabulary.dump());
  directory.write("merges.txt", fixture.merges);
  EXPECT_EQ(load_tokenizer(directory.path())->vocab_size(), 260);
  EXPECT_EQ(load_tokenizer(directory / "vocab.json")->vocab_size(), 260);
}

TEST(TokenizerFiles, KeepsTheIdsOfGpt2InItsOwnFormat) {
  const ScratchFolder directory;
  Gpt2Fixture().write(directory);
  const auto gpt2 = load_tokenizer(directory.path());
  gpt2->save(directory / "own.json");
  const auto own = load_tokenizer(directory / "own.json");
  EXPECT_EQ(own->fingerprint(), gpt2->fingerprint());
  EXPECT_EQ(encode(*own, "the the t!"), encode(*gpt2, "the the t!"));
}

TEST(TokenizerFiles, WritesGpt2FilesByTheirNames) {
  const ScratchFolder directory;
  const std::string_view text = "the cat and the hat and the cat";
  const auto trained = train_bpe({&text, 1}, {.vocab_size = 270}).tokenizer;
  save_tokenizer(*trained, directory / "vocab.json");
  EXPECT_TRUE(contents_of(directory / "merges.txt").starts_with("#version"));
  EXPECT_EQ(load_tokenizer(directory.path())->fingerprint(), trained->fingerprint());
  EXPECT_THROW(save_tokenizer(*trained, directory / "t.model"), UserError);
}

TEST(TokenizerFiles, AFolderKnowsTheEndsOfATextWhateverTheirNames) {
  const ScratchFolder directory;
  const std::string_view text = "the cat and the hat and the cat";
  const auto trained = train_bpe({&text, 1}, {.vocab_size = 270}).tokenizer;
  save_tokenizer(*trained, directory / "folder/");
  EXPECT_EQ(load_tokenizer(directory / "folder")->end_of_document(), trained->end_of_document());
  EXPECT_EQ(load_tokenizer(directory / "folder")->start_of_text(), std::nullopt);
  directory.write("folder/tokenizer_config.json", R"({"eos_token": "a", "bos_token": {"content": "b"}})");
  EXPECT_EQ(load_tokenizer(directory / "folder")->end_of_document(), 'a');
  EXPECT_EQ(load_tokenizer(directory / "folder/tokenizer.json")->start_of_text(), 'b');
}

TEST(TokenizerFiles, SaysWhatIsMissing) {
  const ScratchFolder directory;
  EXPECT_ERROR(directory / "none.json", "none.json", "no such file", "brisk tokenizer train");
  EXPECT_ERROR(directory.path(), "a directory without a tokenizer");
  Gpt2Fixture().write(directory);
  std::filesystem::remove(directory / "vocab.bpe");
  for (const std::string& path : {directory.path(), directory / "encoder.json"}) {
    EXPECT_ERROR(path, "vocab.bpe: no such file", "encoder.json");
  }
  Gpt2Fixture().write(directory);
  std::filesystem::remove(directory / "encoder.json");
  EXPECT_ERROR(directory / "vocab.bpe", "encoder.json: no such file");
}

TEST(TokenizerFiles, RefusesFilesOfAnotherKind) {
  const ScratchFolder directory;
  EXPECT_ERROR(directory.write("empty", ""), "empty: the file is empty");
  EXPECT_ERROR(directory.write("prose.txt", "Once upon a time there was a file."), "prose.txt", "not a tokenizer");
  EXPECT_ERROR(directory.write("blank", "   \n"), "blank");
  EXPECT_ERROR(directory.write("list.json", "[1, 2, 3]"), "list.json");
  EXPECT_ERROR(directory.write("job.json", R"({"training": {}})"), "job.json", "without a \"model\"");
  EXPECT_ERROR(directory.write("old.json", R"({"format": "brisk-bpe-1"})"), "old.json", "older version of brisk");
  EXPECT_ERROR(directory.write("bad.json", "{\"format\": \xFF"), "bad.json", "not valid JSON");
}

TEST(TokenizerFiles, RefusesInconsistentGpt2Vocabularies) {
  const ScratchFolder directory;
  const auto error_with = [&](const auto& damage) {
    Gpt2Fixture fixture;
    damage(fixture);
    fixture.write(directory);
    return load_error(directory.path());
  };
  EXPECT_EQ(error_with([](Gpt2Fixture&) {}), "");
  const std::vector<std::pair<std::function<void(Gpt2Fixture&)>, const char*>> damages = {
      {[](Gpt2Fixture& f) { f.vocabulary["he"] = 100000; }, "the id of \"he\" is 100000"},
      {[](Gpt2Fixture& f) { f.vocabulary["he"] = -1; }, "the id of \"he\" is -1"},
      {[](Gpt2Fixture& f) { f.vocabulary["he"] = "x"; }, "the id of \"he\" is \"x\""},
      {[](Gpt2Fixture& f) { f.vocabulary["he"] = 1.5; }, "the id of \"he\" is 1.5"},
      {[](Gpt2Fixture& f) { f.vocabulary["he"] = 256; }, "the id 256 belongs to both"},
      {[](Gpt2Fixture& f) { f.vocabulary["a b"] = f.vocabulary.size(); }, "byte alphabet"},
      {[](Gpt2Fixture& f) { f.vocabulary[""] = f.vocabulary.size(); }, "byte alphabet"},
      {[](Gpt2Fixture& f) {
         f.vocabulary = {{"a", 0}, {"b", 1}};
       },
       "no token for the byte 0x00"},
      {[](Gpt2Fixture& f) {
         f.vocabulary = {1, 2};
       },
       "encoder.json"},
      {[](Gpt2Fixture& f) { f.merges += "Ġthe n\n"; }, "line 5: the merge \"Ġthe n\" needs the token \"Ġthen\""},
      {[](Gpt2Fixture& f) { f.merges += "xx y\n"; }, "needs the token \"xx\""},
      {[](Gpt2Fixture& f) { f.merges += "h e\n"; }, "occurs twice"},
      {[](Gpt2Fixture& f) { f.merges += "h\n"; }, "expected two tokens"},
      {[](Gpt2Fixture& f) { f.merges += "h e x\n"; }, "expected two tokens"},
      {[](Gpt2Fixture& f) { f.merges = "#version: 0.2\nĠ t\nh e\n"; }, "no merge makes the token \"Ġthe\""},
      {[](Gpt2Fixture& f) { f.merges = ""; }, "no merges"},
  };
  for (const auto& [damage, expected] : damages) {
    const std::string message = error_with(damage);
    EXPECT_NE(message.find(expected), std::string::npos) << "expected " << expected << "\nfound " << message;
    EXPECT_TRUE(message.starts_with(directory.path())) << message;
  }
}

TEST(TokenizerFiles, NeverCrashesOnDamagedFiles) {
  const ScratchFolder directory;
  const std::string_view text = "the cat and the hat and the cat";
  train_bpe({&text, 1}, {.vocab_size = 270}).tokenizer->save(directory / "good.json");
  const std::string good = contents_of(directory / "good.json");
  const size_t content_end = good.find_last_of('}');
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::string damaged = good.substr(0, random() % content_end);
    EXPECT_NE(load_error(directory.write("cut.json", damaged)), "") << "cut at " << damaged.size();
    damaged = good;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random() & 0xFF);
    load_error(directory.write("changed.json", damaged));  // may still be a valid file; must not crash
  }
}

TEST(TokenizerFiles, ASaveThatFailsSaysWhereAndKeepsTheOldFile) {
  const ScratchFolder directory;
  const std::string_view text = "";
  const auto tokenizer = train_bpe({&text, 1}, {.vocab_size = 257}).tokenizer;
  const std::string message =
      test::message_of<UserError>([&] { tokenizer->save(directory / "no/such/folder/tokenizer.json"); });
  EXPECT_TRUE(test::has(message, "no/such/folder")) << message;
  tokenizer->save(directory / "tokenizer.json");
  tokenizer->save(directory / "tokenizer.json");
  const auto entries = std::filesystem::directory_iterator(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "nothing is left beside the file";
}

}  // namespace
}  // namespace brisk
