// The pickle opcodes that dictionaries of tensors use, by pickle's own names, and the functions that they call. Anything
// else is refused.
//
//   case pickle::kTuple2: ...                      // the last two of the stack become a pair
//   pickle::kGlobals[0].name == "OrderedDict"
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hub/formats/safetensors.h"

namespace brisk::pickle {

enum Opcode : uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kPop = '0',
  kNone = 'N',
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kLong1 = 0x8a,
  kBinFloat = 'G',
  kBinUnicode = 'X',
  kShortBinUnicode = 0x8c,
  kEmptyTuple = ')',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kEmptyDict = '}',
  kSetItem = 's',
  kSetItems = 'u',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kMemoize = 0x94,
  kBinGet = 'h',
  kLongBinGet = 'j',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kInst = 'i',  // only to name what it would run
  kReduce = 'R',
  kBuild = 'b',
  kBinPersId = 'Q',
};

// The names that a dictionary of tensors calls.
enum class Callable : uint8_t { ordered_dict, rebuild_tensor, rebuild_parameter, size, storage };
struct Global {
  std::string_view module, name;
  Callable callable;
  SafetensorsType type = SafetensorsType::f32;  // of a storage
};
inline constexpr std::array<Global, 15> kGlobals = {{
    {"collections", "OrderedDict", Callable::ordered_dict},
    {"torch._utils", "_rebuild_tensor_v2", Callable::rebuild_tensor},
    {"torch._utils", "_rebuild_tensor", Callable::rebuild_tensor},
    {"torch._utils", "_rebuild_parameter", Callable::rebuild_parameter},
    {"torch", "Size", Callable::size},
    {"torch", "DoubleStorage", Callable::storage, SafetensorsType::f64},
    {"torch", "FloatStorage", Callable::storage, SafetensorsType::f32},
    {"torch", "HalfStorage", Callable::storage, SafetensorsType::f16},
    {"torch", "BFloat16Storage", Callable::storage, SafetensorsType::bf16},
    {"torch", "LongStorage", Callable::storage, SafetensorsType::i64},
    {"torch", "IntStorage", Callable::storage, SafetensorsType::i32},
    {"torch", "ShortStorage", Callable::storage, SafetensorsType::i16},
    {"torch", "CharStorage", Callable::storage, SafetensorsType::i8},
    {"torch", "ByteStorage", Callable::storage, SafetensorsType::u8},
    {"torch", "BoolStorage", Callable::storage, SafetensorsType::boolean},
}};

}  // namespace brisk::pickle
