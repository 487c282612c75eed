#include "gradient.h"

#include <fmt/format.h>

#include "../core/op_error.h"

namespace reel::detail {

namespace {

std::string name_of_saved(int number) {
  if (number < 0) return "its result";
  if (number == Saved::captured) return "what its function uses,";
  if (number < Saved::first_kept) return fmt::format("input {}", number);
  return fmt::format("member {} of what it saved,", number - Saved::first_kept);
}

}  // namespace

void Gradient::refuse_unsaved() const {
  throw InternalError(fmt::format("the gradient of {} asks for a value it has not saved", entry_.op->name));
}

void Gradient::refuse_changed(const Saved& saved) const {
  const Tensor& tensor = saved.tensor;
  const Storage& storage = *tensor.body().storage;
  if (storage.writers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    fail<TapeError>(entry_.op->name, entry_.where(),
                    "its gradient needs {} {}, made at {}, but the guard that writes to it, from {}, is still alive; "
                    "end the guard before the tensor is used",
                    name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                    to_string(storage.last_overwrite()));
  fail<TapeError>(entry_.op->name, entry_.where(),
                  "its gradient needs {} {}, made at {}, but that was overwritten at {} after this op had used it; "
                  "overwrite a copy, or differentiate before overwriting",
                  name_of_saved(saved.number), describe(tensor), to_string(tensor.made_at()),
                  to_string(storage.last_overwrite()));
}

}  // namespace reel::detail
