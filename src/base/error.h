// Throwing errors, of two kinds (brisk/error.h): user errors (exit code 2) and internal errors (exit code 1).
//
//   throw UserError("job.json: model.d_modl: unknown key; did you mean model.d_model?");
//   user_error("{}: line {}: expected a number, found '{}'", path, line, word);   // what is in quotation marks is cut
//   BRISK_CHECK(rows >= 0, "rows = {}", rows);          // an assertion about our own code, never about input
#pragma once

#include <brisk/error.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace brisk {

// What a message takes of a string: control characters are escaped, and a very long one is cut, its size told. One in
// quotation marks is a name or a value that somebody else chose: it is shown by printable() (base/text/printable.h), cut to
// what can be read.
std::string message_text(std::string_view text, bool in_quotation_marks);

// Which arguments stand in quotation marks, '{}' or "{}", in a format string; a bit each, the first the lowest.
uint64_t quoted_places(std::string_view format);

template <typename T>
decltype(auto) message_argument(const T& value, bool in_quotation_marks) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return message_text(value, in_quotation_marks);
  } else {
    return (value);
  }
}

template <size_t... places, typename... Args>
std::string format_message_of(std::index_sequence<places...> /*of the arguments*/, fmt::string_view format,
                              const Args&... args) {
  [[maybe_unused]] const uint64_t quoted = quoted_places({format.data(), format.size()});
  const std::tuple<decltype(message_argument(args, false))...> shown(
      message_argument(args, (quoted >> places & 1) != 0)...);
  return std::apply([&](const auto&... each) { return fmt::vformat(format, fmt::make_format_args(each...)); }, shown);
}

// As fmt::format(), for texts that people read: every string as message_text() has it.
template <typename... Args>
std::string format_message(fmt::format_string<Args...> format, Args&&... args) {
  return format_message_of(std::index_sequence_for<Args...>(), format, args...);
}

template <typename... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(format_message(format, std::forward<Args>(args)...));
}

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& detail);

}  // namespace brisk

#define BRISK_CHECK(condition, ...)                                                                       \
  do {                                                                                                    \
    if (!(condition)) ::brisk::check_failed(__FILE__, __LINE__, #condition, fmt::format("" __VA_ARGS__)); \
  } while (false)
