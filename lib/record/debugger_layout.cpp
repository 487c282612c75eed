#include <array>
#include <cstddef>

#include "debugger_layout.h"
#include "entry.h"
#include "tape_list.h"

// These classes are not of standard layout, but none has a virtual base, so that their members have fixed offsets.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace reel::detail {

struct RecordLayout {
  static constexpr auto numbers = std::to_array<LayoutNumber>({
      {"version", 1},
      {"Body", sizeof(Body)},
      {"Body.data", offsetof(Body, data)},
      {"Body.dims", offsetof(Body, dims)},
      {"Body.strides", offsetof(Body, strides)},
      {"Body.numel", offsetof(Body, numel)},
      {"Body.rank", offsetof(Body, rank)},
      {"Body.dtype", offsetof(Body, dtype)},
      {"Body.references", offsetof(Body, references)},
      {"Body.device", offsetof(Body, device)},
      {"Body.requires_grad", offsetof(Body, requires_grad)},
      {"Body.marks", offsetof(Body, marks)},
      {"Body.pending", Body::pending},
      {"Body.line", offsetof(Body, line)},
      {"Body.file", offsetof(Body, file)},
      {"Body.storage", offsetof(Body, storage)},
      {"Body.leaf", offsetof(Body, leaf)},
      {"Storage.references", offsetof(Storage, references)},
      {"Storage.data", offsetof(Storage, data)},
      {"Storage.extent", offsetof(Storage, extent)},
      {"Leaf.gradient", offsetof(Leaf, gradient)},
      {"Leaf.name", offsetof(Leaf, name)},
      {"OpInfo.name", offsetof(OpInfo, name)},
      {"Entry", sizeof(Entry)},
      {"Entry.op", offsetof(Entry, op)},
      {"Entry.previous", offsetof(Entry, previous)},
      {"Entry.file", offsetof(Entry, file)},
      {"Entry.line", offsetof(Entry, line)},
      {"Entry.first_output", offsetof(Entry, first_output)},
      {"Entry.output_count", offsetof(Entry, output_count)},
      {"SlotForm.dtype", offsetof(SlotForm, dtype)},
      {"SlotForm.rank", offsetof(SlotForm, rank)},
      {"SlotForm.dims", offsetof(SlotForm, dims)},
      {"TapeList.scopes", offsetof(TapeList, scopes_)},
      {"TapeList.last", offsetof(TapeList, last_)},
      {"TapeList.slots", offsetof(TapeList, slots_)},
      {"TapeList.entry_count", offsetof(TapeList, entry_count_)},
      {"Slot", sizeof(TapeList::Slot)},
      {"Slot.form", offsetof(TapeList::Slot, form)},
      {"Scopes.open", offsetof(Scopes, open_)},
      {"OpenScope", sizeof(OpenScope)},
      {"OpenScope.scope", offsetof(OpenScope, scope)},
      {"", 0},
  });
};

}  // namespace reel::detail

#pragma GCC diagnostic pop

/// The layout of tensors and tapes, for debuggers.
extern "C" {
extern const decltype(reel::detail::RecordLayout::numbers) reel_layout_of_tensors;
[[gnu::used]] constexpr decltype(reel::detail::RecordLayout::numbers) reel_layout_of_tensors =
    reel::detail::RecordLayout::numbers;
}
