#include "hub/formats/tensor_pickle.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text/printable.h"
#include "hub/formats/pickle_steps.h"

namespace brisk {

namespace {

using namespace pickle;

// What no checkpoint reaches, so that a file made to exhaust memory or time cannot: a hundred thousand tensors, texts and
// shapes that are cheap to copy as often as it says, and more on its stack than the two thousand of a dictionary's batch.
constexpr size_t kLongestPickle = size_t{16} << 20;
constexpr size_t kLongestName = 1024;
constexpr size_t kMostPickledDimensions = 16;
constexpr size_t kDeepestStack = size_t{1} << 16;
// Memory for each byte of the pickle, and some for a short one: what torch.save writes makes 10 to 17 bytes of one.
constexpr size_t kMostMemory = 32, kLeastMemory = size_t{1} << 20;

// What lies on the stack: a number, or the place of something larger in a table of the machine. The tables own
// everything, so a list that holds itself, which a pickle may make, is nothing special.
enum class ValueKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  sequence,
  mapping,
  global,
  storage,
  tensor,
  nothing,  // of the memo: not kept
};
struct Value {
  ValueKind kind = ValueKind::none;
  int64_t number = 0;
};
constexpr Value kNothing = {ValueKind::nothing, 0};

struct PickledStorage {
  std::string_view key;
  SafetensorsType type;
  int64_t count;
};
struct PlacedTensor {
  size_t storage;
  int64_t offset;
  Value shape, strides;  // sequences
};

// A tensor's entry here and in the list of a file's tensors (hub/formats/torch_file.h), names and shapes included.
constexpr size_t kBytesOfResult = 500;

const char* word_for(ValueKind kind) {
  constexpr std::array<const char*, 10> kWords = {"nothing",   "a truth value", "an integer",   "a fraction",
                                                  "a text",    "a sequence",    "a dictionary", "a function",
                                                  "a storage", "a tensor"};
  return kWords[static_cast<size_t>(kind)];
}

class Machine {
 public:
  Machine(std::span<const std::byte> pickle, const std::string& file) : pickle_(pickle), file_(file) {}

  std::vector<PickledTensor> run() {
    if (pickle_.size() > kLongestPickle) {
      fail("it has {} bytes, brisk reads at most {}", pickle_.size(), kLongestPickle);
    }
    while (step()) {
    }
    return tensors_of(pop());
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    user_error("{}: its data.pkl is not a dictionary of tensors: {} (byte {}); fetch the file again, or save {}", file_,
               format_message(format, std::forward<Args>(args)...), start_, "model.state_dict() with torch.save");
  }
  [[noreturn]] void refuse(std::string_view module, std::string_view name) const {
    user_error(
        "{}: the file asks to run {}.{}: brisk reads tensors only, and has run nothing; take the model from a source "
        "that you trust, as model.safetensors if there is one",
        file_, printable(module), printable(name));
  }

  // --- reading ---
  std::span<const std::byte> take(uint64_t bytes) {
    if (bytes > pickle_.size() - at_) {
      fail("{} bytes are missing at its end", bytes - (pickle_.size() - at_));
    }
    const auto taken = pickle_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }
  template <typename T>
  T take_number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take_text(uint64_t bytes) {
    const auto taken = take(bytes);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  std::string_view take_line() {
    const std::string_view rest = {reinterpret_cast<const char*>(pickle_.data()) + at_, pickle_.size() - at_};
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) fail("a name has no end");
    at_ += end + 1;
    return rest.substr(0, end);
  }
  int64_t take_long(uint8_t bytes) {
    if (bytes > sizeof(int64_t)) fail("an integer of {} bytes", bytes);
    const auto taken = take(bytes);
    uint64_t value = 0;
    if (bytes == 0) return 0;
    std::memcpy(&value, taken.data(), bytes);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
    return static_cast<int64_t>(value << unused) >> unused;  // its highest bit is the sign
  }

