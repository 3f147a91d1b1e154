// --device, the same for every command that computes.
//
//   add_device_option(*command, arguments->device);
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace brisk {

inline constexpr const char* kDeviceHelp =
    "Where to run: cpu, cuda (or gpu), cuda:1, or auto: a GPU where there is one";

inline CLI::Option* add_device_option(CLI::App& command, std::string& device, const std::string& more = "") {
  return command.add_option("--device", device, kDeviceHelp + more)->capture_default_str();
}

}  // namespace brisk
