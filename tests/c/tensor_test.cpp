#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "handles.h"

using namespace reel_test;

TEST_CASE("a tensor of C has a copy of the caller's elements, at any address, in every dtype") {
  struct Row {
    reel_dtype dtype;
    std::size_t bytes;
  };
  for (const Row& row : {Row{REEL_F32, 4}, Row{REEL_F64, 8}, Row{REEL_BF16, 2}, Row{REEL_F16, 2}, Row{REEL_I32, 4},
                         Row{REEL_I64, 8}, Row{REEL_U8, 1}, Row{REEL_BOOL, 1}, Row{REEL_I8, 1}, Row{REEL_I16, 2}}) {
    INFO("dtype " << row.dtype);
    std::vector<unsigned char> bytes(6 * row.bytes + 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i % 2);
    const std::int64_t sizes[] = {2, 3};
    reel_tensor* made = nullptr;
    REQUIRE(reel_tensor_create(row.dtype, 2, sizes, bytes.data() + 1, 6 * row.bytes, &made) == REEL_OK);
    TensorHandle tensor(made);
    CHECK(sizes_of(tensor) == std::vector<std::int64_t>{2, 3});
    CHECK(reel_tensor_dtype(made) == row.dtype);
    CHECK(reel_tensor_bytes(made) == 6 * row.bytes);
    CHECK(std::memcmp(reel_tensor_data(made), bytes.data() + 1, 6 * row.bytes) == 0);
    CHECK(reel_tensor_data(made) != bytes.data() + 1);
  }
}

TEST_CASE("a wrapped tensor of C shares the caller's elements and releases them once, with its last view") {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  int released = 0;
  const std::int64_t sizes[] = {3, 2};
  reel_tensor *wrapped = nullptr, *rows = nullptr;
  auto release = [](void* owner) { ++*static_cast<int*>(owner); };
  REQUIRE(reel_tensor_wrap(REEL_F32, 2, sizes, values.data(), 24, release, &released, &wrapped) == REEL_OK);
  CHECK(reel_tensor_data(wrapped) == values.data());
  REQUIRE(reel_tensor_rows(wrapped, 1, 3, &rows) == REEL_OK);
  CHECK(reel_tensor_data(rows) == values.data() + 2);
  reel_tensor_free(wrapped);
  CHECK(released == 0);
  std::thread([&] { reel_tensor_free(rows); }).join();
  CHECK(released == 1);

  wrapped = nullptr;
  auto* bytes = reinterpret_cast<unsigned char*>(values.data());
  CHECK(reel_tensor_wrap(REEL_F32, 1, sizes, bytes + 1, 12, release, &released, &wrapped) == REEL_SHAPE_ERROR);
  CHECK(wrapped == nullptr);
  CHECK(released == 1);
}

