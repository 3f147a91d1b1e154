// The commands besides train, as scripts use them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "program/support/small_job.h"

namespace brisk::program {
namespace {

TEST(Help, OfEveryCommandEndsWithAnExample) {
  TemporaryFolder folder;
  for (const std::string command :
       {"", "train", "generate", "eval", "score", "tokenizer", "tokenizer train", "tokenizer encode",
        "tokenizer decode", "tokenizer convert", "machine", "bench", "bench lm", "bench mu", "job", "job schema",
        "job reference", "completion", "manual"}) {
    std::vector<std::string> arguments;
    std::istringstream words(command);
    for (std::string word; words >> word;) arguments.push_back(word);
    arguments.emplace_back("--help");
    const Outcome outcome = run_brisk(arguments, folder);
    EXPECT_EQ(outcome.exit_code, 0) << command;
    EXPECT_EQ(outcome.err, "") << command;
    const size_t example = outcome.out.find("Example");
    ASSERT_NE(example, std::string::npos) << command << "\n" << outcome.out;
    EXPECT_NE(outcome.out.find("brisk " + command, example), std::string::npos) << command << "\n" << outcome.out;
  }
  const Outcome version = run_brisk({"--version"}, folder);
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.substr(0, 6), "brisk ");
}

TEST(Score, PrintsTheScoresAndSignaturesThatSacreBleuPrints) {
  TemporaryFolder folder;
  write_text(folder / "output", "The cat sat on the mat.\n\nA dog, perhaps\n");
  write_text(folder / "reference", "The cat is on the mat.\nNothing\nA dog, perhaps.\n");
  const Outcome outcome = run_brisk({"score", "--hypotheses", "output", "--references", "reference"}, folder);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string version = run_brisk({"--version"}, folder).out;
  const std::string said = "version:brisk-" + version.substr(6, version.find('\n') - 6);
  EXPECT_EQ(outcome.out, "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|" + said +
                             " = 52.86 90.9/77.8/57.1/40.0 (BP = 0.834 ratio = 0.846 hyp_len = 11 ref_len = 13)\n"
                             "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|" +
                             said + " = 67.52\n");
  const Json json = Json::parse(
      run_brisk({"score", "--hypotheses", "output", "-r", "reference", "-r", "output", "--json", "--lowercase"}, folder)
          .out);
  EXPECT_NEAR(json["bleu"].get<double>(), 100, 1e-9);
  EXPECT_NEAR(json["chrf"].get<double>(), 87.901950558038195, 1e-9);  // the empty line counts with the first reference
  EXPECT_EQ(json["signature"].get<std::string>(), "nrefs:2|case:lc|eff:no|tok:13a|smooth:exp|" + said);
  EXPECT_EQ(json["lines"], 3);
  EXPECT_EQ(json["hypothesis_length"], 11);
}

TEST(Score, SaysWhatIsWrongWithFilesAndFlags) {
  TemporaryFolder folder;
  write_text(folder / "two", "a\nb\n");
  write_text(folder / "one", "a\n");
  write_text(folder / "empty", "");
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"score", "--hypotheses", "two"});
    const Outcome outcome = run_brisk(more, folder);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_TRUE(has(refusal({"-r", "one"}), "one: the file ends with line 1, but two has a line 2"));
  EXPECT_TRUE(has(refusal({"-r", "empty"}), "empty: the file is empty, but two has lines"));
  EXPECT_TRUE(has(refusal({"-r", "two", "--smooth-value", "1"}), "--smooth-value applies to"));
  EXPECT_TRUE(has(refusal({"-r", "two", "--tokenize", "spm"}), "--tokenize"));
  EXPECT_TRUE(has(refusal({"-r", "-", "-r", "-"}), "standard input is named twice"));
  EXPECT_TRUE(has(refusal({}), "--references is required"));
}

