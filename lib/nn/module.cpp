#include <reel/nn/module.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

namespace {

// Keeps the first of several names of one tensor.
void drop_repeated(std::vector<NamedTensor>& tensors) {
  std::unordered_set<const Body*> seen;
  std::erase_if(tensors, [&](const NamedTensor& named) { return !seen.insert(&named.tensor.body()).second; });
}

}  // namespace

Module::Module(Module& parent, std::string_view name, Location where) {
  parent.add(name, {{}, {}, this}, where);
  parent_ = &parent;
  training_ = parent.training_;
}

// Parent and sub-modules point at each other, and whichever of them moves tells the other. So the move that the
// compiler writes for a model is right: this base moves first and takes over the parts where they are; then each part
// moves as a member, and takes the place of the one it came from.
Module::Module(Module&& other) noexcept {
  take_contents(other);
  take_place(other);
}

Module& Module::operator=(Module&& other) noexcept {
  if (this == &other) return *this;
  release_parts();
  take_contents(other);
  // A part of a model that is assigned as a whole lost its place just above, when its parent was assigned.
  if (!parent_) take_place(other);
  return *this;
}

Module::~Module() {
  release_parts();
  if (parent_) std::erase_if(parent_->entries_, [&](const Entry& entry) { return entry.module == this; });
}

void Module::take_contents(Module& other) noexcept {
  entries_ = std::exchange(other.entries_, {});
  training_ = other.training_;
  for (Entry& entry : entries_)
    if (entry.module) entry.module->parent_ = this;
}

void Module::take_place(Module& other) noexcept {
  parent_ = std::exchange(other.parent_, nullptr);
  if (!parent_) return;
  for (Entry& entry : parent_->entries_)
    if (entry.module == &other) entry.module = this;
}

void Module::release_parts() noexcept {
  for (Entry& entry : entries_)
    if (entry.module) entry.module->parent_ = nullptr;
  entries_.clear();
}

void Module::add(std::string_view name, Entry entry, Location where) {
  if (name.empty() || name.find('.') != std::string_view::npos)
    fail<Error>("Module", where, "'{}' cannot be a name here: it must not be empty or contain a dot", name);
  for (const Entry& other : entries_)
    if (other.name == name)
      fail<Error>("Module", where, "it has a {} named '{}' already; choose another name",
                  other.module                  ? "sub-module"
                  : other.tensor.is_parameter() ? "parameter"
                                                : "buffer",
                  name);
  entry.name = name;
  entries_.push_back(std::move(entry));
}

Tensor Module::parameter(std::string_view name, const Shape& shape, const Initialiser& initialiser,
                         const RandomOptions& options, Location where) {
  CallerScope caller(where);
  return parameter(name, initialiser(shape, options), where);
}

Tensor Module::parameter(std::string_view name, const Tensor& values, Location where) {
  values.requires_grad(true, where);
  add(name, {{}, values, nullptr}, where);
  return values;
}

Tensor Module::buffer(std::string_view name, const Tensor& values, Location where) {
  if (!values.defined()) fail<Error>("Module", where, "the buffer '{}' is an undefined tensor", name);
  add(name, {{}, values, nullptr}, where);
  return values;
}

void Module::collect(bool parameters, const std::string& prefix, std::vector<NamedTensor>& found) const {
  for (const Entry& entry : entries_) {
    if (entry.module)
      entry.module->collect(parameters, prefix + entry.name + ".", found);
    else if (entry.tensor.is_parameter() == parameters)
      found.push_back({prefix + entry.name, entry.tensor});
  }
}

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> found;
  collect(true, {}, found);
  drop_repeated(found);
  return found;
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> found;
  collect(false, {}, found);
  drop_repeated(found);
  return found;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> found;
  for (NamedTensor& named : named_parameters()) found.push_back(std::move(named.tensor));
  return found;
}

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

void Module::train(bool training) {
  training_ = training;
  for (const Entry& entry : entries_)
    if (entry.module) entry.module->train(training);
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}

}  // namespace reel::nn
