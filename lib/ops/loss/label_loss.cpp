#include <reel/no_record.h>
#include <reel/ops/activation.h>
#include <reel/ops/comparison.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/index.h>
#include <reel/ops/loss.h>
#include <reel/ops/reduce.h>
#include <reel/ops/scan.h>
#include <reel/ops/shape.h>

#include "../../dispatch/autocast.h"
#include "../if_needed.h"
#include "../index/index_checks.h"
#include "loss_operands.h"

namespace reel {

using namespace detail;

namespace {

// The rows of an input (N, C) or (C) with its targets, as matrices; names the caller while it lives.
struct Labelled {
  // `each_class`: there is a target for each class, else one for each row.
  Labelled(const char* op, const Arg& given_input, const Arg& targets, bool each_class)
      : where(given_input.location()), caller(where, op) {
    const AutocastArg input(Precision::full, given_input);
    const Tensor &x = tensor_of(op, input), &t = tensor_of(op, targets);
    check_floating(op, x, where);
    if (t.dtype() != DType::i32 && t.dtype() != DType::i64)
      fail<DTypeError>(op, where, "the targets {} are not of i32 or i64", describe(t));
    check_same_device(op, x, t, where);
    bool fits = x.rank() == 1 || x.rank() == 2;
    Shape wanted = x.shape();
    if (fits && !each_class) wanted = x.rank() == 1 ? Shape{} : Shape{wanted[0]};
    if (!fits || t.shape() != wanted)
      fail<ShapeError>(
          op, where, "the input {} and the targets {} do not fit: there must be (N, C) and {}, or (C) and {}",
          to_string(x.shape()), to_string(t.shape()), each_class ? "(N, C)" : "(N)", each_class ? "(C)" : "()");
    dtype = x.dtype();
    examples = x.rank() == 1 ? Shape{} : Shape{x.size(0)};
    classes = x.size(-1);
    if (classes == 0) fail<ShapeError>(op, where, "the input {} has no classes", to_string(x.shape()));
    rows = widened(x.rank() == 1 ? unsqueeze(x, 0) : x);
    Tensor whole = to_if_needed(t, DType::i64);
    labels = reshape(whole, each_class ? rows.shape() : Shape{rows.size(0)});
  }

  // Losses of single examples, in the shape of the examples.
  Tensor finished(const Tensor& losses, LossReduction reduction) const {
    return reduced(reshape(losses, examples), reduction, dtype);
  }

  Location where;
  OpScope caller;
  DType dtype;
  Shape examples;
  std::int64_t classes;
  Tensor rows, labels;
};

// Throws: IndexError unless all labels are classes; negative ones count from the end only in indexing.
void check_labels(const char* op, const Labelled& given, const Tensor& labels) {
  NoRecord pause;
  std::int64_t bad;
  if (!are_within(op, where(labels < 0, given.classes, labels), given.classes, bad, given.where))
    fail<IndexError>(op, given.where, "a target is none of the {} classes of the input", given.classes);
}

// (…, C) of bools: whether a label is the class.
Tensor is_class(const Tensor& labels, std::int64_t classes) {
  return unsqueeze(labels, -1) == arange(classes, {.dtype = DType::i64, .device = labels.device()});
}

}  // namespace

// multi_margin_loss = Σ_{c ≠ t} w_t max(0, margin − x_t + x_c)^p / C

Tensor multi_margin_loss(const Arg& input, const Arg& targets, const MultiMarginOptions& options) {
  const char* name = "multi_margin_loss";
  Labelled given(name, input, targets, false);
  if (options.p != 1 && options.p != 2) fail<Error>(name, given.where, "p is {}, neither 1 nor 2", options.p);
  check_labels(name, given, given.labels);
  Tensor chosen = unsqueeze(given.labels, 1), own = gather(given.rows, 1, chosen);
  Tensor terms = relu(given.rows - own + options.margin);
  if (options.p == 2) terms = square(terms);
  Tensor losses = sum(where(is_class(given.labels, given.classes), 0.0, terms), 1) / static_cast<double>(given.classes);
  if (options.weight.defined()) {
    check_like(name, *AutocastArg(Precision::full, input)->tensor(), options.weight, "weight", given.where);
    if (options.weight.shape() != Shape{given.classes})
      fail<ShapeError>(name, given.where, "the weight {} is not one number for each of {} classes",
                       to_string(options.weight.shape()), given.classes);
    losses = losses * take(widened(options.weight), given.labels, 0);
  }
  return given.finished(losses, options.reduction);
}

// multilabel_margin_loss = Σ_t Σ_c max(0, 1 − (x_t − x_c)) / C

Tensor multilabel_margin_loss(const Arg& input, const Arg& targets, LossOptions options) {
  const char* name = "multilabel_margin_loss";
  Labelled given(name, input, targets, true);
  // (N, T): whether there is a label, before the first negative number.
  Tensor valid = cumsum(to(given.labels < 0, DType::i64), 1) == 0;
  Tensor labels = where(valid, given.labels, 0);
  check_labels(name, given, labels);
  Tensor own = gather(given.rows, 1, labels);
  // (N, T, C), whose sum over T says which classes are labels.
  Tensor each = unsqueeze(valid, 2), hits = logical_and(is_class(labels, given.classes), each);
  Tensor counted = logical_and(each, logical_not(any(hits, Shape{1}, {.keepdims = true})));
  Tensor terms = relu(1.0 - unsqueeze(own, 2) + unsqueeze(given.rows, 1));
  Tensor losses = sum(where(counted, terms, 0.0), Shape{1, 2}) / static_cast<double>(given.classes);
  return given.finished(losses, options.reduction);
}

// multilabel_soft_margin_loss = −Σ_c w_c (t_c log p_c + (1 − t_c) log(1 − p_c)) / C

Tensor multilabel_soft_margin_loss(const Arg& input, const Arg& target, const MultilabelSoftMarginOptions& options) {
  const char* name = "multilabel_soft_margin_loss";
  Compared given(name, input, target);
  const Tensor& x = given.input;
  if (x.rank() == 0) fail<ShapeError>(name, given.where, "takes (…, C), not {}", describe(x));
  Tensor losses = element_losses(ElementLoss::logits_cross_entropy, given);
  if (options.weight.defined()) losses = losses * factor(name, x, options.weight, "weight", given.dtype, given.where);
  return reduced(mean(losses, -1), options.reduction, given.dtype);
}

}  // namespace reel
