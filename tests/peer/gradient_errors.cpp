#include "peer/gradient_errors.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/recurrent_cases.h"

namespace reel_test {

namespace {

// The computations of the table's rows, from the rows' attributes.

Arrays cell_errors(Kind kind, const Arrays& x, const Array& seed) {
  std::size_t weights = kind == Kind::lstm ? 3 : 2;
  CellCase cell{kind, x[0].shape[0], x[0].shape[1], x[1].shape[1], x.size() > weights + 2};
  return gradient_errors_of(cell, x, seed);
}

Arrays net_errors(Kind kind, const Arrays& x, const Attributes& attributes, const Array& seed) {
  NetCase net{kind, x[0].shape[0], x[0].shape[1], x[0].shape[2], x[1].shape[2]};
  net.layers = attributes.integer("layers");
  net.bidirectional = attributes.flag("bidirectional");
  if (attributes.flag("ragged")) net.lengths.assign(x.back().values.begin(), x.back().values.end());
  return gradient_errors_of(net, x, seed);
}

Kind rnn_kind(const Attributes& attributes) { return attributes.flag("relu") ? Kind::relu : Kind::tanh; }

// The places of each row along an axis.
std::vector<std::vector<std::size_t>> rows_along(int axis, const reel::Shape& shape) {
  std::vector<std::vector<std::size_t>> rows;
  std::int64_t length = shape[axis], inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (std::int64_t start = 0; start < shape.numel(); ++start) {
    if (start / inner % length != 0) continue;
    rows.emplace_back();
    for (std::int64_t j = 0; j < length; ++j) rows.back().push_back(static_cast<std::size_t>(start + j * inner));
  }
  return rows;
}

// Along one axis, of the elements that a mask shows.
struct SoftmaxCase {
  reel::Shape shape;
  int axis;
  bool masked;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    std::vector<N> results(x[0].size(), zero);
    for (std::vector<std::size_t> places : rows_along(axis, shape)) {
      if (masked) std::erase_if(places, [&](std::size_t place) { return !shows(x[1], place); });
      std::vector<N> row;
      for (std::size_t place : places) row.push_back(x[0][place]);
      row = softmax_of(row);
      for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = row[i];
    }
    return results;
  }

 private:
  // The mask has the last axes of the shape: it repeats along the first.
  template <class N>
  static bool shows(const std::vector<N>& flags, std::size_t place) {
    return value_of(flags[place % flags.size()]) != 0;
  }
};

// y = x / √(mean(x²) + ε) · w over rows of a width. Where a row has one element, its gradient is a difference that cancels.
struct RmsNormCase {
  std::int64_t width;
  double epsilon;
  bool weighted;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    double share = 1 / static_cast<double>(width);
    std::vector<N> results;
    for (std::int64_t k = 0; k < std::ssize(x[0]) / width; ++k) {
      std::vector<N> row = row_of(x[0], k, width);
      N variance = dot(row, row) * constant(zero, {share, share / 2});
      N inverse = rsqrt_of(variance + constant(zero, {epsilon, epsilon / 2}));
      for (std::size_t i = 0; i < row.size(); ++i)
        results.push_back(weighted ? row[i] * inverse * x[1][i] : row[i] * inverse);
    }
    return results;
  }
};

// Attention of heads (H, Q, D), (H, K, D), (H, K, W), with numbers (Q, K) added to the scores.
struct AttentionCase {
  std::int64_t heads, queries, keys, depth, width;
  double scale;
  bool masked, causal;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    N factor = constant(zero, {scale, std::abs(scale) / 2});
    std::vector<N> results;
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t i = 0; i < queries; ++i) {
        std::vector<N> query = row_of(x[0], head * queries + i, depth), scores;
        std::int64_t seen = causal ? std::min(i + 1, keys) : keys;
        for (std::int64_t j = 0; j < seen; ++j) {
          N score = dot(query, row_of(x[1], head * keys + j, depth)) * factor;
          scores.push_back(masked ? score + x[3][static_cast<std::size_t>(i * keys + j)] : score);
        }
        std::vector<N> weights = softmax_of(scores);
        for (std::int64_t w = 0; w < width; ++w)
          results.push_back(dot(weights, part_of(x[2], head * keys * width + w, seen, width)));
      }
    return results;
  }
};

