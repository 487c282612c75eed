#include "pickle_machine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "../core/printable.h"
#include "../core/utf8.h"

namespace reel::io {

using detail::find_not_utf8;
using detail::shown;

// Source: pickletools.py.
enum class Instruction : unsigned char {
  mark = '(',
  stop = '.',
  pop_one = '0',
  pop_to_mark = '1',
  int4 = 'J',
  int1 = 'K',
  int2 = 'M',
  none_value = 'N',
  persistent = 'Q',
  reduce_call = 'R',
  string4 = 'T',
  string1 = 'U',
  unicode4 = 'X',
  append = 'a',
  build_state = 'b',
  global = 'c',
  empty_dict = '}',
  appends = 'e',
  get1 = 'h',
  get4 = 'j',
  list_of = 'l',
  empty_list = ']',
  put1 = 'q',
  put4 = 'r',
  set_item = 's',
  tuple_of = 't',
  empty_tuple = ')',
  set_items = 'u',
  float8 = 'G',
  dict_of = 'd',
  protocol = 0x80,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  true_value = 0x88,
  false_value = 0x89,
  long1 = 0x8a,
  unicode1 = 0x8c,
  unicode8 = 0x8d,
  global_of_stack = 0x93,
  memoise = 0x94,
  frame = 0x95,
};

namespace {

using Kind = PickleValue::Kind;

// The memory of values beside a small constant, in bytes for each byte of the pickle: the description of a tensor of an
// optimiser's state needs 36, that of a scalar in a list 42.
constexpr std::size_t least_budget = std::size_t{1} << 20, budget_factor = 64;

template <class... T>
[[noreturn]] void refuse_pickle(fmt::format_string<T...> words, T&&... values) {
  throw std::runtime_error(fmt::format("has a pickle that {}", fmt::format(words, std::forward<T>(values)...)));
}

struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr std::array storage_names{StorageName{"torch FloatStorage", f32}, StorageName{"torch DoubleStorage", f64},
                                   StorageName{"torch HalfStorage", f16},  StorageName{"torch BFloat16Storage", bf16},
                                   StorageName{"torch IntStorage", i32},   StorageName{"torch LongStorage", i64},
                                   StorageName{"torch ByteStorage", u8},   StorageName{"torch BoolStorage", boolean},
                                   StorageName{"torch CharStorage", i8},   StorageName{"torch ShortStorage", i16}};

// Names that may be on the stack and are not called; dtypes, as `torch float32`.
constexpr std::array plain_names{"torch float32",
                                 "torch float64",
                                 "torch float16",
                                 "torch bfloat16",
                                 "torch int32",
                                 "torch int64",
                                 "torch uint8",
                                 "torch bool",
                                 "torch int8",
                                 "torch int16",
                                 "torch.storage UntypedStorage",
                                 "torch.storage TypedStorage"};

bool is_call(std::string_view name) {
  return name == "collections OrderedDict" || name == "torch Size" || name == "torch._utils _rebuild_tensor_v2" ||
         name == "torch._utils _rebuild_parameter";
}

bool is_known(std::string_view name) {
  return is_call(name) || (name.starts_with("torch ") && name.ends_with("Storage")) ||
         std::find(plain_names.begin(), plain_names.end(), name) != plain_names.end();
}

std::string dotted(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), ' ', '.');
  return shown(text);
}

Shape shape_in(const PickleValue& value, const char* what) {
  if (value.kind != Kind::tuple && value.kind != Kind::list) refuse_pickle("has a tensor whose {} is no tuple", what);
  const std::vector<PickleValue>& items = value.node->items;
  if (items.size() > max_rank)
    refuse_pickle("has a tensor of {} axes, more than the {} that reel's tensors can have", items.size(), max_rank);
  Shape shape;
  for (const PickleValue& item : items) {
    if (item.kind != Kind::integer) refuse_pickle("has a tensor whose {} are not whole numbers", what);
    shape.push_back(item.integer);
  }
  return shape;
}

}  // namespace

PickleMachine::PickleMachine(std::string_view pickle)
    : pickle_(pickle), budget_(least_budget + budget_factor * pickle.size()) {}

PickleValue PickleMachine::run() {
  do begun_ = place_;
  while (step());
  if (stack_.size() != 1) refuse_pickle("ends with {} values in place of one", stack_.size());
  return stack_.front();
}

void PickleMachine::charge(std::size_t bytes) {
  if (bytes > budget_)
    refuse_pickle("describes more values than its {} bytes could name: it is no state_dict", pickle_.size());
  budget_ -= bytes;
}

// Reads an unsigned number, little-endian.
std::uint64_t PickleMachine::number(std::size_t bytes) {
  if (pickle_.size() - place_ < bytes) refuse_pickle("is cut off at byte {}", pickle_.size());
  std::uint64_t value = 0;
  std::memcpy(&value, pickle_.data() + place_, bytes);
  place_ += bytes;
  return value;
}

