#include "apart.h"

#include <algorithm>

#include "../core/op_error.h"
#include "../core/storage.h"

namespace reel::detail {

Apart::Apart(Context& context, Purpose purpose)
    : context_(context),
      outer_(*context.tapes),
      list_(outer_.inner()),
      caller_before_(context.caller),
      flags_before_(context.flags),
      birth_before_(context.birth) {
  Recording state = purpose == Purpose::compute ? Recording::isolated_paused : Recording::isolated;
  outer_.scopes().begin(context, {this, Setting::recording, static_cast<std::uint32_t>(state), &list_});
  // These rise, so that what was made by a function within this one counts as made within this one too.
  context.birth = birth_ = first_isolated_birth + ++context.births;
  context.tapes = &list_;
  // Ops within report their own lines; those of a gradient, the line of what is differentiated.
  if (purpose != Purpose::compute) context.set(Context::caller_named, false);
  list_.only_notes = purpose == Purpose::note;
  list_.depth = purpose != Purpose::compute;
  list_.look_at_hidden();
}

Apart::~Apart() {
  // Tapes that the function has opened end with it.
  outer_.scopes().end_tapes(&list_);
  list_.clear();
  list_.depth = 0;
  list_.only_notes = false;
  // A process that was forked within has another list by now.
  if (context_.tapes == &list_) context_.tapes = &outer_;
  context_.birth = birth_before_;
  context_.caller = caller_before_;
  context_.set(Context::caller_named, flags_before_ & Context::caller_named);
  Scopes::end(this);
}

bool Apart::has_made(const Tensor& tensor) const {
  const Body& body = tensor.body();
  return list_.has_given_slot(body) ||
         (is_untracked(body) && body.slot >= birth_ && !(body.slot & TapeList::constant_birth));
}

Aliases::Aliases(std::span<const Tensor* const> inputs) {
  for (const Tensor* input : inputs) {
    tensors_.push_back(alias_of(*input));
    // Made here, but for its elements.
    tensors_.back().body().slot |= TapeList::constant_birth;
    versions_.push_back(input->body().storage->version.load(std::memory_order_relaxed));
  }
}

int Aliases::number_of(const Tensor& tensor) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].is(tensor)) return static_cast<int>(i);
  return -1;
}

int Aliases::overwritten() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i].body().storage->version.load(std::memory_order_relaxed) != versions_[i]) return static_cast<int>(i);
  return -1;
}

Tensor alias_of(const Tensor& tensor) {
  Tensor alias = view_of(tensor, tensor.shape(), tensor.strides(), 0, {});
  alias.body().file = tensor.body().file;
  alias.body().line = tensor.body().line;
  return alias;
}

void check_result(const char* op, const Tensor& result, std::size_t k, Location where) {
  if (!result.defined())
    fail<Error>(op, where, "its function returned an undefined tensor as result {}: it was never given a value", k);
}

void settle_unrecorded(const char* op, std::span<const Tensor> inputs, std::span<Tensor> results, Location where) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    Tensor& result = results[k];
    check_result(op, result, k, where);
    const Body& body = result.body();
    auto is_it = [&](const Tensor& other) { return result.is(other); };
    if (body.requires_grad || !is_untracked(body) || std::ranges::any_of(inputs, is_it) ||
        std::ranges::any_of(results.first(k), is_it))
      result = alias_of(result);
  }
}

void settle_results(const char* op, const Apart& apart, const Aliases& inputs, std::span<Tensor> results,
                    Location where) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    Tensor& result = results[k];
    check_result(op, result, k, where);
    bool returned_before = false;
    for (std::size_t earlier = 0; earlier < k; ++earlier) returned_before |= result.is(results[earlier]);
    bool from_outside = inputs.number_of(result) < 0 && !apart.has_made(result);
    if (from_outside && apart.list().is_tracked_outside(result.body()))
      fail<TapeError>(op, where,
                      "its function returned {}, made at {} outside of it, which is tracked and is not among its "
                      "inputs; pass it as an input",
                      describe(result), to_string(result.made_at()));
    // Tensors that others have keep what they are.
    if (returned_before || from_outside || inputs.number_of(result) >= 0) result = alias_of(result);
    Body& body = result.body();
    apart.free(body);
    body.file = where.file;
    body.line = where.line;
  }
}

}  // namespace reel::detail
