#include <nanobind/nanobind.h>

#include "errors.h"
#include "op.h"
#include "parts.h"

namespace nb = nanobind;

NB_MODULE(_reel, m) {
  using namespace reel::python;
  nb::set_leak_warnings(false);  // modules and tensors that live until the interpreter ends are no leaks
  add_errors(m);
  add_types(m);
  add_tensor(m);
  add_literals(m);
  add_ops(m);
  add_tape(m);
  nb::module_ nn = m.def_submodule("_nn");
  add_modules(nn);
  nb::module_ optim = m.def_submodule("_optim");
  add_optimisers(optim);
  add_files(m);
}
