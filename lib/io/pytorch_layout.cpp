#include "pytorch_layout.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <reel/nn.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/shape.h>

#include "../ops/if_needed.h"

namespace reel::io {

using namespace nn;

namespace {

bool is_batch_norm(const Module* module) {
  return dynamic_cast<const BatchNorm<1>*>(module) || dynamic_cast<const BatchNorm<2>*>(module) ||
         dynamic_cast<const BatchNorm<3>*>(module);
}

class Converter {
 public:
  Converter(const Module& module, std::vector<NamedTensor> tensors, bool converts)
      : modules_(module.named_modules()), tensors_(std::move(tensors)), converts_(converts) {}

  // Modules come before their parts, so that the outer parts of names are already converted.
  std::vector<NamedTensor> run() {
    for (const auto& [name, module] : modules_) {
      std::string prefix = name.empty() ? "" : name + ".";
      if (dynamic_cast<const Linear*>(module)) turn(prefix + "weight", prefix + "weight");
      if (dynamic_cast<const Embedding*>(module) || dynamic_cast<const EmbeddingBag*>(module))
        rename(prefix + "weight", prefix + "table");
      if (is_batch_norm(module)) {
        rename(prefix + "running_var", prefix + "running_variance");
        // PyTorch counts batches; reel does not use the count.
        drop(prefix + "num_batches_tracked");
      }
      if (auto* cell = dynamic_cast<const LSTMCell*>(module)) convert_cell(*cell, prefix, prefix, "");
      if (auto* cell = dynamic_cast<const GRUCell*>(module)) convert_cell(*cell, prefix, prefix, "");
      if (auto* cell = dynamic_cast<const RNNCell*>(module)) convert_cell(*cell, prefix, prefix, "");
      if (auto* layers = dynamic_cast<const LSTM*>(module)) convert_layers(*layers, prefix);
      if (auto* layers = dynamic_cast<const GRU*>(module)) convert_layers(*layers, prefix);
      if (auto* layers = dynamic_cast<const RNN*>(module)) convert_layers(*layers, prefix);
      if (auto* attention = dynamic_cast<const MultiHeadAttention*>(module)) convert_attention(*attention, prefix);
      if (dynamic_cast<const TransformerEncoderLayer*>(module))
        rename_parts(prefix,
                     {{"self_attn.", "attention."}, {"norm1.", "attention_norm."}, {"norm2.", "feed_forward_norm."}});
      if (dynamic_cast<const TransformerDecoderLayer*>(module))
        rename_parts(prefix, {{"self_attn.", "attention."},
                              {"multihead_attn.", "memory_attention."},
                              {"norm1.", "attention_norm."},
                              {"norm2.", "memory_norm."},
                              {"norm3.", "feed_forward_norm."}});
      if (dynamic_cast<const FeedForward*>(module) && prefix.ends_with("feed_forward.")) {
        // PyTorch has these two layers beside the attention.
        std::string around = prefix.substr(0, prefix.size() - std::string("feed_forward.").size());
        rename_parts("", {{around + "linear1.", prefix + "expand."}, {around + "linear2.", prefix + "contract."}});
      }
    }
    return std::move(tensors_);
  }

 private:
  NamedTensor* find(const std::string& name) {
    auto found =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const NamedTensor& named) { return named.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
  }

  void drop(const std::string& name) {
    std::erase_if(tensors_, [&](const NamedTensor& named) { return named.name == name; });
  }

  void rename(const std::string& from, const std::string& to) {
    if (NamedTensor* named = find(from)) named->name = to;
  }

  void rename_parts(const std::string& prefix, std::initializer_list<std::pair<std::string, std::string>> parts) {
    for (NamedTensor& named : tensors_)
      for (const auto& [from, to] : parts)
        if (named.name.starts_with(prefix + from)) {
          named.name = prefix + to + named.name.substr(prefix.size() + from.size());
          break;
        }
  }

  void turn(const std::string& from, const std::string& to) {
    NamedTensor* named = find(from);
    if (!named || named->tensor.rank() != 2) return;
    named->name = to;
    named->tensor = transpose(named->tensor);
  }