// −Σ t log softmax(x) along the classes, where t are probabilities. Its gradient Σ t softmax(x) − t may cancel.
struct SoftCrossEntropyCase {
  reel::Shape shape;
  double smoothing;
  Attributes::Numbers weights;
  reel::LossReduction reduction;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    int axis = shape.rank() == 1 ? 0 : 1;
    double own = 1 - smoothing, spread = smoothing / static_cast<double>(shape[axis]);
    std::vector<N> losses;
    for (const std::vector<std::size_t>& places : rows_along(axis, shape)) {
      std::vector<N> logits, shares;
      for (std::size_t place : places) {
        N share = x[1][place];
        if (smoothing != 0) share = share * constant(zero, {own, own / 2}) + constant(zero, {spread, spread / 2});
        if (!weights.empty()) share = share * constant(zero, {weights[shares.size()]});
        shares.push_back(share);
        logits.push_back(x[0][place]);
      }
      losses.push_back(dot(shares, log_softmax_of(logits)));
    }
    bool mean = reduction == reel::LossReduction::mean;
    double share = mean ? 1 / static_cast<double>(losses.size()) : 1;
    if (reduction != reel::LossReduction::none) losses = {sum_of(losses)};
    for (N& loss : losses) loss = loss * constant(zero, {-share, mean ? share / 2 : 0});
    return losses;
  }
};

// None where the targets are classes.
Arrays cross_entropy_errors(const Arrays& x, const Attributes& attributes, const Array& seed) {
  if (!(x[1].shape == x[0].shape)) return {};
  SoftCrossEntropyCase loss{x[0].shape, attributes.number("smoothing"), attributes.numbers("weights"),
                            static_cast<reel::LossReduction>(attributes.integer("reduction"))};
  return gradient_errors_of(loss, x, seed);
}

Arrays softmax_errors(const Arrays& x, const Attributes& attributes, const Array& seed) {
  auto axis = static_cast<int>(attributes.integer("axis"));
  const reel::Shape& shape = x[0].shape;
  SoftmaxCase softmax{shape, axis < 0 ? axis + shape.rank() : axis, x.size() > 1};
  return gradient_errors_of(softmax, x, seed);
}

Arrays rms_norm_errors(const Arrays& x, const Attributes& attributes, const Array& seed) {
  const reel::Shape& shape = x[0].shape;
  std::int64_t width = 1;
  for (auto i = shape.rank() - static_cast<int>(attributes.integer("axes")); i < shape.rank(); ++i) width *= shape[i];
  return gradient_errors_of(RmsNormCase{width, attributes.number("epsilon"), x.size() > 1}, x, seed);
}

Arrays attention_errors(const Arrays& x, const Attributes& attributes, const Array& seed) {
  std::int64_t depth = x[0].shape[2];
  double scale = attributes.number("scale");
  AttentionCase attention{x[0].shape[0], x[0].shape[1],
                          x[1].shape[1], depth,
                          x[2].shape[2], scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(depth)),
                          x.size() > 3,  attributes.flag("causal")};
  return gradient_errors_of(attention, x, seed);
}

}  // namespace

std::map<std::string, GradientErrors> gradient_errors() {
  using X = const Arrays&;
  using Given = const Attributes&;
  using Seed = const Array&;
  return {
      {"lstm_cell",
       [](X x, Given given, Seed seed) {
         if (!given.flag("projected")) return cell_errors(Kind::lstm, x, seed);
         return gradient_errors_of(ProjectedCase{x[1].shape[0], x[1].shape[1], x[2].shape[1]}, x, seed);
       }},
      {"gru_cell", [](X x, Given, Seed seed) { return cell_errors(Kind::gru, x, seed); }},
      {"rnn_cell", [](X x, Given given, Seed seed) { return cell_errors(rnn_kind(given), x, seed); }},
      {"tree_lstm_cell",
       [](X x, Given given, Seed seed) {
         std::int64_t children = std::ssize(x) - 1;
         if (given.flag("states")) {
           children = children / 2;
           NodeCase node{{x[2].shape[0], x[2].shape[1], children}, x[0].shape.rank() == 1};
           return gradient_errors_of(node, x, seed);
         }
         return gradient_errors_of(TreeCase{x[0].shape[0], x[0].shape[1] / (3 + children), children}, x, seed);
       }},
      {"lstm", [](X x, Given given, Seed seed) { return net_errors(Kind::lstm, x, given, seed); }},
      {"gru", [](X x, Given given, Seed seed) { return net_errors(Kind::gru, x, given, seed); }},
      {"rnn", [](X x, Given given, Seed seed) { return net_errors(rnn_kind(given), x, given, seed); }},
      {"softmax", softmax_errors},
      {"cross_entropy", cross_entropy_errors},
      {"rms_norm", rms_norm_errors},
      {"scaled_dot_product_attention", attention_errors},
  };
}

}  // namespace reel_test
