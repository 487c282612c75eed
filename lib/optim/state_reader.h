#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reel/named_tensor.h>
#include <reel/ops/create.h>

#include "../core/op_error.h"
#include "../core/printable.h"

namespace reel::detail {

/// Letters and digits as a tensor for an optimiser's state.
inline Tensor text_tensor(std::string_view text) { return tensor(std::vector<std::uint8_t>(text.begin(), text.end())); }

/// Reads a state; `finish` checks that every tensor was read.
class StateReader {
 public:
  /// `reader`: the object that reads, for error messages.
  StateReader(const char* reader, std::span<const NamedTensor> state, Location where)
      : reader_(reader), state_(state), used_(state.size()), where_(where) {}

  bool has(std::string_view name) const {
    return std::any_of(state_.begin(), state_.end(), [&](const NamedTensor& named) { return named.name == name; });
  }
  /// Returns true if the tensor exists and is a vector without elements.
  bool is_empty(std::string_view name) const {
    return std::any_of(state_.begin(), state_.end(), [&](const NamedTensor& named) {
      return named.name == name && named.tensor.defined() && named.tensor.shape() == Shape{0};
    });
  }
  /// Throws: Error if there is none; ShapeError, DTypeError unless it has this shape and dtype.
  const Tensor& find(std::string_view name, const Shape& shape, DType dtype) {
    for (std::size_t i = 0; i < state_.size(); ++i) {
      if (state_[i].name != name) continue;
      const Tensor& found = state_[i].tensor;
      used_[i] = true;
      if (!found.defined()) fail<Error>(reader_, where_, "the state's '{}' is an undefined tensor", name);
      if (found.shape() != shape)
        fail<ShapeError>(reader_, where_, "the state's '{}', {}, does not fit: the shape has to be {}", name,
                         describe(found), to_string(shape));
      if (found.dtype() != dtype)
        fail<DTypeError>(reader_, where_, "the state's '{}', {}, does not fit: it has to be {}", name, describe(found),
                         name_of(dtype));
      return found;
    }
    fail<Error>(reader_, where_, "the state lacks '{}'", name);
  }
  /// The size of the tensor's first axis, or 0 if it does not exist.
  std::int64_t rows(std::string_view name) const {
    for (const NamedTensor& named : state_)
      if (named.name == name && named.tensor.defined() && named.tensor.rank() > 0) return named.tensor.size(0);
    return 0;
  }
  template <Element T>
  std::vector<T> list(std::string_view name, std::size_t size) {
    return find(name, {static_cast<std::int64_t>(size)}, dtype_of<T>()).template to_vector<T>();
  }
  template <Element T>
  T number(std::string_view name) {
    return list<T>(name, 1)[0];
  }
  /// A text made by `text_tensor`. Throws: Error if there is none; DTypeError unless it is a text; Error for characters
  /// other than letters and digits.
  std::string text(std::string_view name) {
    auto letters = find(name, {rows(name)}, DType::u8).template to_vector<std::uint8_t>();
    std::string text(letters.begin(), letters.end());
    auto is_plain = [](unsigned char c) {
      return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    };
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_plain))
      fail<Error>(reader_, where_, "the state's '{}' is no plain text", name);
    return text;
  }
  /// Throws: Error if a tensor was not read.
  void finish() const {
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) fail<Error>(reader_, where_, "the state's {} is not known here", shown(state_[i].name));
  }

 private:
  const char* reader_;
  std::span<const NamedTensor> state_;
  std::vector<bool> used_;
  Location where_;
};

}  // namespace reel::detail
