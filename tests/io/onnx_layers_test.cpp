#include <cmath>
#include <limits>

#include "onnx_nodes.h"

using namespace reel_test;
using detail::OnnxAttribute;
using io::onnx::attribute;

namespace {

// A body of a loop that computes a node from its inputs and names around it.
OnnxAttribute body(const std::vector<std::string>& inputs, const std::vector<detail::OnnxNode>& nodes,
                   const std::vector<std::string>& outputs) {
  auto graph = std::make_shared<detail::OnnxGraph>();
  auto value_of = [](const std::string& name) {
    return detail::OnnxValue{.name = name, .type = detail::OnnxType::i64, .has_axes = false, .axes = {}};
  };
  for (const std::string& name : inputs) graph->inputs.push_back(value_of(name));
  for (const std::string& name : outputs) graph->outputs.push_back(value_of(name));
  graph->nodes = nodes;
  return attribute("body", graph);
}

detail::OnnxNode node(const char* type, const std::vector<std::string>& inputs, const char* output) {
  return {.type = type, .name = "", .inputs = inputs, .outputs = {output}, .attributes = {}, .note = ""};
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

// clang-format off
TEST_CASE("products and normalisations of other programs compute what ONNX says") {
  Tensor a = f({{1, 2}, {3, 4}}), b = f({{1, 0}, {2, 1}}), c = f({10, 20}), x = f({{0, 0}, {0, std::log(3.0)}});
  Tensor rows = f({{1, 3}, {5, 3}}), image = f({{{1, 3}}});
  check(std::vector<Case>{
      {__LINE__, "MatMul", {a, b}, {}, {f({{5, 2}, {11, 4}})}},
      {__LINE__, "Det", {a}, {}, {f(-2)}},
      {__LINE__, "Gemm", {a, b}, {}, {f({{5, 2}, {11, 4}})}},
      {__LINE__, "Gemm", {a, b, c}, {}, {f({{15, 22}, {21, 24}})}},
      {__LINE__, "Gemm", {a, b}, {attribute("alpha", 0.5)}, {f({{2.5, 1}, {5.5, 2}})}},
      {__LINE__, "Gemm", {a, b, c}, {attribute("alpha", 0.5), attribute("beta", 2.0)}, {f({{22.5, 41}, {25.5, 42}})}},
      {__LINE__, "Gemm", {a, b}, {is("transA", 1)}, {f({{7, 3}, {10, 4}})}},
      {__LINE__, "Gemm", {a, b}, {is("transB", 1)}, {f({{1, 4}, {3, 10}})}},
      {__LINE__, "Softmax", {x}, {}, {f({{0.5, 0.5}, {0.25, 0.75}})}},
      {__LINE__, "Softmax", {x}, {is("axis", 0)}, {f({{0.5, 0.25}, {0.5, 0.75}})}},
      {__LINE__, "LogSoftmax", {x}, {}, {f({{-std::log(2.0), -std::log(2.0)}, {-std::log(4.0), std::log(0.75)}})}},
      {__LINE__, "LayerNormalization", {rows, f({1, 2})}, {}, {f({{-1, 2}, {1, -2}})}},
      {__LINE__, "LayerNormalization", {rows, f({1, 2}), f({5, 6})}, {}, {f({{4, 8}, {6, 4}})}},
      {__LINE__, "LayerNormalization", {rows, f({1, 1})}, {attribute("epsilon", 3.0)}, {f({{-0.5, 0.5}, {0.5, -0.5}})}},
      {__LINE__, "LayerNormalization", {rows, f({{1, 1}, {1, 2}})}, {is("axis", -2), attribute("epsilon", 2.0)}, {f({{-1, 0}, {1, 0}})}},
      {__LINE__, "BatchNormalization", {image, f({2}), f({1}), f({1}), f({3})}, {attribute("epsilon", 1.0)}, {f({{{1, 3}}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "BatchNormalization", {image, f({2}), f({1}), f({1}), f({3})}, {is("training_mode", 1)}, "it is in training mode"},
      {__LINE__, "Softmax", {x}, {is("axis", 2)}, "there is no axis 2 of 2"},
  });
}

TEST_CASE("windows of other programs compute what ONNX says") {
  Tensor x = f({{{1, 2, 3}}}), w = f({{{1, 10}}}), square = f({{{{1, 2}, {3, 4}}}}), one = f({{{{1}}}});
  Tensor falling = f({{{-1, -2, -3}}}), even = f({{{2, 4, 6}}}), two = f({{{1, 2}}});
  OnnxAttribute window = list("kernel_shape", {2});
  check(std::vector<Case>{
      {__LINE__, "Conv", {x, w}, {}, {f({{{21, 32}}})}},
      {__LINE__, "Conv", {x, w, f({5})}, {}, {f({{{26, 37}}})}},
      {__LINE__, "Conv", {x, w}, {list("pads", {1, 1})}, {f({{{10, 21, 32, 3}}})}},
      {__LINE__, "Conv", {x, w}, {list("pads", {1, 0})}, {f({{{10, 21, 32}}})}},
      {__LINE__, "Conv", {x, w}, {list("pads", {0, 1}), list("strides", {2})}, {f({{{21, 3}}})}},
      {__LINE__, "Conv", {x, w}, {list("dilations", {2})}, {f({{{31}}})}},
      {__LINE__, "Conv", {f({{{1, 2}, {3, 4}}}), f({{{10}}, {{100}}})}, {is("group", 2)}, {f({{{10, 20}, {300, 400}}})}},
      {__LINE__, "Conv", {square, one}, {list("pads", {0, 1, 0, 0})}, {f({{{{0, 1, 2}, {0, 3, 4}}}})}},
      {__LINE__, "Conv", {square, one}, {list("pads", {0, 0, 1, 0})}, {f({{{{1, 2}, {3, 4}, {0, 0}}}})}},
      {__LINE__, "Conv", {square, one}, {list("pads", {1, 0, 1, 0}), list("strides", {1, 2})}, {f({{{{0}, {1}, {3}, {0}}}})}},
      {__LINE__, "Conv", {f({{{{{1, 2}}}}}), f({{{{{3}}}}})}, {list("strides", {1, 1, 2}), list("pads", {0, 0, 0, 0, 0, 1})}, {f({{{{{3, 0}}}}})}},
      {__LINE__, "ConvTranspose", {two, w}, {}, {f({{{1, 12, 20}}})}},
      {__LINE__, "ConvTranspose", {two, w, f({5})}, {}, {f({{{6, 17, 25}}})}},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {1, 0})}, {f({{{12, 20}}})}},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {1, 1})}, {f({{{12}}})}},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {1, 2})}, {zeros({1, 1, 0})}},
      {__LINE__, "ConvTranspose", {two, w}, {list("strides", {2}), list("output_padding", {1})}, {f({{{1, 10, 2, 20, 0}}})}},
      {__LINE__, "ConvTranspose", {square, one}, {}, {square}},
      {__LINE__, "ConvTranspose", {f({{{{{1, 2}}}}}), f({{{{{3}}}}})}, {}, {f({{{{{3, 6}}}}})}},
      {__LINE__, "MaxPool", {falling}, {window}, {f({{{-1, -2}}})}},
      {__LINE__, "MaxPool", {falling}, {window, list("pads", {1, 0})}, {f({{{-1, -1, -2}}})}},
      {__LINE__, "MaxPool", {falling}, {window, list("pads", {1, 1})}, {f({{{-1, -1, -2, -3}}})}},
      {__LINE__, "MaxPool", {falling}, {window, list("strides", {2})}, {f({{{-1}}})}},
      {__LINE__, "MaxPool", {falling}, {window, list("strides", {2}), is("ceil_mode", 1)}, {f({{{-1, -3}}})}},
      {__LINE__, "MaxPool", {falling}, {window, list("dilations", {2})}, {f({{{-1}}})}},
      {__LINE__, "MaxPool", {square}, {list("kernel_shape", {2, 1})}, {f({{{{3, 4}}}})}},
      {__LINE__, "MaxPool", {f({{{{{1, 2}}}}})}, {list("kernel_shape", {1, 1, 2})}, {f({{{{{2}}}}})}},
      {__LINE__, "AveragePool", {even}, {window}, {f({{{3, 5}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("pads", {1, 1})}, {f({{{2, 3, 5, 6}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("pads", {1, 1}), is("count_include_pad", 1)}, {f({{{1, 3, 5, 3}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("pads", {1, 0})}, {f({{{2, 3, 5}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("pads", {0, 1})}, {f({{{3, 5, 6}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("pads", {1, 0}), is("count_include_pad", 1)}, {f({{{1, 3, 5}}})}},
      {__LINE__, "AveragePool", {even}, {window, list("strides", {2}), is("ceil_mode", 1)}, {f({{{3, 6}}})}},
      {__LINE__, "AveragePool", {square}, {list("kernel_shape", {1, 2})}, {f({{{{1.5}, {3.5}}}})}},
      {__LINE__, "AveragePool", {f({{{{{1, 2}}}}})}, {list("kernel_shape", {1, 1, 2})}, {f({{{{{1.5}}}}})}},
      {__LINE__, "GlobalMaxPool", {square}, {}, {f({{{{4}}}})}},
      {__LINE__, "GlobalAveragePool", {square}, {}, {f({{{{2.5}}}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "Conv", {f({{1}}), one}, {}, "its operand has not 1 to 3 spatial axes"},
      {__LINE__, "MaxPool", {zeros({1, 1, 1, 1, 1, 1})}, {}, "its operand has not 1 to 3 spatial axes"},
      {__LINE__, "Conv", {x, w}, {attribute("auto_pad", "SAME_UPPER")}, "reel does not run auto_pad"},
      {__LINE__, "Conv", {x, w}, {list("pads", {1})}, "its attribute pads has another length"},
      {__LINE__, "Conv", {x, w}, {list("strides", {1, 1})}, "its attribute strides has another length"},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {2, 2})}, "its padding is larger than its result"},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {4, 0})}, "its padding is larger than its result"},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {-1, 0})}, "its padding is larger than its result"},
      {__LINE__, "ConvTranspose", {two, w}, {list("pads", {0, -1})}, "its padding is larger than its result"},
  });
}

TEST_CASE("resizings of other programs compute what ONNX says") {
  Tensor x = f({{{0, 4}}}), square = f({{{{1, 2}, {3, 4}}}}), none;
  auto scales = [](const NestedNumbers& numbers) { return tensor(numbers, {.dtype = f32}); };
  std::vector<OnnxAttribute> nearest{attribute("coordinate_transformation_mode", "asymmetric"), attribute("nearest_mode", "floor")};
  std::vector<OnnxAttribute> linear{attribute("mode", "linear")};
  std::vector<OnnxAttribute> aligned{attribute("mode", "linear"), attribute("coordinate_transformation_mode", "align_corners")};
  check(std::vector<Case>{
      {__LINE__, "Resize", {x, none, scales({1, 1, 2})}, nearest, {f({{{0, 0, 4, 4}}})}},
      {__LINE__, "Resize", {x, none, none, n({1, 1, 4})}, nearest, {f({{{0, 0, 4, 4}}})}},
      {__LINE__, "Resize", {x, none, none, n({1, 1, 4})}, linear, {f({{{0, 1, 3, 4}}})}},
      {__LINE__, "Resize", {x, none, none, n({1, 1, 4})}, aligned, {f({{{0, 4.0 / 3, 8.0 / 3, 4}}})}},
      {__LINE__, "Resize", {square, none, scales({1, 1, 1, 2})}, nearest, {f({{{{1, 1, 2, 2}, {3, 3, 4, 4}}}})}},
      {__LINE__, "Resize", {square, none, scales({1, 1, 2, 1})}, nearest, {f({{{{1, 2}, {1, 2}, {3, 4}, {3, 4}}}})}},
      {__LINE__, "Resize", {square, none, none, n({1, 1, 4, 2})}, nearest, {f({{{{1, 2}, {1, 2}, {3, 4}, {3, 4}}}})}},
      {__LINE__, "Resize", {square, none, scales({1, 1, 1, 1})}, nearest, {square}},
      {__LINE__, "Resize", {f({{{{{1, 2}}}}}), none, scales({1, 1, 1, 1, 2})}, nearest, {f({{{{{1, 1, 2, 2}}}}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "Resize", {x, none, scales({1, 1, 2})}, {}, "reel has no such coordinates"},
      {__LINE__, "Resize", {x, none, scales({1, 1, 2})}, {nearest[0]}, "reel has no such coordinates"},
      {__LINE__, "Resize", {x, none, scales({1, 1, 2})}, {nearest[1]}, "reel has no such coordinates"},
      {__LINE__, "Resize", {x, none, scales({1, 1, 2})}, {linear[0], nearest[0]}, "reel has no such coordinates"},
      {__LINE__, "Resize", {f({{1}}), none, scales({1, 2})}, nearest, "its operand has not 1 to 3 spatial axes"},
      {__LINE__, "Resize", {zeros({1, 1, 1, 1, 1, 1}), none, scales({1, 1, 1, 1, 1, 2})}, nearest, "its operand has not 1 to 3 spatial axes"},
      {__LINE__, "Resize", {x, none, scales({1, 2})}, nearest, "there is not one size for each axis"},
      {__LINE__, "Resize", {x, none, none, n({1, 1, 2, 2})}, nearest, "there is not one size for each axis"},
      {__LINE__, "Resize", {x, none, scales({2, 1, 1})}, nearest, "it resizes examples or channels"},
      {__LINE__, "Resize", {x, none, none, n({1, 2, 2})}, nearest, "it resizes examples or channels"},
      {__LINE__, "Resize", {square, none, scales({1, 1, 2, 2})}, nearest, "reel resizes one axis by a scale"},
      {__LINE__, "Resize", {x, none, scales({1, 1, -2})}, nearest, "its result would have more than"},
      {__LINE__, "Resize", {x, none, scales({1, 1, std::numeric_limits<double>::infinity()})}, nearest, "its result would have more than"},
      {__LINE__, "Resize", {x, none, scales({1, 1, std::nan("")})}, nearest, "its result would have more than"},
  });
}

TEST_CASE("recurrent layers of other programs compute what ONNX says") {
  Tensor x = f({{{1}}, {{2}}}), one = f({{{1}}}), no_lengths, none;
  OnnxAttribute size = is("hidden_size", 1), reverse = attribute("direction", "reverse");
  OnnxAttribute relu = attribute("activations", std::vector<std::string>{"Relu"});
  double i = 0.25, o = -0.5, g = 0.75, memory = sigmoid_of(i) * std::tanh(g) + sigmoid_of(2.0) * 3;
  double z = sigmoid_of(0.5), r = sigmoid_of(-1.0), next = (1 - z) * std::tanh(0.25 + r * (2 * 2 + 7)) + z * 2;
  Tensor lstm_W = f({{{i}, {o}, {2}, {g}}}), lstm_R = zeros({1, 4, 1});
  Tensor gru_W = f({{{0.5}, {-1}, {0.25}}}), gru_R = f({{{0}, {0}, {2}}});
  OnnxAttribute after_reset = is("linear_before_reset", 1);
  auto three = [](double y, double h, double c) { return std::vector<Tensor>{f({{{{y}}}}), f({{{h}}}), f({{{c}}})}; };
  check(std::vector<Case>{
      {__LINE__, "RNN", {f({{{1}}}), one, one}, {size}, {f({{{{std::tanh(1.0)}}}}), f({{{std::tanh(1.0)}}})}},
      {__LINE__, "RNN", {x, one, one}, {size, relu}, {f({{{{1}}}, {{{3}}}}), f({{{3}}})}},
      {__LINE__, "RNN", {x, one, one}, {size, relu, reverse}, {f({{{{3}}}, {{{2}}}}), f({{{3}}})}},
      {__LINE__, "RNN", {x, one, one, f({{10, 100}})}, {size, relu}, {f({{{{111}}}, {{{223}}}}), f({{{223}}})}},
      {__LINE__, "RNN", {x, one, one, none, no_lengths, f({{{5}}})}, {size, relu}, {f({{{{6}}}, {{{8}}}}), f({{{8}}})}},
      {__LINE__, "LSTM", {f({{{1}}}), lstm_W, lstm_R, none, none, f({{{0}}}), f({{{3}}})}, {size},
       three(sigmoid_of(o) * std::tanh(memory), sigmoid_of(o) * std::tanh(memory), memory)},
      {__LINE__, "GRU", {f({{{1}}}), gru_W, gru_R, f({{0, 0, 0, 0, 0, 7}}), none, f({{{2}}})}, {size, after_reset}, {f({{{{next}}}}), f({{{next}}})}},
      {__LINE__, "GRU", {f({{{1}}}), zeros({1, 3, 1}), gru_R, f({{0.5, -1, 0.25, 0, 0, 7}}), none, f({{{2}}})}, {size, after_reset}, {f({{{{next}}}}), f({{{next}}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "RNN", {x, one, one}, {size, attribute("direction", "bidirectional")}, "it has two directions"},
      {__LINE__, "RNN", {x, one, one, none, n({2})}, {size}, "it has lengths of sequences"},
      {__LINE__, "RNN", {x, one, one}, {size, attribute("clip", 1.0)}, "reel has no such attribute"},
      {__LINE__, "RNN", {x, one, one}, {size, is("layout", 0)}, "reel has no such attribute"},
      {__LINE__, "LSTM", {x, lstm_W, lstm_R}, {size, is("input_forget", 1)}, "reel has no such attribute"},
      {__LINE__, "RNN", {x, one, one}, {}, "its weights do not fit"},
      {__LINE__, "RNN", {x, one, one}, {is("hidden_size", 2)}, "its weights do not fit"},
      {__LINE__, "RNN", {f({{1}}), one, one}, {size}, "its weights do not fit"},
      {__LINE__, "RNN", {x, f({{1}}), one}, {size}, "its weights do not fit"},
      {__LINE__, "RNN", {x, one, f({{1}})}, {size}, "its weights do not fit"},
      {__LINE__, "RNN", {x, f({{{1}}, {{1}}}), one}, {size}, "its weights do not fit"},
      {__LINE__, "LSTM", {x, one, lstm_R}, {size}, "its weights do not fit"},
      {__LINE__, "LSTM", {x, lstm_W, one}, {size}, "its weights do not fit"},
      {__LINE__, "RNN", {x, one, one}, {size, attribute("activations", std::vector<std::string>{"Sigmoid"})}, "reel has no such activations"},
      {__LINE__, "RNN", {x, one, one}, {size, attribute("activations", std::vector<std::string>{"Relu", "Relu"})}, "reel has no such activations"},
      {__LINE__, "LSTM", {x, lstm_W, lstm_R}, {size, relu}, "reel has no such activations"},
      {__LINE__, "RNN", {x, one, one, f({{1}})}, {size}, "its biases do not fit"},
      {__LINE__, "GRU", {x, gru_W, gru_R}, {size}, "its reset gate is before the product"},
  });
}

TEST_CASE("loops of other programs end by their count or their body's condition, and others are refused") {
  Tensor one = n(1), holds = tensor({true});
  std::vector<std::string> inputs{"i", "holds", "s"};
  // The state doubles until it is 5 or more; x0 is the count, x2 the first state.
  OnnxAttribute doubles = body(inputs, {node("Add", {"s", "s"}, "t"), node("Less", {"t", "x0"}, "less")}, {"less", "t"});
  OnnxAttribute sums = body(inputs, {node("Add", {"s", "i"}, "t")}, {"holds", "t"});
  check(std::vector<Case>{
      {__LINE__, "Loop", {n(5), Tensor(), one}, {doubles}, {n(8)}},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {doubles}, {n(4)}},
      {__LINE__, "Loop", {n(4), Tensor(), one}, {sums}, {n(7)}},
      {__LINE__, "Loop", {n(0), Tensor(), one}, {sums}, {n(1)}},
      {__LINE__, "Loop", {n(-1), Tensor(), one}, {sums}, {n(1)}},
  });
  OnnxAttribute adds = body({"s", "x"}, {node("Add", {"s", "x"}, "t")}, {"t", "x"});
  check(std::vector<Case>{
      {__LINE__, "Scan", {f(1), f({2, 3})}, {adds, is("num_scan_inputs", 1)}, {f(6), f({2, 3})}},
      {__LINE__, "Scan", {f({1, 5}), f({2, 3})}, {adds, is("num_scan_inputs", 2)}, {f({3, 8}), f({2, 3})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "Loop", {n(3), holds, one}, {sums}, "reel runs loops of a count only, without a condition"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {}, "it has no graph body"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {is("body", 1)}, "its attribute body is of another kind"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {body(inputs, {}, {"holds"})}, "its body has other outputs than its states"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {body(inputs, {}, {"holds", "s", "i"})}, "its body has other outputs than its states"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {body({"i", "holds"}, {}, {"holds", "i"})}, "its body has 2 inputs instead of 3"},
      {__LINE__, "Loop", {n(3), Tensor(), one}, {body(inputs, {}, {"i", "s"})}, "its body's condition is no bool"},
      {__LINE__, "Scan", {f(1), f({2, 3})}, {adds}, "num_scan_inputs does not fit"},
      {__LINE__, "Scan", {f(1), f({2, 3})}, {adds, is("num_scan_inputs", 3)}, "num_scan_inputs does not fit"},
      {__LINE__, "Scan", {f(1), f({2, 3})}, {adds, is("num_scan_inputs", -1)}, "num_scan_inputs does not fit"},
      {__LINE__, "Scan", {f(1), f({2, 3})}, {adds, is("num_scan_inputs", 1), list("scan_input_directions", {1})}, "reel does not run scan_input_directions"},
      {__LINE__, "Scan", {f(1), f(1), f(1), f({2, 3})}, {adds, is("num_scan_inputs", 1)}, "its body has too few outputs"},
  });
}
// clang-format on
