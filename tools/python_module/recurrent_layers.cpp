#include <reel/nn.h>

#include "layers.h"

namespace nb = nanobind;

namespace reel::python {
namespace {

// Layers over sequences x (T, B, I): (x, state=None, lengths=None) gives a named tuple with output and the last states.
template <class Layer>
void sequence_layer(nb::module_& m, const char* name) {
  layer_class<Layer, typename Layer::Options, std::int64_t, std::int64_t>(m, name, "input_size", "hidden_size")
      .def(
          "__call__",
          [name](const Layer& self, const nb::object& x, const nb::object& state, const nb::object& lengths) {
            Location where = caller_location();
            Arg input = read_arg({x.ptr(), name, "x", where});
            typename Layer::State first{};
            if (!state.is_none()) read_value(Place{state.ptr(), name, "state", where}, first);
            Tensor steps = optional_tensor(lengths, name, "lengths", where);
            return nb::steal(to_python(run_layer(where, [&] { return self(input, first, steps); })));
          },
          nb::arg("x"), nb::arg("state") = nb::none(), nb::arg("lengths") = nb::none());
}

// One step: (x, state) gives the next state.
template <class Cell>
void cell(nb::module_& m, const char* name) {
  layer_class<Cell, nn::RecurrentModuleOptions<Cell, false>, std::int64_t, std::int64_t>(m, name, "input_size",
                                                                                         "hidden_size")
      .def(
          "__call__",
          [name](const Cell& self, const nb::object& x, const nb::object& state) {
            Location where = caller_location();
            Arg input = read_arg({x.ptr(), name, "x", where});
            nn::StateOf<Cell> before{};
            read_value(Place{state.ptr(), name, "state", where}, before);
            return nb::steal(to_python(run_layer(where, [&] { return self(input, before); })));
          },
          nb::arg("x"), nb::arg("state"))
      .def(
          "initial_state",
          [](const Cell& self, std::int64_t batch) {
            return nb::steal(to_python(self.initial_state(batch, caller_location())));
          },
          nb::arg("batch"));
}

}  // namespace

void add_recurrent_layers(nb::module_& m) {
  sequence_layer<nn::LSTM>(m, "LSTM");
  sequence_layer<nn::GRU>(m, "GRU");
  sequence_layer<nn::RNN>(m, "RNN");
  cell<nn::LSTMCell>(m, "LSTMCell");
  cell<nn::GRUCell>(m, "GRUCell");
  cell<nn::RNNCell>(m, "RNNCell");
  layer_class<nn::EmbeddingBag, nn::EmbeddingBagLayerOptions, std::int64_t, std::int64_t>(m, "EmbeddingBag", "count",
                                                                                          "size")
      .def(
          "__call__",
          [](const nn::EmbeddingBag& self, const nb::object& indices, const nb::object& offsets,
             const nb::object& weights) {
            constexpr const char* name = "EmbeddingBag";
            Location where = caller_location();
            Arg input = read_arg({indices.ptr(), name, "indices", where});
            Tensor starts = optional_tensor(offsets, name, "offsets", where);
            Tensor factors = optional_tensor(weights, name, "per_sample_weights", where);
            return nb::steal(to_python(run_layer(where, [&] { return self(input, starts, factors); })));
          },
          nb::arg("indices"), nb::arg("offsets") = nb::none(), nb::arg("per_sample_weights") = nb::none());
}

}  // namespace reel::python