  // Joins PyTorch's two biases into one, if both exist and have one shape.
  template <class F>
  void join_biases(const std::string& from, const std::string& suffix, const std::string& to, F joined) {
    std::string second_name = from + "bias_hh" + suffix;
    NamedTensor *first = find(from + "bias_ih" + suffix), *second = find(second_name);
    if (!first || !second || first->tensor.rank() != 1 || first->tensor.shape() != second->tensor.shape()) return;
    // Halves are summed in f32: the sum may be outside their range.
    auto widened = [](const Tensor& x) { return size_of(x.dtype()) == 2 ? reel::to(x, DType::f32) : x; };
    Tensor bias = joined(widened(first->tensor), widened(second->tensor));
    DType dtype = first->tensor.dtype();
    if (!converts_ && dtype == second->tensor.dtype()) bias = detail::to_if_needed(bias, dtype);
    first->tensor = bias;
    first->name = to;
    drop(second_name);
  }

  template <class Cell>
  void convert_cell(const Cell&, const std::string& from, const std::string& to, const std::string& suffix) {
    turn(from + "weight_ih" + suffix, to + "W_x");
    turn(from + "weight_hh" + suffix, to + "W_h");
    turn(from + "weight_hr" + suffix, to + "W_r");
    join_biases(from, suffix, to + "bias", [](const Tensor& a, const Tensor& b) {
      if constexpr (std::is_same_v<Cell, GRUCell>) {
        // The two biases of the new state are kept separate.
        std::int64_t size = a.size(0) / 3, others = 2 * size;
        return concat({slice(a, 0, 0, others) + slice(b, 0, 0, others), slice(a, 0, others), slice(b, 0, others)}, 0);
      } else {
        return a + b;
      }
    });
  }

  template <class Layers>
  void convert_layers(const Layers& layers, const std::string& prefix) {
    bool both_ways = find(prefix + "weight_ih_l0_reverse") != nullptr;
    for (std::size_t net = 0; net < layers.nets.size(); ++net) {
      std::size_t layer = both_ways ? net / 2 : net;
      std::string suffix = fmt::format("_l{}{}", layer, both_ways && net % 2 == 1 ? "_reverse" : "");
      convert_cell(layers.nets[net], prefix, name_of(layers.nets[net]) + ".", suffix);
    }
  }

  std::string name_of(const Module& module) const {
    for (const auto& [name, found] : modules_)
      if (found == &module) return name;
    return {};
  }

  // PyTorch stores the three matrices in one if they have one width.
  void convert_attention(const MultiHeadAttention& attention, const std::string& prefix) {
    static constexpr const char* parts[] = {"query.", "key.", "value."};
    static constexpr const char* letters[] = {"q", "k", "v"};
    std::int64_t size = attention.output.weight.size(0);
    for (const char* kind : {"weight", "bias"}) {
      std::string whole_name = fmt::format("{}in_proj_{}", prefix, kind);
      NamedTensor* whole = find(whole_name);
      if (!whole || whole->tensor.rank() == 0 || whole->tensor.size(0) != 3 * size) continue;
      Tensor all = whole->tensor;
      drop(whole_name);
      for (std::int64_t i = 0; i < 3; ++i)
        tensors_.push_back({prefix + parts[i] + kind, slice(all, 0, i * size, (i + 1) * size)});
    }
    // The inner linear layers transpose them.
    for (int i = 0; i < 3; ++i)
      rename(fmt::format("{}{}_proj_weight", prefix, letters[i]), prefix + parts[i] + "weight");
    rename(prefix + "out_proj.weight", prefix + "output.weight");
    rename(prefix + "out_proj.bias", prefix + "output.bias");
  }

  std::vector<std::pair<std::string, const Module*>> modules_;
  std::vector<NamedTensor> tensors_;
  bool converts_;
};

}  // namespace

std::vector<NamedTensor> as_in(const Module& module, std::vector<NamedTensor> tensors, bool converts) {
  return Converter(module, std::move(tensors), converts).run();
}

}  // namespace reel::io