TEST(Score, ComparesPagesOfTwoFoldersByTheirNames) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "output");
  std::filesystem::create_directories(folder / "reference");
  write_text(folder / "output/a.md", "# One\ntext\n");
  write_text(folder / "output/b.md", "");
  write_text(folder / "reference/a.mmd", "# Eins\ntext\n\n\\(x\\)\n");
  write_text(folder / "reference/b.mmd", "\n\n");
  write_text(folder / "reference/c.mmd", "no hypothesis");
  const Outcome outcome = run_brisk(
      {"score", "--hypotheses", "output", "-r", "reference", "--metrics", "steds,cer,wer,bleu_text", "--json"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "1 file of the references has no hypothesis")) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["pages"], 2);
  EXPECT_NEAR(json["steds"].get<double>(), 50 * (4 / 5. + 1), 1e-6);
  EXPECT_NEAR(json["cer"].get<double>(), 12 / 21., 1e-12);
  EXPECT_NEAR(json["wer"].get<double>(), 2 / 4., 1e-12);
  EXPECT_TRUE(has(json["bleu_text_signature"], "tok:13a")) << json;
  EXPECT_FALSE(json.contains("bleu"));
  const Outcome printed =
      run_brisk({"score", "--hypotheses", "output", "-r", "reference", "--metrics", "cer,steds"}, folder);
  EXPECT_EQ(printed.out, "Character error rate = 57.14 %\nSTEDS = 90.00\n");
}

TEST(Score, SaysWhatIsWrongWithFoldersAndMetrics) {
  TemporaryFolder folder;
  for (const char* name : {"pages", "none", "twice", "less"}) std::filesystem::create_directories(folder / name);
  write_text(folder / "pages/a.md", "text");
  write_text(folder / "twice/a.md", "text");
  write_text(folder / "twice/a.txt", "text");
  write_text(folder / "less/b.md", "text");
  write_text(folder / "file", "text");
  const auto refusal = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"score", "--hypotheses"});
    const Outcome outcome = run_brisk(more, folder);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_TRUE(has(refusal({"pages", "-r", "less"}), "pages/a.md: there is no file a.* in less"));
  EXPECT_TRUE(has(refusal({"pages", "-r", "twice"}), "is the same page by its name"));
  EXPECT_TRUE(has(refusal({"pages", "-r", "file"}), "file: not a folder, but another"));
  EXPECT_TRUE(has(refusal({"none", "-r", "pages"}), "there are no files in the folder"));
  EXPECT_TRUE(has(refusal({"file", "-r", "file", "--metrics", "blue"}), "found \"blue\", expected some of bleu, chrf"));
  EXPECT_TRUE(has(refusal({"file", "-r", "file", "-r", "file", "--metrics", "cer"}), "compares with one reference"));
}

// A model that knows its text, made once for all tests that ask something of it.
class TrainedModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    write_text(*folder / "text.txt", english_like_text(300));
    write_text(*folder / "held-out.txt", english_like_text(40, 9));
    Json job = small_job();
    job["training"]["max_steps"] = 120;
    job["training"]["eval_steps"] = 30;
    job["data"]["validation"] = "held-out.txt";
    train_small(*folder, job, "run");
  }
  static void TearDownTestSuite() {
    delete folder;
    folder = nullptr;
  }

  static Outcome generate(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"generate",     "run", "--prompt", "The little dog watches",
                                          "--max-tokens", "30"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_brisk(arguments, *folder);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }

  static TemporaryFolder* folder;
};
TemporaryFolder* TrainedModel::folder = nullptr;

TEST_F(TrainedModel, ContinuesAPromptTheSameWayWhenGreedy) {
  const Outcome first = generate({"--temperature", "0"}), second = generate({"--temperature", "0", "--seed", "5"});
  EXPECT_EQ(first.out, second.out);
  EXPECT_EQ(first.out.substr(0, 22), "The little dog watches");
  EXPECT_GT(first.out.size(), 30U);
  EXPECT_EQ(first.out.substr(22, 5), " the ") << first.out;  // it has learned how such sentences go on
  EXPECT_NE(first.err.find("tokens/s"), std::string::npos);
  EXPECT_EQ(first.out.find("tokens/s"), std::string::npos);
}

