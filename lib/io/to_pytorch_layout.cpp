#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include <reel/nn.h>
#include <reel/no_record.h>
#include <reel/ops/create.h>
#include <reel/ops/shape.h>

#include "../ops/if_needed.h"
#include "pytorch_layout.h"

namespace reel::io {

using namespace nn;

namespace {

using Renaming = std::pair<const char*, const char*>;

// The names that PyTorch gives to the parts of a layer, where they differ. An empty one: PyTorch has the parts of this
// part in the layer itself.
std::span<const Renaming> parts_of(const Module& module) {
  static constexpr Renaming attention[] = {{"output", "out_proj"}},
                            encoder[] = {{"attention", "self_attn"},
                                         {"attention_norm", "norm1"},
                                         {"feed_forward", ""},
                                         {"feed_forward_norm", "norm2"}},
                            decoder[] = {{"attention", "self_attn"},
                                         {"attention_norm", "norm1"},
                                         {"memory_attention", "multihead_attn"},
                                         {"memory_norm", "norm2"},
                                         {"feed_forward", ""},
                                         {"feed_forward_norm", "norm3"}},
                            feed_forward[] = {{"expand", "linear1"}, {"contract", "linear2"}};
  if (dynamic_cast<const MultiHeadAttention*>(&module)) return attention;
  if (dynamic_cast<const TransformerEncoderLayer*>(&module)) return encoder;
  if (dynamic_cast<const TransformerDecoderLayer*>(&module)) return decoder;
  if (dynamic_cast<const FeedForward*>(&module)) return feed_forward;
  return {};
}

std::string joined(const std::string& prefix, const std::string& name) {
  return prefix.empty() || name.empty() ? prefix + name : prefix + "." + name;
}

class ToPytorch {
 public:
  ToPytorch(const Module& module, const std::vector<NamedTensor>& tensors)
      : modules_(module.named_modules()), tensors_(tensors) {}

  // Modules come before their parts: what a layer has joined is left out when its parts follow.
  std::vector<NamedTensor> run() {
    for (const auto& [name, module] : modules_) {
      const std::string& path = paths_[name] = path_of(name, module);
      by_path_[name] = module;
      if (auto* layers = dynamic_cast<const LSTM*>(module)) add_layers(*layers, name, path);
      if (auto* layers = dynamic_cast<const GRU*>(module)) add_layers(*layers, name, path);
      if (auto* layers = dynamic_cast<const RNN*>(module)) add_layers(*layers, name, path);
      if (auto* cell = dynamic_cast<const LSTMCell*>(module)) add_cell(*cell, name, path, "");
      if (auto* cell = dynamic_cast<const GRUCell*>(module)) add_cell(*cell, name, path, "");
      if (auto* cell = dynamic_cast<const RNNCell*>(module)) add_cell(*cell, name, path, "");
      if (auto* attention = dynamic_cast<const MultiHeadAttention*>(module)) add_attention(*attention, name, path);
      add_members(name, *module, path);
    }
    return std::move(found_);
  }

 private:
  // The name of a module in PyTorch's model.
  std::string path_of(const std::string& name, const Module*) const {
    if (name.empty()) return {};
    std::size_t dot = name.rfind('.');
    std::string around = dot == name.npos ? "" : name.substr(0, dot), own = name.substr(dot == name.npos ? 0 : dot + 1);
    auto found = by_path_.find(around);
    if (found != by_path_.end())
      for (auto [from, to] : parts_of(*found->second))
        if (own == from) own = to;
    return joined(paths_.at(around), own);
  }

  void add(const std::string& path, const std::string& name, const Tensor& tensor) {
    found_.push_back({joined(path, name), detail::contiguous_if_needed(tensor)});
  }
  // Adds a weight of a cell, transposed, under another name.
  void add_transposed(const std::string& own_name, const std::string& path, const std::string& name,
                      const Tensor& own) {
    done_.insert(own_name);
    add(path, name, transpose(own));
  }

