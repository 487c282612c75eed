#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include <reel/dtype.h>

#include "element_layout.h"

namespace reel::io {

struct PickleNode;
enum class Instruction : unsigned char;

/// A value that a pickle describes.
struct PickleValue {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, tuple, list, dict, function, storage, tensor };
  Kind kind = Kind::none;
  union {
    std::int64_t integer = 0;  ///< of a boolean, too
    double real;
    PickleNode* node;  ///< of all that follow in `Kind`
  };
};

/// The part of a value that needs more room.
struct PickleNode {
  std::string_view text;           ///< of a text; of a function: "module name"; of a storage: its key
  std::vector<PickleValue> items;  ///< of a tuple or list; of a dict: keys and values alternately
  DType dtype = f32;               ///< of a storage
  std::int64_t numel = 0;          ///< of a storage
  PickleNode* storage = nullptr;   ///< of a tensor
  ElementLayout layout;            ///< of a tensor
};

/// Runs the program that a pickle is, as far as files of PyTorch's tensors need it: it makes dicts, lists, tuples, texts,
/// numbers, storages and tensors, and calls no function but those that rebuild tensors, each of which is known here by
/// name. The memory that it takes is bounded by the pickle's size.
/// Source: Python's module pickletools; PyTorch's torch/_utils.py.
class PickleMachine {
 public:
  /// `pickle` must outlive this object and its values.
  explicit PickleMachine(std::string_view pickle);
  /// The value that the pickle describes; valid as long as this object.
  /// Throws: std::runtime_error with a predicate about the file: "has a pickle that …".
  PickleValue run();
  /// The storages in the order in which they were first named.
  const std::vector<const PickleNode*>& storages() const { return storages_; }

 private:
  bool step();
  bool push_constant(Instruction code);
  bool push_number(Instruction code);
  bool push_container(Instruction code);
  bool fill_container(Instruction code);
  bool remember(Instruction code);
  bool call(Instruction code);

  std::uint64_t number(std::size_t bytes);
  std::int64_t long_number();
  std::string_view text(std::uint64_t bytes);
  std::string_view line();
  void push(PickleValue value);
  void push(PickleValue::Kind kind, std::int64_t integer);
  PickleNode* push_node(PickleValue::Kind kind);
  void push_text(std::uint64_t bytes);
  void push_function(std::string_view module, std::string_view name);
  PickleValue pop();
  std::size_t pop_mark();
  void collect(PickleValue::Kind kind, std::size_t first);
  void extend(std::size_t first, PickleValue::Kind kind);
  void put(std::uint64_t index);
  void get(std::uint64_t index);
  void charge(std::size_t bytes);

  void find_storage();
  void reduce();
  void reduce_ordered_dict(const std::vector<PickleValue>& arguments);
  void rebuild_tensor(const std::vector<PickleValue>& arguments);
  void build();

  std::string_view pickle_;
  std::size_t place_ = 0, begun_ = 0;  // of the next byte, and of the instruction that runs
  std::size_t budget_;
  std::deque<PickleNode> nodes_;
  std::vector<PickleValue> stack_, memo_;
  std::vector<std::size_t> marks_;
  std::vector<const PickleNode*> storages_;
};

}  // namespace reel::io
