#include "report/page/bar_chart.h"

#include <algorithm>
#include <cmath>

namespace brisk {

namespace {

bool is_length(double value) { return std::isfinite(value) && value > 0; }

bool has_whisker(const Bar& bar) { return is_length(bar.low) && is_length(bar.high) && bar.low < bar.high; }

}  // namespace

Html bar_chart_html(const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) {
    if (is_length(bar.value)) longest = std::max(longest, bar.value);
    if (has_whisker(bar)) longest = std::max(longest, bar.high);
  }
  Html rows;
  for (const Bar& bar : bars) {
    const auto percent = [&](double value) { return 100 * value / longest; };
    Html drawn;
    if (is_length(bar.value)) {
      drawn = html("<i class=\"c{}\" style=\"width:{:.2f}%\"></i>", (bar.colour - 1) % 8 + 1, percent(bar.value));
      if (has_whisker(bar)) {
        drawn += html("<u style=\"left:{:.2f}%;width:{:.2f}%\"></u>", percent(bar.low), percent(bar.high - bar.low));
      }
    }
    rows += html("<div class=\"of{}\"><span>{}{}</span><div class=\"track\">{}</div><b>{}</b></div>\n",
                 bar.pale ? " pale" : "", bar.name, bar.detail.empty() ? Html() : html("<small>{}</small>", bar.detail),
                 drawn, bar.text);
  }
  return html("<div class=\"hbars\">\n{}</div>\n", rows);
}

}  // namespace brisk