TEST_F(TrainedModel, DrawsAsTheSeedSays) {
  const Outcome first = generate({"--seed", "3"}), again = generate({"--seed", "3"}), other = generate({"--seed", "4"});
  EXPECT_EQ(first.out, again.out);
  EXPECT_NE(first.out, other.out);
  EXPECT_EQ(generate({"--seed", "3", "--top-k", "1"}).out, generate({"--temperature", "0"}).out);
}

TEST_F(TrainedModel, GoesOnBeyondItsContext) {
  const Outcome outcome = run_brisk({"generate", "run", "--max-tokens", "100", "--temperature", "0.5"}, *folder);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(TrainedModel, EvaluatesToTheLossOfTheRun) {
  const Outcome outcome = run_brisk({"eval", "run", "--data", "held-out.txt", "--json"}, *folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  const Json best = read_json(*folder / "run/summary.json")["best"];
  EXPECT_NEAR(result["loss"].get<double>(), best["validation_loss"].get<double>(), 1e-5);
  EXPECT_NEAR(result["accuracy"].get<double>(), best["validation_accuracy"].get<double>(), 1e-3);
  EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(result["loss"].get<double>()), 1e-6);
  EXPECT_GT(result["tokens"].get<int64_t>(), 500);
  // A checkpoint by name, too.
  const std::string checkpoint = "run/checkpoints/" + checkpoints_of(*folder / "run").back();
  const Outcome last = run_brisk({"eval", checkpoint, "--data", "held-out.txt", "--json"}, *folder);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NEAR(Json::parse(last.out)["loss"].get<double>(),
              evaluation_lines(metrics_of(*folder / "run")).back()["validation_loss"].get<double>(), 1e-5);
}

TEST_F(TrainedModel, WarnsOfATokenizerThatIsNotItsOwn) {
  ASSERT_EQ(
      run_brisk({"tokenizer", "train", "--vocab-size", "270", "--output", "t.json", "text.txt"}, *folder).exit_code, 0);
  EXPECT_NE(generate({"--tokenizer", "t.json"}).err.find("t.json: not the tokenizer"), std::string::npos);
  EXPECT_EQ(generate({"--tokenizer", "run/tokenizer.json"}).err.find("not the tokenizer"), std::string::npos);
}

TEST_F(TrainedModel, IsOpenForReadingWhileItTrains) {
  Json job = small_job();
  job["training"]["max_steps"] = 1000000;
  job["training"]["save_steps"] = 5;
  write_job(*folder, job, "long.json");
  Process process({"train", "long.json", "--output", "long"}, *folder);
  ASSERT_TRUE(process.wait_for("step 20/"));
  for (int i = 0; i < 5; ++i) {
    const Outcome outcome = run_brisk({"generate", "long", "--max-tokens", "5"}, *folder);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

TEST(Tokenizer, EncodesAndDecodesLines) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  const Outcome trained =
      run_brisk({"tokenizer", "train", "--vocab-size", "300", "--output", "t.json", "text.txt"}, folder);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string lines = english_like_text(5, 2) +
                            "\n  two  spaces\ttab \nGr\xc3\xbc\xc3\x9f"
                            "e, \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x98\x80\n" +
                            "<|endoftext|> 123\n";
  const Outcome encoded = run_brisk({"tokenizer", "encode", "--tokenizer", "t.json"}, folder, {.input = lines});
  ASSERT_EQ(encoded.exit_code, 0) << encoded.err;
  EXPECT_EQ(std::count(encoded.out.begin(), encoded.out.end(), '\n'), std::count(lines.begin(), lines.end(), '\n'));
  EXPECT_EQ(encoded.out.find_first_not_of("0123456789 \n"), std::string::npos) << encoded.out;
  EXPECT_LT(encoded.out.find('\n'), lines.find('\n') * 3);  // merges were learned: fewer tokens than bytes
  const Outcome decoded = run_brisk({"tokenizer", "decode", "--tokenizer", "t.json"}, folder, {.input = encoded.out});
  ASSERT_EQ(decoded.exit_code, 0) << decoded.err;
  EXPECT_EQ(decoded.out, lines);

  for (const char* wrong : {"300", "x", "-1", "1.5", "1,2", "0xff"}) {
    const Outcome refused = run_brisk({"tokenizer", "decode", "--tokenizer", "t.json"}, folder,
                                      {.input = "12 " + std::string(wrong) + " 13\n"});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_NE(refused.err.find("line 1: '" + std::string(wrong) + "'"), std::string::npos) << refused.err;
  }
}

TEST(CommandLine, RefusesNumbersThatAreNone) {
  TemporaryFolder folder;
  const auto refuses = [&](std::vector<std::string> command, const std::string& words) {
    const Outcome outcome = run_brisk(std::move(command), folder, {.timeout_seconds = 20});
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
    EXPECT_LT(outcome.err.find('\n'), 200U) << outcome.err;  // one line; of memory a table may follow
  };
  refuses({"generate", "run", "--temperature", "nan"}, "--temperature: found nan, expected at least 0");
  refuses({"generate", "run", "--top-p", "nan"}, "--top-p: found nan, expected 1e-06 to 1");
  refuses({"generate", "run", "--repetition-penalty", "inf"}, "--repetition-penalty: found inf, expected 0.01 to 100");
  refuses({"generate", "run", "--max-tokens", "0"}, "--max-tokens: found 0, expected at least 1");
  refuses({"generate", "run", "--max-tokens", "99999999999999999999"}, "expected at most 9223372036854775807");
  refuses({"generate", "run", "--seed", "-1"}, "--seed: found -1, expected at least 0");
  refuses({"bench", "lm", "--seconds", "nan"}, "--seconds: found nan, expected more than 0");
  refuses({"bench", "lm", "--threads", "100000"}, "--threads = 100000: this process may use");
  refuses({"bench", "lm", "--width", "0"}, "--width: found 0, expected 1 to 65536");
  refuses({"bench", "lm", "--width", "wide"}, "--width: found wide, expected 1 to 65536");
  refuses({"bench", "lm", "--layers", "-3"}, "--layers: found -3, expected 1 to 1000");
  refuses({"bench", "lm", "--vocabulary", "1"}, "--vocabulary: found 1, expected 2 to 16777216");
  refuses({"bench", "lm", "--heads", "nan"}, "--heads: found nan, expected 1 to 4096");
  refuses({"bench", "lm", "--batch", "1e30"}, "--batch: found 1e30, expected 1 to 1048576");
  refuses({"bench", "lm", "--width", "96", "--heads", "5"}, "96 is not divisible by it; use --heads 1");
  refuses({"bench", "lm", "--width", "65536", "--layers", "1000"}, "of memory and ");
  refuses({"bench", "lm", "--batch", "1048576", "--max-length", "65536"}, "needs 4.0");
  refuses({"bench", "lm", "--shape", "tiny"}, "--shape tiny: unknown; use small, large, production or gpt2");
}

TEST(CommandLine, SaysWhereTheJobGoes) {
  TemporaryFolder folder;
  const Outcome outcome = run_brisk({"train", "--data", "text.txt", "job.json", "--resume"}, folder);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("job is required; --data takes every argument after it"), std::string::npos)
      << outcome.err;
}

TEST(Tokenizer, ConvertsBetweenFormatsWithTheSameIds) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  ASSERT_EQ(
      run_brisk({"tokenizer", "train", "--vocab-size", "300", "--output", "t.json", "text.txt"}, folder).exit_code, 0);
  const std::string lines = english_like_text(5, 2) + "\n";
  const auto ids = [&](const std::string& tokenizer) {
    return run_brisk({"tokenizer", "encode", "--tokenizer", tokenizer}, folder, {.input = lines}).out;
  };
  for (const std::string output : {"vocab.json", "folder/", "again.json"}) {
    const Outcome converted = run_brisk({"tokenizer", "convert", "--tokenizer", "t.json", "--output", output}, folder);
    ASSERT_EQ(converted.exit_code, 0) << converted.err;
    EXPECT_EQ(ids(output), ids("t.json")) << output;
  }
  EXPECT_TRUE(read_json(folder / "folder/tokenizer_config.json")["eos_token"] == "<|endoftext|>");
  const Outcome refused = run_brisk({"tokenizer", "convert", "--tokenizer", "t.json", "--output", "t.model"}, folder);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("t.model"), std::string::npos) << refused.err;
}

