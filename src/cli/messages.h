// How the commands that are written on brisk/*.h alone speak: lines in the runtime's log.
//
//   say(runtime, "{} tokens in {}", count, format_duration(seconds));
#pragma once

#include <brisk/log.h>
#include <brisk/runtime.h>
#include <fmt/format.h>

#include <utility>

namespace brisk {

template <typename... Args>
void say(Runtime& runtime, fmt::format_string<Args...> format, Args&&... args) {
  runtime.log().line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace brisk
