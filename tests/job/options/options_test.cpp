#include "job/options/options.h"

#include <brisk/job.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text/spelling.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

struct Cake {
  int64_t eggs = 3;
  double sugar = 0.5;
  bool vegan = false;
  std::string icing = "none";
  std::vector<std::string> fruit;
  int64_t cream = 0;
  int64_t layers = 0;
  std::string title;
};

std::vector<Option> declare(Cake& cake) {
  std::vector<Option> all;
  all.push_back(Option("title", cake.title, "what it says on top", OnResume::fixed));
  all.push_back(Option("dough.eggs", cake.eggs, "eggs in the dough", OnResume::fixed)
                    .at_least(1)
                    .at_most(12)
                    .also({"num_eggs", "oven.eggs"}));
  all.push_back(Option("dough.sugar", cake.sugar, "kilograms of it", OnResume::fixed).at_least(0).below(1));
  all.push_back(Option("dough.vegan", cake.vegan, "no eggs at all", OnResume::fixed));
  all.push_back(Option("cover.icing", cake.icing, "what covers it", OnResume::fixed)
                    .one_of({"none", "sugar", "chocolate"})
                    .same_as("ganache", "chocolate")
                    .flag("choc", "chocolate"));
  all.push_back(Option("cover.fruit", cake.fruit, "on top", OnResume::fixed));
  all.emplace_back("cover.cream", cake.cream, "layers of cream", OnResume::may_change)
      .only_with({"eggs", [&cake] { return !cake.vegan; }})
      .default_with({"chocolate", [&cake] { return cake.icing == "chocolate"; }}, 2)
      .smoke_test_at_most(1);
  all.push_back(Option("cover.layers", cake.layers, "of it", OnResume::fixed)
                    .at_least(0)
                    .automatic(0, "as many as it takes")
                    .or_flag());
  return all;
}

Cake read_options(const std::string& text, const std::vector<std::string>& overrides = {},
                  ReadResult* result = nullptr) {
  Cake cake;
  const ReadResult read_result = read_options(declare(cake), text, "cake.json", overrides);
  if (result != nullptr) *result = read_result;
  return cake;
}

std::string option_problem(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return test::message_of<UserError>([&] { read_options(text, overrides); });
}

TEST(Options, KeepTheirDefaultsWhereTheFileSaysNothing) {
  const Cake cake = read_options("{}");
  EXPECT_EQ(cake.eggs, 3);
  EXPECT_EQ(cake.icing, "none");
}

TEST(Options, TakeValuesOfEveryType) {
  const Cake cake = read_options(R"({"title": "Anna", "dough": {"eggs": 4, "sugar": 0.25, "vegan": true},
                             "cover": {"icing": "sugar", "fruit": ["fig", "plum"], "layers": 2}})");
  EXPECT_EQ(cake.title, "Anna");
  EXPECT_EQ(cake.eggs, 4);
  EXPECT_EQ(cake.sugar, 0.25);
  EXPECT_TRUE(cake.vegan);
  EXPECT_EQ(cake.icing, "sugar");
  EXPECT_EQ(cake.fruit, (std::vector<std::string>{"fig", "plum"}));
  EXPECT_EQ(cake.layers, 2);
}

TEST(Options, AreTheDefaultAgainWhereTheCommandLineSaysNull) {
  ReadResult result;
  const Cake cake = read_options(R"({"title": "Anna", "dough": {"num_eggs": 4, "sugar": 0.25, "vegan": true},
                                     "cover": {"icing": "sugar", "fruit": ["fig"], "layers": 2}})",
                                 {"title=null", "dough.eggs=null", "dough.sugar=null", "dough.vegan=null",
                                  "cover.choc=null", "cover.fruit=null", "cover.layers=null"},
                                 &result);
  EXPECT_EQ(cake.title, "");
  EXPECT_EQ(cake.eggs, 3);
  EXPECT_EQ(cake.sugar, 0.5);
  EXPECT_FALSE(cake.vegan);
  EXPECT_EQ(cake.icing, "none");
  EXPECT_TRUE(cake.fruit.empty());
  EXPECT_EQ(cake.layers, 0);
  EXPECT_TRUE(result.given.empty());
  EXPECT_EQ(read_options("{}", {"title=Anna", "title=null"}).title, "");
  EXPECT_EQ(read_options("{}", {"title=null", "title=Anna"}).title, "Anna");
  EXPECT_EQ(read_options("{}", {"title=\"null\""}).title, "null");
  EXPECT_NE(option_problem("{}", {"titel=null"}).find("did you mean title?"), std::string::npos);
}

