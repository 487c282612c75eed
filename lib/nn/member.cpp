#include <reel/nn/member.h>

#include <reel/nn/module.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "cloning.h"

namespace reel::nn {

using namespace detail;

Member::Member(Module& module, std::string_view name, const Tensor& values, bool is_parameter, Location where)
    : Tensor(values) {
  if (!is_parameter && !values.defined()) fail<Error>("Module", where, "the buffer '{}' is an undefined tensor", name);
  if (is_parameter) values.requires_grad(true, where);
  module.add(name, {{}, is_parameter ? Module::Kind::parameter : Module::Kind::buffer, this, nullptr}, where);
  module_ = &module;
}

Member::Member(const Member& other) : Tensor(other) {
  Cloning* cloning = Cloning::current();
  Module* module = cloning ? cloning->copy_of(other.module_) : nullptr;
  if (!module) return;
  static_cast<Tensor&>(*this) = cloning->copy_of(other);
  module_ = module;
  for (std::size_t i = 0; i < module->entries_.size(); ++i)
    if (other.module_->entries_[i].tensor == &other) module->entries_[i].tensor = this;
}

Member::Member(Member&& other) noexcept : Tensor(std::move(static_cast<Tensor&>(other))) { take_place(other); }

Member::~Member() {
  if (module_) std::erase_if(module_->entries_, [&](const Module::Entry& entry) { return entry.tensor == this; });
}

void Member::take_place(Member& other) noexcept {
  module_ = std::exchange(other.module_, nullptr);
  if (!module_) return;
  for (Module::Entry& entry : module_->entries_)
    if (entry.tensor == &other) entry.tensor = this;
}

void Member::assign(Member&& other) {
  if (this == &other) return;
  if (module_) return assign(static_cast<const Tensor&>(other));
  static_cast<Tensor&>(*this) = std::move(static_cast<Tensor&>(other));
  take_place(other);
}

void Member::assign(const Tensor& values) {
  if (is(values)) return;
  bool is_parameter = false;
  if (module_)
    for (const Module::Entry& entry : module_->entries_)
      if (entry.tensor == this) is_parameter = entry.kind == Module::Kind::parameter;
  if (is_parameter && values.defined()) {
    values.requires_grad(true, values.made_at());
    values.body().leaf->replaced_at = {};
  }
  Tensor before = *this;
  static_cast<Tensor&>(*this) = values;
  if (!is_parameter || !before.defined()) return;
  const Module* root = module_;
  while (root->parent_) root = root->parent_;
  for (const Tensor& other : root->parameters())
    if (other.is(before)) return;
  Location where = values.defined() ? values.made_at() : before.made_at();
  before.body().leaf->replaced_at = where;
}

Parameter::Parameter(Module& module, std::string_view name, const Shape& shape, const Initialiser& initialiser,
                     const RandomOptions& options, Location where)
    : Member(
          module, name,
          [&] {
            CallerScope caller(where);
            return initialiser(shape, options);
          }(),
          true, where) {}

Cloning*& Cloning::current() {
  static thread_local Cloning* current = nullptr;
  return current;
}

Tensor Cloning::copy_of(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  auto [found, is_new] = tensors.try_emplace(&tensor.body());
  if (is_new) {
    NoRecord pause;
    found->second = copy(tensor);
    // One that is frozen can be trained later.
    if (tensor.body().leaf) found->second.requires_grad(true).requires_grad(tensor.is_parameter());
  }
  return found->second;
}

CloneScope::CloneScope() {
  auto cloning = std::make_unique<Cloning>();
  cloning->outer = Cloning::current();
  Cloning::current() = cloning.release();
}

CloneScope::~CloneScope() {
  std::unique_ptr<Cloning> done(Cloning::current());
  Cloning::current() = done->outer;
}

void CloneScope::finish(Location where) const {
  for (auto [original, copy] : Cloning::current()->modules)
    for (const Module::Entry& entry : copy->entries_)
      if (!entry.tensor && !entry.module)
        fail<Error>("clone", where, "'{}' of {} is not a member of it that C++ copies; copy the model by hand",
                    entry.name, original->type_name());
}

}  // namespace reel::nn
