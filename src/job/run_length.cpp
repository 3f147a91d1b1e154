#include "job/run_length.h"

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace brisk {

namespace {

constexpr double kLongest = 1e15;  // of anything: above it sums of doubles are not exact

[[noreturn]] void refuse(std::string_view text, std::string_view key, const std::string& fix) {
  user_error(
      "{}: found \"{}\", expected a length such as \"2e\" (epochs), \"500u\" (optimizer steps), \"10Mt\" (tokens) or "
      "\"30m\" (time, in s, m or h), or \"auto\" (until the Slurm allocation ends){}",
      key, text, fix);
}

double thousands(char letter) { return letter == 'K' ? 1e3 : letter == 'M' ? 1e6 : letter == 'G' ? 1e9 : 1; }

double seconds_of(char letter) { return letter == 's' ? 1 : letter == 'm' ? 60 : letter == 'h' ? 3600 : 0; }

}  // namespace

RunLength parse_run_length(std::string_view text, std::string_view key) {
  RunLength stop;
  stop.amount = 0;
  if (text == "auto") {
    stop.unit = RunLength::Unit::allocation;
    return stop;
  }
  std::string_view rest = text;
  if (rest.empty()) refuse(text, key, "");
  for (int part = 0; !rest.empty(); ++part) {
    double number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(number)) refuse(text, key, "");
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    const double scale = rest.empty() ? 1 : thousands(rest.front());
    if (scale > 1) rest.remove_prefix(1);
    if (rest.empty()) {
      const std::string whole(text);
      refuse(text, key,
             scale == 1 ? fmt::format("; did you mean {}u, {}e or {}m?", whole, whole, whole)
                        : fmt::format("; did you mean {}t?", whole));
    }
    const char unit = rest.front();
    rest.remove_prefix(1);
    if (const double seconds = seconds_of(unit); seconds > 0 && scale == 1) {
      if (part > 0 && stop.unit != RunLength::Unit::seconds) refuse(text, key, "; only times can be added up");
      stop.unit = RunLength::Unit::seconds;
      stop.amount += number * seconds;
    } else if (part == 0 && rest.empty() && (unit == 'u' || unit == 't' || (unit == 'e' && scale == 1))) {
      stop.unit = unit == 'u'   ? RunLength::Unit::updates
                  : unit == 't' ? RunLength::Unit::tokens
                                : RunLength::Unit::epochs;
      stop.amount = number * scale;
    } else {
      refuse(text, key, "");
    }
  }
  if (stop.amount <= 0) refuse(text, key, "; it must be greater than zero");
  if (stop.amount > kLongest) refuse(text, key, fmt::format("; the maximum is {:g}", kLongest));
  return stop;
}

}  // namespace brisk