TEST(Options, UnderstandWhatPeopleWrite) {
  EXPECT_EQ(read_options(R"({"dough": {"eggs": 4.0}})").eggs, 4);
  EXPECT_EQ(read_options(R"({"dough": {"eggs": 1e1}})").eggs, 10);
  EXPECT_EQ(read_options(R"({"dough": {"eggs": null}})").eggs, 3);
  EXPECT_EQ(read_options(R"({"cover": {"fruit": "fig"}})").fruit, std::vector<std::string>{"fig"});
  EXPECT_EQ(read_options(R"({"cover": {"layers": true}})").layers, 1);
  EXPECT_EQ(read_options(R"({"cover": {"layers": "auto"}})").layers, 0);
  EXPECT_EQ(read_options(R"({"cover": {"layers": 0}})").layers, 0) << "0 is a number of layers";
  EXPECT_EQ(read_options("{ // a comment\n \"dough\": {\"eggs\": /* four */ 4}}").eggs, 4);
  EXPECT_EQ(read_options(R"({"$schema": "cake.schema.json"})").eggs, 3);
}

TEST(Options, NoteEachOtherSpelling) {
  ReadResult result;
  EXPECT_EQ(read_options(R"({"oven": {"eggs": 1}})", {}, &result).eggs, 1);
  EXPECT_EQ(result.notes, std::vector<std::string>{"cake.json: read oven.eggs as dough.eggs"});
  EXPECT_TRUE(result.given.contains("dough.eggs"));
  read_options(R"({"cover": {"icing": "ganache"}})", {}, &result);
  EXPECT_EQ(result.notes, std::vector<std::string>{"cake.json: cover.icing: read \"ganache\" as \"chocolate\""});
}

TEST(Options, AFlagSetsAChoiceWhenTrueAndNothingWhenFalse) {
  EXPECT_EQ(read_options(R"({"cover": {"choc": true}})").icing, "chocolate");
  EXPECT_EQ(read_options(R"({"cover": {"choc": false, "icing": "sugar"}})").icing, "sugar");
  EXPECT_EQ(option_problem(R"({"cover": {"choc": true, "icing": "sugar"}})"),
            "cake.json: cover.choc and cover.icing are the same option, and both are given; remove one of them");
}

TEST(Options, AnUnknownKeyNamesTheNearest) {
  EXPECT_EQ(option_problem(R"({"dough": {"egs": 4}})"), "cake.json: dough.egs: unknown key; did you mean dough.eggs?");
  EXPECT_EQ(option_problem(R"({"dough": {"suagr": 0.1}})"),
            "cake.json: dough.suagr: unknown key; did you mean dough.sugar?");
  EXPECT_EQ(option_problem(R"({"dough": {"Num-Egs": 4}})"),
            "cake.json: dough.Num-Egs: unknown key; did you mean dough.eggs?");
}

TEST(Options, AKeyInTheWrongSectionNamesTheRightOne) {
  EXPECT_EQ(option_problem(R"({"egs": 4})"), "cake.json: egs: unknown key; did you mean dough.eggs?");
  EXPECT_EQ(option_problem(R"({"dough": {"icing": "sugar"}})"),
            "cake.json: dough.icing: unknown key; did you mean cover.icing?");
  EXPECT_EQ(option_problem(R"({"duogh": {"eggs": 4}})"),
            "cake.json: duogh: unknown key; did you mean the section dough?");
}

TEST(Options, AKeyNearNothingListsWhatThereIs) {
  EXPECT_EQ(option_problem(R"({"dough": {"temperature": 180}})"),
            "cake.json: dough.temperature: unknown key; dough has eggs, sugar, vegan");
}