std::int64_t PickleMachine::long_number() {
  std::uint64_t bytes = number(1);
  if (bytes > 8) refuse_pickle("has a whole number of {} bytes, more than 8, at byte {}", bytes, begun_);
  if (bytes == 0) return 0;
  auto unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::int64_t>(number(bytes) << unused) >> unused;
}

std::string_view PickleMachine::text(std::uint64_t bytes) {
  if (pickle_.size() - place_ < bytes) refuse_pickle("is cut off in the text at byte {}", begun_);
  std::string_view found = pickle_.substr(place_, bytes);
  place_ += bytes;
  if (find_not_utf8(found) != found.npos) refuse_pickle("has a text that is not UTF-8 at byte {}", begun_);
  return found;
}

std::string_view PickleMachine::line() {
  std::size_t end = pickle_.find('\n', place_);
  if (end == pickle_.npos) refuse_pickle("is cut off in the name at byte {}", begun_);
  std::string_view found = text(end - place_);
  ++place_;
  return found;
}

void PickleMachine::push(PickleValue value) {
  charge(sizeof(PickleValue));
  stack_.push_back(value);
}

void PickleMachine::push(Kind kind, std::int64_t integer) {
  PickleValue value;
  value.kind = kind;
  value.integer = integer;
  push(value);
}

PickleNode* PickleMachine::push_node(Kind kind) {
  charge(sizeof(PickleNode));
  PickleValue value;
  value.kind = kind;
  value.node = &nodes_.emplace_back();
  push(value);
  return value.node;
}

void PickleMachine::push_text(std::uint64_t bytes) {
  std::string_view found = text(bytes);
  push_node(Kind::text)->text = found;
}

// Only functions that are known are on the stack.
void PickleMachine::push_function(std::string_view module, std::string_view name) {
  charge(module.size() + name.size() + 1);
  std::string both = fmt::format("{} {}", module, name);
  if (!is_known(both))
    refuse_pickle(
        "names {} at byte {}; a file is only read if it has tensors, dicts, lists, texts and numbers: save the "
        "state_dict() of a module in place of the module, and nothing else beside it",
        dotted(both), begun_);
  // The names of those that are known are constants or parts of the pickle; a global's two lines are adjacent there.
  std::string_view kept;
  for (const StorageName& one : storage_names)
    if (one.name == both) kept = one.name;
  for (std::string_view one :
       {"collections OrderedDict", "torch Size", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"})
    if (one == both) kept = one;
  // All other names are shown in messages only, by their last word.
  push_node(Kind::function)->text = kept.empty() ? name : kept;
}

PickleValue PickleMachine::pop() {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size()))
    refuse_pickle("takes a value that it has not made, at byte {}", begun_);
  PickleValue value = stack_.back();
  stack_.pop_back();
  return value;
}

std::size_t PickleMachine::pop_mark() {
  if (marks_.empty()) refuse_pickle("has no mark for the instruction at byte {}", begun_);
  std::size_t first = marks_.back();
  marks_.pop_back();
  return first;
}

// Replaces the values from `first` on by one container of them.
void PickleMachine::collect(Kind kind, std::size_t first) {
  if (first > stack_.size() || (!marks_.empty() && marks_.back() > first))
    refuse_pickle("takes a value that it has not made, at byte {}", begun_);
  if (kind == Kind::dict && (stack_.size() - first) % 2 != 0) refuse_pickle("has a dict with a key without a value");
  std::vector<PickleValue> items(stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  charge(items.size() * sizeof(PickleValue));
  stack_.resize(first);
  push_node(kind)->items = std::move(items);
}

// Appends the values from `first` on to the container before them.
void PickleMachine::extend(std::size_t first, Kind kind) {
  std::size_t least = marks_.empty() ? 0 : marks_.back();
  if (first <= least || first > stack_.size() || stack_[first - 1].kind != kind)
    refuse_pickle("adds values to what is no {}, at byte {}", kind == Kind::dict ? "dict" : "list", begun_);
  if (kind == Kind::dict && (stack_.size() - first) % 2 != 0) refuse_pickle("has a dict with a key without a value");
  std::vector<PickleValue>& items = stack_[first - 1].node->items;
  charge((stack_.size() - first) * sizeof(PickleValue));
  items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(first), stack_.end());
  stack_.resize(first);
}

void PickleMachine::put(std::uint64_t index) {
  if (stack_.empty()) refuse_pickle("takes a value that it has not made, at byte {}", begun_);
  // Writers number from 0.
  if (index >= pickle_.size()) refuse_pickle("numbers a value {}, more than it has bytes", index);
  if (index >= memo_.size()) {
    charge((index + 1 - memo_.size()) * sizeof(PickleValue));
    memo_.resize(index + 1);
  }
  memo_[index] = stack_.back();
}

