#include "isolated_tape_scope.h"

#include <algorithm>

#include "../core/op_error.h"
#include "../core/storage.h"

namespace reel::detail {

IsolatedTapeScope::IsolatedTapeScope(Context& context, Purpose purpose)
    : context_(context),
      outer_(*context.tapes),
      list_(outer_.inner()),
      caller_before_(context.caller),
      flags_before_(context.flags),
      scope_id_before_(context.scope_id) {
  Recording state = purpose == Purpose::compute ? Recording::isolated_paused : Recording::isolated;
  outer_.scopes().begin(context, {this, Setting::recording, static_cast<std::uint32_t>(state), &list_});
  // Ids ascend, so that tensors made by a nested isolated function are treated as made within this one.
  context.scope_id = scope_id_ = first_isolated_scope + ++context.isolated_scopes;
  context.tapes = &list_;
  // Ops within report their own call sites; those of a gradient report that of the differentiated op.
  if (purpose != Purpose::compute) context.set(Context::caller_named, false);
  list_.only_collects_uses = purpose == Purpose::collect_uses;
  list_.depth = purpose != Purpose::compute;
  list_.look_at_hidden();
}

IsolatedTapeScope::~IsolatedTapeScope() {
  // Tapes that the function has opened end with it.
  outer_.scopes().end_tapes(&list_);
  list_.clear();
  list_.depth = 0;
  list_.only_collects_uses = false;
  // A process that was forked within the scope has another list.
  if (context_.tapes == &list_) context_.tapes = &outer_;
  context_.scope_id = scope_id_before_;
  context_.caller = caller_before_;
  context_.set(Context::caller_named, flags_before_ & Context::caller_named);
  Scopes::end(this);
}

bool IsolatedTapeScope::has_made(const Tensor& tensor) const {
  const Body& body = tensor.body();
  return list_.has_given_slot(body) ||
         (is_untracked(body) && body.slot >= scope_id_ && !(body.slot & TapeList::constant_mark));
}

Aliases::Aliases(std::span<const Tensor* const> inputs) {
  for (const Tensor* input : inputs) {
    tensors_.push_back(alias_of(*input));
    // Treated as a tensor made by stop_gradient in this scope, except that it shares its elements.
    tensors_.back().body().slot |= TapeList::constant_mark;
    versions_.push_back(input->body().storage->version.load(std::memory_order_relaxed));
  }
}

int Aliases::index_of(const Tensor& tensor) const {
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
  wait_for(tensor, {});
  Tensor alias = view_of(tensor, tensor.shape(), tensor.strides(), 0, {});
  alias.body().file = tensor.body().file;
  alias.body().line = tensor.body().line;
  return alias;
}

void check_result(const char* op, const Tensor& result, std::size_t k, Location where) {
  if (!result.defined())
    fail<Error>(op, where, "its function returned an undefined tensor as result {}: it was never given a value", k);
  wait_for(result, where);
}

void replace_aliased_results(const char* op, std::span<const Tensor> inputs, std::span<Tensor> results,
                             Location where) {
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

void make_outputs(const char* op, const IsolatedTapeScope& scope, const Aliases& inputs, std::span<Tensor> results,
                  Location where) {
  for (std::size_t k = 0; k < results.size(); ++k) {
    Tensor& result = results[k];
    check_result(op, result, k, where);
    bool returned_before = false;
    for (std::size_t earlier = 0; earlier < k; ++earlier) returned_before |= result.is(results[earlier]);
    bool from_outside = inputs.index_of(result) < 0 && !scope.has_made(result);
    if (from_outside && scope.list().is_tracked_outside(result.body()))
      fail<TapeError>(op, where,
                      "its function returned {}, made at {} outside of it, which is tracked and is not among its "
                      "inputs; pass it as an input",
                      describe(result), to_string(result.made_at()));
    // Tensors that have other handles are not changed.
    if (returned_before || from_outside || inputs.index_of(result) >= 0) result = alias_of(result);
    Body& body = result.body();
    scope.free(body);
    body.file = where.file;
    body.line = where.line;
  }
}

}  // namespace reel::detail
