#include <reel/no_record.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/norm.h>
#include <reel/ops/reduce.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "../../core/memory_error.h"
#include "../../dispatch/autocast.h"
#include "../../dispatch/invoke.h"
#include "../../kernels/loss.h"
#include "../../record/gradient.h"
#include "../if_needed.h"
#include "../registry.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

namespace {

struct BlankAttributes {
  std::int64_t blank;
};

constexpr int ctc_losses_output = 0, ctc_alphas_output = 1;

CtcTargets targets_of(Call& call, int first) {
  return {call.input(first), call.input(first + 1), call.input(first + 2), call.attributes<BlankAttributes>().blank};
}

[[noreturn]] void fail_targets(const Call& call, CtcFault fault) {
  std::string logs = describe(*call.inputs[0]);
  switch (fault.what) {
    case CtcFault::What::input_length:
      fail<IndexError>(call.op.name, call.where, "the input length {} of example {} is not one that {} can have",
                       fault.value, fault.example, logs);
    case CtcFault::What::target_length:
      fail<IndexError>(call.op.name, call.where,
                       "the target length {} of example {} is not one that targets {} can have", fault.value,
                       fault.example, describe(*call.inputs[1]));
    case CtcFault::What::label: break;
  }
  fail<IndexError>(call.op.name, call.where, "label {} of example {} is no class of {}, or is the blank", fault.value,
                   fault.example, logs);
}

// The logarithm of an impossible event, in f64. It is finite, so that no difference of two is NaN.
constexpr double impossible = -1e30;

// The recursions of ctc_loss in public ops, over states blank, label 0, blank, label 1, …, blank.
class Recursions {
 public:
  Recursions(const Tensor& logs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
             std::int64_t blank)
      : steps_(logs.body().dims[0]),
        examples_(logs.body().dims[1]),
        states_(2 * targets.body().dims[1] + 1),
        nothing_(full({examples_, 2}, impossible, {.dtype = DType::f64, .device = logs.device()})),
        input_lengths_(unsqueeze(input_lengths, 1)) {
    std::int64_t labels = targets.body().dims[1];
    Tensor counts = unsqueeze(target_lengths, 1);
    RangeOptions here{.dtype = DType::i64, .device = logs.device()};
    Tensor kept = where(arange(labels, here) < counts, targets, blank);
    Tensor pairs = reshape(stack({full_like(kept, blank), kept}, -1), {examples_, 2 * labels});
    symbols_ = concat({pairs, full({examples_, 1}, blank, {.dtype = DType::i64, .device = logs.device()})}, 1);
    Tensor place = arange(states_, here);
    last_ = logical_and(place <= counts * 2, place >= counts * 2 - 1);
    first_ = place < 2;
    skips_ = symbols_ != forwards(symbols_, 2);
    logs_ =
        gather(maximum(to_if_needed(logs, DType::f64), impossible), 2, expand(symbols_, {steps_, examples_, states_}));
  }

  /// The negative posterior probabilities of each class at each step, summed over alignments: (T, N, C).
  Tensor gradient(const Tensor& d, const Shape& shape) const {
    std::vector<Tensor> alphas = all_alphas(), by_step(alphas.size());
    Tensor total = logsumexp(where(last_, alphas.back(), impossible), 1, {.keepdims = true});
    Tensor scale = where(total > impossible / 2, unsqueeze(-to_if_needed(d, DType::f64), 1), 0.0);
    Tensor end = where(last_, 0.0, nothing_at_all()), betas = end;
    Tensor none = zeros({shape[1], shape[2]}, {.dtype = DType::f64, .device = d.device()});
    for (std::int64_t t = steps_; t-- > 0;) {
      if (t + 1 < steps_) betas = where(input_lengths_ <= t + 1, end, back(betas + log_of(t + 1)));
      auto i = static_cast<std::size_t>(t);
      Tensor passing = where(input_lengths_ > t, exp(alphas[i] + betas - total), 0.0);
      by_step[i] = scatter_add(none, 1, symbols_, passing * scale);
    }
    return stack(by_step);
  }

