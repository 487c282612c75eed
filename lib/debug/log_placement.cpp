#include <reel/debug/log_placement.h>

#include "../core/op_error.h"
#include "../dispatch/invoke.h"
#include "line_sink.h"
#include "listener_scope.h"

namespace reel::debug {

using namespace detail;

namespace {

// Appends a tensor to a list such as "(2, 3) f32, (3, 4) f32", and sets `device` to its device.
std::string listed(const Tensor& tensor, std::string text, Device& device) {
  if (!tensor.defined()) return text;
  device = tensor.device();
  return text + (text.empty() ? "" : ", ") + describe(tensor);
}

}  // namespace

class PlacementScope::Log : public ListenerScope {
 public:
  explicit Log(LineSink sink) : ListenerScope(detail::context()), sink_(or_stderr(std::move(sink))) {}

  void finished(const Call& call, Location where) override {
    pass_on(call, where);
    std::string inputs, outputs;
    Device device;
    for (const Tensor* input : call.inputs) inputs = listed(*input, std::move(inputs), device);
    for (const Tensor& output : call.outputs) outputs = listed(output, std::move(outputs), device);
    sink_(fmt::format("{}  {}{}{} → {}; at {}", to_string(device), call.op.name, inputs.empty() ? "" : " ", inputs,
                      outputs, to_string(where)));
  }

 private:
  LineSink sink_;
};

PlacementScope::PlacementScope(LineSink sink) : log_(std::make_unique<Log>(std::move(sink))) {}
PlacementScope::~PlacementScope() = default;

}  // namespace reel::debug
