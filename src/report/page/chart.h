// A line chart as HTML: the curves are inline SVG that scales with the page, the labels are HTML and keep their size.
//
//   Chart chart{.x_name = "step", .y_name = "loss"};
//   chart.lines.push_back({.name = "training", .colour = 1, .points = {{10, 6.5}, {20, 6.1}}});
//   html += chart_html(chart);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/page/html.h"

namespace brisk {

using ChartPoint = std::pair<double, double>;  // x, y

struct ChartLine {
  std::string name;
  int colour = 1;  // from 1; beyond 8 the line is dashed and the colours begin again
  std::vector<ChartPoint> points;
  bool dots = false;    // few points, each of which counts
  bool smooth = false;  // noisy: a thin line as it is, and a bold one of its running mean
};

struct Chart {
  std::string x_name, y_name;
  bool x_is_time = false;  // seconds
  int height = 280;
  bool focus = false;  // the first points may be far off: the frame is chosen for the rest
  bool from_zero = false;
  std::vector<ChartLine> lines;
};

// Points that are not finite are left out; many are thinned so that a page stays small, extremes kept. A word instead
// of a chart where nothing is left.
Html chart_html(const Chart& chart);

// Where the marks of an axis go: round numbers, about `wanted` of them, inside [low, high].
std::vector<double> axis_ticks(double low, double high, int wanted);
std::vector<double> time_ticks(double low, double high, int wanted);  // round seconds, minutes, hours, days

// At most `most` points, of which each bucket keeps its least and its greatest.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most);

}  // namespace brisk
