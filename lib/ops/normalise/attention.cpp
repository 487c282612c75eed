#include <reel/ops/attention.h>

#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/random.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/softmax.h>

#include <cmath>
#include <limits>

#include "../../core/op_error.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/attention.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../linear_algebra/multiplications.h"
#include "../registry.h"
#include "attributes.h"

namespace reel {

using namespace detail;

namespace {

constexpr int result_output = 0, normalisers_output = 1;
constexpr double lowest = -std::numeric_limits<double>::infinity();

// Queries, keys, values and, if there is one, the mask, from input `first` on.
Attended attended(const Call& call, int first) {
  auto [scale, causal] = call.attributes<AttentionAttributes>();
  const View* mask = static_cast<int>(call.inputs.size()) > first + 3 ? &call.input(first + 3) : nullptr;
  return {call.input(first), call.input(first + 1), call.input(first + 2), mask, scale, causal != 0};
}

// Counts the multiplications of `products` products of rows of x with all keys.
void count(const View& x, const View& k, std::int64_t products) { count_products(x, k.dims[1] * products); }

// softmax(scale q kᵀ + mask), zeros if all keys are masked; the mask may be undefined.
Tensor weights_of(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttributes& attributes) {
  Tensor scores = matmul(q, transpose(k)) * static_cast<double>(attributes.scale);
  if (mask.defined()) scores = scores + mask;
  std::int64_t queries = q.body().dims[1], keys = k.body().dims[1];
  RangeOptions there{.dtype = DType::i64, .device = q.device()};
  if (attributes.causal) scores = where(arange(keys, there) <= unsqueeze(arange(queries, there), 1), scores, lowest);
  if (keys == 0) return scores;
  Tensor none;
  {
    NoRecord pause;
    none = max(scores, -1, {.keepdims = true}) == lowest;
  }
  return where(none, 0.0, softmax(where(none, 0.0, scores)));
}

}  // namespace

// Fused; runs when nothing records.

constexpr OpInfo attention_gradient_op{
    .name = "attention_gradient",
    .forward =
        [](Call& call) {
          count(call.input(3), call.input(4), 3);
          count(call.input(0), call.input(4), 2);
          kernels(call.output().device)
              .attention->backward(call.output(0), call.output(1), call.output(2), call.input(0), call.input(1),
                                   call.input(2), attended(call, 3));
        },
    .internal = true,
};

// y = P v, P = softmax(s), s = scale q kᵀ + mask;  dv = Pᵀ d,  ds = P (d vᵀ − Σ P d vᵀ),  dq = scale ds k,
// dk = scale dsᵀ q,  dmask = ds

namespace {

void accumulate_composed(Gradient& g) {
  enum { in_q, in_k, in_v, in_mask };
  const Tensor &d = g.output(), &q = g.saved_input(in_q), &k = g.saved_input(in_k), &v = g.saved_input(in_v);
  Tensor mask = g.input_count() > 3 ? g.saved_input(in_mask) : Tensor();
  const auto& attributes = g.attributes<AttentionAttributes>();
  Tensor weights = weights_of(q, k, mask, attributes);
  if (g.wants(in_v)) g.accumulate(in_v, matmul(transpose(weights), d));
  Tensor slopes = matmul(d, transpose(v));
  slopes = weights * (slopes - sum(weights * slopes, -1, {.keepdims = true}));
  if (g.wants(in_q)) g.accumulate(in_q, matmul(slopes, k) * static_cast<double>(attributes.scale));
  if (g.wants(in_k)) g.accumulate(in_k, matmul(transpose(slopes), q) * static_cast<double>(attributes.scale));
  if (mask.defined() && g.wants(in_mask)) g.accumulate(in_mask, sum_to_if_needed(slopes, mask.shape()));
}

void accumulate_fused(Gradient& g) {
  Tensor d = contiguous_if_needed(g.output());
  const Tensor* given[7] = {&d, &g.saved_output(result_output), &g.saved_output(normalisers_output)};
  std::size_t count = g.input_count();
  for (std::size_t i = 0; i < count; ++i) given[3 + i] = &g.saved_input(static_cast<int>(i));
  Tensor gradients[3];
  const OutputSpec specs[] = {
      {given[3]->body(), d.dtype()}, {given[4]->body(), d.dtype()}, {given[5]->body(), d.dtype()}};
  Call call{attention_gradient_op, {given, 3 + count}, g.attribute_bytes(), specs, gradients, g.where()};
  invoke(call);
  for (std::size_t i = 0; i < 3; ++i)
    if (g.wants(i)) g.accumulate(i, std::move(gradients[i]));
}

constexpr InputSet all_inputs = inputs({0, 1, 2, 3});

}  // namespace

constexpr OpInfo attention_op{
    .name = "scaled_dot_product_attention",
    .forward =
        [](Call& call) {
          count(call.input(0), call.input(1), 1);
          count(call.output(result_output), call.input(1), 1);
          kernels(call.output().device)
              .attention->forward(call.output(result_output), call.output(normalisers_output), attended(call, 0));
        },
    .gradient =
        [](Gradient& g) {
          if (g.recording() || (g.input_count() > 3 && g.wants(3))) return accumulate_composed(g);
          accumulate_fused(g);
        },
    .saves_input_for = {all_inputs, all_inputs, all_inputs, all_inputs},
    .saves_output_for = {all_inputs, all_inputs},
    .hidden_outputs = 1 << normalisers_output,
    .joining = [](const Call& call) -> Joining {
      bool one_mask = call.inputs.size() > 3 && call.input(3).dims[0] != call.input(0).dims[0];
      return {.by = Joining::By::rows,
              .shared = one_mask ? inputs({3}) : InputSet{},
              .dropped_outputs = 1 << normalisers_output};
    },
};

namespace {

Shape leading(const Tensor& x) {
  Shape shape;
  for (int i = 0; i + 2 < x.rank(); ++i) shape.push_back(x.body().dims[i]);
  return shape;
}

Shape with_matrix(Shape shape, std::int64_t rows, std::int64_t columns) {
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

// The matrices of x, broadcast to the leading axes and merged along them.
Tensor matrices_of(const Tensor& x, const Shape& heads, DType dtype) {
  const Body& body = x.body();
  std::int64_t rows = body.dims[body.rank - 2], columns = body.dims[body.rank - 1];
  Tensor wide = to_if_needed(x, dtype);
  Shape whole = with_matrix(heads, rows, columns);
  if (x.shape() != whole) wide = expand_if_needed(wide, whole);
  return contiguous_if_needed(wide.rank() == 3 ? wide : reshape(wide, {heads.numel(), rows, columns}));
}

// The mask as added to the scores: (N, L, S), or (1, L, S) if it is equal for all heads.
Tensor added_mask(const char* op, const Tensor& mask, const Tensor& queries, const Shape& scores, DType dtype,
                  Location where) {
  if (mask.dtype() != DType::boolean && mask.dtype() != queries.dtype())
    fail<DTypeError>(op, where, "the mask is bool or of the queries' dtype {}, not {}", name_of(queries.dtype()),
                     describe(mask));
  check_same_device(op, queries, mask, where);
  Shape shape;
  if (!broadcast(mask.shape(), scores, shape) || shape != scores)
    fail<ShapeError>(op, where, "the mask {} does not broadcast to the scores {}", to_string(mask.shape()),
                     to_string(scores));
  Tensor added = mask.dtype() == DType::boolean
                     ? reel::where(mask, 0.0, full({}, lowest, {.dtype = dtype, .device = mask.device()}))
                     : mask;
  Shape heads;
  for (int i = 0; i + 2 < scores.rank(); ++i) heads.push_back(scores[i]);
  Shape one = with_matrix({}, scores[scores.rank() - 2], scores[scores.rank() - 1]);
  bool shared = true;
  for (int i = 0; i + 2 < mask.rank(); ++i) shared &= mask.body().dims[i] == 1;
  if (!shared) return matrices_of(expand_if_needed(added, scores), heads, dtype);
  if (added.rank() > 2) added = reshape(added, {added.size(-2), added.size(-1)});
  return matrices_of(expand_if_needed(added, one), {1}, dtype);
}

}  // namespace

Tensor scaled_dot_product_attention(const Arg& given_queries, const Arg& given_keys, const Arg& given_values,
                                    const AttentionOptions& options) {
  const char* name = attention_op.name;
  const AutocastArg queries(Precision::low, given_queries), keys(Precision::low, given_keys),
      values(Precision::low, given_values);
  const Tensor &q = tensor_of(name, queries), &k = tensor_of(name, keys), &v = tensor_of(name, values);
  Location where = given_queries.location();
  OpScope caller(where, name);
  check_floating(name, q, where);
  for (const Tensor* other : {&k, &v}) {
    if (other->dtype() != q.dtype())
      fail<DTypeError>(name, where, "{} does not have the dtype of the queries {}", describe(*other), describe(q));
    check_same_device(name, q, *other, where);
  }
  auto refuse = [&](const char* what) {
    fail<ShapeError>(name, where, "{}: queries {}, keys {}, values {}", what, to_string(q.shape()),
                     to_string(k.shape()), to_string(v.shape()));
  };
  if (q.rank() < 2 || k.rank() < 2 || v.rank() < 2) refuse("takes matrices, with any leading axes");
  if (q.size(-1) != k.size(-1)) refuse("queries and keys have different widths");
  if (k.size(-2) != v.size(-2)) refuse("there are not as many values as keys");
  Shape heads, both;
  if (!broadcast(leading(q), leading(k), both) || !broadcast(both, leading(v), heads))
    refuse("leading axes do not broadcast");
  double dropped = options.dropout;
  if (!(dropped >= 0 && dropped <= 1)) fail<Error>(name, where, "the dropout {} does not lie in [0, 1]", dropped);

  DType dtype = q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  std::int64_t width = q.size(-1), rows = q.size(-2);
  double scale = options.scale.value_or(width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width)));
  AttentionAttributes attributes{scale, options.causal};
  Tensor mask;
  if (options.mask.defined())
    mask = added_mask(name, autocast_operand(Precision::low, options.mask, where), q,
                      with_matrix(heads, rows, k.size(-2)), dtype, where);
  Tensor wide_q = matrices_of(q, heads, dtype), wide_k = matrices_of(k, heads, dtype);
  Tensor wide_v = matrices_of(v, heads, dtype), y;
  if (dropped > 0) {
    Tensor weights = weights_of(wide_q, wide_k, mask, attributes);
    y = matmul(dropout(weights, {.probability = dropped, .generator = options.generator}), wide_v);
  } else {
    const Tensor* given[] = {&wide_q, &wide_k, &wide_v, &mask};
    Tensor results[2];
    std::int64_t count = heads.numel();
    Shape result{count, rows, v.size(-1)}, each{count, rows, 2};
    const OutputSpec specs[] = {{result, dtype, q.device()}, {each, dtype, q.device()}};
    Call call{attention_op, {given, mask.defined() ? 4u : 3u}, bytes_of(attributes), specs, results, where};
    invoke(call);
    y = std::move(results[result_output]);
  }
  y = to_if_needed(y, q.dtype());
  return heads.rank() == 1 ? y : reshape(y, with_matrix(heads, rows, v.size(-1)));
}

OpList detail::attention_ops() {
  static constexpr const OpInfo* ops[] = {&attention_op, &attention_gradient_op};
  return ops;
}

}  // namespace reel
