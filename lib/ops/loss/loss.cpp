#include <reel/ops/loss.h>

#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>
#include <reel/ops/softmax.h>

#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/loss.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../index/index_checks.h"
#include "../joining.h"
#include "../registry.h"
#include "attributes.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

namespace {

constexpr int losses_output = 0, exponents_output = 1;

// Targets as class indices, and a mask of the ignored ones, whose class is set to 0.
struct KnownClasses {
  Tensor classes, ignored;
};

KnownClasses known_classes(const Tensor& targets, std::int64_t ignore_index) {
  Tensor classes = to_if_needed(targets, DType::i64), ignored = classes == ignore_index;
  return {where(ignored, 0, classes), ignored};
}

bool accepts_targets(const Call& call) {
  return are_classes(call.input(1), call.input(0).dims[1], call.attributes<IgnoreAttributes>().ignored);
}

// The gradients of losses, as one vector.
Tensor flattened(const Tensor& d) { return d.rank() > 1 ? reshape(d, {d.numel()}) : d; }

}  // namespace

// Fused; runs when nothing records.

constexpr OpInfo cross_entropy_gradient_op{
    .name = "cross_entropy_gradient",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .loss->cross_entropy_gradient(call.output(), call.input(0), call.input(1), call.input(2), call.input(3),
                                            call.attributes<IgnoreAttributes>().ignored);
        },
    .internal = true,
};

// loss_n = −log softmax(x_n)[t_n], 0 where t_n is ignored;  dx_n = d_n (softmax(x_n) − one-hot(t_n)), 0 where ignored

constexpr OpInfo cross_entropy_op{
    .name = "cross_entropy",
    .forward =
        [](Call& call) {
          std::int64_t bad;
          if (!kernels(call.output().device)
                   .loss->cross_entropy(call.output(losses_output), call.output(exponents_output), call.input(0),
                                        call.input(1), call.attributes<IgnoreAttributes>().ignored, bad))
            fail<IndexError>(call.op.name, call.where, "target {} is not a class of the logits {}", bad,
                             describe(*call.inputs[0]));
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_targets };
          const Tensor &x = g.saved_input(in_x), &targets = g.saved_input(in_targets);
          if (!g.recording()) {
            Tensor d = flattened(g.output());
            return g.accumulate(in_x,
                                invoke(cross_entropy_gradient_op, {&d, &x, &targets, &g.saved_output(exponents_output)},
                                       {x.body(), x.dtype()}, g.where(), g.attribute_bytes()));
          }
          auto [classes, ignored] = known_classes(targets, g.attributes<IgnoreAttributes>().ignored);
          Tensor scale = unsqueeze(where(ignored, 0.0, reshape(g.output(), targets.shape())), 1);
          // An ignored row may hold NaN or infinities, which would make gradients NaN.
          Tensor probabilities = softmax(where(unsqueeze(ignored, 1), 0.0, widened(x)), 1);
          g.accumulate(in_x,
                       to_if_needed(scatter_add(probabilities * scale, 1, unsqueeze(classes, 1), -scale), x.dtype()));
        },
    .saves_input_for = {inputs({0}), inputs({0})},
    .saves_output_for = {0, inputs({0})},
    .joining = [](const Call&) -> Joining {
      return {.by = Joining::By::rows, .dropped_outputs = 1 << exponents_output};
    },
    .accepts_elements = accepts_targets,
};

// nll_loss_n = −x_n,t_n, 0 where t_n is ignored;  dx_n = −d_n one-hot(t_n), 0 where ignored