TEST(Options, AWrongTypeNamesFoundExpectedAndFix) {
  EXPECT_EQ(
      option_problem(R"({"dough": {"eggs": "4"}})"),
      "cake.json: dough.eggs: found \"4\", expected an integer from 1 to 12; remove the quotation marks: \"eggs\": 4");
  EXPECT_EQ(option_problem(R"({"dough": {"eggs": 2.5}})"),
            "cake.json: dough.eggs: found 2.5, expected an integer from 1 to 12; leave it out for the default, 3");
  EXPECT_EQ(option_problem(R"({"dough": {"vegan": 1}})"),
            "cake.json: dough.vegan: found 1, expected true or false; leave it out for the default, false");
  EXPECT_EQ(option_problem(R"({"title": 7})"),
            "cake.json: title: found 7, expected a string; put it in quotation marks: \"title\": \"7\"");
  EXPECT_EQ(option_problem(R"({"cover": {"fruit": [1]}})"),
            "cake.json: cover.fruit: found a list [...], expected a string or a list of strings; leave it out for the "
            "default");
  EXPECT_EQ(option_problem(R"({"dough": 3})"),
            "cake.json: dough: found 3, expected an object {...}; put the section's keys inside it");
}

TEST(Options, AValueOutOfRangeNamesTheRange) {
  EXPECT_EQ(option_problem(R"({"dough": {"eggs": 0}})"),
            "cake.json: dough.eggs: found 0, expected an integer from 1 to 12; leave it out for the default, 3");
  EXPECT_EQ(option_problem(R"({"dough": {"sugar": 1}})"),
            "cake.json: dough.sugar: found 1, expected a number from 0 to below 1; leave it out for the default, 0.5");
  EXPECT_NE(option_problem(R"({"dough": {"eggs": 99999999999999999999}})").find("dough.eggs: found"),
            std::string::npos);
  EXPECT_NE(option_problem(R"({"dough": {"eggs": 1e300}})").find("dough.eggs: found"), std::string::npos);
}

TEST(Options, ABadChoiceNamesTheNearest) {
  EXPECT_EQ(option_problem(R"({"cover": {"icing": "chocolat"}})"),
            "cake.json: cover.icing: found \"chocolat\", expected one of none, sugar, chocolate; did you mean "
            "\"chocolate\"?");
}

TEST(Options, TwoSpellingsOrTwoValuesOfOneOptionAreAProblem) {
  EXPECT_EQ(option_problem(R"({"dough": {"eggs": 4, "num_eggs": 5}})"),
            "cake.json: dough.eggs and dough.num_eggs are the same option, and both are given; remove one of them");
  EXPECT_NE(option_problem(R"({"dough": {"eggs": 4, "eggs": 5}})")
                .find("cake.json: dough.eggs: given twice; remove one of them"),
            std::string::npos);
}

