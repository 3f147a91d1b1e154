// The format of token files: writing them, with resuming, and opening them.
//
//   TokenFileWriter writer(path, key, vocab_size, source.unchanged().fingerprint());
//   writer.begin_document(eod);  writer.append(ids);  writer.end_document(hash);  ...
//   writer.save_progress(place);             // now and then: a killed process loses only what came after
//   writer.commit(eod, description);
//
//   std::string problem;
//   std::shared_ptr<const TokenStream> stream = open_token_file(path, key, vocab_size, problem);  // null: see problem
//
// Layout, little-endian:   "brisktok" version  |  tokens (2 or 4 bytes each)  |  starts (8 bytes each)  |  hashes of
// the documents (8 bytes each)  |  description  |  footer.   The footer comes last, so that the tokens can be written
// as they are made and a file cut short has none. It holds the sizes, the key, a checksum of everything before it and
// one of itself.
//
// While it is made the file is called .building, with the documents' table next to it and a journal that says how far
// both are whole. Memory does not grow with the corpus.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/append_file.h"
#include "data/token_store/token_stream.h"

namespace brisk {

inline constexpr uint32_t kTokenFileVersion = 3;

class TokenFileWriter {
 public:
  // Continues what a killed process left if its journal and the files agree and it read the same `source_state`
  // (UnchangedFiles::fingerprint); otherwise starts from the beginning.
  TokenFileWriter(const std::string& path, uint64_t key, int64_t vocab_size, uint64_t source_state);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  // The place that save_progress() was last called with; empty from the beginning.
  const std::string& resumed_at() const { return resumed_at_; }
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

  void begin_document(int32_t end_of_document);
  void append(std::span<const int32_t> tokens);
  void end_document(uint64_t hash);

  void save_progress(const std::string& place);                          // between documents
  void commit(int32_t end_of_document, const std::string& description);  // UserError if it fails

  // Removes the partial file, which otherwise stays for the next process.
  void discard();

  // The names of an unfinished file and its companions, for cleaning up.
  static std::vector<std::string> unfinished_names(const std::string& path);

 private:
  struct DocumentEntry {
    int64_t start;
    uint64_t hash;
  };

  void start_anew();
  bool resume();
  void put(const void* data, size_t size);  // through the buffer, so that checksums are of whole pieces
  void write_buffer();                      // what of it is not in the file yet
  void write_documents();
  void put_documents(bool starts);  // or the hashes

  std::string path_;
  AppendFile file_, documents_file_;
  uint64_t key_, source_state_;
  int64_t vocab_size_;
  int token_bytes_;
  int64_t tokens_ = 0, documents_ = 0, document_start_ = 0;
  std::string resumed_at_;
  std::vector<DocumentEntry> waiting_documents_;
  uint64_t documents_checksum_ = 0;
  std::vector<std::byte> buffer_;
  size_t buffer_written_ = 0;
  std::vector<uint16_t> narrow_;
  uint64_t checksum_ = 0;
  bool finished_ = false;
};

// Null where the file is missing, damaged or of another key or version; `problem` says which ("" for missing).
// Checks the whole file on all cores of the thread pool. That a large file was found whole is kept in `memo_directory`
// (data/token_store/file_memo.h), where one is given, so that it is not read at each start.
std::shared_ptr<const TokenStream> open_token_file(const std::string& path, uint64_t key, int64_t vocab_size,
                                                   std::string& problem, const std::string& memo_directory = "");

}  // namespace brisk
