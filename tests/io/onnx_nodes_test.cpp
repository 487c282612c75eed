#include "onnx_nodes.h"

using namespace reel_test;
using detail::OnnxAttribute;
using io::onnx::attribute;

namespace {

OnnxAttribute value_of(const Tensor& value) {
  OnnxAttribute made = is("value", 0);
  made.kind = OnnxAttribute::Kind::tensor;
  made.tensor = std::make_shared<detail::OnnxTensor>(io::onnx::onnx_tensor("", value));
  return made;
}

}  // namespace

// clang-format off
TEST_CASE("elementwise nodes of other programs compute what ONNX says") {
  Tensor x = f({{1, 2, 3}, {4, 5, 6}});
  check(std::vector<Case>{
      {__LINE__, "Constant", {}, {value_of(x)}, {x}},
      {__LINE__, "Constant", {}, {is("of_another_kind", 1), value_of(n({1, 2}))}, {n({1, 2})}},
      {__LINE__, "Identity", {x}, {}, {x}},
      {__LINE__, "Div", {f({-7, 7}), f({2, -2})}, {}, {f({-3.5, -3.5})}},
      {__LINE__, "Div", {n({-7, 7, 7, -7}), n({2, -2, 2, -2})}, {}, {n({-3, -3, 3, 3})}},
      {__LINE__, "Mod", {n({-7, 7, -6}), n({3, -3, 3})}, {}, {n({2, -2, 0})}},
      {__LINE__, "Mod", {n({-7, 7}), n({3, -3})}, {is("fmod", 1)}, {n({-1, 1})}},
      {__LINE__, "Mod", {f({-7, 7}), f({3, -3})}, {is("fmod", 1)}, {f({-1, 1})}},
      {__LINE__, "Max", {f({1, 5, 3}), f({4, 2, 0}), f({2, 2, 9})}, {}, {f({4, 5, 9})}},
      {__LINE__, "Min", {f({1, 5, 3}), f({4, 2, 0}), f({2, 2, -9})}, {}, {f({1, 2, -9})}},
      {__LINE__, "Max", {x}, {}, {x}},
      {__LINE__, "Where", {tensor({true, false}), f({1, 2}), f({3, 4})}, {}, {f({1, 4})}},
      {__LINE__, "Cast", {f({1.5, -2})}, {is("to", 7)}, {n({1, -2})}},
      {__LINE__, "LeakyRelu", {f({-100, 2})}, {}, {f({-1, 2})}},
      {__LINE__, "LeakyRelu", {f({-100, 2})}, {attribute("alpha", 0.5)}, {f({-50, 2})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "Constant", {}, {is("value_int", 1)}, "it has no tensor"},
      {__LINE__, "Cast", {x}, {is("to", 8)}, "reel has no such element type"},
      {__LINE__, "Cast", {x}, {}, "reel has no such element type"},
      {__LINE__, "Mod", {x, x}, {}, "fmod has to be 1 for floating numbers"},
      {__LINE__, "Add", {x}, {}, "operand 1 is missing"},
      {__LINE__, "Add", {x, Tensor()}, {}, "operand 1 is missing"},
      {__LINE__, "LeakyRelu", {x}, {is("alpha", 1)}, "its attribute alpha is of another kind"},
  });
}

TEST_CASE("reductions of other programs compute what ONNX says") {
  Tensor x = f({{1, 2, 4}, {8, 5, 6}});
  OnnxAttribute without = is("keepdims", 0);
  check(std::vector<Case>{
      {__LINE__, "ReduceSum", {x}, {}, {f({{26}})}},
      {__LINE__, "ReduceSum", {x}, {without}, {f(26)}},
      {__LINE__, "ReduceSum", {x, no_numbers()}, {}, {f({{26}})}},
      {__LINE__, "ReduceSum", {x, no_numbers()}, {is("noop_with_empty_axes", 1)}, {x}},
      {__LINE__, "ReduceSum", {x}, {is("noop_with_empty_axes", 1)}, {x}},
      {__LINE__, "ReduceSum", {x, n({1})}, {is("noop_with_empty_axes", 1)}, {f({{7}, {19}})}},
      {__LINE__, "ReduceSum", {x, n({-2})}, {without}, {f({9, 7, 10})}},
      {__LINE__, "ReduceSum", {tensor({{1, 2}}, {.dtype = i32}), n({1})}, {without}, {tensor({3}, {.dtype = i32})}},
      {__LINE__, "ReduceMean", {x}, {}, {f({{26.0 / 6}})}},
      {__LINE__, "ReduceMean", {x}, {list("axes", {-1}), without}, {f({7.0 / 3, 19.0 / 3})}},
      {__LINE__, "ReduceMax", {x}, {}, {f({{8}})}},
      {__LINE__, "ReduceMax", {x}, {list("axes", {0})}, {f({{8, 5, 6}})}},
      {__LINE__, "ReduceMin", {x}, {without}, {f(1)}},
      {__LINE__, "ReduceProd", {x}, {list("axes", {1})}, {f({{8}, {240}})}},
      {__LINE__, "ReduceLogSumExp", {f({{0, 0}, {0, 0}})}, {}, {f({{1.3862944}})}},
      {__LINE__, "ArgMax", {x}, {}, {n({{1, 1, 1}})}},
      {__LINE__, "ArgMax", {x}, {is("axis", -1), without}, {n({2, 0})}},
      {__LINE__, "ArgMin", {x}, {is("axis", 1)}, {n({{0}, {1}})}},
      {__LINE__, "CumSum", {x, n(1)}, {}, {f({{1, 3, 7}, {8, 13, 19}})}},
      {__LINE__, "CumSum", {x, n(-2)}, {}, {f({{1, 2, 4}, {9, 7, 10}})}},
      {__LINE__, "CumSum", {x, n(1)}, {is("reverse", 1)}, {f({{7, 6, 4}, {19, 11, 6}})}},
      {__LINE__, "CumSum", {tensor({1, 2}, {.dtype = i32}), n(0)}, {}, {tensor({1, 3}, {.dtype = i32})}},
      {__LINE__, "TopK", {x, n({2})}, {}, {f({{4, 2}, {8, 6}}), n({{2, 1}, {0, 2}})}},
      {__LINE__, "TopK", {x, n({1})}, {is("axis", 0)}, {f({{8, 5, 6}}), n({{1, 1, 1}})}},
      {__LINE__, "TopK", {x, n({2})}, {is("largest", 0)}, {f({{1, 2}, {5, 6}}), n({{0, 1}, {1, 2}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "ReduceMax", {x}, {list("axes", std::vector<std::int64_t>(9))}, "it reduces more than 8 axes"},
      {__LINE__, "ArgMax", {x}, {is("select_last_index", 1)}, "it selects the last of equal elements"},
      {__LINE__, "ArgMin", {x}, {is("axis", 2)}, "there is no axis 2 of 2"},
      {__LINE__, "ArgMin", {x}, {is("axis", -3)}, "there is no axis -3 of 2"},
      {__LINE__, "CumSum", {x, n(1)}, {is("exclusive", 1)}, "it leaves out each element itself"},
      {__LINE__, "TopK", {x, n({1, 2})}, {}, "operand 1 has 2 numbers instead of 1"},
      {__LINE__, "TopK", {x, f({1})}, {}, "not a short list of i64"},
      {__LINE__, "ReduceSum", {x, n({{0}})}, {}, "not a short list of i64"},
      {__LINE__, "ReduceSum", {x, zeros({65}, {.dtype = i64})}, {}, "not a short list of i64"},
      {__LINE__, "ReduceMax", {x}, {list("axes", std::vector<std::int64_t>(65))}, "its attribute axes is too long"},
  });
}

TEST_CASE("nodes of other programs that change shapes compute what ONNX says") {
  Tensor x = f({{1, 2, 3}, {4, 5, 6}}), empty = zeros({0, 3});
  check(std::vector<Case>{
      {__LINE__, "Shape", {x}, {}, {n({2, 3})}},
      {__LINE__, "Shape", {x}, {is("start", -1)}, {n({3})}},
      {__LINE__, "Shape", {x}, {is("end", -1)}, {n({2})}},
      {__LINE__, "Shape", {x}, {is("start", -9), is("end", 9)}, {n({2, 3})}},
      {__LINE__, "Shape", {x}, {is("start", 1), is("end", 1)}, {no_numbers()}},
      {__LINE__, "Shape", {x}, {is("start", 1), is("end", 0)}, {no_numbers()}},
      {__LINE__, "Reshape", {x, n({3, -1})}, {}, {f({{1, 2}, {3, 4}, {5, 6}})}},
      {__LINE__, "Reshape", {x, n({0, 1, 3})}, {}, {f({{{1, 2, 3}}, {{4, 5, 6}}})}},
      {__LINE__, "Reshape", {empty, n({3, 0})}, {is("allowzero", 1)}, {zeros({3, 0})}},
      {__LINE__, "Expand", {f({{1}, {2}}), n({3})}, {}, {f({{1, 1, 1}, {2, 2, 2}})}},
      {__LINE__, "Expand", {x, n({1, 1})}, {}, {x}},
      {__LINE__, "Transpose", {x}, {}, {f({{1, 4}, {2, 5}, {3, 6}})}},
      {__LINE__, "Transpose", {x}, {list("perm", {0, 1})}, {x}},
      {__LINE__, "Slice", {x, n({1}), n({9})}, {}, {f({{4, 5, 6}})}},
      {__LINE__, "Slice", {x, n({0, -2}), n({1, 3})}, {}, {f({{2, 3}})}},
      {__LINE__, "Slice", {x, n({0}), n({3}), n({-1}), n({2})}, {}, {f({{1, 3}, {4, 6}})}},
      {__LINE__, "Split", {x}, {}, {f({{1, 2, 3}}), f({{4, 5, 6}})}},
      {__LINE__, "Split", {x, n({1, 2})}, {is("axis", -1)}, {f({{1}, {4}}), f({{2, 3}, {5, 6}})}},
      {__LINE__, "Squeeze", {f({{{1}, {2}}})}, {}, {f({1, 2})}},
      {__LINE__, "Squeeze", {f({{{1}, {2}}}), n({-1})}, {}, {f({{1, 2}})}},
      {__LINE__, "Squeeze", {f({{{1}, {2}}}), n({0})}, {}, {f({{1}, {2}})}},
      {__LINE__, "Unsqueeze", {f({1, 2}), n({-1})}, {}, {f({{1}, {2}})}},
      {__LINE__, "Unsqueeze", {f({1, 2}), n({0, 2})}, {}, {f({{{1}, {2}}})}},
      {__LINE__, "Unsqueeze", {zeros({1, 1, 1, 1, 1, 1}), n({0, 1})}, {}, {zeros({1, 1, 1, 1, 1, 1, 1, 1})}},
      {__LINE__, "Concat", {x, f({{7}, {8}})}, {is("axis", -1)}, {f({{1, 2, 3, 7}, {4, 5, 6, 8}})}},
      {__LINE__, "Pad", {f({1, 2}), n({1, 2})}, {}, {f({0, 1, 2, 0, 0})}},
      {__LINE__, "Pad", {f({1, 2}), n({0, 1}), f(7)}, {attribute("mode", "constant")}, {f({1, 2, 7})}},
      {__LINE__, "Range", {n(2), n(7), n(2)}, {}, {n({2, 4, 6})}},
      {__LINE__, "Range", {n(2), n(6), n(2)}, {}, {n({2, 4})}},
      {__LINE__, "Range", {n(7), n(2), n(-2)}, {}, {n({7, 5, 3})}},
      {__LINE__, "Range", {n(7), n(3), n(-2)}, {}, {n({7, 5})}},
      {__LINE__, "Range", {n(2), n(2), n(1)}, {}, {no_numbers()}},
      {__LINE__, "Range", {n(2), n(2), n(-1)}, {}, {no_numbers()}},
      {__LINE__, "Range", {n(2), n(1), n(1)}, {}, {no_numbers()}},
      {__LINE__, "OneHot", {n({1, 0}), n(2), f({3, 5})}, {}, {f({{3, 5}, {5, 3}})}},
      {__LINE__, "Trilu", {x}, {}, {f({{1, 2, 3}, {0, 5, 6}})}},
      {__LINE__, "Trilu", {x, n(1)}, {}, {f({{0, 2, 3}, {0, 0, 6}})}},
      {__LINE__, "Trilu", {x}, {is("upper", 0)}, {f({{1, 0, 0}, {4, 5, 0}})}},
  });
  std::vector<std::int64_t> nine(9, 1);
  check(std::vector<Refusal>{
      {__LINE__, "Reshape", {x, n({2, 3, 0})}, {}, "a size is to be that of an axis that its operand lacks"},
      {__LINE__, "Reshape", {x, tensor(nine)}, {}, "it names more than 8 axes"},
      {__LINE__, "Expand", {x, n({2, 2})}, {}, "the shapes do not broadcast"},
      {__LINE__, "Expand", {x, n({-1, 3})}, {}, "its result would have a size of -1"},
      {__LINE__, "Expand", {x, tensor(nine)}, {}, "its result would have 9 axes"},
      {__LINE__, "Expand", {f(1), n({1 << 15, 1 << 15})}, {}, "its result would have more than 268435456 elements"},
      {__LINE__, "Slice", {x, n({0}), n({1, 1})}, {}, "its lists do not have one length"},
      {__LINE__, "Slice", {x, n({0}), n({1}), n({0, 1})}, {}, "its lists do not have one length"},
      {__LINE__, "Slice", {x, n({0}), n({1}), n({0}), n({1, 1})}, {}, "its lists do not have one length"},
      {__LINE__, "Slice", {x, n({0}), n({1}), n({0}), n({0})}, {}, "a step is 0"},
      {__LINE__, "Split", {f({1, 2})}, {is("axis", 1)}, "there is no axis 1 of 1"},
      {__LINE__, "Squeeze", {x, n({0})}, {}, "an axis that is removed has not size 1"},
      {__LINE__, "Unsqueeze", {x, n({0, 0})}, {}, "an axis is added twice"},
      {__LINE__, "Unsqueeze", {zeros({1, 1, 1, 1, 1, 1, 1}), n({0, 1})}, {}, "its result would have more than 8 axes"},
      {__LINE__, "Concat", {}, {is("axis", 0)}, "it has no operands"},
      {__LINE__, "Pad", {x, n({0, 0, 0, 0})}, {attribute("mode", "reflect")}, "its mode is not 'constant'"},
      {__LINE__, "Pad", {x, n({0, 0})}, {}, "there are not two widths for each axis"},
      {__LINE__, "Range", {n(0), n(1), n(0)}, {}, "its step is 0"},
      {__LINE__, "Range", {f(0), f(1), f(1)}, {}, "reel runs Range on i64 only"},
      {__LINE__, "OneHot", {n({1}), n(2), f({0, 1})}, {is("axis", 0)}, "its axis is not the last"},
      {__LINE__, "OneHot", {n({1}), n(0), f({0, 1})}, {}, "its values or its depth do not fit"},
      {__LINE__, "OneHot", {n({1}), n(2), f({0})}, {}, "its values or its depth do not fit"},
  });
  CHECK_THAT(error_of<Error>([&] { results_of("Split", {x}, {is("axis", 1)}, 2); }),
             contains("its parts are not of one size"));
  CHECK_THAT(error_of<Error>([&] { results_of("Add", {x, x}, {}, 2); }), contains("it has no result 1"));
}

TEST_CASE("nodes of other programs that take indices compute what ONNX says") {
  Tensor x = f({{1, 2, 3}, {4, 5, 6}});
  check(std::vector<Case>{
      {__LINE__, "Gather", {x, n(1)}, {}, {f({4, 5, 6})}},
      {__LINE__, "Gather", {x, n({{2, 0}})}, {is("axis", -1)}, {f({{{3, 1}}, {{6, 4}}})}},
      {__LINE__, "GatherElements", {x, n({{1, 0, 1}})}, {}, {f({{4, 2, 6}})}},
      {__LINE__, "GatherElements", {x, n({{2}, {0}})}, {is("axis", 1)}, {f({{3}, {4}})}},
      {__LINE__, "ScatterElements", {x, n({{1, 0, 1}}), f({{7, 8, 9}})}, {}, {f({{1, 8, 3}, {7, 5, 9}})}},
      {__LINE__, "ScatterElements", {x, n({{2}, {0}}), f({{7}, {8}})}, {is("axis", 1), attribute("reduction", "add")},
       {f({{1, 2, 10}, {12, 5, 6}})}},
      {__LINE__, "ScatterND", {x, n({{1}}), f({{7, 8, 9}})}, {}, {f({{1, 2, 3}, {7, 8, 9}})}},
      {__LINE__, "ScatterND", {x, n({{1}, {1}}), f({{1, 1, 1}, {2, 2, 2}})}, {attribute("reduction", "add")},
       {f({{1, 2, 3}, {7, 8, 9}})}},
  });
  check(std::vector<Refusal>{
      {__LINE__, "Gather", {x, n(0)}, {is("axis", 2)}, "there is no axis 2 of 2"},
      {__LINE__, "ScatterElements", {x, n({{1}}), f({{7}})}, {attribute("reduction", "mul")}, "its reduction is neither"},
      {__LINE__, "ScatterND", {x, n({{1, 2}}), f({7})}, {}, "reel runs ScatterND on rows of axis 0 only"},
  });
}
// clang-format on
