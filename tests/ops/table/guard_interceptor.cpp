#include "ops/table/guard_interceptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "core/storage.h"
#include "ops/table/table.h"
#include "record/tape_list.h"

namespace reel_test {

using namespace reel;
using detail::Body;
using detail::Call;
using detail::Storage;

namespace {

constexpr std::size_t guard_bytes = 64;
// Neither 0, nor true, nor a small number of any dtype.
constexpr int pattern = 0xA5;

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const Storage& storage) {
  const auto* first = static_cast<const std::byte*>(storage.data);
  return {first, first + storage.bytes()};
}

// Odd operands make some ops request results of an enormous size.
constexpr std::int64_t most_elements = 1 << 22;

// Allocates a tensor with guards before and after it in its storage.
Tensor guarded(detail::Context& context, const detail::OutputSpec& spec, const Call& call) {
  Shape asked({spec.dims, static_cast<std::size_t>(spec.rank)});
  bool negative = std::any_of(asked.begin(), asked.end(), [](std::int64_t size) { return size < 0; });
  double elements = 1;
  for (std::int64_t size : asked) elements *= static_cast<double>(size);
  if (!negative && elements > most_elements) throw MemoryError("more than a guard allows", call.where);
  // For its refusals.
  Tensor plain = detail::allocate(context, spec, call.op.name, call.where);
  auto guard = static_cast<std::int64_t>(guard_bytes / size_of(spec.dtype));
  Shape padded{plain.numel() + 2 * guard};
  Tensor buffer = detail::allocate(context, {padded, spec.dtype, spec.device}, call.op.name, call.where);
  std::memset(buffer.body().data, pattern, buffer.body().storage->bytes());
  return detail::view_of(buffer, plain.shape(), plain.strides(), guard, call.where);
}

bool guards_are_whole(const Storage& storage) {
  Bytes bytes = bytes_of(storage);
  auto whole = [](auto begin, auto end) {
    return std::all_of(begin, end, [](std::byte byte) { return byte == std::byte{pattern}; });
  };
  return whole(bytes.begin(), bytes.begin() + guard_bytes) && whole(bytes.end() - guard_bytes, bytes.end());
}

// Excludes the bytes that an op in place writes from the comparison.
void allow(Bytes& before, const Bytes& after, const Tensor& output) {
  const Body& body = output.body();
  std::ptrdiff_t start = static_cast<const std::byte*>(body.data) - static_cast<const std::byte*>(body.storage->data);
  auto size = static_cast<std::ptrdiff_t>(size_of(body.dtype));
  for_each_index(output.shape(), [&](const Index& index) {
    std::ptrdiff_t place = start;
    for (std::size_t axis = 0; axis < index.size(); ++axis) place += index[axis] * body.strides[axis] * size;
    std::copy_n(after.begin() + place, size, before.begin() + place);
  });
}

}  // namespace

void GuardInterceptor::run(Call& call) {
  detail::Context& context = detail::context();
  ops_.insert(&call.op);
  std::map<const Storage*, Bytes> before;
  for (const Tensor* input : call.inputs)
    if (input->defined()) before.emplace(input->body().storage, bytes_of(*input->body().storage));
  std::vector<Tensor> in_place;
  for (const Tensor& output : call.outputs)
    if (output.defined()) in_place.push_back(output);
  for (std::size_t i = 0; i < call.specs.size(); ++i) call.outputs[i] = guarded(context, call.specs[i], call);

  call.op.forward(call);

  for (std::size_t i = 0; i < call.specs.size(); ++i)
    if (!guards_are_whole(*call.outputs[i].body().storage))
      faults_ += fmt::format("{} wrote beside its output {}; ", call.op.name, i);
  for (auto& [storage, bytes] : before) {
    Bytes after = bytes_of(*storage);
    for (const Tensor& output : in_place)
      if (output.body().storage == storage) allow(bytes, after, output);
    if (bytes != after) faults_ += fmt::format("{} changed an input; ", call.op.name);
  }
  in_place.clear();
  if (is_recording()) context.tapes->record(context, call);
}

std::string GuardInterceptor::take_faults() { return std::exchange(faults_, {}); }

}  // namespace reel_test
