#include <array>
#include <cstddef>

#include <reel/nn/module.h>

#include "../record/debugger_layout.h"

// These classes are not of standard layout, but none has a virtual base, so that their members have fixed offsets.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace reel::nn {

struct ModuleLayout {
  static constexpr auto numbers = std::to_array<detail::LayoutNumber>({
      {"version", 1},
      {"Module", sizeof(Module)},
      {"Module.part", offsetof(Module, around_)},
      {"Module.entries", offsetof(Module, entries_)},
      {"Module.training", offsetof(Module, training_)},
      {"Member.part", offsetof(Member, around_)},
      {"ModuleEntry", sizeof(ModuleEntry)},
      {"ModuleEntry.name", offsetof(ModuleEntry, name)},
      {"ModuleEntry.kind", offsetof(ModuleEntry, kind)},
      {"ModuleEntry.part", offsetof(ModuleEntry, part)},
      {"", 0},
  });
};

}  // namespace reel::nn

#pragma GCC diagnostic pop

/// The layout of modules, for debuggers.
extern "C" {
extern const decltype(reel::nn::ModuleLayout::numbers) reel_layout_of_modules;
[[gnu::used]] constexpr decltype(reel::nn::ModuleLayout::numbers) reel_layout_of_modules =
    reel::nn::ModuleLayout::numbers;
}
