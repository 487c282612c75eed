#include <reel/ops.h>
#include <reel/tape.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/storage.h"
#include "backward_pass.h"
#include "differentiation.h"
#include "owned.h"

namespace reel {

using namespace detail;

namespace {

// The shape of one example.
Shape example_shape(const Tensor& x, bool by_example) {
  Shape shape = x.shape();
  return by_example ? Shape(std::span(shape.begin() + 1, shape.end())) : shape;
}

Shape joined(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (std::int64_t size : b) shape.push_back(size);
  return shape;
}

// A seed that is 1 at one output of each example.
Tensor seed_at(const Tensor& target, std::int64_t examples, std::int64_t outputs, std::int64_t output) {
  Tensor seed = zeros(target.shape(), {.dtype = target.dtype(), .device = target.device()});
  fill_(select(view(seed, {examples, outputs}), 1, output), 1);
  return seed;
}

}  // namespace

/// The Jacobian of some examples by one source: a matrix (outputs, inputs) for each.
class detail::JacobianBlocks {
 public:
  JacobianBlocks(const Tensor& source, std::int64_t examples, std::int64_t outputs, std::int64_t inputs,
                 const Shape& shape)
      : like_{source.dtype(), source.device()},
        examples_(examples),
        outputs_(outputs),
        inputs_(inputs),
        shape_(shape) {}

  /// Allocates all rows, which are written when their gradients are computed.
  void allocate_for(Context& context, const char* op, Location where) {
    whole_ = allocate(context, {shape_, like_.dtype, like_.device}, op, where);
  }
  /// Sets row `output` of all examples from gradients (examples, …); undefined ones are zeros.
  void give(std::int64_t output, const Tensor& gradient) {
    Shape rows{examples_, inputs_};
    if (!whole_.defined()) {
      rows_.push_back(gradient.defined() ? reshape(gradient, rows) : zeros(rows, like_));
    } else if (whole_.numel() != 0) {
      Tensor place = view_of(whole_, rows, {outputs_ * inputs_, 1}, output * inputs_, {});
      if (gradient.defined())
        copy_(place, reshape(gradient, rows));
      else
        zero_(place);
    }
  }
  Tensor take() {
    if (whole_.defined()) return std::move(whole_);
    return rows_.empty() ? zeros(shape_, like_) : reshape(stack(rows_, 1), shape_);
  }

 private:
  TensorOptions like_;
  std::int64_t examples_, outputs_, inputs_;
  Shape shape_;
  Tensor whole_;              // used if nothing records
  std::vector<Tensor> rows_;  // used if a tape records
};

void Differentiation::check_batches() const {
  for (const Tensor& source : sources_)
    if (target_.rank() == 0 || source.rank() == 0 || target_.size(0) != source.size(0))
      fail<ShapeError>(
          op_, where_,
          "the target {} and the source {} are not batches of as many examples; the first axes must be of one size",
          describe(target_), describe(source));
}

void Differentiation::fill_blocks(std::vector<JacobianBlocks>& blocks, std::int64_t examples,
                                  std::int64_t outputs) const {
  BackwardPass pass(context_, list_, target_slot_);
  prepare(pass);
  if (!context_.has(Context::recording))
    for (JacobianBlocks& block : blocks) block.allocate_for(context_, op_, where_);
  Consumption consumption(list_, tape_.consumes_list());
  for (std::int64_t output = 0; output < outputs; ++output) {
    pass.run(seed_at(target_, examples, outputs, output), false);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].give(output, pass.gradient(slots_[i]));
  }
  pass.forget();
}

std::vector<Tensor> Differentiation::jacobians(bool by_example) {
  CallerScope caller(where_);
  if (by_example) check_batches();
  Shape leading, output_shape = example_shape(target_, by_example);
  if (by_example) leading.push_back(target_.size(0));
  std::int64_t examples = leading.numel(), outputs = output_shape.numel();
  std::vector<JacobianBlocks> blocks;
  for (const Tensor& source : sources_) {
    Shape input_shape = example_shape(source, by_example);
    int rank = leading.rank() + output_shape.rank() + input_shape.rank();
    if (rank > max_rank)
      fail<ShapeError>(op_, where_,
                       "the derivative of {} by {} would have {} axes, and a tensor has at most {}; flatten one",
                       describe(target_), describe(source), rank, max_rank);
    blocks.emplace_back(source, examples, outputs, input_shape.numel(),
                        joined(joined(leading, output_shape), input_shape));
  }

  DifferentiatingScope record(context_, tape_.is_enclosed());
  Differentiating differentiating(context_, tape_.differentiating_);
  if (target_slot_ != 0) fill_blocks(blocks, examples, outputs);
  std::vector<Tensor> found;
  for (JacobianBlocks& block : blocks) found.push_back(owned(block.take()));
  return found;
}

std::vector<Tensor> Tape::jacobian(const Arg& target, std::span<const Tensor> sources, const JacobianOptions& options) {
  return with_memory_error("jacobian", target.location(), [&] {
    return Differentiation("jacobian", *this, target, sources, options.unconnected).jacobians(false);
  });
}

Tensor Tape::batch_jacobian(const Arg& target, const Tensor& source, const JacobianOptions& options) {
  return with_memory_error("batch_jacobian", target.location(), [&] {
    Differentiation question("batch_jacobian", *this, target, std::span(&source, 1), options.unconnected);
    return std::move(question.jacobians(true).front());
  });
}

}  // namespace reel
