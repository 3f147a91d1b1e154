#include "report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/terminal/terminal.h"
#include "report/page/html.h"

namespace brisk {

namespace {

constexpr double kSide = 1000;  // of the drawing, in its own units
constexpr size_t kMostPoints = 800;
constexpr int kColours = 8;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double size() const { return high - low; }
};

struct Frame {
  Range x, y;  // y in powers of ten where `logarithmic`
  bool logarithmic = false;

  double left(double value) const { return kSide * (value - x.low) / x.size(); }
  double top(double value) const {
    const double level = logarithmic ? std::log10(value) : value;
    return kSide * (y.high - level) / y.size();
  }
};

// NaN, infinities and numbers whose differences or sums could be infinite are no points.
std::vector<ChartPoint> points_to_draw(const std::vector<ChartPoint>& points) {
  constexpr double kLargest = 1e100;
  std::vector<ChartPoint> drawn;
  for (const ChartPoint& point : points) {
    if (std::abs(point.first) <= kLargest && std::abs(point.second) <= kLargest) drawn.push_back(point);
  }
  return drawn;
}

// The mean of as many points on either side as there are on both, at most a fortieth of all: it does not lag behind a
// curve that falls.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points) {
  std::vector<double> sums = {0};
  for (const ChartPoint& point : points) sums.push_back(sums.back() + point.second);
  std::vector<ChartPoint> result;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t most = points.size() / 40 + 1;
    const size_t after = std::min({i, points.size() - 1 - i, most});
    const size_t before = std::min({i, most, std::max(after, most / 2)});  // one last point alone is no mean
    result.emplace_back(points[i].first,
                        (sums[i + after + 1] - sums[i - before]) / static_cast<double>(before + after + 1));
  }
  return result;
}

Frame frame_of(const Chart& chart) {
  Frame frame;
  Range all;
  double least_positive = std::numeric_limits<double>::infinity();
  for (const ChartLine& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      frame.x.include(x);
      all.include(y);
      if (y > 0) least_positive = std::min(least_positive, y);
    }
  }
  if (frame.x.size() <= 0) {  // one point stands in the middle
    const double margin = std::max(1.0, 0.1 * std::abs(frame.x.low));
    frame.x.include(frame.x.low - margin);
    frame.x.include(frame.x.high + margin);
  }
  if (frame.x.low > 0) frame.x.low = 0;    // steps, seconds and tokens all count from there
  frame.x.high += 0.006 * frame.x.size();  // the last dot is not cut in half
  if (chart.focus) {
    const double settled = frame.x.low + 0.03 * frame.x.size();
    Range later;
    for (const ChartLine& line : chart.lines) {
      for (const auto& [x, y] : line.points) {
        if (x >= settled) later.include(y);
      }
    }
    if (later.size() > 0 && all.size() > 1.5 * later.size()) all = later;
  }
  frame.logarithmic = !chart.from_zero && all.low > 0 && all.high > 50 * all.low;
  if (chart.from_zero) all.include(0);
  frame.y = frame.logarithmic ? Range{std::log10(all.low), std::log10(all.high)} : all;
  const double margin = frame.y.size() > 0 ? 0.05 * frame.y.size() : std::max(1e-9, 0.1 * std::abs(frame.y.low));
  frame.y.high += margin;
  if (!(chart.from_zero && all.low >= 0)) frame.y.low -= margin;
  return frame;
}

std::string number_text(double value, double step) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e4) return format_count(value);
  if (size < 1e-3) return fmt::format("{:.2g}", value);
  const int decimals = static_cast<int>(std::clamp(std::ceil(-std::log10(step) - 1e-9), 0.0, 6.0));
  return fmt::format("{:.{}f}", value, decimals);
}