TEST_CASE("what is wrong with a tensor of C is said in a sentence, and the result stays as it was") {
  const std::int64_t sizes[] = {2, 3}, negative[] = {2, -3}, huge[] = {1LL << 40, 1LL << 40};
  const float values[6] = {};
  const unsigned char bytes[] = {0, 1, 2, 0, 1, 1};
  reel_tensor* const before = reinterpret_cast<reel_tensor*>(0x10);
  struct Row {
    reel_status status;
    const char* sentence;
    std::function<reel_status(reel_tensor**)> call;
  };
  const Row rows[] = {
      {REEL_ARGUMENT_ERROR, "reel_tensor_create: the elements of (2, 3) f32 have 24 bytes, not 20",
       [&](auto r) { return reel_tensor_create(REEL_F32, 2, sizes, values, 20, r); }},
      {REEL_ARGUMENT_ERROR, "reel_tensor_create: data is NULL",
       [&](auto r) { return reel_tensor_create(REEL_F32, 2, sizes, nullptr, 24, r); }},
      {REEL_ARGUMENT_ERROR, "reel_tensor_create: sizes is NULL",
       [&](auto r) { return reel_tensor_create(REEL_F32, 2, nullptr, values, 24, r); }},
      {REEL_ARGUMENT_ERROR, "reel_tensor_create: element 2 of bool is 2, and neither 0 nor 1",
       [&](auto r) { return reel_tensor_create(REEL_BOOL, 2, sizes, bytes, 6, r); }},
      {REEL_SHAPE_ERROR, "reel_tensor_create: a tensor has from 0 to 8 axes, not 9",
       [&](auto r) { return reel_tensor_create(REEL_F32, 9, sizes, values, 24, r); }},
      {REEL_SHAPE_ERROR, "reel_tensor_create: a tensor has from 0 to 8 axes, not -1",
       [&](auto r) { return reel_tensor_create(REEL_F32, -1, sizes, values, 24, r); }},
      {REEL_SHAPE_ERROR, "reel_tensor_create: the shape (2, -3) has a negative size",
       [&](auto r) { return reel_tensor_create(REEL_F32, 2, negative, values, 24, r); }},
      {REEL_SHAPE_ERROR, "has more elements than memory can hold",
       [&](auto r) { return reel_tensor_create(REEL_F32, 2, huge, values, 24, r); }},
      {REEL_DTYPE_ERROR, "reel_tensor_create: there is no dtype 10",
       [&](auto r) { return reel_tensor_create(10, 2, sizes, values, 24, r); }},
      {REEL_ARGUMENT_ERROR, "reel_tensor_convert: the tensor is NULL",
       [&](auto r) { return reel_tensor_convert(nullptr, REEL_F64, r); }},
      {REEL_ARGUMENT_ERROR, "reel_tensor_concat: there are no tensors to join",
       [&](auto r) { return reel_tensor_concat(nullptr, 0, 0, r); }},
      {REEL_ARGUMENT_ERROR, "reel_op_run: there is no op 'tanhh'",
       [&](auto r) { return reel_op_run("tanhh", nullptr, 1, r); }},
      {REEL_ARGUMENT_ERROR, "reel_op_run: add takes 2 tensors, not 1",
       [&](auto r) { return reel_op_run("add", nullptr, 1, r); }},
      {REEL_ARGUMENT_ERROR, "reel_op_run: name is NULL", [&](auto r) { return reel_op_run(nullptr, nullptr, 1, r); }},
      {REEL_FILE_ERROR, "/nowhere",
       [&](auto) {
         reel_weights* none = nullptr;
         return reel_weights_load("/nowhere/file.safetensors", &none);
       }},
  };
  for (const Row& row : rows) {
    INFO(row.sentence);
    reel_tensor* result = before;
    CHECK(row.call(&result) == row.status);
    CHECK(result == before);
    CHECK(reel_last_status() == row.status);
    CHECK_THAT(reel_last_error(), contains(row.sentence));
  }
  CHECK(reel_tensor_create(REEL_F32, 2, sizes, values, 24, nullptr) == REEL_ARGUMENT_ERROR);
  CHECK(reel_tensor_rank(nullptr) == -1);
  CHECK(reel_tensor_numel(nullptr) == -1);
  CHECK(reel_tensor_dtype(nullptr) == -1);
  CHECK(reel_tensor_bytes(nullptr) == 0);
  CHECK(reel_tensor_data(nullptr) == nullptr);
  reel_tensor_free(nullptr);
  reel_weights_free(nullptr);
  reel_model_free(nullptr);
}

TEST_CASE("each thread of C has its own last error") {
  CHECK(reel_tensor_rank(nullptr) == -1);
  std::string before = reel_last_error();
  CHECK(before == "reel_tensor_rank: the tensor is NULL");
  std::thread([] {
    CHECK(reel_last_status() == REEL_OK);
    CHECK(std::string(reel_last_error()).empty());
    CHECK(reel_set_thread_count(0) == REEL_ERROR);
  }).join();
  CHECK(reel_last_error() == before);
  CHECK(std::string(reel_status_name(REEL_MISFIT_ERROR)) == "misfit error");
  CHECK(std::string(reel_status_name(11)) == "unknown status");
}