 private:
  Tensor log_of(std::int64_t t) const { return select(logs_, 0, t); }
  Tensor nothing_at_all() const { return expand(slice(nothing_, 1, 0, 1), {examples_, states_}); }
  // Shifts states: state s of the result is state s − by of x.
  Tensor forwards(const Tensor& x, std::int64_t by) const {
    return slice(concat({to_if_needed(nothing_, x.dtype()), x}, 1), 1, 2 - by, 2 - by + states_);
  }
  Tensor backwards(const Tensor& x, std::int64_t by) const {
    return slice(concat({x, to_if_needed(nothing_, x.dtype())}, 1), 1, by, by + states_);
  }
  Tensor back(const Tensor& next) const {
    return logaddexp(logaddexp(next, backwards(next, 1)), backwards(where(skips_, next, impossible), 2));
  }

  std::vector<Tensor> all_alphas() const {
    std::vector<Tensor> alphas{where(first_, log_of(0), impossible)};
    for (std::int64_t t = 1; t < steps_; ++t) {
      const Tensor& last = alphas.back();
      Tensor sum = logaddexp(logaddexp(last, forwards(last, 1)), where(skips_, forwards(last, 2), impossible));
      alphas.push_back(where(input_lengths_ > t, sum + log_of(t), last));
    }
    return alphas;
  }

  std::int64_t steps_, examples_, states_;
  Tensor nothing_, input_lengths_;
  Tensor symbols_;  // (N, states)
  Tensor logs_;     // (T, N, states)
  Tensor first_, last_, skips_;
};

}  // namespace

// Fused; runs when nothing records.

constexpr OpInfo ctc_loss_gradient_op{
    .name = "ctc_loss_gradient",
    .forward =
        [](Call& call) {
          kernels(call.output().device)
              .loss->ctc_loss_gradient(call.output(), call.input(0), call.input(1), call.input(5), targets_of(call, 2));
        },
    .internal = true,
};

// loss_n = −log Σ_alignments Π_t p_t;  d log p_tc = −d_n · probability, given the target, of a symbol c at step t

constexpr OpInfo ctc_loss_op{
    .name = "ctc_loss",
    .forward =
        [](Call& call) {
          CtcFault fault;
          if (!kernels(call.output().device)
                   .loss->ctc_loss(call.output(ctc_losses_output), call.output(ctc_alphas_output), call.input(0),
                                   targets_of(call, 1), fault))
            fail_targets(call, fault);
        },
    .gradient =
        [](Gradient& g) {
          enum { in_logs, in_targets, in_input_lengths, in_target_lengths };
          const Tensor &logs = g.saved_input(in_logs), &targets = g.saved_input(in_targets);
          const Tensor &input_lengths = g.saved_input(in_input_lengths),
                       &target_lengths = g.saved_input(in_target_lengths);
          if (!g.recording()) {
            Tensor d = contiguous_if_needed(g.output());
            return g.accumulate(in_logs, invoke(ctc_loss_gradient_op,
                                                {&d, &logs, &targets, &input_lengths, &target_lengths,
                                                 &g.saved_output(ctc_alphas_output)},
                                                {logs.body(), logs.dtype()}, g.where(), g.attribute_bytes()));
          }
          if (logs.numel() == 0) return g.accumulate(in_logs, zeros_like(logs));
          Recursions recursions(logs, targets, input_lengths, target_lengths, g.attributes<BlankAttributes>().blank);
          g.accumulate(in_logs, to_if_needed(recursions.gradient(g.output(), logs.shape()), logs.dtype()));
        },
    .saves_input_for = {inputs({0}), inputs({0}), inputs({0}), inputs({0})},
    .saves_output_for = {0, inputs({0})},
    .hidden_outputs = 1 << ctc_alphas_output,
};