// Marks of one axis are in one unit.
std::string time_text(double seconds, double step, double longest) {
  if (longest < 120) return fmt::format("{:g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (longest < 2 * 3600) {
    return step >= 60 ? fmt::format("{} min", whole / 60) : fmt::format("{}:{:02}", whole / 60, whole % 60);
  }
  if (longest < 2 * 86400) {
    return step >= 3600 ? fmt::format("{} h", whole / 3600)
                        : fmt::format("{}:{:02} h", whole / 3600, whole % 3600 / 60);
  }
  return fmt::format("{:g} d", seconds / 86400);
}

struct Mark {
  double place = 0;  // in the drawing's units
  std::string text;
};

std::vector<Mark> y_marks(const Frame& frame) {
  std::vector<Mark> marks;
  if (frame.logarithmic) {
    const double decades = frame.y.size();
    const int between = 1 + static_cast<int>(decades / 8);  // powers of ten from one mark to the next
    for (int power = static_cast<int>(std::floor(frame.y.low)); power <= frame.y.high; power += between) {
      for (const int digit : {1, 2, 5}) {
        if (digit != 1 && decades > 3) continue;
        const double value = digit * std::pow(10.0, power);
        if (std::log10(value) < frame.y.low || std::log10(value) > frame.y.high) continue;
        marks.push_back({frame.top(value), fmt::format("{:g}", value)});
      }
    }
    return marks;
  }
  const std::vector<double> ticks = axis_ticks(frame.y.low, frame.y.high, 5);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (const double value : ticks) marks.push_back({frame.top(value), number_text(value, step)});
  return marks;
}

std::vector<Mark> x_marks(const Frame& frame, bool is_time) {
  std::vector<Mark> marks;
  const std::vector<double> ticks =
      is_time ? time_ticks(frame.x.low, frame.x.high, 7) : axis_ticks(frame.x.low, frame.x.high, 7);
  const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
  for (const double value : ticks) {
    marks.push_back({frame.left(value), is_time ? time_text(value, step, frame.x.high) : number_text(value, step)});
  }
  return marks;
}

std::string points_text(const Frame& frame, const std::vector<ChartPoint>& points) {
  std::string text;
  for (const auto& [x, y] : points) {
    if (frame.logarithmic && y <= 0) continue;
    // What is far outside the frame is cut anyway, and a number without bounds would not be.
    text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", frame.left(x),
                        std::clamp(frame.top(y), -5 * kSide, 6 * kSide));
  }
  return text;
}

Html polyline(const Frame& frame, const ChartLine& line, const std::vector<ChartPoint>& points, const char* weight,
              bool named) {
  return html("<polyline class=\"c{} {}{}\"{} points=\"{}\"/>", (line.colour - 1) % kColours + 1, weight,
              line.colour > kColours ? " dash" : "", named ? html(" data-name=\"{}\"", line.name) : Html(),
              points_text(frame, points));
}

Html curves(const Frame& frame, const ChartLine& line) {
  const std::vector<ChartPoint> points = thinned(line.points, kMostPoints);
  const bool both = line.smooth && line.points.size() > 20;
  Html svg;
  if (both) {
    svg += polyline(frame, line, points, "thin", false);
    svg += polyline(frame, line, thinned(smoothed(line.points), kMostPoints), "bold", true);
  } else {
    svg += polyline(frame, line, points, "bold", true);
  }
  if (!line.dots && points.size() > 1) return svg;
  // A line of no length with round ends is a dot, and stays round however the drawing is stretched.
  std::string dots;
  for (const auto& [x, y] : points) {
    if (frame.logarithmic && y <= 0) continue;
    const double top = frame.top(y);
    if (top >= 0 && top <= kSide) dots += fmt::format("M{:.1f} {:.1f}h0", frame.left(x), top);
  }
  return svg + html("<path class=\"c{} dot\" d=\"{}\"/>", (line.colour - 1) % kColours + 1, dots);
}

