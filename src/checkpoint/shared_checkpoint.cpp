#include "checkpoint/shared_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <span>

#include "base/error.h"
#include "base/files/append_file.h"
#include "base/files/files.h"
#include "base/rounding.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checksum.h"

namespace brisk {

namespace {

// One of the files of a checkpoint that is being written.
struct File {
  std::string path, head;
  const std::vector<CheckpointTensor>& tensors;
  int64_t bytes = 0;

  File(const std::string& run, int64_t step, bool is_model, const std::vector<CheckpointTensor>& all)
      : path(partial_path(run, step) + "/" + (is_model ? kModelFile : kOptimizerFile)),
        head(writer_of(path, step, is_model, all).head()),
        tensors(all),
        bytes(std::ssize(head)) {
    for (const CheckpointTensor& tensor : all) bytes += tensor.bytes();
  }
};

std::vector<File> files_of(const std::string& run, const CheckpointTensors& tensors, int64_t step) {
  std::vector<File> files;
  files.emplace_back(run, step, true, tensors.model);
  if (tensors.has_optimizer) files.emplace_back(run, step, false, tensors.optimizer);
  return files;
}

void make(const File& of) {
  AppendFile file(of.path);
  file.write(of.head.data(), std::ssize(of.head));
  file.cut(of.bytes);
  file.sync();
}

// Consecutive bytes of a tensor, and where they lie in the file.
struct Piece {
  const CheckpointTensor* tensor;
  int64_t place, offset, bytes;

