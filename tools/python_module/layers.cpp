#include "layers.h"

#include <reel/nn.h>

namespace nb = nanobind;

namespace reel::python {
namespace {

template <class Layer>
void dropout_layer(nb::module_& m, const char* name) {
  nb::class_<Layer, nn::Module>(m, name)
      .def(
          "__init__",
          [name](Layer* made, const nb::object& probability, const nb::object& generator) {
            Location where = caller_location();
            Generator* own = nullptr;
            if (!generator.is_none()) read_value(Place{generator.ptr(), name, "generator", where}, own);
            std::construct_at(made, read_parameter<double>(name, "probability", probability, where), own, where);
          },
          nb::arg("probability") = 0.5, nb::kw_only(), nb::arg("generator") = nb::none(), nb::keep_alive<1, 3>())
      .def(
          "__call__",
          [name](const Layer& self, const nb::object& x) {
            Location where = caller_location();
            Arg input = read_arg({x.ptr(), name, "the input", where});
            return nb::steal(to_python(run_layer(where, [&] { return self(input); })));
          },
          nb::arg("x"));
}

nn::AttentionMasks masks_of(const char* function, const nb::object& attention_mask, const nb::object& key_padding_mask,
                            bool causal, Location where) {
  return {.attention_mask = optional_tensor(attention_mask, function, "attention_mask", where),
          .key_padding_mask = optional_tensor(key_padding_mask, function, "key_padding_mask", where),
          .causal = causal};
}

void add_attention(nb::module_& m) {
  layer_class<nn::MultiHeadAttention, nn::MultiHeadAttentionOptions, std::int64_t, std::int64_t>(
      m, "MultiHeadAttention", "size", "heads")
      .def(
          "__call__",
          [](const nn::MultiHeadAttention& self, const nb::object& queries, const nb::object& keys,
             const nb::object& values, const nb::object& attention_mask, const nb::object& key_padding_mask,
             bool causal) {
            constexpr const char* name = "MultiHeadAttention";
            Location where = caller_location();
            nn::AttentionMasks masks = masks_of(name, attention_mask, key_padding_mask, causal, where);
            Arg x = read_arg({queries.ptr(), name, "queries", where});
            Tensor k = optional_tensor(keys, name, "keys", where), v = optional_tensor(values, name, "values", where);
            return nb::steal(to_python(run_layer(
                where, [&] { return k.defined() ? self(x, k, v.defined() ? v : k, masks) : self(x, masks); })));
          },
          nb::arg("queries"), nb::arg("keys") = nb::none(), nb::arg("values") = nb::none(), nb::kw_only(),
          nb::arg("attention_mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(), nb::arg("causal") = false);
  layer_class<nn::TransformerEncoderLayer, nn::TransformerOptions, std::int64_t, std::int64_t>(
      m, "TransformerEncoderLayer", "size", "heads")
      .def(
          "__call__",
          [](const nn::TransformerEncoderLayer& self, const nb::object& input, const nb::object& attention_mask,
             const nb::object& key_padding_mask, bool causal) {
            constexpr const char* name = "TransformerEncoderLayer";
            Location where = caller_location();
            nn::AttentionMasks masks = masks_of(name, attention_mask, key_padding_mask, causal, where);
            Arg x = read_arg({input.ptr(), name, "x", where});
            return nb::steal(to_python(run_layer(where, [&] { return self(x, masks); })));
          },
          nb::arg("x"), nb::kw_only(), nb::arg("attention_mask") = nb::none(), nb::arg("key_padding_mask") = nb::none(),
          nb::arg("causal") = false);
}

void add_activations(nb::module_& m) {
  layer<nn::ReLU, NoOptions>(m, "ReLU");
  layer<nn::Sigmoid, NoOptions>(m, "Sigmoid");
  layer<nn::Tanh, NoOptions>(m, "Tanh");
  layer<nn::SiLU, NoOptions>(m, "SiLU");
  layer<nn::SELU, NoOptions>(m, "SELU");
  layer<nn::Mish, NoOptions>(m, "Mish");
  layer<nn::Hardswish, NoOptions>(m, "Hardswish");
  layer<nn::Hardsigmoid, NoOptions>(m, "Hardsigmoid");
  layer<nn::LogSigmoid, NoOptions>(m, "LogSigmoid");
  layer<nn::Softsign, NoOptions>(m, "Softsign");
}

}  // namespace

void add_layers(nb::module_& m) {
  layer<nn::Linear, nn::LinearOptions, std::int64_t, std::int64_t>(m, "Linear", "inputs", "outputs");
  layer<nn::Embedding, nn::EmbeddingLayerOptions, std::int64_t, std::int64_t>(m, "Embedding", "count", "size");
  layer<nn::Conv1d, nn::ConvolutionLayerOptions, std::int64_t, std::int64_t, AxisNumbers>(m, "Conv1d", "inputs",
                                                                                          "outputs", "window");
  layer<nn::Conv2d, nn::ConvolutionLayerOptions, std::int64_t, std::int64_t, AxisNumbers>(m, "Conv2d", "inputs",
                                                                                          "outputs", "window");
  layer<nn::Conv3d, nn::ConvolutionLayerOptions, std::int64_t, std::int64_t, AxisNumbers>(m, "Conv3d", "inputs",
                                                                                          "outputs", "window");
  layer<nn::BatchNorm1d, nn::BatchNormLayerOptions, std::int64_t>(m, "BatchNorm1d", "channels");
  layer<nn::BatchNorm2d, nn::BatchNormLayerOptions, std::int64_t>(m, "BatchNorm2d", "channels");
  layer<nn::BatchNorm3d, nn::BatchNormLayerOptions, std::int64_t>(m, "BatchNorm3d", "channels");
  layer<nn::LayerNorm, nn::LayerNormOptions, Shape>(m, "LayerNorm", "normalised");
  layer<nn::RMSNorm, nn::RMSNormOptions, Shape>(m, "RMSNorm", "normalised");
  layer<nn::GroupNorm, nn::GroupNormLayerOptions, std::int64_t, std::int64_t>(m, "GroupNorm", "groups", "channels");
  layer<nn::Highway, nn::HighwayOptions, std::int64_t>(m, "Highway", "size");
  layer<nn::Flatten, nn::FlattenOptions>(m, "Flatten");
  dropout_layer<nn::Dropout>(m, "Dropout");
  dropout_layer<nn::Dropout2d>(m, "Dropout2d");
  dropout_layer<nn::AlphaDropout>(m, "AlphaDropout");
  layer_class<nn::Bilinear, nn::BilinearOptions, std::int64_t, std::int64_t, std::int64_t>(m, "Bilinear", "inputs_1",
                                                                                           "inputs_2", "outputs")
      .def(
          "__call__",
          [](const nn::Bilinear& self, const nb::object& a, const Tensor& b) {
            Location where = caller_location();
            Arg x = read_arg({a.ptr(), "Bilinear", "a", where});
            return nb::steal(to_python(run_layer(where, [&] { return self(x, b); })));
          },
          nb::arg("a"), nb::arg("b"));
  add_activations(m);
  add_attention(m);
}

}  // namespace reel::python
