#include <ATen/ATen.h>

#include <reel/reel.h>

#include "cases.h"
#include "cpu/onednn/onednn_product.h"
#include "operands.h"

// The array ops at sizes where memory or arithmetic bounds the time.

namespace reel_bench {

namespace {

using reel::Tensor;

using Unary = Tensor (*)(const reel::Arg&);
using Binary = Tensor (*)(const reel::Arg&, const reel::Arg&);
using TorchUnary = at::Tensor (*)(const at::Tensor&);
using TorchBinary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

constexpr std::int64_t million = 1'000'000;

void add_unary(std::vector<PeerEntry>& entries, const std::string& name, Unary ours, TorchUnary theirs) {
  entries.push_back(
      {"elementwise", name, [=] {
         Pair x = numbers({million});
         return PeerCase{"elementwise", name, 8.0 * million, "GB/s", [=] { ours(x.ours); }, [=] { theirs(x.theirs); }};
       }});
}

void add_binary(std::vector<PeerEntry>& entries, const std::string& name, const reel::Shape& left,
                const reel::Shape& right, Binary ours, TorchBinary theirs) {
  entries.push_back(
      {"elementwise", name, [=] {
         Pair a = numbers(left), b = numbers(right);
         double bytes = 4.0 * static_cast<double>(left.numel() + right.numel() + million);
         return PeerCase{
             "elementwise", name, bytes, "GB/s", [=] { ours(a.ours, b.ours); }, [=] { theirs(a.theirs, b.theirs); }};
       }});
}

void add_elementwise(std::vector<PeerEntry>& entries) {
  add_binary(entries, "add", {million}, {million}, reel::add, [](auto& a, auto& b) { return at::add(a, b); });
  add_binary(entries, "mul", {million}, {million}, reel::mul, at::mul);
  add_binary(entries, "div", {million}, {million}, reel::div, at::div);
  add_binary(entries, "pow", {million}, {million}, reel::pow, at::pow);
  add_binary(entries, "less", {million}, {million}, reel::less, at::lt);
  add_binary(entries, "add a row", {1000, 1000}, {1000}, reel::add, [](auto& a, auto& b) { return at::add(a, b); });
  add_binary(entries, "add a column", {1000, 1000}, {1000, 1}, reel::add,
             [](auto& a, auto& b) { return at::add(a, b); });
  add_unary(entries, "neg", reel::neg, at::neg);
  add_unary(entries, "sqrt", reel::sqrt, at::sqrt);
  add_unary(entries, "exp", reel::exp, at::exp);
  add_unary(entries, "log", reel::log, at::log);
  add_unary(entries, "tanh", reel::tanh, at::tanh);
  add_unary(entries, "sigmoid", reel::sigmoid, at::sigmoid);
  add_unary(entries, "relu", reel::relu, at::relu);
  add_unary(entries, "abs", reel::abs, at::abs);
  add_unary(entries, "sin", reel::sin, at::sin);
  add_unary(entries, "erf", reel::erf, at::erf);
  add_unary(entries, "floor", reel::floor, at::floor);
  add_binary(entries, "maximum", {million}, {million}, reel::maximum, at::maximum);
  add_binary(entries, "atan2", {million}, {million}, reel::atan2, at::atan2);
  add_binary(entries, "mod", {million}, {million}, reel::mod, [](auto& a, auto& b) { return at::remainder(a, b); });
}

void add_reductions(std::vector<PeerEntry>& entries) {
  for (int axis : {0, 1, 2}) {
    std::string along = " of (1024, 1024, 4) over axis " + std::to_string(axis);
    entries.push_back({"reduce", "sum" + along, [=] {
                         Pair x = numbers({1024, 1024, 4});
                         return PeerCase{"reduce",
                                         "sum" + along,
                                         4.0 * 4 * 1024 * 1024,
                                         "GB/s",
                                         [=] { reel::sum(x.ours, {axis}); },
                                         [=] { at::sum(x.theirs, axis); }};
                       }});
    entries.push_back({"reduce", "argmax" + along, [=] {
                         Pair x = numbers({1024, 1024, 4});
                         return PeerCase{"reduce",
                                         "argmax" + along,
                                         4.0 * 4 * 1024 * 1024,
                                         "GB/s",
                                         [=] { reel::argmax(x.ours, axis); },
                                         [=] { at::argmax(x.theirs, axis); }};
                       }});
  }
}

void add_indexing(std::vector<PeerEntry>& entries) {
  constexpr std::int64_t width = 16;
  entries.push_back({"index", "gather 1e6 rows of 16", [=] {
                       Pair x = numbers({million, width}), rows = indices(million, million);
                       Tensor ours = reel::expand(reel::unsqueeze(rows.ours, 1), {million, width});
                       at::Tensor theirs = rows.theirs.unsqueeze(1).expand({million, width});
                       return PeerCase{"index",
                                       "gather 1e6 rows of 16",
                                       (8.0 * width + 8) * million,
                                       "GB/s",
                                       [=] { reel::gather(x.ours, 0, ours); },
                                       [=] { at::gather(x.theirs, 0, theirs); }};
                     }});
  entries.push_back({"index", "embedding of 1e6 rows of 16", [=] {
                       Pair x = numbers({million, width}), rows = indices(million, million);
                       return PeerCase{"index",
                                       "embedding of 1e6 rows of 16",
                                       (8.0 * width + 8) * million,
                                       "GB/s",
                                       [=] { reel::embedding(x.ours, rows.ours); },
                                       [=] { at::embedding(x.theirs, rows.theirs); }};
                     }});
  entries.push_back(
      {"index", "scatter_add of 1e6 rows of 16", [=] {
         Pair x = numbers({million, width}), rows = indices(million, million), updates = numbers({million, width});
         Tensor ours = reel::expand(reel::unsqueeze(rows.ours, 1), {million, width});
         at::Tensor theirs = rows.theirs.unsqueeze(1).expand({million, width});
         return PeerCase{"index",
                         "scatter_add of 1e6 rows of 16",
                         (20.0 * width + 8) * million,
                         "GB/s",
                         [=] { reel::scatter_add(x.ours, 0, ours, updates.ours); },
                         [=] { at::scatter_add(x.theirs, 0, theirs, updates.theirs); }};
       }});
}

void add_sorting(std::vector<PeerEntry>& entries) {
  entries.push_back({"sort", "topk(10) of (4096, 1000)", [] {
                       Pair x = numbers({4096, 1000});
                       return PeerCase{"sort", "topk(10) of (4096, 1000)",      4.0 * 4096 * 1000,
                                       "GB/s", [=] { reel::topk(x.ours, 10); }, [=] { at::topk(x.theirs, 10); }};
                     }});
  entries.push_back(
      {"sort", "sort of 1e6", [] {
         Pair x = numbers({million});
         return PeerCase{
             "sort", "sort of 1e6", 16.0 * million, "GB/s", [=] { reel::sort(x.ours); }, [=] { at::sort(x.theirs); }};
       }});
}

void add_copies(std::vector<PeerEntry>& entries) {
  entries.push_back({"copy", "transposed 4096 x 4096", [] {
                       Pair x = numbers({4096, 4096});
                       return PeerCase{"copy",
                                       "transposed 4096 x 4096",
                                       8.0 * 4096 * 4096,
                                       "GB/s",
                                       [=] { reel::copy(reel::transpose(x.ours)); },
                                       [=] { x.theirs.t().contiguous(); }};
                     }});
  for (int axis : {0, 1}) {
    std::string name = "concat of 2 x (2048, 2048) along axis " + std::to_string(axis);
    entries.push_back({"copy", name, [=] {
                         Pair a = numbers({2048, 2048}), b = numbers({2048, 2048});
                         return PeerCase{"copy",
                                         name,
                                         16.0 * 2048 * 2048,
                                         "GB/s",
                                         [=] {
                                           reel::concat({a.ours, b.ours}, axis);
                                         },
                                         [=] {
                                           at::cat({a.theirs, b.theirs}, axis);
                                         }};
                       }});
  }
}

void add_products(std::vector<PeerEntry>& entries) {
  auto product = [&](const std::string& name, reel::DType dtype) {
    entries.push_back({"matmul", name, [=] {
                         Pair a = both(reel::to(reel::rand({2048, 2048}), dtype)),
                              b = both(reel::to(reel::rand({2048, 2048}), dtype));
                         return PeerCase{"matmul",
                                         name,
                                         2.0 * 2048 * 2048 * 2048,
                                         "GFLOP/s",
                                         [=] { reel::matmul(a.ours, b.ours); },
                                         [=] { at::matmul(a.theirs, b.theirs); }};
                       }});
  };
  product("2048 x 2048 x 2048 f32", reel::f32);
  if (reel::detail::can_multiply_bf16()) product("2048 x 2048 x 2048 bf16", reel::bf16);
}

}  // namespace

std::vector<PeerEntry> op_cases() {
  std::vector<PeerEntry> entries;
  add_elementwise(entries);
  add_reductions(entries);
  add_indexing(entries);
  add_sorting(entries);
  add_copies(entries);
  add_products(entries);
  return entries;
}

}  // namespace reel_bench