std::vector<double> ticks_with_step(double low, double high, double step) {
  constexpr int kMost =
      100;  // ten times what is wanted; where the step is below the spacing of doubles there is no end
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i < kMost; ++i) {
    const double tick = (first + i) * step + 0.0;                     // no -0
    if (!(tick <= high + 1e-9 * step)) break;                         // nor NaN
    if (ticks.empty() || tick > ticks.back()) ticks.push_back(tick);  // the next double may be several steps away
  }
  return ticks.empty() ? std::vector<double>{low} : ticks;
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int wanted) {
  const double rough = (high - low) / wanted, power = std::pow(10.0, std::floor(std::log10(rough)));
  if (!(rough > 0) || !std::isfinite(rough) || !(power > 0)) return {low};
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  return ticks_with_step(low, high, step);
}

std::vector<double> time_ticks(double low, double high, int wanted) {
  constexpr std::array<double, 22> kSteps = {1,     2,     5,      10,     15,     30,     60,    120,
                                             300,   600,   900,    1800,   3600,   7200,   10800, 21600,
                                             43200, 86400, 172800, 432000, 864000, 1728000};
  const double rough = (high - low) / wanted;
  if (!(rough >= 1)) return axis_ticks(low, high, wanted);
  for (const double step : kSteps) {
    if (step >= rough) return ticks_with_step(low, high, step);
  }
  return axis_ticks(low, high, wanted);
}

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t buckets = std::max<size_t>(1, most / 2);
  std::vector<ChartPoint> result;
  for (size_t i = 0; i < buckets; ++i) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / buckets);
    const auto last = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / buckets);
    auto [low, high] =
        std::minmax_element(first, last, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (high < low) std::swap(low, high);
    result.push_back(*low);
    if (low != high) result.push_back(*high);
  }
  return result;
}

Html chart_html(const Chart& given) {
  Chart chart = given;
  for (ChartLine& line : chart.lines) line.points = points_to_draw(line.points);
  std::erase_if(chart.lines, [](const ChartLine& line) { return line.points.empty(); });
  if (chart.lines.empty()) return html("<p class=\"why\">nothing to draw yet</p>\n");
  const Frame frame = frame_of(chart);

  Html legend;
  if (chart.lines.size() > 1) {
    Html names;
    for (const ChartLine& line : chart.lines) {
      names += html("<span><i class=\"c{}\"></i>{}</span>", (line.colour - 1) % kColours + 1, line.name);
    }
    legend = html("<div class=\"legend\">{}</div>", names);
  }
  Html grid, y_axis, x_axis;
  for (const Mark& mark : y_marks(frame)) {
    grid += html("<path class=\"g\" d=\"M0 {:.1f}H{:.0f}\"/>", mark.place, kSide);
    y_axis += html("<span style=\"top:{:.2f}%\">{}</span>", mark.place / kSide * 100, mark.text);
  }
  for (const Mark& mark : x_marks(frame, chart.x_is_time)) {
    grid += html("<path class=\"g\" d=\"M{:.1f} 0V{:.0f}\"/>", mark.place, kSide);
    x_axis += html("<span style=\"left:{:.2f}%\">{}</span>", mark.place / kSide * 100, mark.text);
  }
  Html drawn;
  for (const ChartLine& line : chart.lines) drawn += curves(frame, line);
  return html(
      "<figure class=\"chart\" style=\"--h:{}px\">{}<div class=\"frame\"><div class=\"yaxis\">{}</div>"
      "<div class=\"plot\" data-x0=\"{:.9g}\" data-x1=\"{:.9g}\" data-y0=\"{:.9g}\" data-y1=\"{:.9g}\"{}{} "
      "data-xname=\"{}\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"{} against {}\">{}{}</svg><div class=\"cursor\"></div><div class=\"tip\"></div></div>"
      "<div class=\"xaxis\">{}</div></div><figcaption>{}</figcaption></figure>\n",
      chart.height, legend, y_axis, frame.x.low, frame.x.high, frame.y.low, frame.y.high,
      frame.logarithmic ? html(" data-log=\"1\"") : Html(), chart.x_is_time ? html(" data-time=\"1\"") : Html(),
      chart.x_name, chart.y_name, chart.x_name, grid, drawn, x_axis, chart.x_name);
}

}  // namespace brisk
