#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/parse_json.h"
#include "base/rounding.h"
#include "data/token_store/file_checksum.h"
#include "data/token_store/token_file.h"
#include "data/token_store/token_file_layout.h"

namespace brisk {

namespace {

constexpr size_t kDocumentsHeld = size_t{1} << 15;

std::string building_path(const std::string& path) { return path + ".building"; }
std::string documents_path(const std::string& path) { return path + ".building-documents"; }
std::string journal_path(const std::string& path) { return path + ".building-journal"; }

}  // namespace

std::vector<std::string> TokenFileWriter::unfinished_names(const std::string& path) {
  return {building_path(path), documents_path(path), journal_path(path)};
}

TokenFileWriter::TokenFileWriter(const std::string& path, uint64_t key, int64_t vocab_size, uint64_t source_state)
    : path_(path),
      file_(building_path(path)),
      documents_file_(documents_path(path)),
      key_(key),
      source_state_(source_state),
      vocab_size_(vocab_size),
      token_bytes_(vocab_size <= 65536 ? 2 : 4) {
  buffer_.reserve(kChecksumPiece);
  if (!resume()) start_anew();
}

TokenFileWriter::~TokenFileWriter() = default;

void TokenFileWriter::start_anew() {
  remove_file(journal_path(path_));
  file_.cut(0);
  documents_file_.cut(0);
  tokens_ = documents_ = 0;
  checksum_ = documents_checksum_ = 0;
  buffer_.clear();
  buffer_written_ = 0;
  resumed_at_.clear();
  TokenFilePreface preface{};
  std::memcpy(preface.magic, kTokenFileMagic, sizeof(kTokenFileMagic));
  preface.version = kTokenFileVersion;
  preface.token_bytes = static_cast<uint32_t>(token_bytes_);
  put(&preface, sizeof(preface));
}

// Reads again what is there: it gives the checksums so far, and shows that they are those of the journal.
bool TokenFileWriter::resume() {
  if (!file_exists(journal_path(path_))) return false;
  const auto journal = parse_json_or_discard<nlohmann::json>(read_file(journal_path(path_), file_kind::cache_note));
  try {
    if (journal.at("version") != kTokenFileVersion || journal.at("key") != key_) return false;
    if (journal.at("source_state") != source_state_) return false;
    tokens_ = journal.at("tokens").get<int64_t>();
    documents_ = journal.at("documents").get<int64_t>();
    resumed_at_ = journal.at("place").get<std::string>();
    const int64_t size = static_cast<int64_t>(sizeof(TokenFilePreface)) + tokens_ * token_bytes_;
    const int64_t documents_size = documents_ * static_cast<int64_t>(sizeof(DocumentEntry));
    if (tokens_ < 0 || documents_ < 0 || file_.size() < size || documents_file_.size() < documents_size) return false;
    file_.cut(size);
    documents_file_.cut(documents_size);
    for (int64_t at = 0; at < size;) {
      buffer_.resize(std::min(kChecksumPiece, static_cast<size_t>(size - at)));
      file_.read(at, buffer_.data(), std::ssize(buffer_));
      at += std::ssize(buffer_);
      if (buffer_.size() < kChecksumPiece) break;
      checksum_ = hash_mix(checksum_, checksum_of_piece(buffer_.data(), buffer_.size()));
      buffer_.clear();
    }
    buffer_written_ = buffer_.size();
    std::vector<DocumentEntry> entries;
    for (int64_t at = 0; at < documents_; at += std::ssize(entries)) {
      entries.resize(std::min(kDocumentsHeld, static_cast<size_t>(documents_ - at)));
      const auto bytes = static_cast<int64_t>(sizeof(DocumentEntry));
      documents_file_.read(at * bytes, entries.data(), std::ssize(entries) * bytes);
      for (const DocumentEntry& entry : entries) {
        documents_checksum_ = hash_mix(documents_checksum_, hash_mix(static_cast<uint64_t>(entry.start), entry.hash));
      }
    }
    return journal.at("checksum") == hash_mix(checksum_, checksum_of_piece(buffer_.data(), buffer_.size())) &&
           journal.at("documents_checksum") == documents_checksum_;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

void TokenFileWriter::put(const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  while (size > 0) {
    const size_t count = std::min(size, kChecksumPiece - buffer_.size());
    buffer_.insert(buffer_.end(), bytes, bytes + count);
    bytes += count;
    size -= count;
    if (buffer_.size() < kChecksumPiece) continue;
    write_buffer();
    checksum_ = hash_mix(checksum_, checksum_of_piece(buffer_.data(), buffer_.size()));
    buffer_.clear();
    buffer_written_ = 0;
  }
}

void TokenFileWriter::write_buffer() {
  file_.write(buffer_.data() + buffer_written_, static_cast<int64_t>(buffer_.size() - buffer_written_));
  buffer_written_ = buffer_.size();
}

void TokenFileWriter::write_documents() {
  documents_file_.write(waiting_documents_.data(),
                        static_cast<int64_t>(waiting_documents_.size() * sizeof(DocumentEntry)));
  waiting_documents_.clear();
}

void TokenFileWriter::begin_document(int32_t end_of_document) {
  document_start_ = tokens_;
  append({&end_of_document, 1});
}

void TokenFileWriter::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    BRISK_CHECK(token >= 0 && token < vocab_size_, "token {} of a vocabulary of {}", token, vocab_size_);
  }
  tokens_ += static_cast<int64_t>(tokens.size());
  if (token_bytes_ == 4) {
    put(tokens.data(), tokens.size_bytes());
    return;
  }
  narrow_.assign(tokens.begin(), tokens.end());
  put(narrow_.data(), narrow_.size() * 2);
}

void TokenFileWriter::end_document(uint64_t hash) {
  documents_checksum_ = hash_mix(documents_checksum_, hash_mix(static_cast<uint64_t>(document_start_), hash));
  waiting_documents_.push_back({document_start_, hash});
  ++documents_;
  if (waiting_documents_.size() >= kDocumentsHeld) write_documents();
}

void TokenFileWriter::save_progress(const std::string& place) {
  write_buffer();
  write_documents();
  file_.sync();
  documents_file_.sync();
  const nlohmann::json journal = {{"version", kTokenFileVersion},
                                  {"key", key_},
                                  {"source_state", source_state_},
                                  {"tokens", tokens_},
                                  {"documents", documents_},
                                  {"checksum", hash_mix(checksum_, checksum_of_piece(buffer_.data(), buffer_.size()))},
                                  {"documents_checksum", documents_checksum_},
                                  {"place", place}};
  write_file_atomically(journal_path(path_), journal.dump());
}

void TokenFileWriter::put_documents(bool starts) {
  std::vector<DocumentEntry> entries;
  std::vector<uint64_t> column;
  for (int64_t at = 0; at < documents_; at += std::ssize(entries)) {
    entries.resize(std::min(kDocumentsHeld, static_cast<size_t>(documents_ - at)));
    const auto bytes = static_cast<int64_t>(sizeof(DocumentEntry));
    documents_file_.read(at * bytes, entries.data(), std::ssize(entries) * bytes);
    column.clear();
    for (const DocumentEntry& entry : entries) {
      column.push_back(starts ? static_cast<uint64_t>(entry.start) : entry.hash);
    }
    put(column.data(), column.size() * sizeof(uint64_t));
  }
}

void TokenFileWriter::commit(int32_t end_of_document, const std::string& description) {
  begin_document(end_of_document);  // the end of the last document; the starts close with its place
  write_documents();
  TokenFileFooter footer{};
  footer.key = key_;
  footer.vocab_size = vocab_size_;
  footer.tokens = tokens_;
  footer.documents = documents_;
  const int64_t tokens_end = static_cast<int64_t>(sizeof(TokenFilePreface)) + tokens_ * token_bytes_;
  footer.starts_offset = round_up(tokens_end, 8);
  const std::byte padding[8] = {};
  put(padding, static_cast<size_t>(footer.starts_offset - tokens_end));
  put_documents(true);
  put(&document_start_, sizeof(document_start_));
  footer.hashes_offset = footer.starts_offset + (documents_ + 1) * 8;
  put_documents(false);
  footer.description_offset = footer.hashes_offset + documents_ * 8;
  footer.description_size = std::ssize(description);
  put(description.data(), description.size());
  write_buffer();
  if (!buffer_.empty()) checksum_ = hash_mix(checksum_, checksum_of_piece(buffer_.data(), buffer_.size()));
  footer.payload_checksum = checksum_;
  footer.checksum = checksum_of(footer);
  file_.write(&footer, sizeof(footer));
  // The journal goes first: it speaks of a file of that name.
  remove_file(journal_path(path_));
  file_.rename_to(path_);
  remove_file(documents_path(path_));
  finished_ = true;
}

void TokenFileWriter::discard() {
  if (finished_) return;
  for (const std::string& name : unfinished_names(path_)) remove_file(name);
}

}  // namespace brisk
