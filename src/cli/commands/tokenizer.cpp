#include "text/tokenizer.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/terminal/terminal.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "data/read/source.h"

namespace brisk {

namespace {

struct TokenizerArguments {
  std::vector<std::string> files;
  std::string output, tokenizer;
  std::string kind = "bpe";
  std::optional<int64_t> vocab_size;
  bool lowercase = false;
  bool add_special_tokens = false;
};

constexpr int64_t kBpeEntries = 10000, kWordPieceEntries = 30000, kWordBpeEntries = 50000;
constexpr const char* kOutputHelp =
    "File to write: tokenizer.json, a folder (which also gets tokenizer_config.json), vocab.json (GPT-2's two files) or "
    "vocab.txt (BERT's)";
constexpr const char* kTokenizerHelp =
    "Tokenizer to use: tokenizer.json, SentencePiece .model, Marian's .spm, GPT-2's two files, BERT's vocab.txt, "
    "llama2.c's .bin, or a folder with one of them";

void run_train(const TokenizerArguments& arguments) {
  const bool is_wordpiece = arguments.kind == "wordpiece";
  const bool is_word_bpe = arguments.kind == "word-bpe";
  const BpeKind bpe = arguments.kind == "roberta" ? BpeKind::roberta : BpeKind::gpt2;
  if (arguments.lowercase && !is_wordpiece) user_error("--lowercase applies to --kind wordpiece only; remove it");
  Source source({.paths = arguments.files, .document = DocumentRule::kFile});
  constexpr int64_t kSampleBytes = int64_t{512} << 20;  // held in memory
  const TextSample sample = source.sample(kSampleBytes);
  if (sample.texts.empty()) user_error("{}: there is no text in it; give files with text", arguments.files.front());
  if (!sample.whole) {
    say("training on a sample of {}, spread over files of {}", format_bytes(static_cast<double>(sample.bytes)),
        format_bytes(static_cast<double>(source.bytes())));
  }
  const TrainedTokenizer result =
      is_wordpiece  ? train_wordpiece(sample.texts, {.vocab_size = arguments.vocab_size.value_or(kWordPieceEntries),
                                                     .lowercase = arguments.lowercase})
      : is_word_bpe ? train_word_bpe(sample.texts, {.vocab_size = arguments.vocab_size.value_or(kWordBpeEntries)})
                    : train_bpe(sample.texts, {.vocab_size = arguments.vocab_size.value_or(kBpeEntries), .kind = bpe});
  if (result.reached < result.requested) {
    warn("--vocab-size {} is more than this text supports; the vocabulary has {} entries", result.requested,
         result.reached);
  }
  save_tokenizer(*result.tokenizer, arguments.output);
  say("{}: {} with {} entries", arguments.output,
      is_wordpiece  ? "WordPiece"
      : is_word_bpe ? "BPE over words"
                    : "byte-level BPE",
      result.tokenizer->vocab_size());
}

void run_encode(const TokenizerArguments& arguments) {
  const auto tokenizer = load_tokenizer(arguments.tokenizer);
  std::string line, out;
  std::vector<TokenId> ids;
  const auto write = [&] {
    std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
    out.clear();
  };
  while (std::getline(std::cin, line)) {
    ids.clear();
    if (arguments.add_special_tokens) {
      tokenizer->encode_with_specials(line, ids);
    } else {
      tokenizer->encode(line, ids);
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i > 0) out += ' ';
      out += fmt::format_int(ids[i]).c_str();
    }
    out += '\n';
    if (std::cin.rdbuf()->in_avail() <= 0) write();  // someone may be waiting for this line
  }
  write();
}

void run_decode(const TokenizerArguments& arguments) {
  const auto tokenizer = load_tokenizer(arguments.tokenizer);
  std::string line;
  std::vector<TokenId> ids;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    ids.clear();
    for (const char* at = line.data(); at < line.data() + line.size();) {
      if (*at == ' ' || *at == '\t' || *at == '\r') {
        ++at;
        continue;
      }
      TokenId id = 0;
      const std::string_view rest(at, static_cast<size_t>(line.data() + line.size() - at));
      const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r"));
      const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
      if (problem != std::errc() || end != word.data() + word.size() || id < 0 || id >= tokenizer->vocab_size()) {
        user_error("standard input: line {}: '{}' is not a token id; expected numbers from 0 to {} separated by spaces",
                   number, word.substr(0, 40), tokenizer->vocab_size() - 1);
      }
      ids.push_back(id);
      at = end;
    }
    const std::string text = tokenizer->decode(ids);
    std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
    std::cout.put('\n');
  }
}

