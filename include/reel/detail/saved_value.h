#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <reel/location.h>
#include <reel/named_tensor.h>

namespace reel::detail {

class CheckpointObject;
struct CheckpointForFit;

/// Reads and restores an object whose state is a list of tensors.
struct SavedState {
  std::function<std::vector<NamedTensor>(Location)> state;
  std::function<void(std::span<const NamedTensor>, Location)> load;
};

/// An object whose state is a list of tensors.
template <class T>
concept HasState = requires(T& object, std::span<const NamedTensor> state) {
  { object.state() } -> std::convertible_to<std::vector<NamedTensor>>;
  object.load_state(state);
};

/// Refers to `object`, which must outlive the result.
template <HasState T>
SavedState saved_state(T& object) {
  return {[&object](Location where) -> std::vector<NamedTensor> {
            if constexpr (requires { object.state(where); })
              return object.state(where);
            else
              return object.state();
          },
          [&object](std::span<const NamedTensor> state, Location where) {
            if constexpr (requires { object.load_state(state, where); })
              object.load_state(state, where);
            else
              object.load_state(state);
          }};
}

/// Reads and restores numbers of a program: integers and bools as they are, floating ones as the bits of a double.
struct SavedNumbers {
  enum class Kind : std::uint8_t { boolean, integer, floating } kind;
  bool is_list;
  std::int64_t least, largest;  ///< the range of an integer
  std::function<std::vector<std::int64_t>()> read;
  std::function<void(const std::vector<std::int64_t>&)> write;
};

/// Reads and restores texts of a program.
struct SavedTexts {
  bool is_list;
  std::function<std::vector<std::string>()> read;
  std::function<void(std::vector<std::string>)> write;
};

template <class T>
inline constexpr bool is_saved_number_v =
    std::is_integral_v<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
struct SavedElement {
  using type = T;
  static constexpr bool is_list = false;
};
template <class T>
struct SavedElement<std::vector<T>> {
  using type = T;
  static constexpr bool is_list = true;
};

/// A number, a text, or a vector of them.
template <class T>
concept SavedValue =
    is_saved_number_v<typename SavedElement<T>::type> || std::is_same_v<typename SavedElement<T>::type, std::string>;

template <class T>
constexpr SavedNumbers::Kind kind_of_saved() {
  if constexpr (std::is_same_v<T, bool>) return SavedNumbers::Kind::boolean;
  return std::is_integral_v<T> ? SavedNumbers::Kind::integer : SavedNumbers::Kind::floating;
}

template <class T>
std::int64_t saved_bits(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<std::int64_t>(static_cast<double>(value));
  else
    return static_cast<std::int64_t>(value);
}

template <class T>
T value_of_bits(std::int64_t bits) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(std::bit_cast<double>(bits));
  else
    return static_cast<T>(bits);
}

/// Refers to `value`, which must outlive the result.
template <SavedValue T>
auto saved_value(T& value) {
  using Element = typename SavedElement<T>::type;
  constexpr bool is_list = SavedElement<T>::is_list;
  if constexpr (std::is_same_v<Element, std::string>) {
    return SavedTexts{is_list,
                      [&value]() -> std::vector<std::string> {
                        if constexpr (is_list)
                          return value;
                        else
                          return {value};
                      },
                      [&value](std::vector<std::string> texts) {
                        if constexpr (is_list)
                          value = std::move(texts);
                        else
                          value = std::move(texts.front());
                      }};
  } else {
    using Limits = std::numeric_limits<Element>;
    // 64 bits without a sign wrap around.
    constexpr bool has_limits = std::is_integral_v<Element> && sizeof(Element) < 8;
    return SavedNumbers{kind_of_saved<Element>(),
                        is_list,
                        has_limits ? static_cast<std::int64_t>(Limits::lowest()) : std::int64_t{INT64_MIN},
                        has_limits ? static_cast<std::int64_t>(Limits::max()) : std::int64_t{INT64_MAX},
                        [&value] {
                          std::vector<std::int64_t> bits;
                          if constexpr (is_list)
                            for (Element element : value) bits.push_back(saved_bits<Element>(element));
                          else
                            bits.push_back(saved_bits<Element>(value));
                          return bits;
                        },
                        [&value](const std::vector<std::int64_t>& bits) {
                          if constexpr (is_list) {
                            T values;
                            for (std::int64_t one : bits) values.push_back(value_of_bits<Element>(one));
                            value = std::move(values);
                          } else {
                            value = value_of_bits<Element>(bits.front());
                          }
                        }};
  }
}

}  // namespace reel::detail

namespace reel::nn {

/// A checkpoint for `fit`: the base class of train::Checkpoint, since the name of that namespace would be ambiguous in
/// programs that have a function `train` and use the namespace reel.
class FitCheckpoint {
 protected:
  FitCheckpoint() = default;
  ~FitCheckpoint() = default;
};

}  // namespace reel::nn
