#include "data/token_store/token_cache_file.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/file_lock.h"
#include "base/files/files.h"
#include "base/terminal/terminal.h"
#include "base/text/plural.h"

namespace brisk {

namespace {

// What killed processes left and nobody came back for.
void remove_forgotten_builds(const std::string& directory) {
  constexpr auto kForgotten = std::chrono::hours(24 * 7);
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    // <16 hexadecimal digits>.tokens.building..., half-written files, and nothing else that lies there
    const bool building = name.find(".tokens.building") == 16 && name.find_first_not_of("0123456789abcdef") == 16;
    if (!building && !is_partial_file(name)) continue;
    std::error_code ignored;
    if (now - it->last_write_time(ignored) > kForgotten && !ignored) std::filesystem::remove(it->path(), ignored);
  }
}

}  // namespace

TokenCache open_or_make_tokens(const std::string& directory, uint64_t key, int64_t vocab_size,
                               const UnchangedFiles& files, const std::function<void(TokenFileWriter& writer)>& make) {
  TokenCache cache;
  cache.path = (std::filesystem::path(directory) / fmt::format("{:016x}.tokens", key)).string();
  std::string problem;
  const auto open = [&] { return open_token_file(cache.path, key, vocab_size, problem, directory); };
  cache.stream = open();
  cache.reused = cache.stream != nullptr;
  if (!problem.empty()) cache.notes.push_back(fmt::format("{}: {}; made again", cache.path, problem));
  if (!cache.reused) {
    in_cache([&] { make_directories(directory); });
    const FileLock lock = in_cache([&] {
      return FileLock(cache.path + ".lock",
                      [] { say("another brisk process is tokenizing this text; waiting for it"); });
    });
    cache.stream = open();  // it may be there by now
    cache.reused = cache.stream != nullptr;
    if (!cache.reused) {
      remove_forgotten_builds(directory);
      auto writer =
          in_cache([&] { return std::make_unique<TokenFileWriter>(cache.path, key, vocab_size, files.fingerprint()); });
      cache.resumed = !writer->resumed_at().empty();
      if (cache.resumed) {
        cache.notes.push_back(
            fmt::format("reusing {} tokenized by an interrupted process", plural(writer->documents(), "document")));
      }
      try {
        make(*writer);
      } catch (const UserError&) {
        writer->discard();  // mended data has another key
        throw;
      } catch (const nlohmann::json::exception&) {
        writer->discard();
        user_error("{}: what a process left that did not finish cannot be read, and was removed; start again",
                   cache.path);
      }
      cache.stream = open();
      if (!cache.stream) {
        user_error(
            "{}: {} right after it was written; check the disk, or set data.cache_dir to a folder on another one",
            cache.path, problem.empty() ? "gone" : problem);
      }
    }
  }
  return cache;
}

}  // namespace brisk