TEST_CASE("tensors of C are converted, reshaped, divided and joined") {
  TensorHandle x = tensor_of<float>(REEL_F32, {3, 2}, {1.5, -2.5, 3, 4, 5, 6});
  reel_tensor* made = nullptr;
  REQUIRE(reel_tensor_convert(x.get(), REEL_I32, &made) == REEL_OK);
  CHECK(values_of<std::int32_t>(TensorHandle(made)) == std::vector<std::int32_t>{1, -2, 3, 4, 5, 6});
  const std::int64_t sizes[] = {2, -1};
  REQUIRE(reel_tensor_reshape(x.get(), 2, sizes, &made) == REEL_OK);
  CHECK(sizes_of(TensorHandle(made)) == std::vector<std::int64_t>{2, 3});
  REQUIRE(reel_tensor_rows(x.get(), 1, 2, &made) == REEL_OK);
  TensorHandle row(made);
  CHECK(values_of<float>(row) == std::vector<float>{3, 4});
  const reel_tensor* parts[] = {x.get(), row.get()};
  REQUIRE(reel_tensor_concat(parts, 2, 0, &made) == REEL_OK);
  CHECK(values_of<float>(TensorHandle(made)) == std::vector<float>{1.5, -2.5, 3, 4, 5, 6, 3, 4});

  made = nullptr;
  CHECK(reel_tensor_concat(parts, 2, 1, &made) == REEL_SHAPE_ERROR);
  CHECK(reel_tensor_concat(parts, 2, 2, &made) == REEL_SHAPE_ERROR);
  const std::int64_t four[] = {4, -1};
  CHECK(reel_tensor_reshape(x.get(), 2, four, &made) == REEL_SHAPE_ERROR);
  for (auto [begin, end] : {std::pair(-1, 1), std::pair(2, 1), std::pair(0, 4)}) {
    CHECK(reel_tensor_rows(x.get(), begin, end, &made) == REEL_INDEX_ERROR);
    CHECK_THAT(reel_last_error(), contains("in (3, 2) f32"));
  }
  CHECK(made == nullptr);
  float buffer[6];
  CHECK(reel_tensor_copy_out(x.get(), buffer, 20) == REEL_ARGUMENT_ERROR);
  CHECK(reel_tensor_size(x.get(), 2) == -1);
}

