#include <reel/nn/member.h>

#include <algorithm>

#include <reel/nn/module.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "../record/tape_list.h"
#include "cloning.h"

namespace reel::nn {

using namespace detail;

namespace {

// A frozen tensor stays frozen, and a tensor that has a name already, as a tied one does, keeps it.
void become_parameter(const Tensor& values, std::string_view name, Location where) {
  if (!values.body().leaf) values.requires_grad(true, where);
  if (std::string& own = values.body().leaf->name; own.empty()) own = name;
  values.body().leaf->replaced_at = {};
}

}  // namespace

Member::Member(Module& module, std::string_view name, const Tensor& values, bool is_parameter, Location where)
    : Tensor(values) {
  if (!is_parameter && !values.defined()) fail<Error>("Module", where, "the buffer '{}' is an undefined tensor", name);
  if (is_parameter && values.defined()) become_parameter(values, name, where);
  module.register_part(name, {{}, is_parameter ? PartKind::parameter : PartKind::buffer, this}, where);
  around_ = &module;
}

Member::Member(const Member& other) : Tensor(other), ModulePart(other) {
  Cloning* cloning = Cloning::current();
  if (!cloning || !cloning->copy_of(other.around_)) return;
  static_cast<Tensor&>(*this) = cloning->copy_of(other);
  cloning->take_place(*this, other);
}

Member::Member(Member&& other) noexcept : Tensor(std::move(static_cast<Tensor&>(other))) { take_place(other, true); }

// NOLINTNEXTLINE(cppcoreguidelines-rvalue-reference-param-not-moved): its parts are moved one after the other
void Member::assign(Member&& other) {
  if (this == &other) return;
  if (around_ || (before_ && !other.around_ && other.defined())) return assign(static_cast<const Tensor&>(other));
  static_cast<Tensor&>(*this) = std::move(static_cast<Tensor&>(other));
  take_place(other, false);
}

void Member::swap_with(Member& other) noexcept { std::swap(static_cast<Tensor&>(*this), static_cast<Tensor&>(other)); }

void Member::assign(const Tensor& values) {
  if (is(values) && around_) return;
  if (!around_ && values.defined()) take_back();
  bool is_parameter = false;
  std::string_view name;
  if (around_)
    for (const ModuleEntry& entry : around_->entries_)
      if (entry.part == this) {
        is_parameter = entry.kind == PartKind::parameter;
        name = entry.name;
      }
  if (is_parameter && values.defined()) become_parameter(values, name, values.made_at());
  Tensor before = *this;
  static_cast<Tensor&>(*this) = values;
  if (!is_parameter || !before.defined()) return;
  const Module* root = around_;
  while (root->around_) root = root->around_;
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
            return contiguous_if_needed(initialiser(shape, options));
          }(),
          true, where) {}

Cloning*& Cloning::current() {
  static thread_local Cloning* current = nullptr;
  return current;
}

void Cloning::take_place(ModulePart& copy, const ModulePart& original) const {
  Module* around = copy_of(original.around_);
  if (!around) return;
  copy.around_ = around;
  for (std::size_t i = 0; i < around->entries_.size(); ++i)
    if (original.around_->entries_[i].part == &original) around->entries_[i].part = &copy;
}

Tensor Cloning::copy_of(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (replaced) {
    auto other = std::ranges::lower_bound(*replaced, &tensor.body(), {}, &Replacement::own);
    return other != replaced->end() && other->own == &tensor.body() ? other->tensor : tensor;
  }
  auto [found, is_new] = tensors.try_emplace(&tensor.body());
  if (is_new) {
    NoRecord pause;
    found->second = copy(tensor);
    // A frozen parameter is copied as one, so that it can be trained later.
    if (const Leaf* leaf = tensor.body().leaf) {
      found->second.requires_grad(true).requires_grad(tensor.is_parameter());
      found->second.body().leaf->name = leaf->name;
    }
  }
  return found->second;
}

CloneScope::CloneScope() {
  auto cloning = std::make_unique<Cloning>();
  cloning->outer = Cloning::current();
  Cloning::current() = cloning.release();
}

CloneScope::CloneScope(std::vector<Replacement> replaced) : CloneScope() {
  Cloning::current()->replaced = std::move(replaced);
}

CloneScope::~CloneScope() {
  std::unique_ptr<Cloning> done(Cloning::current());
  Cloning::current() = done->outer;
}

void CloneScope::finish(Location where) const {
  for (auto [original, copy] : Cloning::current()->modules)
    for (const ModuleEntry& entry : copy->entries_)
      if (!entry.part)
        fail<Error>("clone", where, "'{}' of {} is not a member of it that C++ copies; copy the model by hand",
                    entry.name, original->type_name());
}

bool CloneScope::is_complete() const {
  const Cloning& cloning = *Cloning::current();
  return cloning.is_complete && std::ranges::all_of(cloning.modules, [](const auto& copied) {
           return std::ranges::all_of(copied.second->entries_, [](const ModuleEntry& entry) { return entry.part; });
         });
}

void CloneScope::keep(std::shared_ptr<const Module> copy) {
  if (Context& running = context(); running.has(Context::recording)) running.tapes->keep(std::move(copy));
}

}  // namespace reel::nn