constexpr OpInfo nll_loss_op{
    .name = "nll_loss",
    .forward =
        [](Call& call) {
          std::int64_t bad;
          if (!kernels(call.output().device)
                   .loss->nll_loss(call.output(), call.input(0), call.input(1),
                                   call.attributes<IgnoreAttributes>().ignored, bad))
            fail<IndexError>(call.op.name, call.where, "target {} is not a class of the input {}", bad,
                             describe(*call.inputs[0]));
        },
    .gradient =
        [](Gradient& g) {
          enum { in_x, in_targets };
          const Tensor& d = g.output();
          auto [classes, ignored] = known_classes(g.saved_input(in_targets), g.attributes<IgnoreAttributes>().ignored);
          Tensor nothing = expand(zeros({}, {.dtype = d.dtype(), .device = d.device()}), g.input_shape(in_x));
          Tensor chosen = unsqueeze(where(ignored, 0.0, -d), 1);
          g.accumulate(in_x, to_if_needed(scatter_add(nothing, 1, unsqueeze(classes, 1), chosen), g.input_dtype(in_x)));
        },
    .saves_input_for = {0, inputs({0})},
    .joining = by_rows,
    .accepts_elements = accepts_targets,
};

// y = Σ loss_n / c, where c counts the targets t_n that are not ignored;  d loss_n = dy / c

constexpr OpInfo mean_of_targets_op{
    .name = "mean_of_targets",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .loss->mean_of_targets(call.output(), call.output(1), call.input(0), call.input(1),
                                     call.attributes<IgnoreAttributes>().ignored);
        },
    .gradient = [](Gradient& g) { g.accumulate(0, expand(g.output() / g.saved_output(1), g.input_form(0).shape())); },
    .saves_output_for = {0, inputs({0})},
    .internal = true,
    .needs_device = true,
};

namespace {

// The examples of a classification: rows of logits, along axis 1, and a class for each.
struct Examples {
  Tensor rows;
  Tensor targets;  // class indices, or rows of probabilities
  Shape shape;     // of the examples
};

// Logits (C) become (1, C), and the kernels of other devices take rows (N, C).
bool merges(const Tensor& x) { return x.rank() == 1 || (x.rank() > 2 && x.device() != cpu); }

// x (N, C, …), or with its examples merged (N, C).
Tensor rows_of(const Tensor& x, int axis, std::int64_t examples) {
  if (!merges(x)) return contiguous_if_needed(x);
  Shape order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(i);
  order.push_back(axis);
  return contiguous_if_needed(reshape(permute(x, order), {examples, x.body().dims[axis]}));
}

// One number for each class, along axis 1 of rows of this rank.
Tensor along_classes(const Tensor& numbers, int rank) {
  Shape shape{numbers.numel()};
  for (int axis = 2; axis < rank; ++axis) shape.push_back(1);
  return rank > 2 ? reshape(numbers, shape) : numbers;
}

// `what`: the name of x in errors. `takes_soft`: floating targets in x's shape are allowed, too.
Examples examples_of(const char* name, const char* what, const Tensor& x, const Tensor& t, bool takes_soft,
                     Location where) {
  check_floating(name, x, where);
  bool soft = takes_soft && is_floating(t.dtype()) && t.shape() == x.shape();
  if (!soft && t.dtype() != DType::i32 && t.dtype() != DType::i64)
    fail<DTypeError>(name, where, "targets are class numbers of i32 or i64, not {}; convert them with to(targets, i64)",
                     describe(t));
  check_same_device(name, x, t, where);
  int axis = x.rank() >= 2 ? 1 : 0;
  Shape shape;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) shape.push_back(x.body().dims[i]);
  if (x.rank() == 0 || (!soft && t.shape() != shape))
    fail<ShapeError>(name, where, "{} {} want targets {}, not {}", what, to_string(x.shape()), to_string(shape),
                     to_string(t.shape()));
  std::int64_t examples = shape.numel();
  if (soft) return {rows_of(x, axis, examples), rows_of(t, axis, examples), shape};
  // The CPU's nll_loss reads one element of a row, wherever it lies.
  bool in_place = !takes_soft && x.device() == cpu && !merges(x);
  return {in_place ? x : rows_of(x, axis, examples), contiguous_if_needed(merges(x) ? reshape(t, {examples}) : t),
          shape};
}

