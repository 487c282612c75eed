#include <reel/nn/part.h>

#include <utility>

#include <reel/nn/module.h>

#include "cloning.h"

namespace reel::nn {

ModulePart::~ModulePart() {
  if (around_) {
    // While the module is cloned, the entry is kept, so that the missing part is detected.
    bool copying = Cloning::current() != nullptr;
    for (ModuleEntry& entry : around_->entries_)
      if (entry.part == this) {
        if (entry.moved_from) entry.moved_from->before_ = nullptr;
        entry.moved_from = nullptr;
        if (copying) entry.part = nullptr;
      }
    if (!copying) std::erase_if(around_->entries_, [&](const ModuleEntry& entry) { return entry.part == this; });
  }
  if (before_)
    for (ModuleEntry& entry : before_->entries_)
      if (entry.moved_from == this) entry.moved_from = nullptr;
}

void ModulePart::take_place(ModulePart& other, bool gone) noexcept {
  if (around_ || !other.around_) return;
  if (before_)
    for (ModuleEntry& entry : before_->entries_)
      if (entry.moved_from == this) entry.moved_from = nullptr;
  before_ = nullptr;
  around_ = std::exchange(other.around_, nullptr);
  for (ModuleEntry& entry : around_->entries_)
    if (entry.part == &other) {
      entry.part = this;
      if (!gone) continue;
      if (entry.moved_from) entry.moved_from->before_ = nullptr;
      entry.moved_from = &other;
      other.before_ = around_;
    }
}

void ModulePart::take_back() noexcept {
  if (!before_) return;
  around_ = std::exchange(before_, nullptr);
  for (ModuleEntry& entry : around_->entries_)
    if (entry.moved_from == this) {
      if (entry.part) entry.part->around_ = nullptr;
      entry.part = this;
      entry.moved_from = nullptr;
    }
}

void ModulePart::swap_places(ModulePart& a, ModulePart& b) noexcept {
  auto entry_of = [](ModulePart& part) -> ModuleEntry* {
    if (!part.around_) return nullptr;
    for (ModuleEntry& entry : part.around_->entries_)
      if (entry.part == &part) return &entry;
    return nullptr;
  };
  ModuleEntry *of_a = entry_of(a), *of_b = entry_of(b);
  if (of_a) of_a->part = &b;
  if (of_b) of_b->part = &a;
  std::swap(a.around_, b.around_);
}

}  // namespace reel::nn
