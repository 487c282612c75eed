#include <reel/nn/module.h>

#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include <reel/ops/elementwise.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/storage.h"
#include "../ops/if_needed.h"
#include "cloning.h"
#include "type_name.h"

namespace reel::nn {

using namespace detail;

namespace {

constexpr const char* module_name = "Module";

// Keeps only the first name of each tensor.
void drop_repeated(std::vector<NamedTensor>& tensors) {
  std::unordered_set<const Body*> seen;
  std::erase_if(tensors, [&](const NamedTensor& named) { return !seen.insert(&named.tensor.body()).second; });
}

bool fits(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') return fits(name, pattern.substr(1)) || (!name.empty() && fits(name.substr(1), pattern));
  return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) && fits(name.substr(1), pattern.substr(1));
}

}  // namespace

Module::Module(Module& parent, std::string_view name, Location where) { join(parent, name, where); }

void Module::join(Module& parent, std::string_view name, Location where) {
  if (has_place()) fail<Error>(module_name, where, "the {} '{}' is part of a module already", type_name(), name);
  for (const Module* outer = &parent; outer; outer = outer->around_)
    if (outer == this) fail<Error>(module_name, where, "a {} cannot be a part of itself", type_name());
  parent.register_part(name, {{}, PartKind::module, this}, where);
  around_ = &parent;
  train(parent.training_);
}

// The implicit move constructor of a model works: this base is moved first and takes over the entries of the parts;
// then each part is moved as a member, and replaces the one that it came from.
Module::Module(Module&& other) noexcept {
  take_contents(other);
  take_place(other, true);
}

Module& Module::operator=(Module&& other) noexcept {
  if (this == &other) return *this;
  release_parts();
  take_contents(other);
  // When a whole model is assigned, the assignment of the enclosing module has just removed this part's entry.
  take_place(other, false);
  // If a moved-from part is assigned to, as by std::exchange, the module around it uses the new contents.
  if (!has_place() && !entries_.empty()) take_back();
  return *this;
}

// The parts register themselves when they are copied, which is after this base.
Module::Module(const Module& other) : ModulePart(other), entries_(other.entries_), training_(other.training_) {
  Cloning* cloning = Cloning::current();
  if (!cloning)
    fail<Error>(module_name, {}, "a {} was copied; pass it by reference, move it, or copy it with nn::clone(model)",
                other.type_name());
  for (ModuleEntry& entry : entries_) entry.part = entry.moved_from = nullptr;
  if (cloning->replaced) {
    hooks_ = other.hooks_;
    original_ = &other.original();
  }
  cloning->modules.emplace_back(&other, this);
  cloning->take_place(*this, other);
}

Module::~Module() {
  release_parts();
  if (Cloning* cloning = Cloning::current()) cloning->forget(*this);
}

void Module::take_contents(Module& other) noexcept {
  moved_from_ = std::exchange(other.moved_from_, true);
  entries_ = std::exchange(other.entries_, {});
  hooks_ = std::exchange(other.hooks_, {});
  original_ = std::exchange(other.original_, nullptr);
  multiplications_ = other.multiplications_.load(std::memory_order_relaxed);
  training_ = other.training_;
  for (ModuleEntry& entry : entries_) {
    if (entry.part) entry.part->around_ = this;
    if (entry.moved_from) entry.moved_from->before_ = this;
  }
  if (Cloning* cloning = Cloning::current()) cloning->moved(other, *this);
}

void Module::release_parts() noexcept {
  for (ModuleEntry& entry : entries_) {
    if (entry.part) entry.part->around_ = nullptr;
    if (entry.moved_from) entry.moved_from->before_ = nullptr;
  }
  entries_.clear();
}

void Module::register_part(std::string_view name, ModuleEntry entry, Location where) {
  if (name.empty() || name.find('.') != std::string_view::npos)
    fail<Error>(module_name, where, "'{}' cannot be a name here: it must not be empty or contain a dot", name);
  static constexpr const char* kinds[] = {"parameter", "buffer", "sub-module"};
  for (const ModuleEntry& other : entries_)
    if (other.name == name)
      fail<Error>(module_name, where, "it has a {} named '{}' already; choose another name",
                  kinds[static_cast<int>(other.kind)], name);
  entry.name = name;
  moved_from_ = false;
  entries_.push_back(std::move(entry));
}

// Calls f(name, member) for defined members.
template <class F>
void Module::visit_members(PartKind kind, const std::string& prefix, F f) const {
  if (kind == PartKind::parameter) check_initialised();
  for (const ModuleEntry& entry : entries_) {
    if (Module* module = entry.module())
      module->visit_members(kind, prefix + entry.name + ".", f);
    else if (Member* tensor = entry.tensor(); tensor && entry.kind == kind && tensor->defined())
      f(prefix + entry.name, *tensor);
  }
}

void Module::initialise_parameter(const Parameter& parameter, const Tensor& values) const {
  for (const ModuleEntry& entry : entries_)
    if (entry.part == &parameter) entry.tensor()->assign(values);
}

