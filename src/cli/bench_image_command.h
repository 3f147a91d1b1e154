// `brisk bench image`.
#pragma once

#include <brisk/runtime.h>

#include <CLI/CLI.hpp>

namespace brisk {

void add_bench_image(CLI::App& bench, Runtime& runtime);

}  // namespace brisk
