#include "checkpoint/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "base/files/lines.h"
#include "base/files/unfinished_folder.h"
#include "base/parse_json.h"
#include "base/text/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fine_tuned.h"
#include "job/options/options.h"
#include "report/tensorboard/event_file.h"

namespace brisk {

namespace {

constexpr const char* kLockFile = ".lock";
constexpr std::array<std::string_view, 15> kOurFiles = {
    "job.json",        "tokenizer.json",        "tokenizer_config.json",
    "vocab.txt",       "metrics.jsonl",         "ledger.jsonl",
    "samples.jsonl",   "statistics.json",       "summary.json",
    "report.html",     "labels.json",           "target_tokenizer.json",
    "evaluation.json", UnfinishedFolder::kMark, kFrozenFile};
constexpr std::string_view kCheckpoints = "checkpoints";
constexpr std::string_view kEvents = "tensorboard";

// What a process killed while writing one of our files leaves.
bool is_leftover(std::string_view name) {
  return std::any_of(kOurFiles.begin(), kOurFiles.end(), [&](std::string_view ours) {
    return name.starts_with(ours) && name.substr(ours.size()).starts_with(".partial-");
  });
}

bool is_ours(std::string_view name) {
  return name == kLockFile || name == kCheckpoints || name == kEvents || is_leftover(name) ||
         std::find(kOurFiles.begin(), kOurFiles.end(), name) != kOurFiles.end();
}

// What is left of a process that ended between writing job.json and its first step: nothing was trained. Without a lock,
// job.json is not ours.
bool is_start_without_a_step(const std::string& path) {
  const std::string metrics = path + "/metrics.jsonl";
  return file_exists(path + "/job.json") && file_exists(path + "/" + kLockFile) && list_checkpoints(path).empty() &&
         (!file_exists(metrics) || file_size(metrics) == 0);
}

// What stands in the way of a fresh run; what a process killed before its first step left is nothing of the kind.
void check_nothing_is_lost(const std::string& path, bool may_be_resumed) {
  const bool started = is_start_without_a_step(path);
  if (!started && (file_exists(path + "/job.json") || !list_checkpoints(path).empty())) {
    user_error("{}: it already holds a run; {}choose another folder with --output", path,
               may_be_resumed ? "add --resume to continue it, --overwrite to replace it, or " : "");
  }
  for (const std::string& name : names_in(path)) {
    if (started ? is_ours(name) : name == kLockFile || name == kCheckpoints || is_leftover(name)) continue;
    user_error("{}: it is not empty (found '{}'); choose another folder with --output", path, name);
  }
}

// What --overwrite replaces is a run, and all of it.
void check_is_only_a_run(const std::string& path) {
  if (!is_directory(path)) return;
  for (const std::string& name : names_in(path)) {
    const bool linked = (name == kCheckpoints || name == kEvents) && std::filesystem::is_symlink(path + "/" + name);
    if (is_ours(name) && !linked) continue;
    user_error(
        "{}: --overwrite replaces a run and nothing else, but '{}' in it is {}; move it away, or choose another "
        "folder with --output",
        path, name, linked ? "a link to another folder" : "no file of a run");
  }
}

// A fresh run would append to some of these.
void remove_start(const std::string& path) {
  for (const std::string_view name : kOurFiles) remove_file(fmt::format("{}/{}", path, name));
  remove_directory_tree(fmt::format("{}/{}", path, kEvents));
}

// The run next to it whose name is nearest: "runs/reviews" where "runs/reveiws" was given.
std::string nearest_run(const std::string& path) {
  const std::filesystem::path wanted = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path whole = wanted.has_filename() ? wanted : wanted.parent_path();
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (!is_directory(parent)) return "";
  std::vector<std::string> runs;
  for (const std::string& name : names_in(parent)) {
    if (file_exists(parent + "/" + name + "/job.json")) runs.push_back(name);
  }
  const std::string nearest = nearest_word(whole.filename().string(), runs);
  return nearest.empty() ? "" : (whole.parent_path() / nearest).string();
}

// An empty folder is what a run leaves that was killed before it wrote anything.
void check_is_a_run(const std::string& path) {
  if (!is_directory(path)) {
    const std::string nearest = nearest_run(path);
    user_error("{}: there is no run to resume: {}; {}, or leave --resume out to start one", path,
               file_exists(path) ? "it is a file" : "there is no such folder",
               nearest.empty() ? "check --output" : fmt::format("did you mean {}? Check --output", nearest));
  }
  if (file_exists(path + "/job.json")) return;
  for (const std::string& name : names_in(path)) {
    if (is_ours(name)) continue;
    user_error("{}: there is no run to resume: it has no job.json, but '{}'; check --output", path, name);
  }
}

// Returns the descriptor that holds the lock. The kernel gives it back however the process ends.
int lock_run(const std::string& path) {
  const std::string lock_path = path + "/" + kLockFile;
  const int file = open_own_file(lock_path, O_RDWR);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      std::array<char, 64> text{};
      const ssize_t count = ::read(file, text.data(), text.size() - 1);
      ::close(file);
      const std::string holder(text.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
      user_error("{}: another brisk{} is training in it; wait for it, stop it, or choose another folder with --output",
                 path, holder.empty() ? "" : fmt::format(" (process {})", holder));
    }
    // A network file system without locks: the user is trusted not to start two.
  }
  const std::string process = fmt::format("{}", ::getpid());
  const bool named = ::ftruncate(file, 0) == 0 && ::pwrite(file, process.data(), process.size(), 0) > 0;
  static_cast<void>(named);  // on a full disk the message above is poorer for it, no more
  return file;
}

// The run's folder may be a link that the user made; nothing in it is, as it would lead what is written or deleted there
// to another place. Said now, and not when a file is written at the end of the run.
void refuse_links_in(const std::string& path) {
  for (const std::string& name : names_in(path)) {
    if (is_ours(name)) refuse_link(path + "/" + name);
  }
}

// Of what open() makes, outermost first, what is not there yet.
std::vector<std::string> missing_of(const std::string& path) {
  std::vector<std::string> missing;
  for (std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal();
       !folder.empty() && !file_exists(folder.string()) && folder != folder.root_path();
       folder = folder.parent_path()) {
    missing.insert(missing.begin(), folder.string());
  }
  for (const std::string& name : {std::string(kLockFile), std::string(kCheckpoints)}) {
    if (!file_exists(path + "/" + name)) missing.push_back(path + "/" + name);
  }
  return missing;
}

// Keeps the whole lines with step <= last_step; returns the others' number.
int64_t cut_lines(const std::string& path, int64_t last_step) {
  const auto is_kept = [&](const LogLine& line) {
    if (!line.ended || line.too_long) return false;
    const nlohmann::json json = parse_json_or_discard<nlohmann::json>(line.text, kLogLineJson);
    return json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
           json["step"].get<int64_t>() <= last_step;
  };
  int64_t removed = 0;
  for_each_log_line(path, [&](const LogLine& line) { removed += is_kept(line) ? 0 : 1; });
  if (removed == 0) return 0;
  constexpr size_t kBlock = size_t{1} << 20;
  AtomicFile file(path);
  std::string block;
  for_each_log_line(path, [&](const LogLine& line) {
    if (!is_kept(line)) return;
    block.append(line.text).append("\n");
    if (block.size() < kBlock) return;
    file.write(block);
    block.clear();
  });
  file.write(block);
  file.commit();
  return removed;
}

}  // namespace