  template <class Cell>
  void add_cell(const Cell& cell, const std::string& own, const std::string& path, const std::string& suffix) {
    if (done_.contains(joined(own, "W_x"))) return;
    add_transposed(joined(own, "W_x"), path, "weight_ih" + suffix, cell.W_x);
    add_transposed(joined(own, "W_h"), path, "weight_hh" + suffix, cell.W_h);
    const Tensor& bias = cell.bias;
    done_.insert(joined(own, "bias"));
    if constexpr (std::is_same_v<Cell, GRUCell>) {
      // The new state's two biases are kept separate; of the others PyTorch has a sum of two.
      std::int64_t size = bias.size(0) / 4;
      add(path, "bias_ih" + suffix, slice(bias, 0, 0, 3 * size));
      add(path, "bias_hh" + suffix, concat({zeros_like(slice(bias, 0, 0, 2 * size)), slice(bias, 0, 3 * size)}, 0));
    } else {
      add(path, "bias_ih" + suffix, bias);
      add(path, "bias_hh" + suffix, zeros_like(bias));
    }
    if constexpr (std::is_same_v<Cell, LSTMCell>)
      if (cell.W_r.defined()) add_transposed(joined(own, "W_r"), path, "weight_hr" + suffix, cell.W_r);
  }

  template <class Layers>
  void add_layers(const Layers& layers, const std::string& own, const std::string& path) {
    std::size_t directions = layers.is_bidirectional() ? 2 : 1;
    for (std::size_t net = 0; net < layers.nets.size(); ++net)
      add_cell(layers.nets[net], joined(own, fmt::format("nets.{}", net)), path,
               fmt::format("_l{}{}", net / directions, net % directions == 1 ? "_reverse" : ""));
  }

  // PyTorch stores the three matrices in one if they have one width.
  void add_attention(const MultiHeadAttention& attention, const std::string& own, const std::string& path) {
    const Linear* parts[] = {&attention.query, &attention.key, &attention.value};
    static constexpr const char* letters[] = {"q", "k", "v"};
    std::vector<Tensor> weights, biases;
    bool one_width = true;
    for (const Linear* part : parts) {
      weights.push_back(transpose(part->weight));
      one_width &= part->weight.shape() == attention.query.weight.shape();
      if (part->bias.defined()) biases.push_back(part->bias);
    }
    if (one_width)
      add(path, "in_proj_weight", concat(weights, 0));
    else
      for (std::size_t i = 0; i < 3; ++i) add(path, fmt::format("{}_proj_weight", letters[i]), weights[i]);
    if (biases.size() == 3) add(path, "in_proj_bias", concat(biases, 0));
    for (const char* part : {"query.", "key.", "value."})
      for (const char* kind : {"weight", "bias"}) done_.insert(joined(own, std::string(part) + kind));
  }

  // Adds the parameters and buffers of a module itself.
  void add_members(const std::string& module_name, const Module& module, const std::string& path) {
    bool is_table = dynamic_cast<const Embedding*>(&module) || dynamic_cast<const EmbeddingBag*>(&module);
    for (const NamedTensor& named : tensors_) {
      std::size_t dot = named.name.rfind('.');
      if ((dot == named.name.npos ? "" : named.name.substr(0, dot)) != module_name) continue;
      if (done_.contains(named.name)) continue;
      std::string name = named.name.substr(dot == named.name.npos ? 0 : dot + 1);
      if (is_table && name == "table") name = "weight";
      if (name == "running_variance") name = "running_var";
      bool turns = name == "weight" && dynamic_cast<const Linear*>(&module);
      add(path, name, turns ? transpose(named.tensor) : named.tensor);
      // PyTorch counts batches, and wants the count.
      if (name == "running_var") add(path, "num_batches_tracked", zeros({}, {.dtype = DType::i64}));
    }
  }

  std::vector<std::pair<std::string, const Module*>> modules_;
  const std::vector<NamedTensor>& tensors_;
  std::unordered_map<std::string, std::string> paths_;
  std::unordered_map<std::string, const Module*> by_path_;
  std::unordered_set<std::string> done_;  // names in the module
  std::vector<NamedTensor> found_;
};

}  // namespace

std::vector<NamedTensor> as_in_pytorch(const Module& module, const std::vector<NamedTensor>& tensors) {
  NoRecord pause;
  return ToPytorch(module, tensors).run();
}

}  // namespace reel::io
