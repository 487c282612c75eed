#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../../core/device/device_module.h"
#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "../registry.h"
#include "elementwise.h"

namespace reel {

using namespace detail;

// y = x in another dtype;  dx = d in x's dtype

namespace {

void cast_forward(Call& call) { kernels(call.output().device).copy(call.output(), call.input(0)); }

}  // namespace

constexpr OpInfo cast_op{
    .name = "to",
    .forward = cast_forward,
    .gradient = [](Gradient& g) { g.accumulate(0, to(g.output(), g.input_dtype(0))); },
    .joining = by_elements,
};

// Without a gradient: integers and bools have none.
constexpr OpInfo cast_to_integer_op{.name = "to", .forward = cast_forward, .joining = by_elements, .internal = true};

Tensor to(const Arg& x, DType dtype) {
  const Tensor& tensor = tensor_of("to", x);
  if (tensor.dtype() == dtype) return copy(x);
  return invoke(is_floating(dtype) ? cast_op : cast_to_integer_op, {&tensor}, elementwise_result(tensor, dtype),
                x.location());
}

Tensor detail::converted(const Tensor& tensor, DType dtype, Location where) { return to(Arg(tensor, where), dtype); }

// y = x on another device;  dx = d on x's device

namespace {

struct Transfer {
  std::int64_t type, index;  // of the device from which the values are copied

  explicit Transfer(Device from) : type(static_cast<std::int64_t>(from.type)), index(from.index) {}
  Device from() const { return {static_cast<Device::Type>(type), static_cast<std::uint8_t>(index)}; }
};

void transfer_forward(Call& call) {
  const Body &x = call.input(0), &y = call.output();
  std::size_t bytes = static_cast<std::size_t>(x.numel) * size_of(x.dtype);
  DeviceModule& module = device_module();
  if (x.device == cpu)
    module.copy_in(y.device.index, y.data, x.data, bytes);
  else if (y.device == cpu)
    module.copy_out(x.device.index, y.data, x.data, bytes);
  else
    module.copy_between(y.device.index, y.data, x.device.index, x.data, bytes);
}

}  // namespace

constexpr OpInfo transfer_op{
    .name = "to",
    .forward = transfer_forward,
    .gradient = [](Gradient& g) { g.accumulate(0, to(g.output(), g.attributes<Transfer>().from())); },
    .internal = true,
    .needs_device = true,
};

Tensor to(const Arg& x, Device device) {
  const Tensor& tensor = tensor_of("to", x);
  if (tensor.device() == device) return copy(x);
  Tensor packed = contiguous_if_needed(x);
  return invoke(transfer_op, {&packed}, {packed.shape(), packed.dtype(), device}, x.location(),
                bytes_of(Transfer(tensor.device())));
}

OpList detail::cast_ops() {
  static constexpr const OpInfo* ops[] = {&cast_op, &cast_to_integer_op, &transfer_op};
  return ops;
}

}  // namespace reel
