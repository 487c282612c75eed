#include "device_constant.h"

#include "../core/device/device_module.h"
#include "../core/joint_body.h"

namespace reel::detail {

Tensor device_constant(Device device, DType dtype, double number, std::int64_t integer, Location where) {
  Context& context = detail::context();
  context.set(Context::on_device, true);
  void* element = device_module().constant(device.index, dtype, number, integer);
  if (!element) return {};
  std::size_t front = body_size(0);
  void* block = context.heap->allocate_joint(joint_size(front, sizeof(DeviceBlock*)));
  Body* body = place_joint(block, context, 0, dtype, front, size_of(dtype), device, where);
  body->marks = 0;
  body->storage->device_block() = nullptr;  // the element is never freed
  body->numel = 1;
  body->data = body->storage->data = element;
  return Tensor::adopt(body);
}

}  // namespace reel::detail
