#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

namespace reel::detail {

struct AnyMember {
  template <class T>
  operator T() const;
};

template <class T, std::size_t... i>
constexpr bool takes_members(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), AnyMember{})...}; };
}

/// How many members a plain struct has; 9 stands for more than 8. Arrays as in C do not count right.
template <class T, std::size_t most = 9>
constexpr std::size_t member_count() {
  if constexpr (most == 0 || takes_members<T>(std::make_index_sequence<most>()))
    return most;
  else
    return member_count<T, most - 1>();
}

/// References to the members of a plain struct of at most 8, in their order.
template <class T>
auto members_of(T& object) {
  constexpr std::size_t count = member_count<T>();
  static_assert(count <= 8, "a struct of saved values has at most eight members");
  if constexpr (count == 0) {
    return std::tie();
  } else if constexpr (count == 1) {
    auto& [a] = object;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = object;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = object;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = object;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tie(a, b, c, d, e, f, g);
  } else {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tie(a, b, c, d, e, f, g, h);
  }
}

}  // namespace reel::detail
