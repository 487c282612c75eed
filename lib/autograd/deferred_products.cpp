#include "deferred_products.h"

#include <algorithm>

#include <reel/ops/shape.h>

#include "../core/context.h"
#include "../dispatch/invoke.h"
#include "../kernels/kernel_table.h"
#include "../ops/registry.h"

namespace reel::detail {

// Copies rows into two existing matrices, from a row index on.

namespace {

struct FirstRow {
  std::int64_t row;
};

void copy_rows(const Body& to, std::int64_t row, const Body& rows) {
  View part = to;
  part.data = static_cast<char*>(to.data) + row * to.strides[0] * static_cast<std::int64_t>(size_of(to.dtype));
  part.dims = rows.dims;
  part.numel = rows.numel;
  kernels(to.device).copy(part, rows);
}

}  // namespace

constexpr OpInfo append_rows_op{
    .name = "append_rows",
    .forward =
        [](Call& call) {
          std::int64_t row = call.attributes<FirstRow>().row;
          copy_rows(call.output(0), row, call.input(0));
          copy_rows(call.output(1), row, call.input(1));
        },
    .writes_part = true,
    .internal = true,
};

namespace {

void write_rows(Tensor (&to)[2], std::int64_t first, const Tensor& left, const Tensor& right) {
  FirstRow row{first};
  const Tensor* rows[] = {&left, &right};
  Call call{append_rows_op, rows, bytes_of(row), {}, to, {}};
  invoke(call);
}

Tensor rows_for(const Tensor& like, std::int64_t count) {
  return allocate(context(), {Shape{count, like.body().dims[1]}, like.dtype(), like.device()}, append_rows_op.name, {});
}

}  // namespace

std::size_t DeferredProducts::Panel::bytes() const {
  return static_cast<std::size_t>(left.numel() + right.numel()) * size_of(left.dtype());
}

void DeferredProducts::grow(Panel& panel, std::int64_t rows) {
  Tensor grown[] = {rows_for(panel.left, rows), rows_for(panel.right, rows)};
  write_rows(grown, 0, slice(panel.left, 0, 0, panel.count), slice(panel.right, 0, 0, panel.count));
  panel.left = std::move(grown[0]);
  panel.right = std::move(grown[1]);
}

bool DeferredProducts::append(std::uint32_t slot, const Entry& asks, const Tensor& left, const Tensor& right) {
  Panel& panel = panels_[slot];
  panel.asked_by = &asks;
  const Body &x = left.body(), &y = right.body();
  std::int64_t needed = panel.count + x.dims[0];
  if (!panel.left.defined()) {
    // Exactly as many rows as are given: most weights of a net without loops are used once.
    panel.left = rows_for(left, x.dims[0]);
    panel.right = rows_for(right, x.dims[0]);
    bytes_ += panel.bytes();
  } else if (std::int64_t there = panel.left.body().dims[0]; needed > there) {
    constexpr std::int64_t least_rows = 16;
    bytes_ -= panel.bytes();
    grow(panel, std::max({needed, 2 * there, least_rows}));
    bytes_ += panel.bytes();
  }
  Tensor places[] = {panel.left, panel.right};
  write_rows(places, panel.count, left, right);
  panel.count = needed;
  std::size_t element = size_of(x.dtype), gradient = static_cast<std::size_t>(x.dims[1] * y.dims[1]) * element,
              waiting = static_cast<std::size_t>(needed * (x.dims[1] + y.dims[1])) * element;
  return waiting >= std::clamp(gradient, least_bytes, most_bytes) || bytes_ >= most_bytes_in_all;
}

DeferredProducts::Panel DeferredProducts::take(std::uint32_t slot) {
  auto found = panels_.find(slot);
  Panel panel = std::move(found->second);
  panels_.erase(found);
  bytes_ -= panel.bytes();
  return panel;
}

void DeferredProducts::put(std::uint32_t slot, const Entry& asks, Panel panel) {
  panel.asked_by = &asks;
  bytes_ += panel.bytes();
  panels_.emplace(slot, std::move(panel));
}

OpList deferred_product_ops() {
  static constexpr const OpInfo* ops[] = {&append_rows_op};
  return ops;
}

}  // namespace reel::detail
