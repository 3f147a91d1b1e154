#include "cli/image_answers.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/files/files.h"
#include "cli/messages.h"
#include "cli/on_one_line.h"
#include "cli/translation_options.h"

namespace brisk {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void print_json(const Json& json) { fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

// The file of each image: its path within `images`, where that is a folder, with another suffix.
std::vector<fs::path> files_for(const std::vector<std::string>& paths, const std::string& images,
                                const ImageArguments& arguments) {
  std::vector<fs::path> files;
  std::set<fs::path> seen;
  for (const std::string& path : paths) {
    fs::path name = fs::is_directory(images) ? fs::path(path).lexically_relative(images) : fs::path(path).filename();
    const fs::path file = fs::path(arguments.output) / name.replace_extension(arguments.suffix);
    if (!seen.insert(file).second) {
      throw UserError(
          fmt::format("{}: the texts of two images would be {}, that of {} too; rename one, or leave out --output",
                      images, file.string(), path));
    }
    files.push_back(file);
  }
  return files;
}

void write_text_file(const fs::path& file, const std::string& text) {
  make_directories(file.parent_path().string());
  write_file_atomically(file.string(), text.ends_with('\n') ? text : text + "\n");
}

void print_text(const std::string& image, const Translated& answer, const ImageArguments& arguments) {
  const Translated::Text& best = answer.best.front();
  if (!arguments.json) {
    fmt::print("{}\t{}\n", on_one_line(image), on_one_line(best.text));
    return;
  }
  print_json(
      {{"image", image}, {"text", best.text}, {"score", best.score}, {"tokens", best.tokens}, {"ended", best.ended}});
}

}  // namespace

void add_image_options(CLI::App& command, ImageArguments& arguments) {
  CLI::Option* output =
      command.add_option("--output", arguments.output,
                         "Of texts of images: folder that gets a file for each (default: lines of path, tab and text)");
  output->needs("--images");
  command.add_option("--suffix", arguments.suffix, "What the names of these files end with")
      ->capture_default_str()
      ->needs(output);
  command.add_flag("--json", arguments.json, "Print a JSON object for the text of each image")->excludes(output);
  command.add_flag("--skip-broken", arguments.skip_broken, "Leave out images that cannot be read, with a warning")
      ->needs("--images");
  add_translation_options(command, arguments.options);
}

void print_predictions(const LoadedModel& model, std::span<const Prediction> predictions,
                       std::span<const std::string> images) {
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& prediction = predictions[i];
    Json json;
    if (!images.empty()) json["image"] = images[i];
    json["label"] = model.labels()[prediction.label];
    Json::object_t shares;  // whose own [] compares a key with all before it
    for (size_t label = 0; label < prediction.probabilities.size(); ++label)
      shares.emplace_back(model.labels()[label], prediction.probabilities[label]);
    json["probabilities"] = std::move(shares);
    print_json(json);
  }
  std::fflush(stdout);
}

void predict_images(Runtime& runtime, LoadedModel& model, const std::string& images, const ImageArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const std::vector<std::string> paths = model.find_images(images, arguments.skip_broken);
  size_t done = 0;
  double told = 0;
  const auto show = [&](size_t more) {
    constexpr double kEverySeconds = 10;
    done += more;
    if (seconds() - told < kEverySeconds || done == paths.size()) return;
    told = seconds();
    say(runtime, "{} of {} images, {:.2f} images/s", done, paths.size(), static_cast<double>(done) / told);
  };
  if (!model.labels().empty()) {
    if (!arguments.output.empty())
      throw UserError("--output: this model names classes, which go to standard output; leave it out");
    model.predict_images(paths, [&](std::span<const Prediction> answers) {
      print_predictions(model, answers, std::span(paths).subspan(done, answers.size()));
      show(answers.size());
    });
  } else {
    const std::vector<fs::path> files =
        arguments.output.empty() ? std::vector<fs::path>() : files_for(paths, images, arguments);
    const TranslateTotals totals = model.read_images(
        paths,
        [&](std::span<const Translated> answers) {
          for (size_t i = 0; i < answers.size(); ++i) {
            if (files.empty()) {
              print_text(paths[done + i], answers[i], arguments);
            } else {
              write_text_file(files[done + i], answers[i].best.front().text);
            }
          }
          std::fflush(stdout);
          show(answers.size());
        },
        arguments.options);
    if (totals.cut > 0) {
      warn(runtime, "{} of {} text{} did not end: cut at the most tokens{}", totals.cut, totals.texts,
           totals.texts == 1 ? "" : "s",
           arguments.options.max_tokens > 0 ? " (--max-tokens)" : " that the model writes");
    }
    if (!files.empty()) say(runtime, "{}: {} file{}", arguments.output, files.size(), files.size() == 1 ? "" : "s");
  }
  say(runtime, "{} image{} in {}: {:.2f} images/s", paths.size(), paths.size() == 1 ? "" : "s",
      format_duration(seconds()), static_cast<double>(paths.size()) / seconds());
}

}  // namespace brisk
