#include <reel/debug/ops.h>

#include "../ops/registry.h"

namespace reel::debug {
namespace {

std::string_view batching_of(const detail::OpInfo* info) {
  if (!info) return "composed";
  switch (info->batching) {
    case detail::Batching::elementwise: return "elementwise";
    case detail::Batching::stack: return "stack";
    case detail::Batching::gather: return "gather";
    default: return "loop";
  }
}

}  // namespace

std::vector<OpDescription> ops() {
  std::vector<OpDescription> all;
  for (const detail::OpFamily& family : detail::registered_ops())
    for (const detail::RegisteredOp& op : family.ops)
      all.push_back({op.name, family.name, batching_of(op.info), op.info && op.info->gradient, op.internal});
  return all;
}

}  // namespace reel::debug
