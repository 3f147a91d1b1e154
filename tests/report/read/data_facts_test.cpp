// What a run says of its data: read back from its statistics.json, and on its page.
#include "report/read/data_facts.h"

#include <gtest/gtest.h>

#include "report/page/data_section.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

using test::put_contents;
using test::ScratchFolder;

class StatisticsFile : public ::testing::Test {
 protected:
  // The section, as the page has it.
  std::string section(const std::string& json) {
    notes.clear();
    put_contents(folder / "statistics.json", json);
    RunRecord run;
    run.data = read_data_facts(folder / "statistics.json", notes);
    return data_section_html(run).markup();
  }

  ScratchFolder folder;
  std::vector<std::string> notes;
};

TEST_F(StatisticsFile, OfATextTellsDocumentsLengthsAndCopies) {
  const std::string page = section(R"({"documents": 11669, "tokens": 3071331, "tokens_per_epoch": 3071331.0,
      "length": {"min": 5, "median": 17, "mean": 263.2, "percentile_95": 1026, "max": 4101}, "max_length": 64,
      "sequences": 55756, "documents_split": 5285, "histogram": [{"from": 5, "to": 8, "documents": 883}],
      "duplicates": {"documents": 2245, "estimated": false},
      "validation_shared_with_train": {"documents": 279, "estimated": false},
      "packing": {"tokens_per_step": 1762.09}})");
  for (const char* part :
       {"11,669", "3,071,331", "5 to 4,101 tokens, on average 263.2; half have up to 17, 95 % up to 1,026",
        "55,756 of at most 64 tokens; 5,285 documents are longer", "2,245 documents (19.2 %) repeat an earlier one",
        "279 documents of the validation", "1,762 tokens on average", "5 to 8 tokens"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
  EXPECT_EQ(page.find("Classes"), std::string::npos);
  EXPECT_TRUE(notes.empty());
}

TEST_F(StatisticsFile, OfATableTellsClassesAndWhatIsCut) {
  const std::string page = section(R"({"examples": 100, "tokens_per_epoch": 900, "max_length": 16, "truncated": 25,
      "tokens_cut": 100, "copies": 2, "contradictions": 1,
      "classes": [{"name": "<i>good", "examples": 75}, {"name": "bad", "examples": 25}]})");
  for (const char* part :
       {"25 examples (25.0 %) are longer than 16 tokens; 100 tokens (10.0 %) are not read", "2 examples (2.0 %) repeat",
        "1 texts have different labels", "Classes: 2", "&lt;i&gt;good", "75 (75.0 %)"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
  std::string many = R"({"examples": 30, "classes": [)";
  for (int i = 0; i < 30; ++i)
    many += (i > 0 ? "," : "") + (R"({"name": "c)" + std::to_string(i) + R"(", "examples": 1})");
  EXPECT_NE(section(many + "]}").find("Classes: the 20 largest of 30"), std::string::npos);
}

TEST_F(StatisticsFile, DamagedIsANoteAndMissingIsNothing) {
  for (const char* json : {"", "[]", "{", "3", R"({"examples": "many"})", R"({"examples": -1})"}) {
    EXPECT_EQ(section(json), "") << json;
    EXPECT_EQ(notes.size(), 1u) << json;
  }
  EXPECT_NE(section(R"({"examples": 3, "classes": [3, {"name": 3}], "histogram": {"from": []}, "length": []})"), "");
  notes.clear();
  EXPECT_TRUE(read_data_facts(folder / "none.json", notes).empty());
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace brisk
