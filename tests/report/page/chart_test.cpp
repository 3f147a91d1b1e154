// Charts and the text around them.
#include "report/page/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
  EXPECT_LT(chart_html(chart).markup().size(), 60000u);
}

TEST(Chart, TheMeanOfANoisyLineDoesNotFollowItsLastPoint) {
  Chart chart{.x_name = "step", .y_name = "norm"};
  ChartLine line{.name = "norm", .smooth = true};
  for (int i = 0; i < 400; ++i) line.points.emplace_back(i, i == 399 ? 10.0 : 1.0);
  chart.lines = {line};
  const std::string html = chart_html(chart).markup();
  const size_t name = html.find("data-name=\"norm\"");
  const std::string points = html.substr(name, html.find("/>", name) - name);
  const std::string last = points.substr(points.rfind(' ') + 1);
  const double top = std::stod(last.substr(last.find(',') + 1));
  EXPECT_GT(top, 500) << "the spike is at the top, the mean of the last points near the bottom: " << last;
}

TEST(Chart, DrawsWhatIsFiniteAndNothingElse) {
  Chart chart{.x_name = "step", .y_name = "loss"};
  chart.lines.push_back({.name = "a", .points = {{1, 2}, {2, std::nan("")}, {3, INFINITY}, {std::nan(""), 4}, {5, 1}}});
  const std::string html = chart_html(chart).markup();
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
  EXPECT_NE(html.find("<polyline"), std::string::npos);
  chart.lines[0].points = {{1, std::nan("")}};
  EXPECT_NE(chart_html(chart).markup().find("nothing to draw"), std::string::npos);
}

TEST(Chart, OfOnePointIsADotInTheMiddle) {
  Chart chart{.x_name = "step", .y_name = "loss"};
  chart.lines.push_back({.name = "a", .points = {{10, 3}}});
  const std::string html = chart_html(chart).markup();
  EXPECT_NE(html.find("h0\"/>"), std::string::npos) << html;
}

// Two losses of 1e17 whose difference is below the spacing of doubles had marks without end.
TEST(Chart, EndsForAnyTwoNumbers) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min(), kMost = std::numeric_limits<double>::max();
  const std::vector<double> numbers = {0,      -0.0,      1,     -1,    1e17,  1e17 + 16, 1e17 + 32, -1e17,    1e-17,
                                       kLeast, 1e99,      -1e99, 1e100, kMost, -kMost,    1e-300,    INFINITY, NAN,
                                       3e9,    0.1 + 0.2, 0.3,   9e15,  2e100, 5,         1e308};
  for (const double a : numbers) {
    for (const double b : numbers) {
      EXPECT_LE(axis_ticks(a, b, 7).size(), 100u) << a << " " << b;
      EXPECT_LE(time_ticks(a, b, 7).size(), 100u) << a << " " << b;
      for (const bool from_zero : {false, true}) {
        Chart chart{.x_name = "x", .y_name = "y", .x_is_time = from_zero, .focus = !from_zero, .from_zero = from_zero};
        chart.lines.push_back({.name = "along y", .points = {{1, a}, {2, b}, {3, a}}, .smooth = true});
        chart.lines.push_back({.name = "along x", .points = {{a, 1}, {b, 2}}, .dots = true});
        const std::string html = chart_html(chart).markup();
        EXPECT_LT(html.size(), 20000u) << a << " " << b;
        EXPECT_EQ(html.find("nan"), std::string::npos) << a << " " << b << html;
        EXPECT_EQ(html.find("inf"), std::string::npos) << a << " " << b << html;
      }
    }
  }
}

TEST(Axis, OfNumbersSideBySideHasAMark) {
  EXPECT_EQ(axis_ticks(1e17, 1e17 + 16, 5), (std::vector<double>{1e17, 1e17 + 16}));
  EXPECT_FALSE(axis_ticks(0, std::numeric_limits<double>::denorm_min(), 5).empty());
}

TEST(Html, EscapesWhateverIsPutIntoIt) {
  const std::string attack = "<script>\"'&";
  const std::string harmless = "&lt;script&gt;&quot;&#39;&amp;";
  EXPECT_EQ(html("<p title=\"{}\">{}</p>", attack, attack.c_str()).markup(),
            "<p title=\"" + harmless + "\">" + harmless + "</p>");
  EXPECT_EQ(html("{}{:.1f}{}", html("<b>"), 2.0, std::string_view("<")).markup(), "<b>2.0&lt;");
  EXPECT_EQ(Html(attack).markup(), harmless);
  EXPECT_EQ((Html("<") + html("<i>")).markup(), "&lt;<i>");
  const std::string table = html_table({.header = {attack}, .rows = {{attack, attack}}, .numbers = true}).markup();
  const std::string others = html_section(attack, attack, attack).markup() + html_notes({attack}).markup() +
                             status_pill(attack).markup() + html_tiles({{attack, attack, attack}}).markup() +
                             html_choice(attack, {{attack, attack}, {attack, attack}}).markup();
  EXPECT_EQ((table + others).find("<script>"), std::string::npos);
  EXPECT_EQ(html_page(attack, {}).find("<title>" + harmless) == std::string::npos, false);
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
