#include <reel/reel.h>

#include <limits>
#include <sstream>

#include "catch.h"

using namespace reel;

TEST_CASE("tensors print as NumPy's arrays do") {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct Row {
    Tensor tensor;
    std::string text;
  };
  // Source of the texts: NumPy 2.4.
  const Row rows[] = {
      {tensor({{1.f, 2.f}, {3.f, 4.f}}), R"([[1. 2.]
 [3. 4.]])"},
      {tensor({1.5, -2.25, 3.0}), "[ 1.5  -2.25  3.  ]"},
      {tensor({0.1f, 0.2f, 1.f / 3}), "[0.1        0.2        0.33333334]"},
      {tensor({0.1, 1.0 / 3, 2.0 / 3}), "[0.1        0.33333333 0.66666667]"},
      {tensor({1e-5, 1.0}), "[1.e-05 1.e+00]"},
      {tensor({0.001, 1.001}), "[1.000e-03 1.001e+00]"},
      {tensor({1e8, 1.0}), "[1.e+08 1.e+00]"},
      {tensor({99999999.0, 1e6}), "[99999999.  1000000.]"},
      {tensor({1234567.f, 1e6f}), "[1.234567e+06 1.000000e+06]"},
      {tensor({999999.f, 1000.f}), "[999999.   1000.]"},
      {tensor({1e-300, 1e300, -2.5}), "[ 1.0e-300  1.0e+300 -2.5e+000]"},
      {tensor({1.0, nan, -infinity}), "[  1.  nan -inf]"},
      {tensor({nan, infinity}), "[nan inf]"},
      {tensor({nan, 1e10, -infinity}), "[   nan 1.e+10   -inf]"},
      {tensor({0.0, -0.0}), "[ 0. -0.]"},
      {tensor({1, -20, 300}), "[  1 -20 300]"},
      {tensor({{1l, 10l}, {-100l, 1000l}}), R"([[   1   10]
 [-100 1000]])"},
      {tensor({true, false, true}), "[ True False  True]"},
      {to(tensor({1.5, 100.25, 0.1}), f16), "[1.5000e+00 1.0025e+02 9.9976e-02]"},
      {to(tensor({65504.0, 0.1}), f16), "[6.55e+04 1.00e-01]"},
      {to(tensor({7, 255}), u8), "[  7 255]"},
      {full({}, 2.5), "2.5"},
      {full({}, 3), "3.0"},
      {full({}, 0.1, {.dtype = f64}), "0.1"},
      {full({}, 1e16, {.dtype = f64}), "1e+16"},
      {full({}, 1e-5), "1e-05"},
      {full({}, -infinity), "-inf"},
      {full({}, 7, {.dtype = i64}), "7"},
      {full({}, true, {.dtype = boolean}), "True"},
      {zeros({0, 3}), "[]"},
      {reshape(arange(24), {2, 3, 4}), R"([[[ 0  1  2  3]
  [ 4  5  6  7]
  [ 8  9 10 11]]

 [[12 13 14 15]
  [16 17 18 19]
  [20 21 22 23]]])"},
      {reshape(arange(8), {2, 1, 2, 2}), R"([[[[0 1]
   [2 3]]]


 [[[4 5]
   [6 7]]]])"},
      {transpose(reshape(arange(6), {2, 3})), R"([[0 3]
 [1 4]
 [2 5]])"},
      {slice(arange(10), 0, 8, 0, -3), "[8 5 2]"},
      {expand(tensor({1.5f, 2.f}), {2, 2}), R"([[1.5 2. ]
 [1.5 2. ]])"},
      {arange(30), R"([ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
 24 25 26 27 28 29])"},
      {arange(20, {.dtype = f32}) / 7, R"([0.         0.14285715 0.2857143  0.42857143 0.5714286  0.71428573
 0.85714287 1.         1.1428572  1.2857143  1.4285715  1.5714285
 1.7142857  1.8571428  2.         2.142857   2.2857144  2.4285715
 2.5714285  2.7142856 ])"},
      {arange(1001), "[   0    1    2 ...  998  999 1000]"},
      {reshape(arange(1200), {30, 40}), R"([[   0    1    2 ...   37   38   39]
 [  40   41   42 ...   77   78   79]
 [  80   81   82 ...  117  118  119]
 ...
 [1080 1081 1082 ... 1117 1118 1119]
 [1120 1121 1122 ... 1157 1158 1159]
 [1160 1161 1162 ... 1197 1198 1199]])"},
      {reshape(arange(2000, {.dtype = f32}), {2, 500, 2}), R"([[[0.000e+00 1.000e+00]
  [2.000e+00 3.000e+00]
  [4.000e+00 5.000e+00]
  ...
  [9.940e+02 9.950e+02]
  [9.960e+02 9.970e+02]
  [9.980e+02 9.990e+02]]

 [[1.000e+03 1.001e+03]
  [1.002e+03 1.003e+03]
  [1.004e+03 1.005e+03]
  ...
  [1.994e+03 1.995e+03]
  [1.996e+03 1.997e+03]
  [1.998e+03 1.999e+03]]])"},
      {reshape(arange(1500), {5, 300}), R"([[   0    1    2 ...  297  298  299]
 [ 300  301  302 ...  597  598  599]
 [ 600  601  602 ...  897  898  899]
 [ 900  901  902 ... 1197 1198 1199]
 [1200 1201 1202 ... 1497 1498 1499]])"},
  };
  for (const Row& row : rows) {
    CHECK(to_string(row.tensor) == row.text);
    std::ostringstream out;
    out << row.tensor;
    CHECK(out.str() == row.text);
  }
}

TEST_CASE("bf16 prints the fewest digits that tell its neighbours apart") {
  CHECK(to_string(to(tensor({0.1, 1.0 / 3, 2.0}), bf16)) == "[0.1   0.334 2.   ]");
  CHECK(to_string(full({}, 3.14159, {.dtype = bf16})) == "3.14");
}

TEST_CASE("f16 prints the shortest digits where the lower neighbour is the closer one") {
  CHECK(to_string(full({}, 0.015625, {.dtype = f16})) == "0.01563");
}

TEST_CASE("an undefined tensor prints as such") { CHECK(to_string(Tensor{}) == "undefined"); }

TEST_CASE("printing records nothing and leaves nothing behind") {
  Tensor x = ones({2, 2}).requires_grad();
  Tape tape;
  Tensor y = transpose(x * 2);
  std::size_t entries = tape.size();
  std::int64_t tensors = memory_statistics().live_tensors;
  CHECK(to_string(y) == "[[2. 2.]\n [2. 2.]]");
  CHECK(tape.size() == entries);
  CHECK(memory_statistics().live_tensors == tensors);
}
