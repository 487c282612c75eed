#include <reel/io/dlpack.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "../core/device/device_module.h"
#include "../core/dtype_dispatch.h"
#include "../core/foreign_memory.h"
#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "../record/tape_list.h"
#include "element_layout.h"

namespace reel::io {

using namespace detail;

// The layout in dlpack.h on a machine of 64 bits.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

namespace {

constexpr const char* to_name = "io::to_dlpack";
constexpr const char* from_name = "io::from_dlpack";
constexpr std::int32_t dlpack_cpu = 1, dlpack_cuda = 2, dlpack_cuda_host = 3, dlpack_cuda_managed = 13;
constexpr std::uint64_t read_only_flag = 1;
constexpr DLPackVersion written_version{1, 0};

DLDataType dlpack_type(DType dtype) {
  return {static_cast<std::uint8_t>(number_kind(dtype)), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
}

DType dtype_in(DLDataType given, Location where) {
  if (given.bits % 8 == 0 && given.lanes == 1)
    if (auto dtype = find_dtype(static_cast<NumberKind>(given.code), given.bits / 8)) return *dtype;
  static constexpr std::array names{"signed integer", "unsigned integer", "float", "opaque",
                                    "bfloat",         "complex",          "bool"};
  fail<DTypeError>(
      from_name, where,
      "takes no elements of the kind {} with {} bits and {} lane{}, which reel has not: convert them first",
      given.code < names.size() ? names[given.code] : fmt::to_string(given.code), given.bits, given.lanes,
      given.lanes == 1 ? "" : "s");
}

// A tensor in DLPack that this library has made, and the tensor that it refers to.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::array<std::int64_t, max_rank> sizes{}, strides{};

  static void release(Managed* self) { std::unique_ptr<Exported> own(static_cast<Exported*>(self->manager_ctx)); }
};

template <class Managed>
std::unique_ptr<Managed, DLPackDeleter> exported(const Tensor& x, Location where) {
  const Body& body = x.body(where);
  Context& context = detail::context();
  wait_for(x, where);
  if (!body.requires_grad && context.tapes->is_live(body))
    fail<TapeError>(to_name, where,
                    "{}, made at {}, is tracked by an open tape, whose gradients do not cross to another library: pass "
                    "stop_gradient(x)",
                    describe(x), to_string(x.made_at()));
  notify_of_reading(x, to_name, where);
  auto made = with_memory_error(to_name, where, [] { return std::make_unique<Exported<Managed>>(); });
  for (int i = 0; i < body.rank; ++i) {
    made->sizes[static_cast<std::size_t>(i)] = body.dims[i];
    made->strides[static_cast<std::size_t>(i)] = body.strides[i];
  }
  bool is_on_gpu = body.device.type != Device::Type::cpu;
  if (is_on_gpu) {
    prepare_on_device(body, true);
    device_module().synchronise(body.device.index);
  }
  made->tensor = x;
  made->managed.dl_tensor = {.data = body.data,
                             .device = {is_on_gpu ? dlpack_cuda : dlpack_cpu, body.device.index},
                             .ndim = body.rank,
                             .dtype = dlpack_type(body.dtype),
                             .shape = made->sizes.data(),
                             .strides = made->strides.data(),
                             .byte_offset = 0};
  made->managed.deleter = &Exported<Managed>::release;
  made->managed.manager_ctx = made.get();
  return std::unique_ptr<Managed, DLPackDeleter>(&made.release()->managed);
}

Device device_in(DLDevice given, Location where) {
  if (given.device_type == dlpack_cpu || given.device_type == dlpack_cuda_host) return cpu;
  if (given.device_type != dlpack_cuda && given.device_type != dlpack_cuda_managed)
    fail<DeviceError>(from_name, where,
                      "takes elements on the CPU or a GPU, not on a device of DLPack's type {}: copy them to the CPU "
                      "first",
                      given.device_type);
  if (given.device_id < 0 || given.device_id > std::numeric_limits<std::uint8_t>::max())
    fail<DeviceError>(from_name, where, "there is no cuda:{}", given.device_id);
  Device device{Device::Type::cuda, static_cast<std::uint8_t>(given.device_id)};
  module_of_device(from_name, device, where);  // throws if there is no such GPU
  return device;
}

Shape sizes_in(const std::int64_t* numbers, std::int32_t rank, const char* what, Location where) {
  if (rank > 0 && !numbers) fail<Error>(from_name, where, "got a tensor of {} axes without its {}", rank, what);
  return Shape({numbers, static_cast<std::size_t>(rank)});
}

ElementLayout layout_in(const DLTensor& given, Location where) {
  if (given.ndim < 0 || given.ndim > max_rank)
    fail<ShapeError>(from_name, where, "takes at most {} axes, not {}", max_rank, given.ndim);
  ElementLayout layout{.shape = sizes_in(given.shape, given.ndim, "sizes", where), .strides = {}, .offset = 0};
  std::optional<std::int64_t> count = element_count(layout.shape);
  if (!count) fail<ShapeError>(from_name, where, "got the shape {}, which no tensor can have", to_string(layout.shape));
  layout.strides =
      given.strides ? sizes_in(given.strides, given.ndim, "strides", where) : contiguous_strides(layout.shape);
  if (*count > 0 && !element_range(layout))
    fail<ShapeError>(from_name, where, "got the strides {}, which lead out of any memory", to_string(layout.strides));
  return layout;
}

// The memory of a tensor without its owner.
ForeignMemory memory_in(const DLTensor& given, const ElementLayout& layout, DType dtype, Location where) {
  ForeignMemory memory{.data = given.data, .device = device_in(given.device, where)};
  std::optional<ElementRange> range = element_range(layout);
  if (range && !given.data) fail<Error>(from_name, where, "got {} elements at a null pointer", layout.shape.numel());
  if (range) memory.bytes = static_cast<std::size_t>(range->last - range->first + 1) * size_of(dtype);
  auto address = reinterpret_cast<std::uintptr_t>(given.data) + given.byte_offset;
  if (range && address % size_of(dtype) != 0)
    fail<ShapeError>(from_name, where,
                     "got elements of {} at an address that is no multiple of their {} bytes: copy them first",
                     name_of(dtype), size_of(dtype));
  return memory;
}

template <class Managed>
Tensor imported(Managed* managed, Location where) {
  // Elements that came from here keep their storage, which sees overwrites.
  if (managed->deleter == &Exported<Managed>::release) {
    const Tensor& x = static_cast<Exported<Managed>*>(managed->manager_ctx)->tensor;
    Tensor view = with_memory_error(from_name, where, [&] { return view_of(x, x.shape(), x.strides(), 0, where); });
    // Until nothing can fail any more, `managed` is the caller's.
    DLPackDeleter()(managed);
    return view;
  }
  const DLTensor& given = managed->dl_tensor;
  DType dtype = dtype_in(given.dtype, where);
  ElementLayout layout = layout_in(given, where);
  ForeignMemory memory = memory_in(given, layout, dtype, where);
  memory.owner = managed;
  memory.release = [](void* owner) { DLPackDeleter()(static_cast<Managed*>(owner)); };
  void* first = given.data ? static_cast<char*>(given.data) + given.byte_offset : nullptr;
  return adopt_memory(memory, first, layout.shape, layout.strides, dtype, from_name, where);
}

}  // namespace

DLPackTensor to_dlpack(const Tensor& x, Location where) { return exported<DLManagedTensor>(x, where); }

DLPackTensorVersioned to_dlpack_versioned(const Tensor& x, bool read_only, Location where) {
  DLPackTensorVersioned made = exported<DLManagedTensorVersioned>(x, where);
  made->version = written_version;
  made->flags = read_only ? read_only_flag : 0;
  return made;
}

Tensor from_dlpack(DLManagedTensor* tensor, Location where) {
  if (!tensor) fail<Error>(from_name, where, "got a null pointer");
  return imported(tensor, where);
}

Tensor from_dlpack(DLManagedTensorVersioned* tensor, Location where) {
  if (!tensor) fail<Error>(from_name, where, "got a null pointer");
  if (tensor->version.major != written_version.major)
    fail<Error>(from_name, where, "reads DLPack {}.x, not {}.{}", written_version.major, tensor->version.major,
                tensor->version.minor);
  if (tensor->flags & read_only_flag)
    fail<Error>(from_name, where,
                "takes no read-only tensor, since nothing here would keep it from being written: copy it first");
  return imported(tensor, where);
}

}  // namespace reel::io
