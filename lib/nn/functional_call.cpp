#include <reel/nn/functional_call.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "../core/context.h"
#include "../core/op_error.h"
#include "../core/storage.h"

namespace reel::nn {

using namespace reel::detail;

namespace {

constexpr const char* functional_name = "functional_call";

void check_replacement(const NamedTensor& given, const Tensor& own, Location where) {
  const Tensor& tensor = given.tensor;
  if (!tensor.defined()) fail<Error>(functional_name, where, "the tensor for '{}' is undefined", given.name);
  if (tensor.dtype() != own.dtype())
    fail<DTypeError>(functional_name, where, "the tensor for '{}' is {}, but the module has {} there", given.name,
                     describe(tensor), describe(own));
  if (tensor.shape() != own.shape())
    fail<ShapeError>(functional_name, where, "the tensor for '{}' is {}, but the module has {} there", given.name,
                     describe(tensor), describe(own));
  if (tensor.device() != own.device())
    fail<DeviceError>(functional_name, where, "the tensor for '{}' is on {}, but the module has its own on {}",
                      given.name, to_string(tensor.device()), to_string(own.device()));
}

}  // namespace

// Finds members entry by entry, because a call must not cost the making of all names.
struct ReplacedParameters::Search {
  const Module& module;
  std::span<const NamedTensor> tensors;
  Location where;
  // The module that had the last name, and its own name with a dot: lists mostly go from module to module.
  const Module* last = &module;
  std::string_view last_prefix = {};

  static const ModuleEntry* entry_of(const Module& module, std::string_view name) {
    for (const ModuleEntry& entry : module.entries_)
      if (entry.name == name) return &entry;
    return nullptr;
  }

  const Module* module_of(std::string_view prefix) const {
    const Module* inner = &module;
    for (std::size_t begin = 0; inner && begin < prefix.size();) {
      std::size_t dot = prefix.find('.', begin);
      const ModuleEntry* entry = entry_of(*inner, prefix.substr(begin, dot - begin));
      inner = entry ? entry->module() : nullptr;
      begin = dot + 1;
    }
    return inner;
  }

  const Member& member_of(const std::string& name) {
    std::string_view prefix = std::string_view(name).substr(0, name.rfind('.') + 1);
    if (prefix != last_prefix) {
      last = module_of(prefix);
      last_prefix = prefix;
    }
    const ModuleEntry* entry = last ? entry_of(*last, std::string_view(name).substr(prefix.size())) : nullptr;
    const Member* member = entry ? entry->tensor() : nullptr;
    if (!member || !member->defined())
      fail<Error>(functional_name, where,
                  "{} has no parameter or buffer '{}'; named_parameters() and named_buffers() list their names",
                  module.type_name(), name);
    return *member;
  }

  std::vector<Replacement> find_all() {
    std::vector<std::pair<const Body*, std::size_t>> found;  // the index of what replaces a tensor
    found.reserve(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Member& member = member_of(tensors[i].name);
      check_replacement(tensors[i], member, where);
      found.emplace_back(&member.body(), i);
    }
    std::ranges::sort(found);
    std::vector<Replacement> replaced;
    replaced.reserve(found.size());
    for (auto [own, i] : found) {
      if (!replaced.empty() && own == replaced.back().own && !tensors[i].tensor.is(replaced.back().tensor))
        fail<Error>(functional_name, where,
                    "two tensors are given for the parameter '{}', one of them under another name", tensors[i].name);
      replaced.push_back({own, tensors[i].tensor});
    }
    return replaced;
  }

  // A parameter is replaced under all of its names.
  static void add_places(const Module& from, std::span<const Replacement> replaced, std::vector<Place>& places) {
    for (const ModuleEntry& entry : from.entries_) {
      if (const Module* inner = entry.module()) {
        add_places(*inner, replaced, places);
      } else if (Member* member = entry.tensor(); member && member->defined()) {
        auto one = std::ranges::lower_bound(replaced, &member->body(), {}, &Replacement::own);
        if (one != replaced.end() && one->own == &member->body()) places.push_back({member, one->tensor});
      }
    }
  }
};

std::vector<Replacement> ReplacedParameters::find(const Module& module, std::span<const NamedTensor> tensors,
                                                  Location where) {
  return Search{module, tensors, where}.find_all();
}

ReplacedGuard::ReplacedGuard(const std::vector<Replacement>& replaced) : outer_(context().replaced) {
  if (outer_) own_ = *outer_;
  for (const Replacement& one : replaced) own_.push_back(one.own);
  std::ranges::sort(own_);
  for (const Replacement& one : replaced)
    std::erase(own_, &one.tensor.body());  // a tensor may replace itself, or another one
  context().replaced = &own_;
  context().set(Context::replacing, true);
}

ReplacedGuard::~ReplacedGuard() {
  context().replaced = outer_;
  context().set(Context::replacing, outer_ != nullptr);
}

ReplacedParameters::ReplacedParameters(const Module& module, std::span<const NamedTensor> tensors, Location where) {
  places_.reserve(tensors.size());
  Search::add_places(module, find(module, tensors, where), places_);
  for (Place& place : places_) std::swap(static_cast<Tensor&>(*place.member), place.own);
  Context& running = context();
  ran_alone_ = running.has(Context::runs_alone);
  if (running.parent) running.set(Context::runs_alone, true);
}

ReplacedParameters::~ReplacedParameters() {
  for (auto place = places_.rbegin(); place != places_.rend(); ++place)
    static_cast<Tensor&>(*place->member) = std::move(place->own);
  context().set(Context::runs_alone, ran_alone_);
}

}  // namespace reel::nn
