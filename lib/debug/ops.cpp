#include <reel/debug/ops.h>

#include "../ops/joining.h"
#include "../ops/registry.h"

namespace reel::debug {
namespace {

std::string_view batching_of(const detail::OpInfo& op) {
  if (!op.joining || op.joining == detail::runs_alone) return "alone";
  return is_elementwise(op) ? "elementwise" : "joined";
}

}  // namespace

std::vector<OpDescription> ops() {
  std::vector<OpDescription> all;
  for (const detail::OpFamily& family : detail::registered_ops()) {
    auto add = [&](const char* name, const detail::OpInfo& op, bool internal) {
      all.push_back({name, family.name, batching_of(op), op.gradient != nullptr, internal});
    };
    // Forms of an op for some operands have its name.
    for (const detail::OpInfo* op : family.ops)
      if (op == detail::find_op(op->name)) add(op->name, *op, op->internal);
    for (const detail::OpAlias& alias : family.aliases) add(alias.name, *detail::find_op(alias.op), false);
    for (const char* composed : family.composed) all.push_back({composed, family.name, "composed", false, false});
  }
  return all;
}

}  // namespace reel::debug
