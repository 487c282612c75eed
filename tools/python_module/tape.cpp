#include <reel/python.h>
#include <reel/tape.h>

#include <optional>
#include <vector>

#include "parts.h"
#include "values.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

// A Tape between __enter__ and __exit__. A thread records what it does itself: the tape belongs to the thread that entered.
class TapeBlock {
 public:
  explicit TapeBlock(bool persistent) : options_{.persistent = persistent} {}

  void enter() {
    Location where = caller_location();
    if (tape_) throw TapeError("Tape: the tape is open already; make another one with Tape()", where);
    tape_.emplace(options_, where);
  }
  void exit() { tape_.reset(); }

  Tape& open(const char* function, Location where) {
    if (!tape_)
      throw TapeError(std::string("Tape.") + function + ": the tape is not open; call it within `with Tape() as tape:`",
                      where);
    return *tape_;
  }

 private:
  TapeOptions options_;
  std::optional<Tape> tape_;
};

GradientOptions options_of(const Tensor* seed, const std::string& unconnected, Location where) {
  GradientOptions options;
  if (seed) options.seed = *seed;
  if (unconnected == "zeros")
    options.unconnected = Unconnected::zeros;
  else if (unconnected != "error")
    throw ArgumentError("unconnected must be 'error' or 'zeros', but is '" + unconnected + "'", where);
  return options;
}

void backward(TapeBlock& block, const Tensor& target, const Tensor* seed) {
  Location where = caller_location();
  Tape& tape = block.open("backward", where);
  GradientOptions options = options_of(seed, "error", where);
  nb::gil_scoped_release released;
  tape.backward(Arg(target, where), options);
}

// One gradient for one source, a list for a list of sources.
nb::object gradient(TapeBlock& block, const Tensor& target, const nb::object& sources, const Tensor* seed,
                    const std::string& unconnected) {
  Location where = caller_location();
  Tape& tape = block.open("gradient", where);
  GradientOptions options = options_of(seed, unconnected, where);
  std::vector<Tensor> list;
  const Tensor* one = as_tensor(sources.ptr());
  if (one)
    list.push_back(*one);
  else
    read_value(Place{sources.ptr(), "Tape.gradient", "sources", where}, list);
  std::vector<Tensor> gradients = [&] {
    nb::gil_scoped_release released;
    return tape.gradient(Arg(target, where), std::span<const Tensor>(list), options);
  }();
  return nb::steal(one ? to_python(gradients[0]) : to_python(gradients));
}

// NoRecord between __enter__ and __exit__.
class NoRecordBlock {
 public:
  void enter() { scope_.emplace(); }
  void exit() { scope_.reset(); }

 private:
  std::optional<NoRecord> scope_;
};

}  // namespace

void add_tape(nb::module_& m) {
  nb::class_<TapeBlock>(m, "Tape",
                        "Records, within `with Tape() as tape:`, the ops of this thread whose inputs are tracked.")
      .def(nb::init<bool>(), nb::kw_only(), nb::arg("persistent") = false)
      .def("__enter__",
           [](nb::handle_t<TapeBlock> self) {
             nb::cast<TapeBlock&>(self).enter();
             return nb::object(nb::borrow(self));
           })
      .def("__exit__", [](TapeBlock& self, const nb::args&) { self.exit(); })
      .def(
          "watch",
          [](TapeBlock& self, const Tensor& x) {
            Location where = caller_location();
            self.open("watch", where).watch(Arg(x, where));
          },
          nb::arg("x"), "Tracks x, which is not a parameter.")
      .def("backward", backward, nb::arg("target"), nb::kw_only(), nb::arg("seed").none() = nb::none(),
           "Adds the gradients of the target to grad of the parameters.")
      .def("gradient", gradient, nb::arg("target"), nb::arg("sources"), nb::kw_only(),
           nb::arg("seed").none() = nb::none(), nb::arg("unconnected") = "error",
           "The gradients of the target: one for a tensor, a list for a list.")
      .def("__len__", [](TapeBlock& self) { return self.open("__len__", caller_location()).size(); });
  nb::class_<NoRecordBlock>(m, "NoRecord", "Within `with NoRecord():` no tape of this thread records.")
      .def(nb::init<>())
      .def("__enter__",
           [](nb::handle_t<NoRecordBlock> self) {
             nb::cast<NoRecordBlock&>(self).enter();
             return nb::object(nb::borrow(self));
           })
      .def("__exit__", [](NoRecordBlock& self, const nb::args&) { self.exit(); });
}

}  // namespace reel::python
