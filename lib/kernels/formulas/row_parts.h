#pragma once

#include <type_traits>
#include <utility>

#include "../elementwise.h"

namespace reel::detail::inline REEL_TARGET {

/// Calls visit(Row()) for every `parts`th row of a list, beginning with row `part`. Lists of kernels are compiled in
/// parts, since a compiler uses one processor for a file.
template <int part, int parts, class... Rows, class Visit>
void for_each_row(KernelList<Rows...>, Visit visit) {
  auto visit_if_in_part = [&]<int i, class Row>(std::integral_constant<int, i>, Row row) {
    if constexpr (i % parts == part) visit(row);
  };
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (visit_if_in_part(std::integral_constant<int, i>(), Rows()), ...);
  }(std::make_integer_sequence<int, sizeof...(Rows)>());
}

}  // namespace reel::detail::inline REEL_TARGET
