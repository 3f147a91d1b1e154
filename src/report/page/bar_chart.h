// Horizontal bars from zero, one for each of a few things, with the interval of a measured value as a whisker. Plain
// HTML: a name stands left of its bar, on a phone above it.
//
//   body += bar_chart_html({{.name = "as written", .value = 1200, .text = "1.20K tokens/s"},
//                           {.name = "bf16", .value = 1190, .low = 1150, .high = 1230, .text = "1.19K", .pale = true}});
#pragma once

#include <string>
#include <vector>

#include "report/page/html.h"

namespace brisk {

struct Bar {
  std::string name;
  double value = 0;          // what is not finite or not above zero has no bar
  double low = 0, high = 0;  // of the whisker; none where they are equal
  std::string text;          // the value, right of the bar
  std::string detail;        // below the name, small
  int colour = 1;            // of the page's lines, 1 to 8
  bool pale = false;         // did not count: rejected, or for comparison alone
};

Html bar_chart_html(const std::vector<Bar>& bars);

}  // namespace brisk
