#include "data/images/class_folders.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/files.h"
#include "image/image_file.h"
#include "support/scratch_folder.h"

namespace brisk {
namespace {

class ClassFolders : public ::testing::Test {
 protected:
  void put(const std::string& name) {
    const std::string path = folder_.path() + "/" + name;
    make_directories(path.substr(0, path.rfind('/')));
    write_ppm(path, Image(2, 3));
  }
  std::string kinds() const { return folder_.path() + "/kinds"; }
  ImageTable open() { return open_class_folders(kinds(), folder_.path() + "/cache"); }

  test::ScratchFolder folder_;
};

TEST_F(ClassFolders, AreATableOfImagesAndTheirClasses) {
  put("kinds/cat/2.ppm");
  put("kinds/cat/deeper/1.ppm");
  put("kinds/dog/1.ppm");
  write_file_atomically(kinds() + "/cat/notes.txt", "no image");
  EXPECT_TRUE(is_class_folder(kinds()));
  const ImageTable table = open();
  TableRowReader rows(table.table);
  TableRow row;
  std::vector<std::string> seen;
  while (rows.next(row)) seen.push_back(std::string(row.text) + " " + std::string(row.label));
  EXPECT_EQ(seen, (std::vector<std::string>{"cat/2.ppm cat", "cat/deeper/1.ppm cat", "dog/1.ppm dog"}));
  EXPECT_EQ(images_of_folder(kinds()).size(), 3u);
}

TEST_F(ClassFolders, AreNoneWhereATableSaysWhatImagesAre) {
  put("kinds/1.ppm");
  EXPECT_TRUE(is_class_folder(kinds())) << "of no class, which is refused";
  put("kinds/labels.csv");
  EXPECT_FALSE(is_class_folder(kinds()));
  EXPECT_FALSE(is_class_folder(kinds() + "/1.ppm"));
  EXPECT_FALSE(is_class_folder(folder_.path() + "/nowhere"));
}

TEST_F(ClassFolders, TellOfImagesThatAreNotRead) {
  put("kinds/cat/1.ppm");
  EXPECT_EQ(unread_images_note(kinds()), "");
  put("kinds/cat/2.BMP");
  put("kinds/dog/1.gif");
  EXPECT_EQ(unread_images_note(kinds()),
            kinds() + ": 2 files are .bmp, .gif, which brisk does not read: left out; convert them to PNG or JPEG");
}

TEST_F(ClassFolders, RefuseAnImageWithoutAClassAndALoneClass) {
  put("kinds/cat/1.ppm");
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { open(); }), "the class \"cat\" alone"));
  put("kinds/1.ppm");
  EXPECT_TRUE(test::has(test::message_of<UserError>([&] { open(); }), "in no folder of a class"));
}

}  // namespace
}  // namespace brisk
