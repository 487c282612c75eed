#include "keras_layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <reel/nn.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

namespace reel::io {

namespace {

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = std::min(path.find('/', begin), path.size());
    parts.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_recurrent_cell(std::string_view part) {
  for (std::string_view cell : {"lstm_cell", "gru_cell", "simple_rnn_cell"})
    if (part == cell || (part.starts_with(cell) && part.substr(cell.size()).starts_with("_"))) return true;
  return part == "cell";
}

// Keras 3: folders of layers by class, which hold their variables by index.
std::string name_of_variable(const std::vector<std::string>& parts) {
  std::vector<std::string> kept;
  for (const std::string& part : parts)
    if (part != "layers" && part != "vars" && part != "_layer_checkpoint_dependencies" && !is_recurrent_cell(part))
      kept.push_back(part);
  return fmt::format("{}", fmt::join(kept, "."));
}

// Keras 2: a folder for each layer, in which the weights have the paths that TensorFlow gave them.
std::string name_of_weight(std::vector<std::string> parts) {
  if (parts.size() > 1 && parts.front() == "model_weights") parts.erase(parts.begin());
  std::string& last = parts.back();
  if (std::size_t colon = last.rfind(':'); colon != last.npos) last.resize(colon);
  // The layer's name again, perhaps behind the model's.
  auto again = std::find(parts.rbegin(), parts.rend() - 1, parts.front());
  std::vector<std::string> kept{parts.front()};
  for (auto part = again == parts.rend() - 1 ? parts.begin() + 1 : again.base(); part != parts.end(); ++part)
    if (!is_recurrent_cell(*part)) kept.push_back(*part);
  return fmt::format("{}", fmt::join(kept, "."));
}

// A layer's weights in the order in which Keras makes them, each with its name there and in reel.
struct KerasWeight {
  const char* keras;
  std::string reel;  // empty: only looked up
};

class KerasConverter {
 public:
  KerasConverter(const nn::Module& module, std::vector<NamedTensor> tensors)
      : modules_(module.named_modules()), tensors_(std::move(tensors)) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) indices_.emplace(tensors_[i].name, i);
  }

  std::vector<NamedTensor> run() {
    for (const auto& [name, module] : modules_) {
      std::string prefix = name.empty() ? "" : name + ".";
      if (dynamic_cast<const nn::MultiHeadAttention*>(module)) rename_attention(prefix);
      if (auto* linear = dynamic_cast<const nn::Linear*>(module)) convert_linear(*linear, prefix);
      if (is_convolution(module)) convert_convolution(prefix);
      if (dynamic_cast<const nn::Embedding*>(module)) convert(prefix, {{"embeddings", "table"}});
      convert_norms(*module, prefix);
      if (auto* layers = dynamic_cast<const nn::LSTM*>(module)) rename_nets(*layers, prefix);
      if (auto* layers = dynamic_cast<const nn::GRU*>(module)) rename_nets(*layers, prefix);
      if (auto* layers = dynamic_cast<const nn::RNN*>(module)) rename_nets(*layers, prefix);
      // The gates of an LSTM have one order: input, forget, cell, output.
      if (dynamic_cast<const nn::LSTMCell*>(module) || dynamic_cast<const nn::RNNCell*>(module))
        convert(prefix, recurrent_weights);
      if (dynamic_cast<const nn::GRUCell*>(module)) convert_gru(prefix);
    }
    return std::move(tensors_);
  }

 private:
  static inline const std::vector<KerasWeight> recurrent_weights{
      {"kernel", "W_x"}, {"recurrent_kernel", "W_h"}, {"bias", "bias"}};

  Tensor* find(const std::string& name) {
    auto found = indices_.find(name);
    return found == indices_.end() ? nullptr : &tensors_[found->second].tensor;
  }

  void rename(const std::string& from, const std::string& to) {
    auto found = indices_.find(from);
    if (found == indices_.end() || from == to) return;
    std::size_t index = found->second;
    indices_.erase(found);
    indices_[to] = index;
    tensors_[index].name = to;
  }

  void rename_part(const std::string& from, const std::string& to) {
    std::vector<std::string> names;
    for (const NamedTensor& named : tensors_)
      if (named.name.starts_with(from)) names.push_back(named.name);
    for (const std::string& name : names) rename(name, to + name.substr(from.size()));
  }

