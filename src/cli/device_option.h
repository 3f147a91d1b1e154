// The --device option, shared by all commands that compute.
//
//   add_device_option(*command, arguments->device);
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace brisk {

inline constexpr const char* kDeviceHelp =
    "Device to run on: cpu, cuda (or gpu), cuda:1, or auto (a GPU if there is one)";

inline CLI::Option* add_device_option(CLI::App& command, std::string& device, const std::string& more = "") {
  return command.add_option("--device", device, kDeviceHelp + more)->capture_default_str();
}

}  // namespace brisk