void run_convert(const TokenizerArguments& arguments) {
  const auto tokenizer = load_tokenizer(arguments.tokenizer);
  save_tokenizer(*tokenizer, arguments.output);
  say("{}: {} entries, from {}", arguments.output, tokenizer->vocab_size(), arguments.tokenizer);
}

}  // namespace

void add_tokenizer_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenizer", "Train a vocabulary, encode and decode text, convert files");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  brisk tokenizer train --vocab-size 10000 --output tokenizer.json book.txt\n"
      "  echo Hello | brisk tokenizer encode --tokenizer tokenizer.json");
  auto arguments = std::make_shared<TokenizerArguments>();

  CLI::App* train = command->add_subcommand("train", "Train a vocabulary: BPE or WordPiece");
  train
      ->add_option(
          "--kind", arguments->kind,
          "Kind of tokenizer: bpe (byte-level, as GPT-2), roberta (the same with RoBERTa's special tokens), word-bpe (over "
          "the characters of words, without spaces) or wordpiece (as BERT)")
      ->capture_default_str()
      ->check(CLI::IsMember({"bpe", "roberta", "word-bpe", "wordpiece"}));
  train
      ->add_option(
          "--vocab-size", arguments->vocab_size,
          fmt::format(
              "Size of the vocabulary, including special tokens (default: {} for bpe and roberta, {} for word-bpe, {} for "
              "wordpiece)",
              kBpeEntries, kWordBpeEntries, kWordPieceEntries))
      ->check(between(257, 1 << 24));
  train->add_flag("--lowercase", arguments->lowercase, "Lowercase text and strip accents (wordpiece only)");
  train->add_option("--output", arguments->output, kOutputHelp)->required();
  train->add_option("files", arguments->files, "Text to train on: files, folders or globs")->required();
  train->footer(
      "Examples:\n"
      "  brisk tokenizer train --vocab-size 10000 --output tokenizer.json book.txt\n"
      "  brisk tokenizer train --kind wordpiece --lowercase --output bert/ reviews.jsonl");
  train->callback([arguments] { run_train(*arguments); });

  const auto add_coder = [&](const char* name, const char* help, const char* example,
                             void (*run)(const TokenizerArguments&)) {
    CLI::App* coder = command->add_subcommand(name, help);
    coder->add_option("--tokenizer", arguments->tokenizer, kTokenizerHelp)->required();
    coder->footer(example);
    coder->callback([arguments, run] { run(*arguments); });
    return coder;
  };
  CLI::App* encode =
      add_coder("encode", "Convert lines of text on standard input to lines of token ids",
                "Example:\n  echo Hello | brisk tokenizer encode --tokenizer tokenizer.json", run_encode);
  encode->add_flag("--add-special-tokens", arguments->add_special_tokens,
                   "Add the special tokens that the tokenizer defines around each line (<s>, [CLS], ...)");
  add_coder("decode", "Convert lines of token ids on standard input to lines of text",
            "Example:\n  echo 72 101 | brisk tokenizer decode --tokenizer tokenizer.json", run_decode);
  CLI::App* convert =
      add_coder("convert", "Convert a tokenizer from any format that brisk reads to one that it writes",
                "Example:\n  brisk tokenizer convert --tokenizer tokenizer.model --output tokenizer.json", run_convert);
  convert->add_option("--output", arguments->output, kOutputHelp)->required();
}

}  // namespace brisk
