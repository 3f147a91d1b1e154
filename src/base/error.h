// Throwing errors, of two kinds (brisk/error.h): user errors (exit code 2) and internal errors (exit code 1).
//
//   throw UserError("job.json: model.d_modl: unknown key; did you mean model.d_model?");
//   user_error("{}: line {}: expected a number, found '{}'", path, line, word);
//   BRISK_CHECK(rows >= 0, "rows = {}", rows);          // an assertion about our own code, never about input
#pragma once

#include <brisk/error.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace brisk {

template <typename... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace brisk

#define BRISK_CHECK(condition, ...)                                                                       \
  do {                                                                                                    \
    if (!(condition)) ::brisk::check_failed(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)); \
  } while (false)