  void read(int64_t from, std::span<std::byte> block) const {
    if (tensor->host != nullptr) {
      std::memcpy(block.data(), static_cast<const std::byte*>(tensor->host) + from, block.size());
    } else {
      tensor->read(offset + from, block);
    }
  }
};

std::vector<Piece> own_pieces(const File& of) {
  std::vector<Piece> pieces;
  int64_t place = std::ssize(of.head);
  for (const CheckpointTensor& tensor : of.tensors) {
    if (tensor.own_bytes > 0)
      pieces.push_back({&tensor, place + tensor.own_offset, tensor.own_offset, tensor.own_bytes});
    place += tensor.bytes();
  }
  return pieces;
}

// Block by block of the checksum.
int64_t write_own(const File& of, std::vector<SavedShare::Written>& parts) {
  AppendFile file(of.path);
  if (file.size() != of.bytes) {
    user_error("{}: it has {} bytes, expected {}: do all machines see the same run directory?", of.path, file.size(),
               of.bytes);
  }
  const std::vector<Piece> pieces = own_pieces(of);
  std::vector<std::byte> block(static_cast<size_t>(kChecksumBlock));
  int64_t written = 0, done = 0;  // done: of the piece
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const int64_t begin = piece->place + done, number = begin / kChecksumBlock;
    const int64_t end = std::min((number + 1) * kChecksumBlock, of.bytes);
    int64_t filled = 0;
    while (piece != pieces.end() && piece->place + done == begin + filled && begin + filled < end) {
      const int64_t count = std::min(piece->bytes - done, end - begin - filled);
      piece->read(done, std::span(block).subspan(static_cast<size_t>(filled), static_cast<size_t>(count)));
      filled += count;
      done += count;
      if (done == piece->bytes) {
        ++piece;
        done = 0;
      }
    }
    file.write_at(begin, block.data(), filled);
    written += filled;
    const std::span<const std::byte> own = std::span(block).first(static_cast<size_t>(filled));
    parts.push_back({begin, filled, block_checksum(own, static_cast<uint64_t>(number))});
  }
  file.sync();
  return written;
}

std::string checksum_of(const File& of, const std::vector<SavedShare>& shares,
                        std::vector<SavedShare::Written> SavedShare::*which) {
  struct Part {
    size_t process;
    SavedShare::Written written;
  };
  std::vector<std::vector<Part>> parts(static_cast<size_t>(divide_up(of.bytes, kChecksumBlock)));
  for (size_t process = 0; process < shares.size(); ++process) {
    for (const SavedShare::Written& written : shares[process].*which) {
      const int64_t number = written.begin / kChecksumBlock;
      BRISK_CHECK(number >= 0 && number < std::ssize(parts), "block {} of {}", number, of.path);
      parts[static_cast<size_t>(number)].push_back({process, written});
    }
  }
  const AppendFile file(of.path);
  std::vector<std::byte> bytes(static_cast<size_t>(kChecksumBlock));
  std::vector<uint64_t> blocks;
  for (size_t number = 0; number < parts.size(); ++number) {
    const int64_t begin = static_cast<int64_t>(number) * kChecksumBlock;
    const int64_t count = std::min(kChecksumBlock, of.bytes - begin);
    if (parts[number].size() == 1 && parts[number][0].written.bytes == count) {
      blocks.push_back(parts[number][0].written.checksum);
      continue;
    }
    const std::span<const std::byte> block = std::span(bytes).first(static_cast<size_t>(count));
    file.read(begin, bytes.data(), count);
    for (const auto& [process, written] : parts[number]) {
      const auto own = block.subspan(static_cast<size_t>(written.begin - begin), static_cast<size_t>(written.bytes));
      if (block_checksum(own, number) == written.checksum) continue;
      user_error(
          "{}: bytes {} to {} are not what rank {} wrote there: does the file system keep what several machines write into "
          "one file?",
          of.path, written.begin, written.begin + written.bytes, process);
    }
    blocks.push_back(block_checksum(block, number));
  }
  return checksum_text(checksum_of_blocks(of.bytes, blocks));
}

// What `work` threw, as text; empty: nothing. What a disk gives is a UserError; nothing must end a thread that writes.
template <typename Work>
std::string problem_of(const Work& work) {
  try {
    work();
    return {};
  } catch (const std::bad_alloc&) {
    return "no memory";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void remove_partial_folder(const std::string& run, int64_t step) {
  std::error_code ignored;  // what is left has a dot and is removed by the next save or start
  std::filesystem::remove_all(partial_path(run, step), ignored);
}

void append(std::string& text, const void* data, size_t bytes) { text.append(static_cast<const char*>(data), bytes); }

void take(std::string_view& text, void* data, size_t bytes) {
  BRISK_CHECK(text.size() >= bytes, "a share of a checkpoint in {} bytes", text.size());
  std::memcpy(data, text.data(), bytes);
  text.remove_prefix(bytes);
}

}  // namespace

std::string SavedShare::text() const {
  std::string text;
  append(text, &bytes, sizeof(bytes));
  for (const std::vector<Written>* parts : {&model, &optimizer}) {
    const uint64_t count = parts->size();
    append(text, &count, sizeof(count));
    append(text, parts->data(), count * sizeof(Written));
  }
  return text + problem;
}

SavedShare saved_share_from_text(std::string_view text) {
  SavedShare share;
  take(text, &share.bytes, sizeof(share.bytes));
  for (std::vector<SavedShare::Written>* parts : {&share.model, &share.optimizer}) {
    uint64_t count = 0;
    take(text, &count, sizeof(count));
    BRISK_CHECK(count <= text.size() / sizeof(SavedShare::Written), "{} parts of a checkpoint", count);
    parts->resize(count);
    if (count > 0) take(text, parts->data(), count * sizeof(SavedShare::Written));
  }
  share.problem = text;
  return share;
}

std::string begin_shared_checkpoint(const std::string& run, const CheckpointTensors& tensors, int64_t step) {
  bool made = false;
  const std::string problem = problem_of([&] {
    make_partial_folder(run, step, made);
    for (const File& file : files_of(run, tensors, step)) make(file);
    sync_directory(partial_path(run, step));
  });
  if (problem.empty()) return {};
  if (made) remove_partial_folder(run, step);
  return save_problem(run, step, problem);
}

SavedShare write_share(const std::string& run, const CheckpointTensors& tensors, int64_t step) {
  SavedShare share;
  share.problem = problem_of([&] {
    const std::vector<File> files = files_of(run, tensors, step);
    share.bytes += write_own(files[0], share.model);
    if (tensors.has_optimizer) share.bytes += write_own(files[1], share.optimizer);
  });
  return share;
}

SaveResult end_shared_checkpoint(const std::string& run, const CheckpointTensors& tensors, CheckpointState state,
                                 const std::vector<SavedShare>& shares) {
  SaveResult result;
  std::string problem;
  for (size_t process = 0; process < shares.size() && problem.empty(); ++process) {
    if (!shares[process].problem.empty()) problem = fmt::format("rank {}: {}", process, shares[process].problem);
  }
  if (problem.empty()) {
    problem = problem_of([&] {
      const std::vector<File> files = files_of(run, tensors, state.step);
      for (const File& file : files) result.bytes += file.bytes;
      state.model_checksum = checksum_of(files[0], shares, &SavedShare::model);
      if (tensors.has_optimizer) state.optimizer_checksum = checksum_of(files[1], shares, &SavedShare::optimizer);
      const std::string text = checkpoint_state_to_json_text(state);
      result.bytes += std::ssize(text);
      write_file_atomically(partial_path(run, state.step) + "/" + kStateFile, text);
      commit_partial_folder(run, state.step);
    });
  }
  if (problem.empty()) {
    result.path = checkpoint_path(run, state.step);
    return result;
  }
  remove_partial_folder(run, state.step);
  return {.path = {}, .bytes = 0, .problem = save_problem(run, state.step, problem)};
}

}  // namespace brisk