// The weights of the classes, with halves converted to f32; undefined if not given.
Tensor class_weights(const char* name, const Tensor& given, const Tensor& rows, Location where) {
  if (!given.defined()) return {};
  const Tensor weight = autocast_operand(Precision::full, given, where);
  check_like(name, rows, weight, "weight", where);
  std::int64_t classes = rows.body().dims[1];
  if (given.shape() != Shape{classes})
    fail<ShapeError>(name, where, "the weight {} is not one number for each of {} classes", to_string(given.shape()),
                     classes);
  return widened(weight);
}

// The loss of each example, in a shape with as many elements as there are examples.
Tensor class_losses(const Tensor& rows, const Tensor& targets, std::int64_t ignored, const Shape& shape,
                    Location where) {
  const Tensor* both[] = {&rows, &targets};
  Tensor outputs[2];
  DType wide = rows.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Shape two_each = targets.shape();
  two_each.push_back(2);
  const OutputSpec specs[] = {{shape, wide, rows.device()}, {two_each, wide, rows.device()}};
  IgnoreAttributes attributes{ignored};
  Call call{cross_entropy_op, both, bytes_of(attributes), specs, outputs, where};
  invoke(call);
  return std::move(outputs[losses_output]);
}

// The weight of each example's target, with halves converted to f32; 0 if it is ignored. Undefined if not needed.
Tensor target_weights(const Tensor& weight, const Tensor& targets, std::int64_t ignore_index, LossReduction reduction,
                      DType dtype) {
  if (!weight.defined()) {
    if (reduction != LossReduction::mean) return {};
    NoRecord pause;
    return to(to_if_needed(targets, DType::i64) != ignore_index, dtype);
  }
  auto [classes, ignored] = known_classes(targets, ignore_index);
  return where(ignored, 0.0, take(weight, classes, 0));
}

// Reduces losses. Only the weighted mean uses the weights.
Tensor brought_together(const Tensor& losses, const Tensor& weights, LossReduction reduction, const Shape& shape,
                        DType dtype) {
  if (reduction == LossReduction::none)
    return to_if_needed(losses.shape() == shape ? losses : reshape(losses, shape), dtype);
  Tensor total = sum_to_if_needed(losses, {});
  return to_if_needed(reduction == LossReduction::sum ? total : total / sum(weights), dtype);
}

// The mean of losses over the targets that are not ignored, by one kernel of a device; undefined where there is none, or
// they are too many for one block of threads.
Tensor mean_by_kernel(const Tensor& losses, const Tensor& targets, std::int64_t ignored, Location where) {
  constexpr std::int64_t most = 1 << 16;
  if (losses.numel() > most || !kernels(losses.device()).loss->mean_of_targets) return {};
  const Tensor* both[] = {&losses, &targets};
  const OutputSpec scalar(Shape{}, losses.dtype(), losses.device());
  const OutputSpec specs[] = {scalar, scalar};
  Tensor outputs[2];
  IgnoreAttributes attributes{ignored};
  Call call{mean_of_targets_op, both, bytes_of(attributes), specs, outputs, where};
  invoke(call);
  return std::move(outputs[0]);
}

Tensor negative_sum(const Tensor& terms) { return -sum(terms, 1); }

// The losses with label smoothing, which spreads a part of each target over all classes.
Tensor smoothed_losses(const Examples& given, const Tensor& weight, const CrossEntropyOptions& options) {
  auto [classes, ignored] = known_classes(given.targets, options.ignore_index);
  // An ignored row may hold NaN or infinities, which would make gradients NaN.
  Tensor logs = log_softmax(where(unsqueeze(ignored, 1), 0.0, widened(given.rows)), 1);
  if (weight.defined()) logs = logs * along_classes(weight, logs.rank());
  double spread = options.label_smoothing / static_cast<double>(given.rows.body().dims[1]);
  Tensor chosen = squeeze(gather(logs, 1, unsqueeze(classes, 1)), 1);
  return where(ignored, 0.0, negative_sum(logs) * spread - chosen * (1 - options.label_smoothing));
}

