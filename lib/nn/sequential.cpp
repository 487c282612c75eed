#include <reel/nn/sequential.h>

#include <reel/nn/module_list.h>
#include <reel/ops/shape.h>

#include "../core/op_error.h"

namespace reel::nn {

using namespace detail;

Sequential::Sequential(const Sequential& other) : Module(other) {
  for (const auto& part : other.parts_) parts_.push_back(part->copy());
}

Tensor Sequential::operator()(const Arg& x) const {
  return call("Sequential", x, [&](const Tensor& x) {
    Tensor y = x;
    for (const auto& part : parts_) y = part->run(y);
    return y.is(x) ? copy(x) : y;
  });
}

void Sequential::refuse_copy() {
  fail<Error>("clone", {}, "a function in a Sequential captures something that cannot be copied");
}

}  // namespace reel::nn

void reel::detail::check_free(const nn::Module& module, Location where) {
  if (module.has_place())
    fail<Error>("Module", where, "the {} is part of a module already; give a clone of it, or one that is made here",
                module.type_name());
}

void reel::detail::refuse_key(std::string_view key, const std::vector<std::string>& keys, Location where) {
  std::string known;
  for (const std::string& other : keys) known += (known.empty() ? "" : ", ") + other;
  fail<Error>("ModuleDict", where, "there is no '{}'; it has {}", key, known.empty() ? "nothing yet" : known);
}
