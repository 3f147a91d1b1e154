#include "data/images/image_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/files.h"
#include "base/hash.h"
#include "base/parse_json.h"
#include "base/text/plural.h"
#include "data/read/pieces.h"
#include "image/image_file.h"

namespace brisk {

namespace {

constexpr uint64_t kImageCheckFormat = 2;
constexpr int64_t kImagesAtOnce = 16;
constexpr int64_t kEndBytes = 4096;  // at the beginning and the end of a file, that its fingerprint is of
constexpr int64_t kBytesAtOnce = 1 << 20;
constexpr int64_t kSettledSeconds = 3;  // a file changed this recently may change again within the clock's tick
constexpr size_t kReasonsKept = 5;

template <typename Body>
void for_each_image(int64_t count, const Body& body) {
  run_pieces((count + kImagesAtOnce - 1) / kImagesAtOnce, [&](int64_t piece) {
    for (int64_t i = piece * kImagesAtOnce; i < std::min(count, (piece + 1) * kImagesAtOnce); ++i) body(i);
  });
}

// The files' names, sizes and dates.
struct FileStates {
  uint64_t hash = 0;
  bool settled = true;
};

FileStates states_of(std::span<const std::string> paths) {
  std::vector<uint64_t> hashes(paths.size());
  std::atomic<int64_t> latest = 0;
  for_each_image(std::ssize(paths), [&](int64_t i) {
    const std::string& path = paths[static_cast<size_t>(i)];
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) facts = {};  // its reader says what is wrong
    hashes[static_cast<size_t>(i)] = hash_bytes(
        path,
        hash_mix(hash_mix(static_cast<uint64_t>(facts.st_size), static_cast<uint64_t>(facts.st_ino)),
                 hash_mix(static_cast<uint64_t>(facts.st_mtim.tv_sec), static_cast<uint64_t>(facts.st_mtim.tv_nsec))));
    int64_t known = latest;
    while (facts.st_mtim.tv_sec > known && !latest.compare_exchange_weak(known, facts.st_mtim.tv_sec)) {
    }
  });
  FileStates states;
  for (const uint64_t hash : hashes) states.hash = hash_mix(states.hash, hash);
  states.settled = static_cast<int64_t>(std::time(nullptr)) - latest >= kSettledSeconds;
  return states;
}

// A changed image has another size, or other bytes at its end: a PNG file has its checksums there, a JPEG file the last of
// its coefficients. Of files that are not compressed (PNM) pages of one size differ in the middle alone: these are read whole.
uint64_t file_fingerprint(const std::string& path, bool whole) {
  struct Descriptor {
    int number;
    ~Descriptor() { ::close(number); }
  };
  int64_t size = 0;
  const Descriptor file{open_regular_file(path, &size)};
  uint64_t hash = static_cast<uint64_t>(size);
  std::vector<char> bytes(static_cast<size_t>(whole ? kBytesAtOnce : kEndBytes));
  const auto add_bytes_at = [&](int64_t from) {
    const ssize_t count = ::pread(file.number, bytes.data(), bytes.size(), from);
    if (count < 0) user_error("{}: cannot be read: {}", path, explain_errno(errno));
    hash = hash_bytes({bytes.data(), static_cast<size_t>(count)}, hash);
    return static_cast<int64_t>(count);
  };
  if (whole) {
    for (int64_t at = 0, count = 0; at < size && (count = add_bytes_at(at)) > 0; at += count) {
    }
  } else {
    add_bytes_at(0);
    add_bytes_at(std::max<int64_t>(0, size - kEndBytes));
  }
  return hash;
}

struct Outcome {
  uint64_t fingerprint = 0;
  std::vector<int64_t> broken;
  std::vector<std::string> reasons;  // of the first of them
};

Outcome check_all(std::span<const std::string> paths, BrokenImages rule, const TokenizeProgress& progress) {
  std::vector<uint64_t> fingerprints(paths.size());
  std::vector<std::string> reasons(paths.size());
  std::mutex mutex;
  int64_t done = 0;
  for_each_image(std::ssize(paths), [&](int64_t i) {
    const std::string& path = paths[static_cast<size_t>(i)];
    try {
      const ImageFormat format = read_image_header(path).format;
      if (rule == BrokenImages::skip) read_image(path);
      fingerprints[static_cast<size_t>(i)] = file_fingerprint(path, format == ImageFormat::pnm);
    } catch (const UserError& problem) {
      reasons[static_cast<size_t>(i)] = problem.what();
    }
    if (!progress) return;
    const std::lock_guard lock(mutex);
    progress(++done, std::ssize(paths));
  });
  Outcome outcome;
  for (size_t i = 0; i < paths.size(); ++i) {
    outcome.fingerprint = hash_mix(outcome.fingerprint, fingerprints[i]);
    if (reasons[i].empty()) continue;
    outcome.broken.push_back(static_cast<int64_t>(i));
    if (outcome.reasons.size() < kReasonsKept) outcome.reasons.push_back(reasons[i]);
  }
  return outcome;
}

bool read_outcome(const std::string& path, int64_t images, Outcome& outcome) {
  if (!file_exists(path)) return false;
  try {
    const auto json = parse_json_or_discard<nlohmann::json>(read_file(path, file_kind::cache_note));
    outcome.fingerprint = json.at("fingerprint").get<uint64_t>();
    outcome.broken = json.at("broken").get<std::vector<int64_t>>();
    outcome.reasons = json.at("reasons").get<std::vector<std::string>>();
    return std::is_sorted(outcome.broken.begin(), outcome.broken.end()) &&
           std::all_of(outcome.broken.begin(), outcome.broken.end(), [&](int64_t i) { return i >= 0 && i < images; });
  } catch (const UserError&) {
  } catch (const nlohmann::json::exception&) {
  }
  return false;  // it is made again
}

void write_outcome(const std::string& path, const Outcome& outcome) {
  try {
    const nlohmann::ordered_json json = {
        {"fingerprint", outcome.fingerprint}, {"broken", outcome.broken}, {"reasons", outcome.reasons}};
    write_file_atomically(path, json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } catch (const UserError&) {  // a folder that cannot be written to: the images are checked again
  }
}

}  // namespace

ImageCheck check_images(std::span<const std::string> paths, BrokenImages rule, const std::string& cache_directory,
                        const TokenizeProgress& progress, const std::string& skipping) {
  const auto refuse = [&](const Outcome& outcome) {
    const std::string reasons = fmt::format("{}", fmt::join(outcome.reasons, "; "));
    if (outcome.broken.size() == 1) user_error("{}; {} leaves such images out", reasons, skipping);
    user_error("{} of {} images cannot be read; {} leaves such images out; {}: {}", outcome.broken.size(), paths.size(),
               skipping, outcome.broken.size() > outcome.reasons.size() ? "the first of them" : "they are", reasons);
  };
  const FileStates states = states_of(paths);
  const uint64_t key = hash_mix(hash_mix(states.hash, kImageCheckFormat), rule == BrokenImages::skip ? 1 : 0);
  const std::string path = fmt::format("{}/image-check-{:016x}.json", cache_directory, key);
  Outcome outcome;
  if (!states.settled || !read_outcome(path, std::ssize(paths), outcome)) {
    outcome = check_all(paths, rule, progress);
    if (rule == BrokenImages::refuse && !outcome.broken.empty()) refuse(outcome);
    if (states.settled) {
      make_directories(cache_directory);
      write_outcome(path, outcome);
    }
  }
  ImageCheck check{.broken = outcome.broken, .notes = {}, .fingerprint = outcome.fingerprint};
  if (!check.broken.empty()) {
    check.notes.push_back(
        fmt::format("skipped: {} that cannot be read, of {}", plural(std::ssize(check.broken), "image"), paths.size()));
    for (const std::string& reason : outcome.reasons) check.notes.push_back("skipped: " + reason);
  }
  return check;
}

ImageRows without_images(const ImageRows& rows, std::span<const int64_t> broken) {
  ChunkListBuilder left(rows.examples.data().cache_directory());
  for (int64_t i = 0; i < rows.examples.count(); ++i) {
    if (!std::binary_search(broken.begin(), broken.end(), rows.examples.row_of(i)))
      left.add(rows.examples.rows()[static_cast<size_t>(i)]);
  }
  return rows.with(rows.examples.subset(std::move(left).finish()));
}

}  // namespace brisk