// The losses for targets that are probabilities.
Tensor soft_losses(const Examples& given, const Tensor& weight, double smoothing) {
  Tensor share = widened(given.targets), logs = log_softmax(widened(given.rows), 1);
  if (smoothing != 0) share = share * (1 - smoothing) + smoothing / static_cast<double>(given.rows.body().dims[1]);
  if (weight.defined()) share = share * along_classes(weight, share.rank());
  return negative_sum(share * logs);
}

}  // namespace

Tensor nll_loss(const Arg& given_input, const Arg& targets, const NllOptions& options) {
  const char* name = nll_loss_op.name;
  const AutocastArg input(Precision::full, given_input);
  const Tensor &x = tensor_of(name, input), &t = tensor_of(name, targets);
  Location where = given_input.location();
  OpScope caller(where, name);
  Examples given = examples_of(name, "numbers", x, t, false, where);
  Tensor weight = class_weights(name, options.weight, given.rows, where);
  DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor losses = invoke(nll_loss_op, {&given.rows, &given.targets}, {given.targets.body(), wide}, where,
                         bytes_of(IgnoreAttributes{options.ignore_index}));
  if (!weight.defined() && options.reduction == LossReduction::mean)
    if (Tensor mean = mean_by_kernel(losses, given.targets, options.ignore_index, where); mean.defined())
      return to_if_needed(mean, x.dtype());
  Tensor weights = target_weights(weight, given.targets, options.ignore_index, options.reduction, wide);
  if (weight.defined()) losses = losses * weights;
  return brought_together(losses, weights, options.reduction, given.shape, x.dtype());
}

Tensor cross_entropy(const Arg& given_logits, const Arg& given_targets, const CrossEntropyOptions& options) {
  const char* name = cross_entropy_op.name;
  const AutocastArg logits(Precision::full, given_logits), targets(Precision::full, given_targets);
  const Tensor &x = tensor_of(name, logits), &t = tensor_of(name, targets);
  Location where = given_logits.location();
  OpScope caller(where, name);
  Examples given = examples_of(name, "logits", x, t, true, where);
  Tensor weight = class_weights(name, options.weight, given.rows, where);
  double smoothing = options.label_smoothing;
  if (!(smoothing >= 0 && smoothing <= 1))
    fail<Error>(name, where, "label_smoothing must lie in [0, 1], not be {}", smoothing);
  if (is_floating(given.targets.dtype())) {
    Tensor losses = soft_losses(given, weight, smoothing);
    return brought_together(losses, ones_like(losses), options.reduction, given.shape, x.dtype());
  }
  // The fused op also checks the targets' range, whatever follows.
  bool alone =
      given.targets.numel() == 1 && options.reduction == LossReduction::sum && smoothing == 0 && !weight.defined();
  Tensor losses =
      class_losses(given.rows, given.targets, options.ignore_index, alone ? Shape{} : given.targets.shape(), where);
  if (alone) return to_if_needed(losses, x.dtype());
  if (!weight.defined() && smoothing == 0 && options.reduction == LossReduction::mean)
    if (Tensor mean = mean_by_kernel(losses, given.targets, options.ignore_index, where); mean.defined())
      return to_if_needed(mean, x.dtype());
  Tensor weights = target_weights(weight, given.targets, options.ignore_index, options.reduction, losses.dtype());
  if (smoothing != 0)
    losses = smoothed_losses(given, weight, options);
  else if (weight.defined())
    losses = losses * weights;
  return brought_together(losses, weights, options.reduction, given.shape, x.dtype());
}

OpList detail::loss_ops() {
  static constexpr const OpInfo* ops[] = {&cross_entropy_op, &nll_loss_op, &cross_entropy_gradient_op,
                                          &mean_of_targets_op};
  return ops;
}

}  // namespace reel
