#include "hub/formats/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "hub/formats/tensor_pickle.h"
#include "support/scratch_folder.h"
#include "tensor/dtype.h"
#include "tensor/half_float.h"

namespace brisk {
namespace {

using test::contents_of;
using test::message_of;

std::string torch_golden(const std::string& name) { return std::string(BRISK_GOLDEN) + "/torch/" + name; }

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <typename T>
std::vector<T> numbers_of(const TorchFile& file, const std::string& name) {
  const SafetensorsEntry* entry = file.find(name);
  if (entry == nullptr || entry->bytes % static_cast<int64_t>(sizeof(T)) != 0) {
    ADD_FAILURE() << name;
    return {};
  }
  std::vector<T> numbers(static_cast<size_t>(entry->bytes) / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), entry->data, static_cast<size_t>(entry->bytes));
  return numbers;
}

template <typename T>
std::vector<T> counted(int count) {
  std::vector<T> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), T{0});
  return numbers;
}

void expect_complaint(const std::string& name, const std::string& part) {
  const std::string message = message_of<UserError>([&] { TorchFile file(torch_golden(name)); });
  EXPECT_NE(message.find(part), std::string::npos) << name << ": expected '" << part << "' in '" << message << "'";
  EXPECT_NE(message.find(torch_golden(name)), std::string::npos) << message;
}

// A zip archive of stored records.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string archive, directory;
  const auto put = [](std::string& to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += i < 8 ? static_cast<char>(value >> (8 * i)) : char{0};
  };
  for (const auto& [name, content] : records) {
    const size_t offset = archive.size();
    for (std::string* to : {&archive, &directory}) {
      const bool central = to == &directory;
      put(*to, central ? 0x02014b50 : 0x04034b50, 4);
      put(*to, 0, central ? 16 : 14);  // versions, flags, method, time, checksum
      put(*to, content.size(), 4);
      put(*to, content.size(), 4);
      put(*to, name.size(), 2);
      put(*to, 0, central ? 12 : 2);  // extra fields, comment, disk, attributes
      if (central) put(*to, offset, 4);
      *to += name;
    }
    archive += content;
  }
  const size_t begin = archive.size();
  archive += directory;
  put(archive, 0x06054b50, 4);
  put(archive, 0, 4);
  put(archive, records.size(), 2);
  put(archive, records.size(), 2);
  put(archive, directory.size(), 4);
  put(archive, begin, 4);
  put(archive, 0, 2);
  return archive;
}

// {'a': tensor of `shape_and_strides` at `offset` of a storage of 6 floats}; the two given as pickled tuples.
std::string pickle_of_tensor(const std::string& offset, const std::string& shape_and_strides,
                             const std::string& count = "K\6") {
  return "\x80\2}X\1" + std::string(3, '\0') + "actorch._utils\n_rebuild_tensor_v2\n((X\7" + std::string(3, '\0') +
         "storagectorch\nFloatStorage\nX\1" + std::string(3, '\0') + "0X\3" + std::string(3, '\0') + "cpu" + count +
         "tQ" + offset + shape_and_strides + "\x89}tRs.";
}

std::string complaint_of(const std::string& archive) {
  return message_of<UserError>([&] { TorchFile file(bytes_of(archive), "x.bin"); });
}
std::string complaint_of_pickle(const std::string& pickle) {
  return complaint_of(archive_of({{"a/data.pkl", pickle}, {"a/data/0", std::string(24, '\1')}}));
}

