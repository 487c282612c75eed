#include <reel/derivatives.h>

#include <reel/ops.h>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "differentiation.h"

namespace reel {

using namespace detail;

namespace {

// A function with its arguments: each input is an alias without other handles, so that derivatives are those by the
// argument alone.
class Application {
 public:
  Application(const char* op, const TensorFunction& f, Inputs inputs, Location where)
      : op_(op), f_(f), where_(where), list_(*context().tapes) {
    if (!f) fail<Error>(op, where, "the function is empty; give one that can be called");
    if (inputs.empty()) fail<Error>(op, where, "there are no inputs to differentiate by; give at least one tensor");
    wait_for_all(context());
    bool recording = is_recording();
    if (list_.depth > 0 && !recording)
      fail<TapeError>(op, where,
                      "cannot differentiate inside NoRecord while an outer tape is open, because that tape would see "
                      "what is recorded here; call it outside NoRecord");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined())
        fail<Error>(op, where, "input {} is an undefined tensor: it was never given a value", i);
      arguments_.push_back(alias_of(inputs[i], recording));
    }
  }

  const std::vector<Tensor>& arguments() const { return arguments_; }

  /// The function's value, recorded by the tape from the arguments on.
  Tensor value(Tape& tape) {
    std::vector<std::uint32_t> slots;
    for (const Tensor& argument : arguments_) {
      tape.watch({argument, where_});
      slots.push_back(list_.slot_of(argument.body()));
    }
    Tensor result = f_(arguments_);
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Body& body = arguments_[i].body();
      if (list_.slot_of(body) != slots[i] || list_.is_overwritten(body))
        fail<TapeError>(op_, where_,
                        "the function has overwritten its argument {}, {}, at {}, so that its derivatives would be "
                        "those at other values; let it overwrite a copy",
                        i, describe(arguments_[i]), to_string(body.storage->last_overwrite()));
    }
    if (!result.defined())
      fail<Error>(op_, where_, "the function has given an undefined tensor; let it return what it computes");
    if (!is_floating(result.dtype()))
      fail<DTypeError>(op_, where_, "the function must give a floating tensor, not {}; convert it with to(y, f32)",
                       describe(result));
    return result;
  }

  /// The gradients of the value, which must be a single element; sets `result` to the value.
  std::vector<Tensor> slopes(Tape& tape, Tensor& result) {
    result = value(tape);
    if (result.numel() != 1)
      fail<ShapeError>(op_, where_,
                       "the function must give a single element, not {}; reduce it, or ask for the jacobian of its "
                       "gradient",
                       describe(result));
    return gradients(tape, result, {});
  }

  std::vector<Tensor> gradients(Tape& tape, const Tensor& y, const Tensor& seed) const {
    return of(tape, y).gradients(seed);
  }
  std::vector<Tensor> jacobians(Tape& tape, const Tensor& y, bool by_example = false) const {
    return of(tape, y).jacobians(by_example);
  }

 private:
  Tensor alias_of(const Tensor& input, bool recording) const {
    check_floating(op_, input, where_);
    if (!recording) return stop_gradient({input, where_});
    const Body& body = input.body();
    bool is_tracked = list_.slot_of(body) || body.requires_grad || list_.is_tracked_outside(body);
    if (!is_tracked && !is_untracked(body)) list_.refuse(op_, input, where_);
    return reshape({input, where_}, input.shape());
  }
  Differentiation of(Tape& tape, const Tensor& y) const {
    return Differentiation(op_, tape, {y, where_}, arguments_, Unconnected::zeros, Constants::allowed);
  }

  const char* op_;
  const TensorFunction& f_;
  Location where_;
  TapeList& list_;
  std::vector<Tensor> arguments_;
};

void check_fit(const char* op, const char* name, Inputs given, Inputs inputs, Location where) {
  if (given.size() != inputs.size())
    fail<ShapeError>(op, where, "there are {} inputs, but {} {}s; give one for each", inputs.size(), given.size(),
                     name);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined())
      fail<Error>(op, where, "{} {} is an undefined tensor: it was never given a value", name, i);
    if (given[i].shape() != inputs[i].shape() || given[i].dtype() != inputs[i].dtype())
      fail<ShapeError>(op, where, "{} {}, {}, does not fit its input {}; give one of its shape and dtype", name, i,
                       describe(given[i]), describe(inputs[i]));
  }
}

// Σ a_i b_i over all elements.
Tensor inner_product(Inputs a, Inputs b, Location where) {
  CallerScope caller(where);
  Tensor total = sum(a[0] * b[0]);
  for (std::size_t i = 1; i < a.size(); ++i) total = total + sum(a[i] * b[i]);
  return total;
}

// A result as returned: an outer tape, if there is one, continues from it; else it is detached.
Tensor handed_out(const Tensor& value, Location where) {
  return is_recording() ? value : stop_gradient({value, where});
}

}  // namespace

