#include "text/unicode/normalization.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

struct Case {
  const char *text, *nfc, *nfd, *nfkc, *nfkd;
};

TEST(Normalization, GivesTheFourForms) {
  const Case cases[] = {
      {"plain", "plain", "plain", "plain", "plain"},
      {"\u00E9", "\u00E9", "e\u0301", "\u00E9", "e\u0301"},
      {"e\u0301", "\u00E9", "e\u0301", "\u00E9", "e\u0301"},
      {"\u1E69", "\u1E69", "s\u0323\u0307", "\u1E69", "s\u0323\u0307"},
      {"s\u0307\u0323", "\u1E69", "s\u0323\u0307", "\u1E69", "s\u0323\u0307"},  // marks in their order
      {"q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307"},
      {"\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A"},
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"\u00BD", "\u00BD", "\u00BD", "1\u20442", "1\u20442"},
      {"\uAC01", "\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8"},
      {"\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8", "\uAC01", "\u1100\u1161\u11A8"},
      {"\uAC00\u11A7", "\uAC00\u11A7", "\u1100\u1161\u11A7", "\uAC00\u11A7", "\u1100\u1161\u11A7"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C"},  // never put together
      {"\u1E9B\u0323", "\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E69", "s\u0323\u0307"},
      {"a\u0315\u0300\u05AE\u0300b", "\u00E0\u05AE\u0300\u0315b", "a\u05AE\u0300\u0300\u0315b",
       "\u00E0\u05AE\u0300\u0315b", "a\u05AE\u0300\u0300\u0315b"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(normalize_unicode(c.text, NormalForm::kNfc), c.nfc) << c.text;
    EXPECT_EQ(normalize_unicode(c.text, NormalForm::kNfd), c.nfd) << c.text;
    EXPECT_EQ(normalize_unicode(c.text, NormalForm::kNfkc), c.nfkc) << c.text;
    EXPECT_EQ(normalize_unicode(c.text, NormalForm::kNfkd), c.nfkd) << c.text;
  }
}

TEST(Normalization, KeepsBytesThatAreNoUtf8) {
  EXPECT_EQ(normalize_unicode("\xFF\u00E9\xC3", NormalForm::kNfd),
            "\xFF"
            "e\u0301\xC3");
  EXPECT_EQ(normalize_unicode("e\xFF\u0301", NormalForm::kNfc), "e\xFF\u0301");
}

TEST(Normalization, LeavesMarksThatTheLibraryDoesNotKnowWhereTheyAre) {
  // Each below and above a letter, so that order matters: known to the library's tables, and not.
  EXPECT_EQ(normalize_unicode("a\u0301\u0323", NormalForm::kNfd), "a\u0323\u0301");
  EXPECT_EQ(normalize_unicode("a\u1ACB\u0323", NormalForm::kNfd), "a\u1ACB\u0323");
  EXPECT_EQ(normalize_unicode("a\u0301\u08D3", NormalForm::kNfd), "a\u0301\u08D3");
}

}  // namespace
}  // namespace brisk