namespace {

// Lengths, one for each example, converted to i64.
Tensor lengths_of(const char* op, const char* what, const Tensor& x, const Tensor& lengths, Location where) {
  if (lengths.dtype() != DType::i32 && lengths.dtype() != DType::i64)
    fail<DTypeError>(op, where, "{} lengths are i32 or i64, not {}", what, describe(lengths));
  if (lengths.device() != cpu) check_same_device(op, x, lengths, where);
  if (lengths.rank() != 1 || lengths.numel() != x.body().dims[1])
    fail<ShapeError>(op, where, "{} lengths {} are not one for each of the {} examples of {}", what,
                     to_string(lengths.shape()), x.body().dims[1], describe(x));
  return contiguous_if_needed(to_if_needed(to_if_needed(lengths, DType::i64), x.device()));
}

// Converts concatenated targets to rows of (N, S); elements behind a row's length are arbitrary.
Tensor padded(const char* op, const Tensor& targets, const Tensor& lengths, Location where) {
  NoRecord pause;
  std::int64_t examples = lengths.numel(), labels = targets.numel(), longest = 0, all = 0;
  std::vector<std::int64_t> counts = to_if_needed(lengths, DType::i64).to_vector<std::int64_t>();
  for (std::int64_t count : counts) {
    if (count < 0 || count > labels - all) {
      all = -1;
      break;
    }
    longest = std::max(longest, count);
    all += count;
  }
  if (examples > 0 && all != labels)
    fail<ShapeError>(op, where, "the target lengths do not add up to the {} labels of the targets", labels);
  std::vector<std::int64_t> places(static_cast<std::size_t>(examples * longest));
  for (std::int64_t n = 0, first = 0; n < examples; first += counts[static_cast<std::size_t>(n++)])
    std::iota(places.begin() + n * longest, places.begin() + n * longest + counts[static_cast<std::size_t>(n)], first);
  DeviceGuard here(targets.device());
  if (places.empty()) return zeros({examples, longest}, {.dtype = DType::i64});
  return take(targets, tensor(places, {examples, longest}), 0);
}

}  // namespace

Tensor ctc_loss(const Arg& log_probabilities, const Arg& targets, const Arg& input_lengths, const Arg& target_lengths,
                CtcOptions options) {
  return with_memory_error(ctc_loss_op.name, log_probabilities.location(), [&] {
    const char* name = ctc_loss_op.name;
    const AutocastArg full(Precision::full, log_probabilities);
    const Tensor &x = tensor_of(name, full), &t = tensor_of(name, targets);
    const Tensor &inputs = tensor_of(name, input_lengths), &outputs = tensor_of(name, target_lengths);
    Location where = log_probabilities.location();
    OpScope caller(where, name);
    check_floating(name, x, where);
    if (x.rank() != 3) fail<ShapeError>(name, where, "the log-probabilities are (T, N, C), not {}", describe(x));
    if (t.dtype() != DType::i32 && t.dtype() != DType::i64)
      fail<DTypeError>(name, where,
                       "targets are class numbers of i32 or i64, not {}; convert them with to(targets, i64)",
                       describe(t));
    check_same_device(name, x, t, where);
    Tensor steps = lengths_of(name, "input", x, inputs, where), lengths = lengths_of(name, "target", x, outputs, where);
    std::int64_t examples = x.body().dims[1], classes = x.body().dims[2];
    if (t.rank() != 1 && (t.rank() != 2 || t.body().dims[0] != examples))
      fail<ShapeError>(name, where, "targets {} are neither ({}, S) nor all labels in a row", describe(t), examples);
    if (options.blank < 0 || options.blank >= classes)
      fail<IndexError>(name, where, "the blank {} is no class of {}", options.blank, describe(x));
    Tensor labels = contiguous_if_needed(to_if_needed(t.rank() == 1 ? padded(name, t, outputs, where) : t, DType::i64));
    Tensor logs = contiguous_if_needed(Arg(x, where));

    const Tensor* operands[] = {&logs, &labels, &steps, &lengths};
    Tensor results[2];
    Shape losses_shape{examples}, alphas_shape{examples, x.body().dims[0], 2 * labels.body().dims[1] + 1};
    const OutputSpec specs[] = {{losses_shape, x.dtype() == DType::f64 ? DType::f64 : DType::f32, x.device()},
                                {alphas_shape, DType::f64, x.device()}};
    BlankAttributes attributes{options.blank};
    Call call{ctc_loss_op, operands, bytes_of(attributes), specs, results, where};
    invoke(call);
    Tensor losses = std::move(results[ctc_losses_output]);
    if (options.zero_infinity) losses = reel::where(isinf(losses), 0.0, losses);
    if (options.reduction == LossReduction::mean) losses = losses / to(maximum(lengths, 1), losses.dtype());
    return reduced(losses, options.reduction, x.dtype());
  });
}

OpList detail::ctc_ops() {
  static constexpr const OpInfo* ops[] = {&ctc_loss_op, &ctc_loss_gradient_op};
  return ops;
}

}  // namespace reel
