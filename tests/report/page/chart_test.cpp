// Charts and the text around them.
#include "report/page/chart.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/page/html.h"
#include "report/read/run_facts.h"

namespace brisk {
namespace {

TEST(Axis, HasRoundNumbers) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(3.2, 4.1, 4), (std::vector<double>{3.5, 4}));
  EXPECT_EQ(axis_ticks(130, 940, 5), (std::vector<double>{200, 400, 600, 800}));
  EXPECT_EQ(axis_ticks(7, 7, 5), (std::vector<double>{7}));
}

TEST(Axis, OfTimeHasRoundMinutesAndHours) {
  EXPECT_EQ(time_ticks(0, 100, 7), (std::vector<double>{0, 15, 30, 45, 60, 75, 90}));
  EXPECT_EQ(time_ticks(0, 3 * 3600, 6), (std::vector<double>{0, 1800, 3600, 5400, 7200, 9000, 10800}));
  EXPECT_LE(time_ticks(0, 3e9, 6).size(), 8u);
}

TEST(Chart, OfAMillionPointsIsSmallAndKeepsTheSpike) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 1000000; ++i) points.emplace_back(i, i == 777777 ? 99.0 : 1 + 0.001 * (i % 7));
  const std::vector<ChartPoint> few = thinned(points, 800);
  EXPECT_LE(few.size(), 800u);
  double highest = 0;
  for (size_t i = 0; i < few.size(); ++i) {
    highest = std::max(highest, few[i].second);
    if (i > 0) {
      EXPECT_LT(few[i - 1].first, few[i].first);
    }
  }
  EXPECT_EQ(highest, 99.0);
  Chart chart{.x_name = "step", .y_name = "loss"};
  chart.lines.push_back({.name = "training", .points = points, .smooth = true});
  EXPECT_LT(chart_html(chart).size(), 60000u);
}

TEST(Chart, TheMeanOfANoisyLineDoesNotFollowItsLastPoint) {
  Chart chart{.x_name = "step", .y_name = "norm"};
  ChartLine line{.name = "norm", .smooth = true};
  for (int i = 0; i < 400; ++i) line.points.emplace_back(i, i == 399 ? 10.0 : 1.0);
  chart.lines = {line};
  const std::string html = chart_html(chart);
  const size_t name = html.find("data-name=\"norm\"");
  const std::string points = html.substr(name, html.find("/>", name) - name);
  const std::string last = points.substr(points.rfind(' ') + 1);
  const double top = std::stod(last.substr(last.find(',') + 1));
  EXPECT_GT(top, 500) << "the spike is at the top, the mean of the last points near the bottom: " << last;
}

TEST(Chart, DrawsWhatIsFiniteAndNothingElse) {
  Chart chart{.x_name = "step", .y_name = "loss"};
  chart.lines.push_back({.name = "a", .points = {{1, 2}, {2, std::nan("")}, {3, INFINITY}, {std::nan(""), 4}, {5, 1}}});
  const std::string html = chart_html(chart);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
  EXPECT_NE(html.find("<polyline"), std::string::npos);
  chart.lines[0].points = {{1, std::nan("")}};
  EXPECT_NE(chart_html(chart).find("nothing to draw"), std::string::npos);
}

TEST(Chart, OfOnePointIsADotInTheMiddle) {
  Chart chart{.x_name = "step", .y_name = "loss"};
  chart.lines.push_back({.name = "a", .points = {{10, 3}}});
  const std::string html = chart_html(chart);
  EXPECT_NE(html.find("h0\"/>"), std::string::npos) << html;
}

TEST(Html, EscapesMarkupAndShowsControlBytesAsPictures) {
  EXPECT_EQ(html_escape("a<b>&\"'\n\tc"), "a&lt;b&gt;&amp;&quot;&#39;\n\tc");
  EXPECT_EQ(html_escape(std::string_view("\0\x1b\x7f", 3)), "␀␛␡");
  EXPECT_EQ(html_escape("\xff ok \xc3"), "\uFFFD ok \uFFFD");
  EXPECT_EQ(html_escape("grün 漢字"), "grün 漢字");
}

TEST(Words, AreReadable) {
  EXPECT_EQ(words::exact(1234567), "1,234,567");
  EXPECT_EQ(words::exact(999), "999");
  EXPECT_EQ(words::exact(1000), "1,000");
  EXPECT_EQ(words::loss(kUnknown), "–");
  EXPECT_EQ(words::percent(0.5), "50.0 %");
}

}  // namespace
}  // namespace brisk
