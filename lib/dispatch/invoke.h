#pragma once

#include <initializer_list>
#include <span>

#include "../core/op.h"

namespace reel::detail {

/// The dispatcher: every op passes it. Runs the op and records it if an input is tracked.
void invoke(Call& call);

/// Runs and records a call at once; called by an interceptor for the calls that it has delayed.
void run_and_record(Call& call);

/// Invokes an op with one output.
inline Tensor invoke(const OpInfo& op, std::initializer_list<const Tensor*> inputs, const OutputSpec& spec,
                     Location where, std::span<const std::byte> attributes = {}) {
  Tensor output;
  Call call{op, {inputs.begin(), inputs.size()}, attributes, {&spec, 1}, {&output, 1}, where};
  invoke(call);
  return output;
}

/// Invokes an op whose output is a view of its input.
inline Tensor invoke_view(const OpInfo& op, const Tensor& input, Location where,
                          std::span<const std::byte> attributes) {
  Tensor output;
  const Tensor* inputs[] = {&input};
  Call call{op, inputs, attributes, {}, {&output, 1}, where};
  invoke(call);
  return output;
}

}  // namespace reel::detail