TEST(Tokenizer, TrainsWordPieceThatKnowsItsSpecialTokens) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(100));
  const std::vector<std::string> command = {"tokenizer",   "train",    "--vocab-size", "300",
                                            "--lowercase", "--output", "folder/",      "text.txt"};
  EXPECT_NE(run_brisk(command, folder).err.find("--lowercase applies to --kind wordpiece only"), std::string::npos);
  std::vector<std::string> right = command;
  right.insert(right.end(), {"--kind", "wordpiece"});
  const Outcome trained = run_brisk(right, folder);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(read_json(folder / "folder/tokenizer_config.json")["mask_token"], "[MASK]");
  for (const std::string tokenizer : {"folder", "folder/vocab.txt"}) {
    const Outcome encoded = run_brisk({"tokenizer", "encode", "--add-special-tokens", "--tokenizer", tokenizer}, folder,
                                      {.input = "[MASK]\n"});
    EXPECT_EQ(encoded.out, "2 4 3\n") << tokenizer;
  }
}

TEST(Machine, DescribesItselfInJson) {
  TemporaryFolder folder;
  const Outcome outcome = run_brisk({"machine", "--json"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json machine = Json::parse(outcome.out);
  EXPECT_GE(machine["cores"].get<int64_t>(), 1);
  EXPECT_TRUE(machine["instruction_sets"].is_array());
  EXPECT_GT(machine["memory_total_bytes"].get<int64_t>(), 1 << 20);
  EXPECT_GT(machine["peak_gflops"]["fp32"].get<double>(), 0.1);
  EXPECT_GT(machine["product_gflops"]["fp32"].get<double>(), 0.1);
  EXPECT_TRUE(machine["peak_gflops"].contains("bf16"));
  EXPECT_GT(machine["memory_gb_per_second"]["read"].get<double>(), 0.1);
}

TEST(Bench, PrintsOneObject) {
  TemporaryFolder folder;
  const Outcome outcome =
      run_brisk({"bench", "lm", "--shape", "small", "--batch", "2", "--max-length", "32", "--device", "cpu",
                 "--precision", "fp32", "--seconds", "0.05", "--threads", "1", "--json"},
                folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out);
  for (const char* key : {"tokens_per_second", "gflops", "peak_gflops", "utilisation"}) {
    EXPECT_GT(result[key].get<double>(), 0.0) << key;
  }
  EXPECT_GT(result["peak_memory_bytes"].get<int64_t>(), 1 << 20);
  EXPECT_EQ(result["precision"], "fp32");
  EXPECT_TRUE(result["isa"].is_string());
  EXPECT_LT(result["utilisation"].get<double>(), 1.0);
  EXPECT_NEAR(result["utilisation"].get<double>(), result["gflops"].get<double>() / result["peak_gflops"].get<double>(),
              1e-6);
}

TEST(Bench, MeasuresMu) {
  TemporaryFolder folder;
  const auto measured = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"bench",     "mu",   "--layers",     "2",  "--vocabulary", "500",
                                          "--batch",   "2",    "--max-length", "16", "--precision",  "fp32",
                                          "--seconds", "0.01", "--threads",    "1",  "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_brisk(arguments, folder);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json result = measured({}), reference = measured({"--reference"});
  EXPECT_EQ(result["layers"], 2);
  EXPECT_EQ(result["batch"], 2);
  EXPECT_GT(result["tokens_per_second"].get<double>(), 0.0);
  EXPECT_EQ(reference["parameters"], 2 * (52640 + 16 * 500) + 129 * 500 + 64 * 16 + 128);
  EXPECT_EQ(result["parameters"], reference["parameters"].get<int64_t>() - 2 * 256);
}

TEST(Bench, MeasuresAShapeOfOnesOwn) {
  TemporaryFolder folder;
  const auto measured = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"bench",     "lm",           "--width",   "48",          "--layers",
                                          "3",         "--vocabulary", "500",       "--precision", "fp32",
                                          "--seconds", "0.01",         "--threads", "1",           "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_brisk(arguments, folder);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json result = measured({"--heads", "6", "--batch", "2", "--max-length", "16"});
  EXPECT_EQ(result["width"], 48);
  EXPECT_EQ(result["layers"], 3);
  EXPECT_EQ(result["vocabulary"], 500);
  EXPECT_EQ(result["heads"], 6);
  EXPECT_EQ(result["batch"], 2);
  EXPECT_EQ(result["max_length"], 16);
  EXPECT_EQ(result["threads"], 1);
  // The table, the positions, a final norm, and layers of 12 D^2 weights, 9 D biases and 4 D of norms.
  EXPECT_EQ(result["parameters"], 500 * 48 + 16 * 48 + 2 * 48 + 3 * (12 * 48 * 48 + 9 * 48 + 4 * 48));
  EXPECT_EQ(result["flop_per_token"], 6 * (3 * 12 * 48 * 48 + 500 * 48) + 6 * 3 * 16 * 48);
  EXPECT_GE(result["state_bytes"], 16 * result["parameters"].get<int64_t>());
  EXPECT_GT(result["activation_bytes"], 0);
  EXPECT_EQ(result["planned_memory_bytes"], result["state_bytes"].get<int64_t>() +
                                                result["activation_bytes"].get<int64_t>() +
                                                result["workspace_bytes"].get<int64_t>());
  // Heads as a job of this width has them; the rest as the shape says.
  const Json rest = measured({});
  EXPECT_EQ(rest["heads"], 1);
  EXPECT_EQ(rest["batch"], 32);
  EXPECT_EQ(rest["max_length"], 128);
}

TEST(JobSchema, IsValidJsonThatNamesTheKeys) {
  TemporaryFolder folder;
  const Outcome outcome = run_brisk({"job", "schema"}, folder);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json schema = Json::parse(outcome.out);
  EXPECT_EQ(schema["type"], "object");
  const Json job = small_job();
  for (const auto& [section, keys] : job.items()) {
    for (const auto& [key, value] : keys.items()) {
      EXPECT_TRUE(schema["properties"][section]["properties"].contains(key)) << section << "." << key;
    }
  }
  const Outcome reference = run_brisk({"job", "reference"}, folder);
  EXPECT_EQ(reference.exit_code, 0);
  EXPECT_NE(reference.out.find("gradient_accumulation_steps"), std::string::npos);
}

TEST(StandardOutput, ThatCannotBeWrittenToIsAFailure) {
  TemporaryFolder folder;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"job", "schema"}, {"job", "reference"}, {"machine", "--help"}}) {
    const Outcome outcome = run_brisk(command, folder, {.output_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 2) << command[1];
    EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
  }
  // More than a buffer holds: the write that fails is not the last one.
  write_text(folder / "text.txt", english_like_text(100));
  ASSERT_EQ(
      run_brisk({"tokenizer", "train", "--vocab-size", "300", "--output", "t.json", "text.txt"}, folder).exit_code, 0);
  for (const auto& [command, input] : std::vector<std::pair<std::string, std::string>>{
           {"encode", english_like_text(2000)}, {"decode", std::string(200000, '1')}}) {
    std::string lines = input;
    if (command == "decode") {
      for (size_t i = 1; i < lines.size(); i += 2) lines[i] = i % 100 == 99 ? '\n' : ' ';
    }
    const Outcome outcome = run_brisk({"tokenizer", command, "--tokenizer", "t.json"}, folder,
                                      {.input = lines, .output_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_NE(outcome.err.find("No space left"), std::string::npos) << outcome.err;
  }
}

TEST(Terminal, ShowsABarThatAPipeDoesNot) {
  TemporaryFolder folder;
  Json job = small_job();
  job["model"]["vocab_size"] = 5000;  // a warning, which is in colour
  const Outcome seen = train_small(folder, job, "seen", {.terminal = true});
  EXPECT_NE(seen.err.find('\r'), std::string::npos);
  EXPECT_NE(seen.err.find("[####"), std::string::npos) << seen.err;
  EXPECT_NE(seen.err.find("\x1b[33m"), std::string::npos) << seen.err;
  const Outcome plain = train_small(folder, job, "plain", {.environment = {"NO_COLOR=1"}, .terminal = true});
  EXPECT_NE(plain.err.find("[####"), std::string::npos);
  EXPECT_EQ(plain.err.find("\x1b[33m"), std::string::npos);
  EXPECT_EQ(plain.err.find("\x1b[1m"), std::string::npos);
}

TEST(Terminal, ThatIsDumbGetsLines) {
  TemporaryFolder folder;
  const Outcome seen = train_small(folder, small_job(), "run", {.environment = {"TERM=dumb"}, .terminal = true});
  EXPECT_EQ(seen.err.find('\x1b'), std::string::npos) << seen.err;
  EXPECT_NE(seen.err.find("step 30/30"), std::string::npos) << seen.err;
}

TEST(Eval, OfARunThatSomebodyElseTrainedKeepsTokensInItsOwnCache) {
  TemporaryFolder folder;
  Json job = small_job();
  job["training"]["max_steps"] = 2;
  train_small(folder, job, "run");
  EXPECT_EQ(read_json(folder / "run/job.json")["data"].value("cache_dir", ""), "") << "a default is nobody's own";
  // As an earlier brisk wrote it: the cache of another user, which cannot be written to.
  Json saved = read_json(folder / "run/job.json");
  saved["data"]["cache_dir"] = "/proc/somebody/.cache/brisk";
  write_text(folder / "run/job.json", saved.dump());
  std::filesystem::rename(folder / "run", folder / "moved");
  const Outcome outcome = run_brisk({"eval", "moved", "--data", "text.txt"}, folder,
                                    {.environment = {"XDG_CACHE_HOME=" + (folder / "own")}});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "tokens are kept in " + (folder / "own/brisk"))) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "in sequences of at most 32 tokens")) << outcome.err;
  EXPECT_FALSE(std::filesystem::is_empty(folder / "own/brisk"));
}

TEST(Train, SaysOneAndManyAsPeopleDo) {
  TemporaryFolder folder;
  write_text(folder / "text.txt", english_like_text(40));
  Json job = small_job();
  job["model"]["num_layers"] = 1;
  job["model"].erase("vocab_size");
  job["training"]["max_steps"] = 1;
  job["data"]["document"] = "file";
  const Outcome outcome = train_small(folder, job, "run");
  for (const char* wrong : {"1 documents", "1 lines", "1 layers", "1 steps", "1 threads", "the job says 8192"}) {
    EXPECT_FALSE(has(outcome.err, wrong)) << wrong << "\n" << outcome.err;
  }
  EXPECT_TRUE(has(outcome.err, "this text supports no more (the default is 8192)")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "trained on the whole text")) << outcome.err;
}

}  // namespace
}  // namespace brisk::program