void PickleMachine::get(std::uint64_t index) {
  if (index >= memo_.size()) refuse_pickle("takes the value {}, which it has not made", index);
  push(memo_[index]);
}

bool PickleMachine::step() {
  auto code = static_cast<Instruction>(number(1));
  if (code == Instruction::stop) return false;
  if (!push_constant(code) && !push_number(code) && !push_container(code) && !fill_container(code) && !remember(code) &&
      !call(code))
    refuse_pickle("has the instruction {:#04x} at byte {}, which files of tensors do not need", static_cast<int>(code),
                  begun_);
  return true;
}

bool PickleMachine::push_constant(Instruction code) {
  using enum Instruction;
  switch (code) {
    case none_value: push(Kind::none, 0); return true;
    case true_value: push(Kind::boolean, 1); return true;
    case false_value: push(Kind::boolean, 0); return true;
    case unicode1:
    case string1: push_text(number(1)); return true;
    case unicode4:
    case string4: push_text(number(4)); return true;
    case unicode8: push_text(number(8)); return true;
    default: return false;
  }
}

bool PickleMachine::push_number(Instruction code) {
  using enum Instruction;
  switch (code) {
    case int1: push(Kind::integer, static_cast<std::int64_t>(number(1))); return true;
    case int2: push(Kind::integer, static_cast<std::int64_t>(number(2))); return true;
    case int4: push(Kind::integer, static_cast<std::int32_t>(number(4))); return true;
    case long1: push(Kind::integer, long_number()); return true;
    case float8: {
      PickleValue value;
      value.kind = Kind::real;
      std::uint64_t bits = __builtin_bswap64(number(8));  // the one number that is big-endian
      value.real = std::bit_cast<double>(bits);
      push(value);
      return true;
    }
    default: return false;
  }
}

bool PickleMachine::push_container(Instruction code) {
  using enum Instruction;
  switch (code) {
    case mark:
      charge(sizeof(std::size_t));
      marks_.push_back(stack_.size());
      return true;
    case empty_dict: push_node(Kind::dict); return true;
    case empty_list: push_node(Kind::list); return true;
    case empty_tuple: push_node(Kind::tuple); return true;
    case tuple_of: collect(Kind::tuple, pop_mark()); return true;
    case list_of: collect(Kind::list, pop_mark()); return true;
    case dict_of: collect(Kind::dict, pop_mark()); return true;
    case tuple1:
    case tuple2:
    case tuple3: {
      std::size_t count = code == tuple1 ? 1 : code == tuple2 ? 2 : 3;
      if (stack_.size() < count) refuse_pickle("takes a value that it has not made, at byte {}", begun_);
      collect(Kind::tuple, stack_.size() - count);
      return true;
    }
    default: return false;
  }
}

bool PickleMachine::fill_container(Instruction code) {
  using enum Instruction;
  std::size_t size = stack_.size();
  switch (code) {
    case append: extend(size < 1 ? 0 : size - 1, Kind::list); return true;
    case appends: extend(pop_mark(), Kind::list); return true;
    case set_item: extend(size < 2 ? 0 : size - 2, Kind::dict); return true;
    case set_items: extend(pop_mark(), Kind::dict); return true;
    case pop_one:
      if (!marks_.empty() && marks_.back() == size)
        marks_.pop_back();
      else
        pop();
      return true;
    case pop_to_mark: stack_.resize(pop_mark()); return true;
    default: return false;
  }
}

bool PickleMachine::remember(Instruction code) {
  using enum Instruction;
  switch (code) {
    case put1: put(number(1)); return true;
    case put4: put(number(4)); return true;
    case memoise: put(memo_.size()); return true;
    case get1: get(number(1)); return true;
    case get4: get(number(4)); return true;
    case frame: number(8); return true;
    case protocol:
      if (std::uint64_t version = number(1); version > 5) refuse_pickle("is of the unknown protocol {}", version);
      return true;
    default: return false;
  }
}

bool PickleMachine::call(Instruction code) {
  using enum Instruction;
  switch (code) {
    case global: {
      std::string_view module = line();
      push_function(module, line());
      return true;
    }
    case global_of_stack: {
      PickleValue name = pop(), module = pop();
      if (name.kind != Kind::text || module.kind != Kind::text)
        refuse_pickle("names a function by what is no text, at byte {}", begun_);
      push_function(module.node->text, name.node->text);
      return true;
    }
    case persistent: find_storage(); return true;
    case reduce_call: reduce(); return true;
    case build_state: build(); return true;
    default: return false;
  }
}

