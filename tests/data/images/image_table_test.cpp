#include "data/images/image_table.h"

#include <gtest/gtest.h>

#include "data/images/image_check.h"
#include "data/images/image_files.h"
#include "data/images/image_folders.h"
#include "support/byte_tokenizer.h"

namespace brisk {
namespace {

class ImageTables : public ::testing::Test {
 protected:
  ImageRows open(const std::string& name, const std::string& content, ImageTableOptions options = {}) {
    options.paths = {folder.write(name, content)};
    const ImageTable table = open_image_table(options);
    notes = table.table.notes();
    return options.labelled ? open_image_rows(table, LabelSet(), folder / "cache")
                            : open_image_rows(table, &tokenizer, folder / "cache");
  }
  std::string refusal(const std::string& name, const std::string& content, ImageTableOptions options = {}) {
    return user_error_of([&] { open(name, content, options); });
  }
  std::string text(const ImageRows& rows, int64_t index) {
    const ExampleData& data = rows.examples.data();
    const int64_t row = rows.examples.row_of(index);
    std::vector<TokenId> tokens(static_cast<size_t>(data.lengths_of(row).second));
    data.copy(data.place_of(row, 1), std::ssize(tokens), tokens.data());
    return tokenizer.decode(tokens);
  }
  const ScratchFolder folder;
  ByteTokenizer tokenizer;
  std::vector<std::string> notes;
};

TEST_F(ImageTables, NameImagesRelativeToTheirFolder) {
  const ImageRows rows = open("sub/a.tsv", "image\ttext\nimgs/0.png\ta cat\n/else/1.png\ttwo dogs\n");
  ASSERT_EQ(rows.examples.count(), 2);
  EXPECT_EQ(rows.image_paths(), (std::vector<std::string>{folder / "sub/imgs/0.png", "/else/1.png"}));
  EXPECT_EQ(text(rows, 1), "two dogs");
  EXPECT_HAS(notes.at(0), "images in column \"image\", texts in \"text\"");
  EXPECT_EQ(
      open("b.jsonl", "{\"image\": \"x.png\", \"caption\": \"a\\nb\"}\n", {.image_folder = "/there"}).image_path(0),
      "/there/x.png");
}

TEST_F(ImageTables, HaveTheirColumnsFoundOrNamed) {
  EXPECT_EQ(open("a.csv", "x.png,one\ny.png,two\n").image_path(1), folder / "y.png") << "no header";
  EXPECT_EQ(text(open("b.csv", "what,where\none,x.png\ntwo,y.jpg\n"), 1), "two") << "by what is in them";
  const ImageRows named =
      open("c.csv", "id,scan,said,image\n1,x.tif,one,y.png\n", {.image_field = "scan", .text_field = "said"});
  EXPECT_EQ(named.image_path(0), folder / "x.tif");
  EXPECT_HAS(refusal("d.csv", "a,b,c\n1,2,3\n"),
             "which column holds the image files is not clear; it has a, b, c; set "
             "data.image_field and data.text_field");
  EXPECT_HAS(refusal("e.csv", "image,b,c\nx.png,2,3\n"), "which column holds the texts of the images is not clear");
  EXPECT_HAS(refusal("f.csv", "image,b,c\nx.png,2,3\n", {.text_field = "d"}), "no column \"d\" (data.text_field)");
  EXPECT_HAS(refusal("g.txt", "x.png\n"), "g.txt");
}

TEST_F(ImageTables, MayHaveLabels) {
  ImageTableOptions options{.labelled = true};
  const ImageRows rows = open("a.csv", "image,label\nx.png,cat\ny.png,dog\nz.png,cat\n", options);
  EXPECT_EQ(rows.examples.data().label_names(), (std::vector<std::string>{"cat", "dog"}));
  const ImageTable table = open_image_table({.paths = {folder / "a.csv"}, .labelled = true});
  const ImageRows known = open_image_rows(table, LabelSet({"cat", "dog"}), folder / "cache");
  EXPECT_EQ(known.examples.label(1), 1);
  EXPECT_EQ(known.examples.class_counts(), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(known.image_path(2), folder / "z.png");
  EXPECT_HAS(user_error_of([&] { open_image_rows(table, LabelSet({"cat", "cow"}), folder / "cache"); }), "dog");
}

TEST_F(ImageTables, RowsWithoutImageOrTextAreSkippedAndCounted) {
  std::string table = "image,text\n";
  for (int i = 0; i < 30; ++i) table += i == 4 ? ",text\n" : i == 8 ? "x.png, \n" : "x.png,text\n";
  EXPECT_EQ(open("a.csv", table).examples.count(), 28);
  EXPECT_HAS(refusal("b.csv", "image,text\nx.png,\nx.png,\nx.png,a\n"),
             "2 without an image or text): lines 2, 3; more than 10 % of the rows cannot be skipped; fix them, or set "
             "data.image_field and data.text_field to other columns than \"image\" and \"text\"");
}

TEST_F(ImageTables, InSeveralFoldersNeedTheFolderOfTheirImages) {
  const std::vector<std::string> paths = {folder.write("a/a.csv", "image,text\nx.png,a\n"),
                                          folder.write("b/b.csv", "image,text\nx.png,a\n")};
  EXPECT_HAS(user_error_of([&] { open_image_table({.paths = paths}); }), "different folders");
  EXPECT_EQ(open_image_table({.paths = paths, .image_folder = "/there"}).folder, "/there");
}

class ImageFoldersTest : public ImageTables {
 protected:
  ImageFoldersTest() {
    for (const char* name : {"a", "b", "c.d", "e"}) {
      folder.write(fmt::format("imgs/{}.png", name), "-");
      folder.write(fmt::format("mmd/{}.mmd", name), fmt::format("# {}\r\n\r\ntext\n", name));
    }
    folder.write("imgs/Thumbs.db", "-");
  }
  ImageRows open_part(ImagePart part) {
    const ImageTable table =
        open_image_folders({folder / "imgs", folder / "mmd", folder / "split.json"}, part, folder / "cache");
    notes = table.table.notes();
    return open_image_rows(table, &tokenizer, folder / "cache");
  }
  void write_split(const std::string& text) { folder.write("split.json", text); }
};

TEST_F(ImageFoldersTest, PairFilesOfOneName) {
  const ImageRows rows = open_part(ImagePart::all);
  ASSERT_EQ(rows.examples.count(), 4);
  EXPECT_EQ(rows.image_path(2), folder / "imgs/c.d.png");
  EXPECT_EQ(text(rows, 2), "# c.d\n\ntext\n");
  EXPECT_HAS(notes.at(0), "imgs and " + (folder / "mmd: 4 images with their texts"));
  folder.write("mmd/e.mmd", "new, and longer than it was");
  EXPECT_EQ(text(open_part(ImagePart::all), 3), "new, and longer than it was");
}

TEST_F(ImageFoldersTest, AreDividedByListsOfNames) {
  write_split(R"({"train_name_list": ["e", "a.png"], "valid_name_list": ["b"], "test_name_list": ["c.d"]})");
  EXPECT_EQ(open_part(ImagePart::train).image_paths(),
            (std::vector<std::string>{folder / "imgs/e.png", folder / "imgs/a.png"}));
  EXPECT_EQ(text(open_part(ImagePart::validation), 0), "# b\n\ntext\n");
  EXPECT_EQ(open_part(ImagePart::test).image_path(0), folder / "imgs/c.d.png");
}

TEST_F(ImageFoldersTest, ThatDoNotBelongTogetherAreRefused) {
  const auto split_refusal = [&](const std::string& text) {
    write_split(text);
    return user_error_of([&] { open_part(ImagePart::train); });
  };
  EXPECT_HAS(split_refusal("[]"), "split.json: expected an object with \"train_name_list\"");
  EXPECT_HAS(split_refusal(R"({"other": []})"), "no list \"train_name_list\"; it has other");
  EXPECT_HAS(split_refusal(R"({"train_name_list": []})"), "at least one");
  EXPECT_HAS(split_refusal(R"({"train_name_list": [1]})"), "train_name_list: 1, expected a name");
  EXPECT_HAS(split_refusal(R"({"train_name_list": ["a", "a.png"]})"), "'a' is in it twice");
  EXPECT_HAS(split_refusal(R"({"train_name_list": ["a", "z"]})"),
             "1 of 2 names of " + (folder / "split.json have no image"));
  folder.write("imgs/a.jpg", "-");
  EXPECT_HAS(user_error_of([&] { open_part(ImagePart::all); }), "'a.jpg' and 'a.png' have the same name");
  EXPECT_HAS(user_error_of([&] {
               open_image_folders({folder / "no", folder / "mmd", ""}, ImagePart::all, folder / "cache");
             }),
             "no: there is no such folder");
  EXPECT_HAS(user_error_of([&] {
               open_image_folders({folder / "mmd", folder / "mmd", ""}, ImagePart::all, folder / "cache");
             }),
             "mmd: no images (.png, .jpg, .webp, .ppm) in it");
}

TEST_F(ImageFoldersTest, WithEmptyOrUnreadableTextsAreRefused) {
  folder.write("mmd/b.mmd", " \n");
  EXPECT_HAS(user_error_of([&] { open_part(ImagePart::all); }), "1 of 4 files have no text in them: b.mmd");
  folder.write("mmd/b.mmd", "\xFF\xFE");
  EXPECT_HAS(user_error_of([&] { open_part(ImagePart::all); }), "b.mmd");
}

class ImageChecks : public ::testing::Test {
 protected:
  ImageChecks() { test::write_images(folder, 6); }
  std::vector<std::string> paths() {
    std::vector<std::string> all;
    for (int i = 0; i < 6; ++i) all.push_back(folder / "imgs/" + std::to_string(i) + ".ppm");
    return all;
  }
  // As files that were written a while ago, so that the outcome is kept.
  void make_old() {
    for (const std::string& path : paths())
      std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ImageCheck check(BrokenImages rule) { return check_images(paths(), rule, folder / "cache"); }
  const ScratchFolder folder;
};

TEST_F(ImageChecks, RefuseFilesThatAreNoImages) {
  EXPECT_TRUE(check(BrokenImages::refuse).broken.empty());
  folder.write("imgs/3.ppm", "hello");
  const std::string one = user_error_of([&] { check(BrokenImages::refuse); });
  EXPECT_HAS(one, "3.ppm: it is no image");
  EXPECT_HAS(one, "data.broken_images = \"skip\" leaves such images out");
  folder.write("imgs/5.ppm", "");
  const std::string two = user_error_of([&] { check(BrokenImages::refuse); });
  EXPECT_HAS(two, "2 of 6 images cannot be read");
  EXPECT_HAS(two, "5.ppm: the file is empty");
}

TEST_F(ImageChecks, LeaveOutImagesWhoseBodiesAreBroken) {
  folder.write("imgs/1.ppm", "P6 9 9 255 short");
  std::filesystem::remove(folder / "imgs/4.ppm");
  EXPECT_TRUE(check_images({{folder / "imgs/1.ppm"}}, BrokenImages::refuse, folder / "cache").broken.empty())
      << "its header is as it should be";
  const ImageCheck found = check(BrokenImages::skip);
  EXPECT_EQ(found.broken, (std::vector<int64_t>{1, 4}));
  ASSERT_EQ(found.notes.size(), 3u);
  EXPECT_HAS(found.notes[0], "skipped: 2 images that cannot be read, of 6");
  EXPECT_HAS(found.notes[1], "1.ppm: the image cannot be read: the file ends early");
}

TEST_F(ImageChecks, AreKeptUntilAFileChanges) {
  folder.write("imgs/1.ppm", "P6 9 9 255 short");
  make_old();
  const ImageCheck first = check(BrokenImages::skip);
  const auto cached = [&] { return names_in(folder / "cache").size(); };
  EXPECT_EQ(cached(), 1u);
  const ImageCheck second = check(BrokenImages::skip);
  EXPECT_EQ(second.broken, first.broken);
  EXPECT_EQ(second.notes, first.notes);
  EXPECT_EQ(second.fingerprint, first.fingerprint);
  write_ppm(folder / "imgs/1.ppm", test::plain_image(3, 3, 9));
  make_old();
  const ImageCheck mended = check(BrokenImages::skip);
  EXPECT_TRUE(mended.broken.empty());
  EXPECT_NE(mended.fingerprint, first.fingerprint);
  EXPECT_EQ(cached(), 2u);
  // A note that was damaged is made again.
  for (const std::string& name : names_in(folder / "cache")) folder.write("cache/" + name, "{\"broken\": [99]}");
  EXPECT_EQ(check(BrokenImages::skip).fingerprint, mended.fingerprint);
}

// Pages that are drawn anew begin and end as they did.
TEST_F(ImageChecks, FingerprintIsOfAllPixelsThatAreNotCompressed) {
  const std::string path = folder / "page.ppm";
  Image page = test::plain_image(60, 100, 255);
  write_ppm(path, page);
  const uint64_t before = check_images({{path}}, BrokenImages::refuse, folder / "cache").fingerprint;
  page.row(30)[150] = 0;
  write_ppm(path, page);
  EXPECT_NE(check_images({{path}}, BrokenImages::refuse, folder / "cache").fingerprint, before);
}

TEST_F(ImageChecks, FingerprintIsOfTheImagesAndNotOfTheirFolder) {
  const uint64_t fingerprint = check(BrokenImages::refuse).fingerprint;
  EXPECT_EQ(check(BrokenImages::skip).fingerprint, fingerprint);
  test::write_images(folder, 6, "copy");
  std::vector<std::string> copies;
  for (int i = 0; i < 6; ++i) copies.push_back(folder / "copy/" + std::to_string(i) + ".ppm");
  EXPECT_EQ(check_images(copies, BrokenImages::refuse, folder / "cache").fingerprint, fingerprint);
  write_ppm(copies[2], test::plain_image(10, 10, 77));
  EXPECT_NE(check_images(copies, BrokenImages::refuse, folder / "cache").fingerprint, fingerprint);
}

}  // namespace
}  // namespace brisk