TEST_CASE("an op of C computes what its name says") {
  using Unary = double (*)(double);
  const std::map<std::string, Unary> unary = {
      {"abs", std::fabs},
      {"ceil", std::ceil},
      {"cos", std::cos},
      {"erf", std::erf},
      {"exp", std::exp},
      {"floor", std::floor},
      {"gelu", [](double x) { return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"isfinite", [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
      {"isnan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"log", std::log},
      {"log1p", std::log1p},
      {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"neg", [](double x) { return -x; }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"round", std::nearbyint},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"sign", [](double x) { return double(x > 0) - double(x < 0); }},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"sin", std::sin},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
      {"sqrt", std::sqrt},
      {"square", [](double x) { return x * x; }},
      {"tan", std::tan},
      {"tanh", std::tanh},
  };
  using Binary = double (*)(double, double);
  const std::map<std::string, Binary> binary = {
      {"add", [](double a, double b) { return a + b; }},
      {"div", [](double a, double b) { return a / b; }},
      {"equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"floor_divide", [](double a, double b) { return std::floor(a / b); }},
      {"greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {"greater_equal", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"less_equal", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {"maximum", [](double a, double b) { return std::max(a, b); }},
      {"minimum", [](double a, double b) { return std::min(a, b); }},
      {"mod", [](double a, double b) { return a - b * std::floor(a / b); }},
      {"mul", [](double a, double b) { return a * b; }},
      {"not_equal", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"pow", [](double a, double b) { return std::pow(a, b); }},
      {"sub", [](double a, double b) { return a - b; }},
  };
  const std::vector<double> a = {0.3, 1.7, 2.5, 0.5, 1.25, 3}, b = {0.3, 0.7, 2, 1.5, 0.25, 3};
  TensorHandle x = tensor_of(REEL_F64, {2, 3}, a), y = tensor_of(REEL_F64, {2, 3}, b);
  auto as_f64 = [](TensorHandle tensor) {
    REQUIRE(tensor);
    reel_tensor* made = nullptr;
    REQUIRE(reel_tensor_convert(tensor.get(), REEL_F64, &made) == REEL_OK);
    return values_of<double>(TensorHandle(made));
  };
  auto close = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-12));
  };
  std::size_t seen = 0;
  for (const auto& [name, f] : unary) {
    INFO(name);
    std::vector<double> expected;
    for (double value : a) expected.push_back(f(value));
    close(as_f64(run_op(name.c_str(), {x.get()})), expected);
    ++seen;
  }
  for (const auto& [name, f] : binary) {
    INFO(name);
    std::vector<double> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(f(a[i], b[i]));
    close(as_f64(run_op(name.c_str(), {x.get(), y.get()})), expected);
    ++seen;
  }
  double total = std::exp(0.3) + std::exp(1.7) + std::exp(2.5), other = std::exp(0.5) + std::exp(1.25) + std::exp(3.0);
  TensorHandle low = tensor_of<double>(REEL_F64, {}, {0.4}), high = tensor_of<double>(REEL_F64, {}, {2});
  TensorHandle less = run_op("less", {x.get(), y.get()});
  struct Row {
    const char* name;
    std::vector<const reel_tensor*> operands;
    std::vector<double> expected;
  };
  TensorHandle column = run_op("transpose", {y.get()});
  const Row rows[] = {
      {"argmax", {x.get()}, {2, 2}},
      {"argmin", {x.get()}, {0, 0}},
      {"softmax",
       {x.get()},
       {std::exp(0.3) / total, std::exp(1.7) / total, std::exp(2.5) / total, std::exp(0.5) / other,
        std::exp(1.25) / other, std::exp(3.0) / other}},
      {"log_softmax",
       {x.get()},
       {0.3 - std::log(total), 1.7 - std::log(total), 2.5 - std::log(total), 0.5 - std::log(other),
        1.25 - std::log(other), 3 - std::log(other)}},
      {"transpose", {x.get()}, {0.3, 0.5, 1.7, 1.25, 2.5, 3}},
      {"max", {x.get()}, {3}},
      {"min", {x.get()}, {0.3}},
      {"sum", {x.get()}, {9.25}},
      {"mean", {x.get()}, {9.25 / 6}},
      {"prod", {x.get()}, {0.3 * 1.7 * 2.5 * 0.5 * 1.25 * 3}},
      {"matmul", {x.get(), column.get()}, {0.09 + 1.19 + 5, 0.45 + 0.425 + 7.5, 0.15 + 0.875 + 6, 0.75 + 0.3125 + 9}},
      {"clamp", {x.get(), low.get(), high.get()}, {0.4, 1.7, 2, 0.5, 1.25, 2}},
      {"where", {less.get(), x.get(), low.get()}, {0.4, 0.4, 0.4, 0.5, 0.4, 0.4}},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    close(as_f64(run_op(row.name, row.operands)), row.expected);
    ++seen;
  }
  CHECK(seen == reel_op_count());
  CHECK(reel_op_name(reel_op_count()) == nullptr);
  for (std::size_t i = 1; i < reel_op_count(); ++i) CHECK(std::strcmp(reel_op_name(i - 1), reel_op_name(i)) < 0);
}