TEST(Options, AllProblemsAreReportedAtOnce) {
  const std::string text = option_problem(R"({"dough": {"egs": 4, "sugar": 2}, "colour": "red"})");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST(Options, ASyntaxErrorNamesLineColumnAndTheSlip) {
  const std::string comma = option_problem("{\n  \"dough\": {\"eggs\": 4,}\n}");
  EXPECT_TRUE(comma.starts_with("cake.json:2:23: ")) << comma;
  EXPECT_NE(comma.find("remove the comma before it"), std::string::npos) << comma;
  EXPECT_NE(option_problem("{\"dough\": {\"eggs\": 4 \"sugar\": 1}}").find("put a comma before it"), std::string::npos);
  EXPECT_NE(option_problem("{\"dough\": {\"vegan\": True}}").find("small letters"), std::string::npos);
  EXPECT_NE(option_problem("{'dough': 1}").find("double quotation marks"), std::string::npos);
  EXPECT_NE(option_problem("{\"dough\": {").find("closing bracket"), std::string::npos);
  EXPECT_NE(option_problem(" \n").find("cake.json: the file is empty"), std::string::npos);
  EXPECT_NE(option_problem("[1, 2]").find("cake.json: found a list"), std::string::npos);
}

TEST(Options, OverridesComeAfterTheFile) {
  EXPECT_EQ(read_options(R"({"dough": {"num_eggs": 5}})", {"dough.eggs=6"}).eggs, 6);
  EXPECT_EQ(read_options("{}", {"dough.eggs=6", "dough.eggs=7"}).eggs, 7);
  EXPECT_EQ(read_options("{}", {"cover.icing=sugar"}).icing, "sugar");
  EXPECT_EQ(read_options("{}", {"cover.icing=\"sugar\""}).icing, "sugar");
  EXPECT_EQ(read_options("{}", {"title=2024"}).title, "2024");
  EXPECT_EQ(read_options("{}", {"title=a=b"}).title, "a=b");
  EXPECT_EQ(read_options("{}", {"cover.fruit=[\"fig\", \"plum\"]"}).fruit.size(), 2u);
  EXPECT_EQ(read_options("{}", {"cover.fruit=3"}).fruit, std::vector<std::string>{"3"});
}

TEST(Options, OverridesAreCheckedLikeTheFile) {
  EXPECT_EQ(option_problem("{}", {"dough.egs=6"}),
            "--set dough.egs=6: dough.egs: unknown key; did you mean dough.eggs?");
  EXPECT_NE(option_problem("{}", {"dough.eggs=many"}).find("found \"many\", expected an integer from 1 to 12"),
            std::string::npos);
  EXPECT_NE(option_problem("{}", {"dough.eggs"}).find("expected key=value"), std::string::npos);
}

TEST(Options, WrittenOutTheyReadBackTheSame) {
  Cake cake;
  cake.eggs = 7;
  cake.sugar = 0.1 + 0.2;
  cake.title = "say \"hi\"\n";
  cake.fruit = {"fig"};
  const Cake again = read_options(options_to_json_text(declare(cake)));
  EXPECT_EQ(again.eggs, cake.eggs);
  EXPECT_EQ(again.sugar, cake.sugar);
  EXPECT_EQ(again.title, cake.title);
  EXPECT_EQ(again.fruit, cake.fruit);
  EXPECT_EQ(again.layers, 0);
}

TEST(Options, OtherDefaultsHoldUnlessTheOptionIsGiven) {
  Cake cake;
  const std::vector<Option> options = declare(cake);
  const auto fill = [&](const std::string& text) {
    cake = Cake();
    return apply_other_defaults(options, read_options(options, text, "cake.json").given);
  };
  EXPECT_EQ(fill(R"({"cover": {"icing": "chocolate"}})"),
            std::vector<std::string>{"defaults with chocolate: cover.cream = 2"});
  EXPECT_EQ(cake.cream, 2);
  EXPECT_TRUE(fill(R"({"cover": {"icing": "chocolate", "cream": 5}})").empty());
  EXPECT_EQ(cake.cream, 5);
  EXPECT_TRUE(fill("{}").empty());
  EXPECT_EQ(cake.cream, 0);
}

TEST(Options, AValueThatDoesNotApplyIsRefused) {
  Cake cake, plain;
  const std::vector<Option> options = declare(cake), defaults = declare(plain);
  const auto refusal = [&] { return test::message_of<UserError>([&] { check_options_apply(options, defaults); }); };
  cake.vegan = true;
  EXPECT_EQ(refusal(), "");
  cake.cream = 1;
  EXPECT_EQ(refusal(), "cover.cream does not apply without eggs; remove it");
  cake.vegan = false;
  EXPECT_EQ(refusal(), "");
}

TEST(Options, KnowWhatMayChangeOnResumeAndWhatASmokeTestHas) {
  Cake cake;
  const std::vector<Option> options = declare(cake);
  EXPECT_FALSE(values_fixed_on_resume(options).contains("cover.cream"));
  EXPECT_EQ(values_fixed_on_resume(options).at("dough.eggs"), "3");
  cake.cream = 7;
  shrink_for_smoke_test(options);
  EXPECT_EQ(cake.cream, 1);
  EXPECT_EQ(cake.eggs, 3);
}

TEST(Options, TakeAnyWordsFromAnOverride) {
  for (const std::string words : {"null", "3", "[1]", "a \"b\" = \\c", "two\nlines"}) {
    EXPECT_EQ(read_options("{}", {override_text("title", words)}).title, words);
    EXPECT_EQ(read_options("{}", {override_text("cover.fruit", std::vector{words, std::string("pear")})}).fruit,
              (std::vector<std::string>{words, "pear"}));
  }
  EXPECT_NE(option_problem("{}", {override_text("title", "\xFF")}).find("not valid UTF-8"), std::string::npos);
}

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
  EXPECT_EQ(edit_distance("layer", "layers"), 1);
  EXPECT_EQ(edit_distance("haeds", "heads"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

}  // namespace
}  // namespace brisk