namespace {

// The product of a seed with J is linear in the seed, so that its derivatives by the seed are J's columns.
std::vector<Tensor> jacobian_by_columns(const TensorFunction& f, Inputs inputs, Location where) {
  const char* op = "jacobian";
  Application applied(op, f, inputs, where);
  std::vector<Tensor> jacobians;
  int rank = 0;
  {
    Tape by_seed({.persistent = true}, where);
    Tensor seed;
    std::vector<Tensor> products;
    {
      Tape tape({}, where);
      Tensor y = applied.value(tape);
      rank = y.rank();
      seed = ones_like({y, where});
      by_seed.watch({seed, where});
      products = applied.gradients(tape, y, seed);
    }
    for (const Tensor& product : products) {
      Differentiation by(op, by_seed, {product, where}, std::span(&seed, 1), Unconnected::zeros, Constants::allowed);
      jacobians.push_back(std::move(by.jacobians(false).front()));
    }
  }
  CallerScope caller(where);
  for (std::size_t k = 0; k < jacobians.size(); ++k) {
    Tensor& columns = jacobians[k];
    Shape order;
    for (int i = 0; i < columns.rank(); ++i) order.push_back((i + columns.rank() - rank) % columns.rank());
    if (columns.rank() > 0) columns = permute(columns, order);
    if (columns.dtype() != inputs[k].dtype()) columns = to(columns, inputs[k].dtype());
  }
  return jacobians;
}

}  // namespace

std::vector<Tensor> detail::jacobian(const TensorFunction& f, Inputs inputs, bool forward, Location where) {
  return with_memory_error("jacobian", where, [&]() -> std::vector<Tensor> {
    if (forward) return jacobian_by_columns(f, inputs, where);
    Application applied("jacobian", f, inputs, where);
    Tape tape({}, where);
    Tensor y = applied.value(tape);
    return applied.jacobians(tape, y);
  });
}

Tensor detail::batch_jacobian(const TensorFunction& f, const Tensor& x, Location where) {
  return with_memory_error("batch_jacobian", where, [&] {
    Application applied("batch_jacobian", f, std::span(&x, 1), where);
    Tape tape({}, where);
    Tensor y = applied.value(tape);
    return std::move(applied.jacobians(tape, y, true).front());
  });
}

std::vector<std::vector<Tensor>> detail::hessian(const TensorFunction& f, Inputs inputs, Location where) {
  return with_memory_error("hessian", where, [&] {
    Application applied("hessian", f, inputs, where);
    Tape second({.persistent = true}, where);
    std::vector<Tensor> gradients;
    {
      Tape first({}, where);
      Tensor y;
      gradients = applied.slopes(first, y);
    }
    std::vector<std::vector<Tensor>> blocks;
    for (const Tensor& gradient : gradients) blocks.push_back(applied.jacobians(second, gradient));
    return blocks;
  });
}

Products detail::hvp(const TensorFunction& f, Inputs inputs, Inputs directions, Location where) {
  return with_memory_error("hvp", where, [&] {
    const char* op = "hvp";
    Application applied(op, f, inputs, where);
    check_fit(op, "direction", directions, inputs, where);
    Products result;
    {
      Tape second({}, where);
      std::vector<Tensor> gradients;
      {
        Tape first({}, where);
        gradients = applied.slopes(first, result.value);
      }
      Tensor slope = inner_product(gradients, directions, where);
      result.product = applied.gradients(second, slope, {});
    }
    result.value = handed_out(result.value, where);
    return result;
  });
}

Products detail::vjp(const TensorFunction& f, Inputs inputs, const Tensor& seed, Location where) {
  return with_memory_error("vjp", where, [&] {
    const char* op = "vjp";
    Application applied(op, f, inputs, where);
    if (!seed.defined()) fail<Error>(op, where, "the seed is an undefined tensor: it was never given a value");
    Products result;
    {
      Tape tape({}, where);
      result.value = applied.value(tape);
      result.product = applied.gradients(tape, result.value, seed);
    }
    result.value = handed_out(result.value, where);
    return result;
  });
}

ValueAndProduct<Tensor> detail::jvp(const TensorFunction& f, Inputs inputs, Inputs tangents, Location where) {
  return with_memory_error("jvp", where, [&] {
    const char* op = "jvp";
    Application applied(op, f, inputs, where);
    check_fit(op, "tangent", tangents, inputs, where);
    ValueAndProduct<Tensor> result;
    {
      Tape by_seed({}, where);
      Tensor seed;
      std::vector<Tensor> products;
      {
        Tape tape({}, where);
        result.value = applied.value(tape);
        seed = ones_like({result.value, where});
        by_seed.watch({seed, where});
        products = applied.gradients(tape, result.value, seed);
      }
      Tensor slope = inner_product(products, tangents, where);
      Differentiation by(op, by_seed, {slope, where}, std::span(&seed, 1), Unconnected::zeros, Constants::allowed);
      result.product = std::move(by.gradients({}).front());
    }
    result.value = handed_out(result.value, where);
    return result;
  });
}

}  // namespace reel