RunDirectory RunDirectory::open(const std::string& path, Mode mode) {
  if (mode == Mode::follow) {
    RunDirectory run;
    run.path_ = path;
    run.has_run_ = file_exists(run.job_path());
    return run;
  }
  // Before the lock, so that nothing is written to a folder that is not ours, and again under it.
  const auto check = [&] {
    if (mode == Mode::resume) {
      check_is_a_run(path);
    } else if (mode == Mode::overwrite) {
      check_is_only_a_run(path);
    } else if (mode != Mode::import || !UnfinishedFolder::is(path)) {
      check_nothing_is_lost(path, mode == Mode::fresh);
    }
  };
  if (file_exists(path) && !is_directory(path)) {
    user_error("{}: a file, but the run needs a folder of this name; choose another with --output", path);
  }
  check();
  refuse_links_in(path);
  RunDirectory run;
  run.path_ = path;
  run.made_ = missing_of(path);
  make_directories(path);
  run.lock_ = lock_run(path);
  check();
  refuse_links_in(path);
  run.has_run_ = mode != Mode::fresh && mode != Mode::import && file_exists(run.job_path());
  for (const std::string& name : names_in(path)) {
    if (is_leftover(name)) remove_file(path + "/" + name);
  }
  if (mode == Mode::fresh && is_start_without_a_step(path)) remove_start(path);
  make_own_directory(run.checkpoints_path());
  remove_stale_checkpoints(path);
  return run;
}

RunDirectory RunDirectory::open_for_reading(const std::string& path) {
  if (!is_directory(path)) {
    user_error("{}: {}; give the run directory that brisk train wrote", path,
               file_exists(path) ? "it is a file" : "there is no such folder");
  }
  RunDirectory run;
  run.path_ = path;
  const auto require = [&](const std::string& file) {
    if (file_exists(file)) return;
    user_error("{}: not a run directory: it has no {}; give the one that brisk train wrote", path,
               std::filesystem::path(file).filename().string());
  };
  require(run.job_path());
  if (!file_exists(path + "/labels.json")) require(run.tokenizer_path());  // a classifier of images has none
  run.has_run_ = true;
  return run;
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      has_run_(other.has_run_),
      made_(std::move(other.made_)) {}

RunDirectory& RunDirectory::operator=(RunDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  std::swap(has_run_, other.has_run_);
  std::swap(made_, other.made_);
  return *this;
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::abandon() {
  for (auto place = made_.rbegin(); place != made_.rend(); ++place) ::remove(place->c_str());  // a folder only if empty
  made_.clear();
}

void RunDirectory::clear() {
  check_is_only_a_run(path_);
  for (const std::string_view name : kOurFiles) std::filesystem::remove(path_ + "/" + std::string(name));
  remove_checkpoints_after(path_, -1);
  remove_stale_checkpoints(path_);
  std::filesystem::remove_all(events_path());
  has_run_ = false;
}

int64_t RunDirectory::cut_metrics(int64_t last_step) const {
  cut_events(events_path(), last_step);
  cut_lines(ledger_path(), last_step);
  cut_lines(samples_path(), last_step);
  return cut_lines(metrics_path(), last_step);
}

}  // namespace brisk
