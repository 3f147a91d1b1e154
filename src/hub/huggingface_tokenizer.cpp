#include "hub/huggingface_tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "text/byte_alphabet.h"
#include "text/byte_bpe.h"

namespace brisk {

namespace {

using Json = nlohmann::ordered_json;

void write_gpt2_files(const std::string& folder, const ByteBpeVocabulary& vocabulary) {
  Json ids = Json::object();
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) ids[byte_alphabet_encode(vocabulary.pieces[id])] = id;
  std::string merges = "#version: 0.2\n";
  for (const Merge& merge : vocabulary.merges) {
    merges += byte_alphabet_encode(vocabulary.pieces[static_cast<size_t>(merge.left)]) + " " +
              byte_alphabet_encode(vocabulary.pieces[static_cast<size_t>(merge.right)]) + "\n";
  }
  write_file_atomically(folder + "/vocab.json", ids.dump() + "\n");
  write_file_atomically(folder + "/merges.txt", merges);
}

}  // namespace

void write_huggingface_tokenizer(const std::string& folder, const Tokenizer& tokenizer, int64_t context) {
  Json config;
  if (const auto* byte_bpe = dynamic_cast<const ByteBpe*>(&tokenizer)) {
    write_gpt2_files(folder, byte_bpe->vocabulary());
    config["tokenizer_class"] = "GPT2Tokenizer";
    config["add_prefix_space"] = false;
  } else {
    tokenizer.save(folder + "/tokenizer.json");
    config["tokenizer_class"] = "PreTrainedTokenizerFast";
  }
  config["model_max_length"] = context;
  config["clean_up_tokenization_spaces"] = false;
  if (const auto end = tokenizer.end_of_document()) {
    const Json text = tokenizer.piece(*end);
    for (const char* key : {"bos_token", "eos_token", "unk_token"}) config[key] = text;
  }
  write_file_atomically(folder + "/tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace brisk
