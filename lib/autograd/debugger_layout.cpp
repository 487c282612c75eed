#include <array>
#include <cstddef>

#include <reel/tape.h>

#include "../record/debugger_layout.h"

// The class is not of standard layout, but has no virtual base, so that its members have fixed offsets.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace reel::detail {

struct TapeLayout {
  static constexpr auto numbers = std::to_array<LayoutNumber>({
      {"version", 1},
      {"Tape.list", offsetof(Tape, list_)},
      {"", 0},
  });
};

}  // namespace reel::detail

#pragma GCC diagnostic pop

/// The layout of the class Tape, for debuggers.
extern "C" {
extern const decltype(reel::detail::TapeLayout::numbers) reel_layout_of_tapes;
[[gnu::used]] constexpr decltype(reel::detail::TapeLayout::numbers) reel_layout_of_tapes =
    reel::detail::TapeLayout::numbers;
}
