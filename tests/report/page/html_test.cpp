// Markup of text from outside.
#include "report/page/html.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

TEST(HtmlWithCode, ShowsWhatStandsBetweenBackticksAsCode) {
  EXPECT_EQ(html_with_code("or with `brisk eval RUN --data FILE`").markup(),
            "or with <code>brisk eval RUN --data FILE</code>");
  EXPECT_EQ(html_with_code("`a` and `b`; c").markup(), "<code>a</code> and <code>b</code>; c");
  EXPECT_EQ(html_with_code("").markup(), "");
}

TEST(HtmlWithCode, EscapesEverythingAndLeavesALoneBacktick) {
  EXPECT_EQ(html_with_code("<b> `<i>`").markup(), "&lt;b&gt; <code>&lt;i&gt;</code>");
  EXPECT_EQ(html_with_code("one ` alone").markup(), "one ` alone");
}

}  // namespace
}  // namespace brisk
