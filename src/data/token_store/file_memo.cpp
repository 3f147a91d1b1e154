#include "data/token_store/file_memo.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"

namespace brisk {

namespace {

// Changes this recent may be followed by another with the same date.
constexpr int64_t kSettledSeconds = 3;

struct Facts {
  int64_t size = 0, changed_seconds = 0;
  std::string text;  // empty: no such file
};

Facts facts_of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  return {facts.st_size, static_cast<int64_t>(facts.st_mtim.tv_sec),
          fmt::format("{} {} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                      facts.st_mtim.tv_nsec, facts.st_ctim.tv_sec)};
}

std::string memo_path(const std::string& folder, const std::string& path, const std::string& what) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return fmt::format("{}/{:016x}.memo", folder, hash_bytes(error ? path : real.string(), hash_bytes(what)));
}

}  // namespace

std::optional<uint64_t> recall_about(const std::string& folder, const std::string& path, const std::string& what) {
  const Facts facts = facts_of(path);
  const std::string memo = memo_path(folder, path, what);
  if (facts.text.empty() || !file_exists(memo)) return std::nullopt;
  try {
    std::istringstream text(read_file(memo, file_kind::cache_note));
    std::string remembered, kind;
    uint64_t value = 0;
    if (!std::getline(text, kind) || !std::getline(text, remembered) || !(text >> value)) return std::nullopt;
    if (kind != what || remembered != facts.text) return std::nullopt;
    return value;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

void remember_about(const std::string& folder, const std::string& path, const std::string& what, uint64_t value,
                    int64_t least_bytes) {
  const Facts facts = facts_of(path);
  if (facts.text.empty() || facts.size < least_bytes) return;
  if (static_cast<int64_t>(std::time(nullptr)) - facts.changed_seconds < kSettledSeconds) return;
  try {
    write_file_atomically(memo_path(folder, path, what), fmt::format("{}\n{}\n{}\n", what, facts.text, value));
  } catch (const UserError&) {
  }
}

}  // namespace brisk