TEST(TorchFile, ReadsEveryTypeOfNumber) {
  const TorchFile file(torch_golden("types.bin"));
  EXPECT_EQ(file.entries().size(), 10u);
  EXPECT_EQ(numbers_of<double>(file, "f64"), counted<double>(6));
  EXPECT_EQ(numbers_of<float>(file, "f32"), counted<float>(6));
  EXPECT_EQ(numbers_of<int64_t>(file, "i64"), counted<int64_t>(6));
  EXPECT_EQ(numbers_of<int32_t>(file, "i32"), counted<int32_t>(6));
  EXPECT_EQ(numbers_of<int16_t>(file, "i16"), counted<int16_t>(6));
  EXPECT_EQ(numbers_of<int8_t>(file, "i8"), counted<int8_t>(6));
  EXPECT_EQ(numbers_of<uint8_t>(file, "u8"), counted<uint8_t>(6));
  EXPECT_EQ(numbers_of<uint8_t>(file, "boolean"), (std::vector<uint8_t>{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(half_to_float(numbers_of<uint16_t>(file, "f16")[5]), 5);
  EXPECT_EQ(to_float(bf16_t{numbers_of<uint16_t>(file, "bf16")[5]}), 5);
  EXPECT_EQ(file.find("f16")->type, SafetensorsType::f16);
  EXPECT_EQ(file.find("bf16")->type, SafetensorsType::bf16);
  EXPECT_EQ(file.find("bf16")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.find("f8"), nullptr);
}

TEST(TorchFile, TensorsMayShareAStorageAndBeViewsOfIt) {
  for (const char* name : {"views.bin", "protocol4.bin"}) {
    const TorchFile file(torch_golden(name));
    EXPECT_EQ(numbers_of<float>(file, "whole"), counted<float>(24));
    EXPECT_EQ(file.find("whole")->data, file.find("again")->data);
    EXPECT_EQ(file.find("transposed")->shape, (std::vector<int64_t>{6, 4}));
    EXPECT_EQ(numbers_of<float>(file, "transposed"), (std::vector<float>{0, 6, 12, 18, 1, 7,  13, 19, 2, 8,  14, 20,
                                                                         3, 9, 15, 21, 4, 10, 16, 22, 5, 11, 17, 23}));
    EXPECT_EQ(numbers_of<float>(file, "rows"), (std::vector<float>{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}));
    EXPECT_EQ(file.find("rows")->data, static_cast<const float*>(file.find("whole")->data) + 6) << "not a copy";
    EXPECT_EQ(numbers_of<float>(file, "columns"), (std::vector<float>{1, 2, 7, 8, 13, 14, 19, 20}));
    EXPECT_EQ(file.find("cube")->shape, (std::vector<int64_t>{4, 2, 3}));
    EXPECT_EQ(numbers_of<float>(file, "cube"), (std::vector<float>{0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                                                                   2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}));
    EXPECT_EQ(numbers_of<float>(file, "single"), (std::vector<float>{7}));
    EXPECT_TRUE(file.find("single")->shape.empty());
    EXPECT_EQ(file.find("empty")->shape, (std::vector<int64_t>{0, 5}));
    EXPECT_EQ(file.find("empty")->bytes, 0);
    EXPECT_EQ(numbers_of<float>(file, "one_row"), (std::vector<float>{12, 13, 14, 15, 16, 17}));
  }
}

TEST(TorchFile, ReadsWhatStateDictAndParametersMake) {
  const TorchFile state(torch_golden("state_dict.bin"));
  EXPECT_EQ(numbers_of<float>(state, "0.weight"), counted<float>(6));
  EXPECT_EQ(numbers_of<int64_t>(state, "1.num_batches_tracked"), (std::vector<int64_t>{0}));
  EXPECT_EQ(state.entries().front().name, "0.weight");
  // Numbers, texts and lists beside the tensors are passed over.
  const TorchFile parameter(torch_golden("parameter.bin"));
  EXPECT_EQ(parameter.entries().size(), 1u);
  EXPECT_EQ(numbers_of<float>(parameter, "weight"), counted<float>(6));
}

TEST(TorchFile, ReadsArchivesOfZip64) {
  const TorchFile file(torch_golden("zip64.bin"));
  EXPECT_EQ(numbers_of<float>(file, "a"), counted<float>(6));
}

TEST(TorchFile, RunsNothingAndNamesWhatWasAskedFor) {
  expect_complaint("system.bin", "the file asks to run posix.system: brisk reads tensors only");
  expect_complaint("system4.bin", "asks to run posix.system");
  expect_complaint("popen.bin", "asks to run subprocess.Popen");
  expect_complaint("eval.bin", "asks to run __builtin__.eval");
  EXPECT_NE(complaint_of_pickle("(ios\nsystem\n.").find("asks to run os.system"), std::string::npos);
  // Other ways of a pickle to call: a known name that is not meant to be called, a class's __new__, an extension.
  EXPECT_NE(complaint_of_pickle("\x80\2ctorch\nFloatStorage\n)R.").find("asks to run torch.FloatStorage"),
            std::string::npos);
  EXPECT_NE(complaint_of_pickle("\x80\2ccollections\nOrderedDict\n)\x81.").find("step 0x81"), std::string::npos);
  EXPECT_NE(complaint_of_pickle("\x80\2\x82\1.").find("step 0x82"), std::string::npos);
  EXPECT_NE(complaint_of_pickle("\x80\2cos\x1b[31m\nsystem\n.").find("os\\x1b[31m.system"), std::string::npos)
      << "nothing that a terminal would obey";
}

TEST(TorchFile, OtherFilesGetAdvice) {
  expect_complaint("before_1_6.bin", "from before PyTorch 1.6");
  expect_complaint("before_1_6.bin", "torch.save(torch.load(");
  expect_complaint("compressed.bin", "is compressed or encrypted");
  expect_complaint("nested.bin", "torch.save(torch.load(FILE)['state_dict'], FILE)");
  EXPECT_NE(complaint_of("version https://git-lfs.github.com/spec/v1\noid sha256:12").find("git lfs pull"),
            std::string::npos);
  EXPECT_NE(complaint_of("").find("found 0 bytes"), std::string::npos);
  EXPECT_NE(complaint_of(archive_of({{"word/document.xml", "x"}})).find("without data.pkl"), std::string::npos);
  EXPECT_NE(complaint_of(archive_of({{"a/data.pkl", "x"}, {"b/data.pkl", "x"}})).find("more than one data.pkl"),
            std::string::npos);
  EXPECT_NE(complaint_of(archive_of({{"a/data.pkl", "x"}, {"a/data.pkl", "x"}})).find("'a/data.pkl' twice"),
            std::string::npos);
  EXPECT_NE(complaint_of(archive_of({{"a/data.pkl", "x"}, {"a/byteorder", "big"}})).find("big-endian"),
            std::string::npos);
}

TEST(TorchFile, ATensorMustFitItsStorage) {
  const std::string row = "K\6\x85K\1\x85";  // shape (6,), stride (1,)
  const std::string storage(24, '\1');
  const std::string good = pickle_of_tensor(std::string("K\0", 2), row);
  const std::string archive = archive_of({{"a/data.pkl", good}, {"a/data/0", storage}});
  EXPECT_EQ(TorchFile(bytes_of(archive), "x.bin").find("a")->bytes, 24);

  const auto expect = [&](const std::string& pickle, const std::string& part) {
    const std::string message = complaint_of_pickle(pickle);
    EXPECT_NE(message.find(part), std::string::npos) << "expected '" << part << "' in '" << message << "'";
  };
  const std::string zero("K\0", 2), huge = "\x8a\x08" + std::string(7, '\xff') + "\x7f";
  expect(pickle_of_tensor("K\1", row), "does not fit data/0, which has 6 numbers");
  expect(pickle_of_tensor(zero, "K\4\x85K\2\x85"), "does not fit");
  expect(pickle_of_tensor(zero, "K\7\x85" + zero + "\x85"), "does not fit");  // expanded
  expect(pickle_of_tensor(huge, row), "does not fit");
  expect(pickle_of_tensor(zero, huge + "\x85K\1\x85"), "does not fit");
  expect(pickle_of_tensor(zero, huge + huge + "\x86K\1K\1\x86"), "does not fit");
  expect(pickle_of_tensor(zero, "K\2\x85" + huge + "\x85"), "does not fit");
  expect(pickle_of_tensor("J\xff\xff\xff\xff", row), "offset -1");
  expect(pickle_of_tensor(zero, "J\xff\xff\xff\xff\x85K\1\x85"), "the shape of a tensor has -1");
  expect(pickle_of_tensor(zero, "K\6\x85K\1K\1\x86"), "1 dimensions and 2 strides");
  expect(pickle_of_tensor(zero, row, "K\7"), "data/0 has 24 bytes, but should hold 7 numbers of F32");
  expect(pickle_of_tensor(zero, row, huge), "data/0 has 24 bytes");
  EXPECT_NE(complaint_of(archive_of({{"a/data.pkl", good}})).find("'a' should be in data/0, which the archive lacks"),
            std::string::npos);
  // A stride that is never taken may be any number.
  const std::string wide = archive_of(
      {{"a/data.pkl", pickle_of_tensor(zero, "K\2K\1K\3\x87K\1" + huge + "K\2\x87")}, {"a/data/0", storage}});
  EXPECT_EQ(TorchFile(bytes_of(wide), "x.bin").find("a")->bytes, 24);
}

// Each name of a transposed tensor is a copy, and takes 8 bytes of pickle.
TEST(TorchFile, CannotAskForMoreMemoryThanItHasBytes) {
  const std::string one = pickle_of_tensor(std::string("K\0", 2), "K\2K\3\x86K\1K\2\x86");
  const auto with_names = [&](int count) {
    std::string pickle = one.substr(0, one.size() - 2) + "q\1s(";
    for (int i = 0; i < count; ++i) {
      pickle += "X\1" + std::string(3, '\0') + static_cast<char>('!' + i) + std::string("h\1");
    }
    return pickle + "u.";
  };
  EXPECT_EQ(complaint_of_pickle(with_names(2)), "");
  EXPECT_NE(complaint_of_pickle(with_names(90)).find("have more bytes than the file"), std::string::npos);
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// What a pickle makes stays in proportion to its bytes.
TEST(TorchFile, APickleThatMakesTooMuchIsRefused) {
  const auto complaint = [](const std::string& steps) { return complaint_of_pickle("\x80\2" + steps + "}."); };
  EXPECT_NE(complaint(repeated("N", 100000)).find("more than 65536 values"), std::string::npos);
  EXPECT_NE(complaint(repeated("(", 100000)).find("more than 65536 marks"), std::string::npos);
  EXPECT_NE(complaint("Nr" + std::string("\0\0\1\0", 4)).find("keeps something at place 65536"), std::string::npos);
  // A tuple of a thousand values again and again: 2 bytes each.
  const std::string tuples = "(" + repeated("N", 1000) + "tq" + std::string(1, '\0') + "0";
  EXPECT_NE(complaint(tuples + "]" + repeated(std::string("(h\0h\0h\0h\0h\0h\0h\0h\0e", 18), 20000)), "");
  const std::string one = pickle_of_tensor(std::string("K\0", 2), "K\6\x85K\1\x85");
  std::string names;
  for (int i = 0; i < 17576; ++i) {
    names += std::string("\x8c\3") + static_cast<char>('a' + i % 26) + static_cast<char>('a' + i / 26 % 26) +
             static_cast<char>('a' + i / 676) + "h\1";
  }
  EXPECT_NE(complaint_of_pickle(one.substr(0, one.size() - 2) + "q\1s(" + names + "u.").find("make more than 32 times"),
            std::string::npos);
}

TEST(TorchFile, DamagedPicklesAreRefused) {
  const auto expect = [&](const std::string& pickle, const std::string& part) {
    const std::string message = complaint_of_pickle(pickle);
    EXPECT_NE(message.find(part), std::string::npos) << "expected '" << part << "' in '" << message << "'";
  };
  expect("", "1 bytes are missing");
  expect("\x80\2}", "1 bytes are missing");
  expect("\x80\1}.", "protocol 1");
  expect("\x80\2.", "takes more from its stack");
  expect("\x80\2(.", "takes more from its stack");
  expect("\x80\2K\1.", "what it makes is an integer, expected a dictionary");
  expect("\x80\2}.", "it has no tensor");
  expect("\x80\2t.", "a mark that is not there");
  expect("\x80\2h\7.", "recalls something that it never kept");
  expect("\x80\2}(K\1u.", "a key without a value");
  expect("\x80\2K\1)R.", "what is called is an integer, expected a function");
  expect("\x80\2K\1}b.", "what gets attributes is an integer");
  expect("\x80\2)Q.", "a persistent name of another kind");
  expect(std::string("\x80\2X\xff\xff\xff\xff", 7), "are missing at its end");
  expect("\x80\2cos", "a name has no end");
  // A list that holds itself is nothing to loop over.
  expect("\x80\2]q\1h\1a.", "what it makes is a sequence");
}

TEST(TorchFile, ChangedBytesOfATensorAreFoundByTheirChecksum) {
  const std::string whole = contents_of(torch_golden("views.bin"));
  const TorchFile file(bytes_of(whole), "x.bin");
  file.check_bytes();
  const auto* last = static_cast<const char*>(file.find("whole")->data) + file.find("whole")->bytes - 1;
  std::string damaged = whole;
  damaged[static_cast<size_t>(last - whole.data())] ^= 1;
  const TorchFile other(bytes_of(damaged), "x.bin");
  const std::string message = message_of<UserError>([&] { other.check_bytes(); });
  EXPECT_NE(message.find("x.bin: the bytes of data/0 in it are not those that were saved"), std::string::npos)
      << message;
  const size_t pickle = whole.find("storage");
  damaged = whole;
  damaged[pickle] ^= 1;
  EXPECT_NE(complaint_of(damaged).find("the bytes of data.pkl"), std::string::npos);
}

TEST(TorchFile, RecordsThatOverlapAreRefused) {
  // The second record's size reaches over the directory and all before it is counted twice.
  std::string archive = archive_of({{"a/data.pkl", std::string(200, 'x')}, {"a/data/0", std::string(200, '\1')}});
  const size_t entry = archive.find("PK\1\2"), local = 0;
  for (const size_t at : {entry + 20, entry + 24, local + 18, local + 22}) {
    archive[at] = static_cast<char>(0x9F);  // 415 bytes
    archive[at + 1] = 1;
  }
  EXPECT_NE(complaint_of(archive).find("its records overlap"), std::string::npos) << complaint_of(archive);
}

// Whatever happens to a file on its way, brisk reads it or says what is wrong; sanitizers watch.
TEST(TorchFile, SurvivesAnyCutAndAnyChangedByte) {
  const std::string whole = contents_of(torch_golden("views.bin"));
  const auto survives = [](const std::string& content) {
    const std::vector<std::byte> exact(bytes_of(content).begin(), bytes_of(content).end());
    try {
      const TorchFile file(exact, "x.bin");
      unsigned sum = 0;
      for (const SafetensorsEntry& entry : file.entries()) {
        for (int64_t i = 0; i < entry.bytes; ++i) sum += static_cast<const unsigned char*>(entry.data)[i];
      }
      return sum < ~0u;
    } catch (const UserError&) {
      return false;
    }
  };
  EXPECT_TRUE(survives(whole));
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_FALSE(survives(whole.substr(0, length))) << length;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {1, 128, 255}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      survives(damaged);
    }
  }
}

}  // namespace
}  // namespace brisk
