#include "report/tensorboard/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files/files.h"
#include "report/tensorboard/record.h"
#include "report/tensorboard/wire.h"

namespace brisk {

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.", kSuffix = ".brisk";

// Fields of tensorflow.Event, Summary.Value, HistogramProto, TensorProto and SummaryMetadata, by number.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2, kHistogram = 5, kTensor = 8, kMetadata = 9;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Those that brisk wrote, in the order of their names: others are not ours to cut. What a process killed while it cut a file left behind is no event file, whatever
// TensorBoard would take it for.
std::vector<std::string> event_files(const std::string& folder, std::vector<std::string>* leftovers = nullptr) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || name.find(kSuffix) == std::string::npos) continue;
    if (name.find(".partial-") == std::string::npos) {
      paths.push_back(it->path().string());
    } else if (leftovers != nullptr) {
      leftovers->push_back(it->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

int64_t second_in_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  int64_t second = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), second);
  return second;
}

// TensorBoard reads the files of a folder in the order of their names, so a later process has a later name, be it in
// the same second or on a machine whose clock is behind.
std::string new_path(const std::string& folder) {
  make_own_directory(folder);
  auto second = static_cast<int64_t>(now());
  for (const std::string& path : event_files(folder)) second = std::max(second, second_in_name(path) + 1);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  for (char& letter : host) letter = letter == '/' ? '-' : letter;
  return fmt::format("{}/{}{:010}.{}.{}{}", folder, kPrefix, second, host.data(), ::getpid(), kSuffix);
}

std::string framed_event(int64_t step, int field, std::string_view contents) {
  WireMessage message;
  message.add_double(event::kWallTime, now());
  message.add_integer(event::kStep, step);
  message.add_text(field, contents);
  return framed_record(message.bytes());
}

std::string framed_value(int64_t step, const WireMessage& one) {
  WireMessage summary;
  summary.add_message(1, one);
  return framed_event(step, event::kSummary, summary.bytes());
}

}  // namespace

EventFile::EventFile(const std::string& folder, int64_t last_step) : file_(new_path(folder)) {
  constexpr int kStatus = 1, kStart = 1;
  WireMessage session;
  session.add_integer(kStatus, kStart);
  waiting_ += framed_event(0, event::kFileVersion, "brain.Event:2");
  waiting_ += framed_event(last_step + 1, event::kSessionLog, session.bytes());
  write();
}

void EventFile::scalar(std::string_view tag, int64_t step, double number) {
  if (!std::isfinite(number)) return;
  WireMessage one;
  one.add_text(value::kTag, tag);
  one.add_float(value::kSimpleValue, static_cast<float>(number));
  waiting_ += framed_value(step, one);
}

void EventFile::text(std::string_view tag, int64_t step, std::string_view valid_utf8) {
  constexpr int kType = 1, kShape = 2, kStrings = 8, kStringType = 7;  // TensorProto
  constexpr int kPluginData = 1, kDataClass = 4, kTensorClass = 2;     // SummaryMetadata
  WireMessage plugin, metadata, no_dimensions, tensor, one;
  plugin.add_text(1, "text");
  metadata.add_message(kPluginData, plugin);
  metadata.add_integer(kDataClass, kTensorClass);
  tensor.add_integer(kType, kStringType);
  tensor.add_message(kShape, no_dimensions);
  tensor.add_text(kStrings, valid_utf8);
  one.add_text(value::kTag, tag);
  one.add_message(value::kTensor, tensor);
  one.add_message(value::kMetadata, metadata);
  waiting_ += framed_value(step, one);
}

void EventFile::histogram(std::string_view tag, int64_t step, const Histogram& histogram) {
  if (histogram.values == 0) return;
  WireMessage proto, one;
  proto.add_double(1, histogram.least);
  proto.add_double(2, histogram.greatest);
  proto.add_double(3, static_cast<double>(histogram.values));
  proto.add_double(4, histogram.sum);
  proto.add_double(5, histogram.sum_of_squares);
  proto.add_doubles(6, histogram.limits);
  proto.add_doubles(7, histogram.counts);
  one.add_text(value::kTag, tag);
  one.add_message(value::kHistogram, proto);
  waiting_ += framed_value(step, one);
}

void EventFile::write() {
  if (waiting_.empty()) return;
  file_.append(waiting_);
  waiting_.clear();
}

int64_t cut_events(const std::string& folder, int64_t last_step) {
  int64_t removed = 0;
  std::vector<std::string> leftovers;
  const std::vector<std::string> paths = event_files(folder, &leftovers);
  for (const std::string& path : leftovers) remove_file(path);
  for (const std::string& path : paths) {
    const std::string bytes = read_file(path, file_kind::events);
    std::string kept;
    int64_t gone = 0;
    RecordReader records(bytes);
    while (records.next()) {
      int64_t step = 0;
      bool has_values = false;
      for (WireReader fields(records.record()); fields.next();) {
        if (fields.field() == event::kStep) step = static_cast<int64_t>(fields.number());
        has_values |= fields.field() == event::kSummary;
      }
      if (has_values && step > last_step) {
        ++gone;
      } else {
        kept += records.framed();
      }
    }
    if (!records.at_end()) ++gone;
    if (gone > 0) write_file_atomically(path, kept);
    removed += gone;
  }
  return removed;
}

}  // namespace brisk