  // Renames a layer's weights, which are given in Keras's order, from their names or indices there.
  void convert(const std::string& prefix, const std::vector<KerasWeight>& weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      rename(fmt::format("{}{}", prefix, i), prefix + weights[i].reel);
      rename(prefix + weights[i].keras, prefix + weights[i].reel);
    }
  }

  // The kernels of a layer that attends have an axis for the heads.
  void convert_linear(const nn::Linear& linear, const std::string& prefix) {
    convert(prefix, {{"kernel", "weight"}, {"bias", "bias"}});
    Tensor* weight = find(prefix + "weight");
    if (weight && weight->rank() == 3 && weight->numel() == linear.weight.numel())
      *weight = reshape(*weight, linear.weight.shape());
    Tensor* bias = find(prefix + "bias");
    if (bias && bias->rank() == 2) *bias = reshape(*bias, {bias->numel()});
  }

  static bool is_convolution(const nn::Module* module) {
    return dynamic_cast<const nn::Convolution<1>*>(module) || dynamic_cast<const nn::Convolution<2>*>(module) ||
           dynamic_cast<const nn::Convolution<3>*>(module);
  }

  // (k…, in, out) to (out, in, k…).
  void convert_convolution(const std::string& prefix) {
    convert(prefix, {{"kernel", "weight"}, {"bias", "bias"}});
    Tensor* weight = find(prefix + "weight");
    if (!weight || weight->rank() < 3) return;
    int rank = weight->rank();
    Shape axes{rank - 1, rank - 2};
    for (int axis = 0; axis + 2 < rank; ++axis) axes.push_back(axis);
    *weight = permute(*weight, axes);
  }

  template <class Norm>
  bool convert_norm(const nn::Module& module, const std::string& prefix, bool has_statistics) {
    auto* norm = dynamic_cast<const Norm*>(&module);
    if (!norm) return false;
    std::vector<KerasWeight> weights;
    if (norm->weight.defined()) weights = {{"gamma", "weight"}, {"beta", "bias"}};
    if (has_statistics) {
      weights.push_back({"moving_mean", "running_mean"});
      weights.push_back({"moving_variance", "running_variance"});
    }
    convert(prefix, weights);
    return true;
  }

  void convert_norms(const nn::Module& module, const std::string& prefix) {
    convert_norm<nn::BatchNorm<1>>(module, prefix, true) || convert_norm<nn::BatchNorm<2>>(module, prefix, true) ||
        convert_norm<nn::BatchNorm<3>>(module, prefix, true) || convert_norm<nn::LayerNorm>(module, prefix, false) ||
        convert_norm<nn::GroupNorm>(module, prefix, false);
  }

  // Keras has a layer for each net, or one around a pair that reads in both directions.
  template <class Layers>
  void rename_nets(const Layers& layers, const std::string& prefix) {
    if (layers.nets.size() > 2) return;  // several layers are renamed by the caller
    for (std::size_t net = 0; net < layers.nets.size(); ++net) {
      std::string to = name_of(layers.nets[net]) + ".";
      if (layers.nets.size() == 2)
        for (const char* kind : {"layer", "lstm", "gru", "simple_rnn", "rnn"})
          rename_part(fmt::format("{}{}_{}.", prefix, net == 0 ? "forward" : "backward", kind), to);
      else
        for (const char* weight : {"kernel", "recurrent_kernel", "bias", "0", "1", "2"})
          rename(prefix + weight, to + weight);
    }
  }

  std::string name_of(const nn::Module& module) const {
    for (const auto& [name, found] : modules_)
      if (found == &module) return name;
    return {};
  }

  // Keras has the update gate before the reset gate, and with `reset_after` the two biases as rows.
  void convert_gru(const std::string& prefix) {
    convert(prefix, recurrent_weights);
    auto gates = [](const Tensor& x) {
      int axis = x.rank() - 1;
      std::int64_t size = x.size(axis) / 3;
      return std::array{slice(x, axis, size, 2 * size), slice(x, axis, 0, size), slice(x, axis, 2 * size)};
    };
    for (const char* weight : {"W_x", "W_h"}) {
      Tensor* found = find(prefix + weight);
      if (!found || found->rank() != 2 || found->size(1) % 3 != 0) continue;
      auto [reset, update, state] = gates(*found);
      *found = concat({reset, update, state}, 1);
    }
    Tensor* bias = find(prefix + "bias");
    // One row: without reset_after, whose equations are others; it stays and does not fit.
    if (!bias || bias->rank() != 2 || bias->size(0) != 2 || bias->size(1) % 3 != 0) return;
    auto [reset, update, state] = gates(*bias);
    *bias = concat({sum(reset, {0}), sum(update, {0}), reshape(state, {state.numel()})}, 0);
  }

  void rename_attention(const std::string& prefix) {
    for (const char* part : {"query", "key", "value"})
      rename_part(fmt::format("{}{}_dense.", prefix, part), fmt::format("{}{}.", prefix, part));
    rename_part(prefix + "attention_output.", prefix + "output.");
    rename_part(prefix + "output_dense.", prefix + "output.");
  }

  std::vector<std::pair<std::string, const nn::Module*>> modules_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, std::size_t> indices_;
};

}  // namespace

std::vector<NamedTensor> named_as_layers(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> found;
  for (const NamedTensor& named : tensors) {
    std::vector<std::string> parts = parts_of(named.name);
    bool is_state = parts.front() == "optimizer" || parts.front() == "optimizer_weights" ||
                    std::find(parts.begin(), parts.end(), "seed_generator") != parts.end();
    if (is_state) continue;
    bool is_variable = std::find(parts.begin(), parts.end(), "vars") != parts.end();
    found.push_back({is_variable ? name_of_variable(parts) : name_of_weight(std::move(parts)), named.tensor});
  }
  return found;
}

std::vector<NamedTensor> from_keras_layers(const nn::Module& module, std::vector<NamedTensor> tensors) {
  return KerasConverter(module, std::move(tensors)).run();
}

}  // namespace reel::io
