// A model that goes wrong in the way that the number of rows of its input says.
#include <reel/c/plugin.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include <new>
#include <stdexcept>

using namespace reel;

namespace {

struct Faulty : nn::Module {
  nn::Parameter weight{*this, "weight", {3}, nn::constant(1)};

  Tensor operator()(const Arg& x) const {
    switch (x.size(0)) {
      case 0: throw 42;
      case 1: throw std::runtime_error("there is no answer");
      case 2: throw std::bad_alloc();
      case 3: return {};
      default: return transpose(expand(weight * arange(1, 4), {2, 3}));  // a view of other strides
    }
  }
};

}  // namespace

extern "C" const Plugin* reel_plugin() { return plugin<Faulty>("faulty"); }