// Source: PyTorch's torch/serialization.py, `persistent_id`: ("storage", class, key, device, number of elements).
void PickleMachine::find_storage() {
  PickleValue id = pop();
  const std::vector<PickleValue>* items = id.kind == Kind::tuple ? &id.node->items : nullptr;
  if (!items || items->size() != 5 || (*items)[0].kind != Kind::text || (*items)[0].node->text != "storage" ||
      (*items)[1].kind != Kind::function || (*items)[2].kind != Kind::text || (*items)[4].kind != Kind::integer)
    refuse_pickle("refers to something other than a storage, at byte {}", begun_);
  std::string_view type = (*items)[1].node->text;
  auto found = std::find_if(storage_names.begin(), storage_names.end(),
                            [&](const StorageName& one) { return one.name == type; });
  if (found == storage_names.end())
    refuse_pickle("has a storage of the type {}, whose dtype reel has not: convert the tensor before it is saved",
                  dotted(type));
  if ((*items)[4].integer < 0) refuse_pickle("has a storage of {} elements", (*items)[4].integer);
  PickleNode* storage = push_node(Kind::storage);
  storage->text = (*items)[2].node->text;
  storage->dtype = found->dtype;
  storage->numel = (*items)[4].integer;
  charge(sizeof(void*));
  storages_.push_back(storage);
}

void PickleMachine::reduce() {
  PickleValue arguments = pop(), function = pop();
  if (function.kind != Kind::function || !is_call(function.node->text))
    refuse_pickle("calls {} at byte {}, which files of tensors do not need",
                  function.kind == Kind::function ? dotted(function.node->text) : "what is no function", begun_);
  if (arguments.kind != Kind::tuple) refuse_pickle("calls a function without a tuple of arguments, at byte {}", begun_);
  const std::vector<PickleValue>& items = arguments.node->items;
  std::string_view name = function.node->text;
  if (name == "collections OrderedDict") {
    reduce_ordered_dict(items);
  } else if (name == "torch._utils _rebuild_tensor_v2") {
    rebuild_tensor(items);
  } else if (name == "torch Size") {
    if (items.size() != 1 || (items[0].kind != Kind::tuple && items[0].kind != Kind::list))
      refuse_pickle("has a torch.Size that is no tuple, at byte {}", begun_);
    push(items[0]);
  } else {
    // A parameter is the tensor that it holds.
    if (items.empty() || items[0].kind != Kind::tensor)
      refuse_pickle("has a parameter without a tensor, at byte {}", begun_);
    push(items[0]);
  }
}

void PickleMachine::reduce_ordered_dict(const std::vector<PickleValue>& arguments) {
  PickleNode* dict = push_node(Kind::dict);
  if (arguments.empty()) return;
  if (arguments.size() != 1 || arguments[0].kind != Kind::list)
    refuse_pickle("makes an OrderedDict of something other than a list, at byte {}", begun_);
  // Python 2 wrote a list of pairs.
  for (const PickleValue& pair : arguments[0].node->items) {
    if ((pair.kind != Kind::list && pair.kind != Kind::tuple) || pair.node->items.size() != 2)
      refuse_pickle("makes an OrderedDict of something other than pairs, at byte {}", begun_);
    charge(2 * sizeof(PickleValue));
    dict->items.insert(dict->items.end(), pair.node->items.begin(), pair.node->items.end());
  }
}

// Source: PyTorch's torch/_utils.py: (storage, offset, size, stride, requires_grad, backward_hooks[, metadata]).
void PickleMachine::rebuild_tensor(const std::vector<PickleValue>& arguments) {
  if (arguments.size() < 4 || arguments[0].kind != Kind::storage || arguments[1].kind != Kind::integer)
    refuse_pickle("has a tensor without a storage, at byte {}", begun_);
  PickleNode* storage = arguments[0].node;
  PickleNode* tensor = push_node(Kind::tensor);
  tensor->storage = storage;
  tensor->layout = {shape_in(arguments[2], "sizes"), shape_in(arguments[3], "strides"), arguments[1].integer};
  if (tensor->layout.shape.rank() != tensor->layout.strides.rank())
    refuse_pickle("has a tensor of {} sizes and {} strides", tensor->layout.shape.rank(),
                  tensor->layout.strides.rank());
  if (!fits_storage(tensor->layout, storage->numel))
    refuse_pickle("has a tensor of shape {}, strides {} and offset {}, which its storage of {} elements does not hold",
                  to_string(tensor->layout.shape), to_string(tensor->layout.strides), tensor->layout.offset,
                  storage->numel);
}

// The attributes of a state_dict, its `_metadata`, are not needed.
void PickleMachine::build() {
  PickleValue state = pop();
  if (stack_.empty() || stack_.back().kind != Kind::dict || state.kind != Kind::dict)
    refuse_pickle("gives attributes to something other than a dict, at byte {}", begun_);
}

}  // namespace reel::io