  // --- the stack ---
  // All that stays is paid for before it is made.
  void pay(size_t bytes) {
    paid_ += bytes;
    if (paid_ > kLeastMemory + kMostMemory * pickle_.size()) {
      fail("its {} bytes make more than {} times as much", pickle_.size(), kMostMemory);
    }
  }
  static size_t bytes_of(const std::vector<Value>& values) {
    constexpr size_t kAllocation = 16;
    return sizeof(values) + (values.empty() ? 0 : kAllocation + values.size() * sizeof(Value));
  }
  void push(Value value) {
    if (stack_.size() >= kDeepestStack) fail("more than {} values wait on its stack", kDeepestStack);
    stack_.push_back(value);
  }
  void push(ValueKind kind, int64_t number) { push(Value{kind, number}); }
  void push_text(std::string_view text) {
    pay(sizeof text);
    push(ValueKind::text, std::ssize(texts_));
    texts_.push_back(text);
  }
  void push_sequence(std::vector<Value> values) {
    pay(bytes_of(values));
    push(ValueKind::sequence, std::ssize(sequences_));
    sequences_.push_back(std::move(values));
  }
  void push_mapping() {
    pay(sizeof mappings_.back());
    push(ValueKind::mapping, std::ssize(mappings_));
    mappings_.emplace_back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Value pop() {
    if (stack_.size() <= floor()) fail("it takes more from its stack than there is");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  const Value& top() const {
    if (stack_.size() <= floor()) fail("it takes more from its stack than there is");
    return stack_.back();
  }
  std::vector<Value> pop_last(size_t count) {
    if (stack_.size() - floor() < count) fail("it takes more from its stack than there is");
    std::vector<Value> values(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fail("it looks for a mark that is not there");
    std::vector<Value> values = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  Value expect(Value value, ValueKind kind, const char* what) const {
    if (value.kind != kind) fail("{} is {}, expected {}", what, word_for(value.kind), word_for(kind));
    return value;
  }
  const std::vector<Value>& sequence(Value value, const char* what) const {
    return sequences_[static_cast<size_t>(expect(value, ValueKind::sequence, what).number)];
  }
  std::string_view text(Value value, const char* what) const {
    const std::string_view found = texts_[static_cast<size_t>(expect(value, ValueKind::text, what).number)];
    if (found.size() > kLongestName) fail("{} has {} bytes", what, found.size());
    return found;
  }
  void remember(uint32_t place) {  // picklers count from 0 on
    if (place >= pickle_.size()) fail("it keeps something at place {}", place);
    if (place >= memo_.size()) {
      pay((place + 1 - memo_.size()) * sizeof(Value));
      memo_.resize(place + 1, kNothing);
    }
    kept_ += memo_[place].kind == ValueKind::nothing ? 1 : 0;
    memo_[place] = top();
  }
  void recall(uint32_t place) {
    if (place >= memo_.size() || memo_[place].kind == ValueKind::nothing) {
      fail("it recalls something that it never kept");
    }
    push(memo_[place]);
  }

  // --- the steps ---
  // False at the end of the program.
  bool step() {
    start_ = at_;
    const uint8_t opcode = take_number<uint8_t>();
    switch (opcode) {
      case kProto:
        if (const uint8_t version = take_number<uint8_t>(); version < 2 || version > 5) fail("protocol {}", version);
        break;
      case kFrame: take(8); break;
      case kStop: return false;
      case kMark:
        if (marks_.size() >= kDeepestStack) fail("more than {} marks wait on its stack", kDeepestStack);
        marks_.push_back(stack_.size());
        break;
      case kPop: pop(); break;
      case kNone: push(ValueKind::none, 0); break;
      case kNewTrue: push(ValueKind::boolean, 1); break;
      case kNewFalse: push(ValueKind::boolean, 0); break;
      case kBinInt: push(ValueKind::integer, take_number<int32_t>()); break;
      case kBinInt1: push(ValueKind::integer, take_number<uint8_t>()); break;
      case kBinInt2: push(ValueKind::integer, take_number<uint16_t>()); break;
      case kLong1: push(ValueKind::integer, take_long(take_number<uint8_t>())); break;
      case kBinFloat: take(8), push(ValueKind::real, 0); break;  // nothing here needs its value
      case kBinUnicode: push_text(take_text(take_number<uint32_t>())); break;
      case kShortBinUnicode: push_text(take_text(take_number<uint8_t>())); break;
      case kEmptyTuple: push_sequence({}); break;
      case kTuple: push_sequence(pop_to_mark()); break;
      case kTuple1: push_sequence(pop_last(1)); break;
      case kTuple2: push_sequence(pop_last(2)); break;
      case kTuple3: push_sequence(pop_last(3)); break;
      case kEmptyList: push_sequence({}); break;
      case kAppend: append(pop_last(1)); break;
      case kAppends: append(pop_to_mark()); break;
      case kEmptyDict: push_mapping(); break;
      case kSetItem: set_items(pop_last(2)); break;
      case kSetItems: set_items(pop_to_mark()); break;
      case kBinPut: remember(take_number<uint8_t>()); break;
      case kLongBinPut: remember(take_number<uint32_t>()); break;
      case kMemoize: remember(kept_); break;
      case kBinGet: recall(take_number<uint8_t>()); break;
      case kLongBinGet: recall(take_number<uint32_t>()); break;
      case kGlobal:
      case kInst: {
        const std::string_view module = take_line(), name = take_line();
        if (opcode == kInst) refuse(module, name);
        push_global(module, name);
        break;
      }
      case kStackGlobal: {
        const Value name = pop(), module = pop();
        push_global(text(module, "the module of a function"), text(name, "the name of a function"));
        break;
      }
      case kReduce: call(); break;
      case kBuild:  // attributes of an OrderedDict (_metadata of state_dict()), which say nothing about tensors
        pop();
        expect(top(), ValueKind::mapping, "what gets attributes");
        break;
      case kBinPersId: push_storage(); break;
      default: fail("step 0x{:02x} is none that it takes", opcode);
    }
    return true;
  }

  void append(const std::vector<Value>& values) {
    auto& list = sequences_[static_cast<size_t>(expect(top(), ValueKind::sequence, "a list").number)];
    pay(2 * values.size() * sizeof(Value));  // twice: a list has room to grow
    list.insert(list.end(), values.begin(), values.end());
  }

  void set_items(const std::vector<Value>& values) {
    auto& mapping = mappings_[static_cast<size_t>(expect(top(), ValueKind::mapping, "what gets entries").number)];
    if (values.size() % 2 != 0) fail("a key without a value");
    pay(2 * values.size() * sizeof(Value));
    for (size_t i = 0; i < values.size(); i += 2) mapping.emplace_back(values[i], values[i + 1]);
  }

  void push_global(std::string_view module, std::string_view name) {
    for (size_t i = 0; i < kGlobals.size(); ++i) {
      if (kGlobals[i].module == module && kGlobals[i].name == name) {
        push(ValueKind::global, static_cast<int64_t>(i));
        return;
      }
    }
    refuse(module, name);
  }

  void call() {
    const Value arguments_value = pop();
    const Global& global = kGlobals[static_cast<size_t>(expect(pop(), ValueKind::global, "what is called").number)];
    const std::vector<Value>& arguments = sequence(arguments_value, "the arguments of a call");
    const auto need = [&](size_t count) {
      if (arguments.size() < count) fail("{} with {} arguments", global.name, arguments.size());
    };
    switch (global.callable) {
      case Callable::ordered_dict:
        if (!arguments.empty()) fail("an OrderedDict made with arguments");
        push_mapping();
        return;
      case Callable::size:
        need(1);
        sizes(arguments[0], "a shape");
        push(arguments[0]);
        return;
      case Callable::rebuild_parameter:
        need(1);
        push(expect(arguments[0], ValueKind::tensor, "a parameter"));
        return;
      case Callable::rebuild_tensor:
        need(4);
        push_tensor(arguments);
        return;
      case Callable::storage: refuse(global.module, global.name);  // a storage is named, never called
    }
  }

  // ("storage", torch.FloatStorage, "0", "cpu", 1024)
  void push_storage() {
    const std::vector<Value>& id = sequence(pop(), "the name of a storage");
    if (id.size() != 5 || text(id[0], "a persistent name") != "storage") fail("a persistent name of another kind");
    const Global& global =
        kGlobals[static_cast<size_t>(expect(id[1], ValueKind::global, "the type of a storage").number)];
    if (global.callable != Callable::storage) fail("a storage of the type {}", global.name);
    const PickledStorage storage{text(id[2], "the key of a storage"), global.type,
                                 expect(id[4], ValueKind::integer, "the size of a storage").number};
    if (storage.count < 0) fail("a storage of {} elements", storage.count);
    pay(sizeof storage);
    push(ValueKind::storage, std::ssize(storages_));
    storages_.push_back(storage);
  }

  // (storage, offset, shape, strides, ...): what follows is about gradients.
  void push_tensor(const std::vector<Value>& arguments) {
    const Value storage = expect(arguments[0], ValueKind::storage, "what a tensor stands in");
    const PlacedTensor tensor{static_cast<size_t>(storage.number),
                              expect(arguments[1], ValueKind::integer, "the offset of a tensor").number, arguments[2],
                              arguments[3]};
    const size_t dimensions = sizes(tensor.shape, "the shape of a tensor").size();
    const size_t strides = sizes(tensor.strides, "the strides of a tensor").size();
    if (tensor.offset < 0 || dimensions != strides) {
      fail("a tensor with offset {}, {} dimensions and {} strides", tensor.offset, dimensions, strides);
    }
    pay(sizeof tensor);
    push(ValueKind::tensor, std::ssize(tensors_));
    tensors_.push_back(tensor);
  }

  PickledTensor pickled(std::string_view name, const PlacedTensor& tensor) const {
    const PickledStorage& storage = storages_[tensor.storage];
    return {.name = std::string(name),
            .storage = std::string(storage.key),
            .type = storage.type,
            .storage_count = storage.count,
            .offset = tensor.offset,
            .shape = sizes(tensor.shape, "the shape of a tensor"),
            .strides = sizes(tensor.strides, "the strides of a tensor")};
  }

  std::vector<int64_t> sizes(Value value, const char* what) const {
    const std::vector<Value>& values = sequence(value, what);
    if (values.size() > kMostPickledDimensions) fail("{} has {} dimensions", what, values.size());
    std::vector<int64_t> sizes;
    for (const Value& element : values) {
      sizes.push_back(expect(element, ValueKind::integer, what).number);
      if (sizes.back() < 0) fail("{} has {} in it", what, sizes.back());
    }
    return sizes;
  }

  // --- the result ---
  std::vector<PickledTensor> tensors_of(Value result) {
    const auto& entries = mappings_[static_cast<size_t>(expect(result, ValueKind::mapping, "what it makes").number)];
    std::vector<PickledTensor> tensors;
    std::map<std::string_view, size_t> places;
    std::optional<std::string_view> inner;  // a dictionary in it
    for (const auto& [key, value] : entries) {
      if (key.kind != ValueKind::text) continue;
      const std::string_view name = text(key, "a key");
      if (value.kind == ValueKind::mapping && !inner) inner = name;
      if (value.kind != ValueKind::tensor) continue;
      const PlacedTensor& tensor = tensors_[static_cast<size_t>(value.number)];
      const auto [place, added] = places.emplace(name, tensors.size());
      if (added) {
        pay(kBytesOfResult);
        tensors.push_back(pickled(name, tensor));
      } else {
        tensors[place->second] = pickled(name, tensor);  // the last one of a name counts, as in Python
      }
    }
    if (tensors.empty() && inner) {
      user_error(
          "{}: no tensor stands in its dictionary itself, but it has a dictionary '{}': take that out with "
          "torch.save(torch.load(FILE)['{}'], FILE)",
          file_, printable(*inner), printable(*inner));
    }
    if (tensors.empty()) fail("it has no tensor");
    return tensors;
  }

  std::span<const std::byte> pickle_;
  const std::string& file_;
  size_t at_ = 0, start_ = 0;  // the next byte; the first one of this step
  size_t paid_ = 0;            // bytes of memory for what was made
  std::vector<Value> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::deque<Value> memo_;
  uint32_t kept_ = 0;  // in the memo
  // A list of pages does not take twice its size when it grows.
  std::deque<std::string_view> texts_;
  std::deque<std::vector<Value>> sequences_;
  std::deque<std::vector<std::pair<Value, Value>>> mappings_;
  std::deque<PickledStorage> storages_;
  std::deque<PlacedTensor> tensors_;
};

}  // namespace

std::vector<PickledTensor> read_tensor_pickle(std::span<const std::byte> pickle, const std::string& file) {
  return Machine(pickle, file).run();
}

}  // namespace brisk