void Module::check_not_moved_from(Location where) const {
  if (moved_from_)
    fail<Error>(type_name().c_str(), where,
                "it was moved from, and has no parameters any more; call the module that it was moved to");
}

std::vector<NamedTensor> Module::collect_members(PartKind kind, bool remove_duplicates) const {
  std::vector<NamedTensor> found;
  visit_members(kind, {}, [&](std::string name, const Member& member) { found.push_back({std::move(name), member}); });
  if (remove_duplicates) drop_repeated(found);
  return found;
}

std::vector<NamedTensor> Module::named_parameters(bool remove_duplicates) const {
  return collect_members(PartKind::parameter, remove_duplicates);
}

std::vector<NamedTensor> Module::named_buffers(bool remove_duplicates) const {
  return collect_members(PartKind::buffer, remove_duplicates);
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

void Module::collect_modules(const std::string& name, std::vector<std::pair<std::string, const Module*>>& found) const {
  found.emplace_back(name, this);
  for (const ModuleEntry& entry : entries_)
    if (Module* module = entry.module())
      module->collect_modules(name.empty() ? entry.name : name + "." + entry.name, found);
}

std::vector<std::pair<std::string, const Module*>> Module::named_modules() const {
  std::vector<std::pair<std::string, const Module*>> found;
  collect_modules({}, found);
  return found;
}

std::string Module::path() const {
  std::string names;
  for (const ModulePart* part = &original(); const Module* around = part->around_; part = around)
    for (const ModuleEntry& entry : around->entries_)
      if (entry.part == part) {
        names = names.empty() ? entry.name : entry.name + "." + names;
        break;
      }
  return names;
}

const Module& Module::outermost() const {
  const Module* found = &original();
  while (found->around_) found = found->around_;
  return *found;
}

std::string Module::type_name() const { return plain_type_name(typeid(*this)); }

void Module::train(bool training) {
  for_each_module([&](Module& module) { module.training_ = training; });
}

void Module::zero_grad() const {
  for (const Tensor& parameter : parameters()) parameter.set_grad({});
}

int Module::freeze(std::string_view pattern, bool frozen, Location where) const {
  int count = 0;
  visit_members(PartKind::parameter, {}, [&](const std::string& name, const Member& parameter) {
    if (!fits(name, pattern)) return;
    parameter.requires_grad(!frozen, where);
    ++count;
  });
  if (count == 0)
    fail<Error>(module_name, where, "no parameter of {} fits '{}'; named_parameters() lists their names", type_name(),
                pattern);
  return count;
}

// Converts the tensors of this module, and replaces the old ones in the whole model.
template <class Convert>
void Module::convert_members(Convert converted) {
  NoRecord pause;
  std::unordered_map<const Body*, Tensor> made;
  for (PartKind kind : {PartKind::parameter, PartKind::buffer})
    visit_members(kind, {}, [&](const std::string&, const Member& member) {
      if (made.contains(&member.body())) return;
      Tensor values = converted(member);
      if (values.is(member)) return;
      if (kind == PartKind::parameter) {
        values.requires_grad(true);
        values.body().leaf->name = member.body().leaf->name;
        if (Tensor gradient = member.grad(); gradient.defined()) values.set_grad(converted(gradient));
        values.requires_grad(member.is_parameter());
      }
      made.emplace(&member.body(), values);
    });
  const Module* root = this;
  while (root->around_) root = root->around_;
  std::vector<Tensor> old;  // keeps all old tensors alive until all are replaced
  for (PartKind kind : {PartKind::parameter, PartKind::buffer})
    root->visit_members(kind, {}, [&](const std::string&, Member& member) {
      auto found = made.find(&member.body());
      if (found == made.end()) return;
      if (Leaf* leaf = member.body().leaf) leaf->replaced_at = found->second.made_at();
      old.push_back(member);
      static_cast<Tensor&>(member) = found->second;
    });
}

void Module::to(DType dtype, Location where) {
  if (!is_floating(dtype))
    fail<DTypeError>(module_name, where, "parameters cannot be {}; choose a floating dtype", name_of(dtype));
  CallerScope caller(where);
  convert_members([&](const Tensor& x) {
    bool converts = is_floating(x.dtype()) && x.dtype() != dtype;
    return converts ? reel::to(contiguous_if_needed(x), dtype) : x;
  });
}

void Module::to(Device device, Location where) {
  CallerScope caller(where);
  convert_members([&](const Tensor& x) { return to_if_needed(x, device); });
}

Tensor Module::to(const Arg& x, DType dtype) { return reel::to(x, dtype); }

double Module::last_flops() const {
  double found = multiplications_.load(std::memory_order_relaxed);
  if (found >= 0) return 2 * found;
  double sum = 0;
  for (const ModuleEntry& entry : entries_)
    if (Module* module = entry.module()) sum += module->last_flops();
  return sum;
}

}  // namespace reel::nn
