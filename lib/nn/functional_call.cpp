#include <reel/nn/functional_call.h>

#include <algorithm>
#include <string>
#include <utility>

#include "../core/context.h"
#include "../core/op_error.h"
#include "../core/storage.h"

namespace reel::nn {

using namespace reel::detail;

namespace {

constexpr const char* functional_name = "functional_call";

// A parameter or buffer under one of its names, and the tensor that replaces it.
struct Candidate {
  std::string name;
  Member* member;
  const Tensor* replacement = nullptr;
};

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

// Sets the replacement of the named tensor under all of its names; `guess` is its index in the order of the module.
void replace(std::span<Candidate> all, const NamedTensor& given, std::size_t guess, const Module& module,
             Location where) {
  auto found = all.begin() + static_cast<std::ptrdiff_t>(guess);
  if (guess >= all.size() || found->name != given.name)
    found = std::find_if(all.begin(), all.end(), [&](const Candidate& one) { return one.name == given.name; });
  if (found == all.end())
    fail<Error>(functional_name, where,
                "{} has no parameter or buffer '{}'; named_parameters() and named_buffers() list their names",
                module.type_name(), given.name);
  check_replacement(given, *found->member, where);
  if (found->replacement && !found->replacement->is(given.tensor))
    fail<Error>(functional_name, where, "two tensors are given for the parameter '{}', one of them under another name",
                given.name);
  for (Candidate& one : all)
    if (one.member->is(*found->member)) one.replacement = &given.tensor;
}

}  // namespace

ReplacedParameters::ReplacedParameters(const Module& module, std::span<const NamedTensor> tensors, Location where) {
  std::vector<Candidate> all;
  for (auto& [name, member] : module.named_members()) all.push_back({std::move(name), member});
  for (std::size_t i = 0; i < tensors.size(); ++i) replace(all, tensors[i], i, module, where);
  places_.reserve(all.size());
  for (const Candidate& one : all)
    if (one.replacement) places_.push_back({one.member, *one.replacement});
  for (Place& place : places_) std::swap(static_cast<Tensor&>(*place.member), place.own);
  if (Context& running = context(); running.parent) interceptor_ = std::exchange(running.interceptor, nullptr);
}

ReplacedParameters::~ReplacedParameters() {
  for (auto place = places_.rbegin(); place != places_.rend(); ++place)
    static_cast<Tensor&>(*place->member) = std::move(place->own);
  if (interceptor_) context().interceptor = interceptor_;
}

}  // namespace reel::nn
