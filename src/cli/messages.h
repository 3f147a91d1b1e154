// How the commands that are written on brisk/*.h alone speak: messages in the runtime's log.
//
//   say(runtime, "{} tokens in {}", count, format_duration(seconds));
//   warn(runtime, "{}: it is longer than {} tokens", path, length);      // control characters of `path` are escaped
#pragma once

#include <brisk/log.h>
#include <brisk/runtime.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>

namespace brisk {

template <typename T>
decltype(auto) shown_in_log(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return without_controls(value);
  } else {
    return (value);
  }
}

template <typename... Args>
void say(Runtime& runtime, fmt::format_string<Args...> format, Args&&... args) {
  runtime.log().line(LogLevel::info, fmt::format(fmt::runtime(fmt::string_view(format)), shown_in_log(args)...));
}

template <typename... Args>
void warn(Runtime& runtime, fmt::format_string<Args...> format, Args&&... args) {
  runtime.log().line(LogLevel::warning, fmt::format(fmt::runtime(fmt::string_view(format)), shown_in_log(args)...));
}

}  // namespace brisk
