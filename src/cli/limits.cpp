#include "cli/limits.h"

#include <fmt/format.h>

#include <cmath>

#include "base/runtime.h"
#include "base/threads.h"

namespace brisk {

namespace {

// CLI11 silently clamps larger integers to the largest one.
constexpr double kTooLarge = 9223372036854775808.0;

template <typename Allowed>
CLI::Validator limit(std::string expected, const Allowed& allowed) {
  return CLI::Validator(
      [expected, allowed](const std::string& text) -> std::string {
        double value = 0;
        if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || !allowed(value))
          return fmt::format("found {}, expected {}", text, expected);
        if (value >= kTooLarge) return fmt::format("found {}, expected at most {}", text, INT64_MAX);
        return "";
      },
      "");
}

}  // namespace

CLI::Validator at_least(double least) {
  return limit(fmt::format("at least {}", least), [least](double value) { return value >= least; });
}

CLI::Validator above(double limit_value) {
  return limit(fmt::format("more than {}", limit_value), [limit_value](double value) { return value > limit_value; });
}

CLI::Validator between(double least, double most) {
  return limit(fmt::format("{} to {}", least, most), [=](double value) { return value >= least && value <= most; });
}

CLI::Option* add_threads_option(CLI::App& command, int64_t& threads) {
  return command.add_option("--threads", threads, "Number of compute threads (default: all cores)")->check(at_least(1));
}

void set_threads(Runtime& runtime, int64_t threads) { runtime.set_threads(thread_count_for(threads, "--threads")); }

}  // namespace brisk
