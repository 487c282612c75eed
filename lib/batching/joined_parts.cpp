#include "joined_parts.h"

#include <algorithm>
#include <atomic>

#include "../core/context.h"
#include "../core/storage.h"
#include "../record/tape_list.h"

namespace reel::detail {
namespace {

// Copying fewer elements costs less than keeping them in memory.
constexpr std::int64_t least_elements = 1024;

std::uint32_t version_of(const Tensor& x) { return x.body().storage->version.load(std::memory_order_relaxed); }

}  // namespace

JoinedParts::Part::Part(const Context& context, const Tensor& tensor)
    : tensor(tensor), slot(context.tapes->slot_of(tensor.body())), version(version_of(tensor)) {}

bool JoinedParts::Part::is(const Context& context, const Tensor& other) const {
  return tensor.is(other) && slot == context.tapes->slot_of(other.body()) && version == version_of(other);
}

Tensor JoinedParts::find(const Context& context, std::span<const Tensor* const> parts, const Shape& shape) const {
  if (parts[0]->numel() < least_elements) return {};
  for (const Joined& one : last_) {
    if (one.parts.size() != parts.size() || one.recorded != context.has(Context::recording) ||
        one.scope_id != context.scope_id || one.epoch != context.tapes->epoch() || one.whole.shape() != shape)
      continue;
    if (std::ranges::equal(one.parts, parts,
                           [&](const Part& part, const Tensor* other) { return part.is(context, *other); }))
      return one.whole;
  }
  return {};
}

void JoinedParts::add(const Context& context, std::span<const Tensor* const> parts, const Tensor& whole) {
  if (parts[0]->numel() < least_elements) return;
  Joined& one = last_[oldest_++ % last_.size()];
  one = {{}, whole, context.has(Context::recording), context.scope_id, context.tapes->epoch()};
  one.parts.reserve(parts.size());
  for (const Tensor* part : parts) one.parts.emplace_back(context, *part);
}

}  // namespace reel::detail
