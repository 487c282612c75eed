#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "batching/checks.h"

// Results of examples are pending until something needs their elements. Nothing can tell: everything is as if each op had run
// when it was called.

namespace reel_test {

using namespace reel;

namespace {

Tensor row(int i) { return full({2, 3}, 0.25 * (i + 1), {.dtype = f64}); }

// A function by which a program reads elements, whose result is shown as text.
struct Reader {
  const char* name;
  std::function<std::string(const Tensor&)> read;
};

template <class T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string first_of(const double* elements) { return text_of(elements[0]); }

const std::vector<Reader>& readers() {
  static const std::vector<Reader> all{
      {"item", [](const Tensor& x) { return text_of(Tensor(x(0, 1)).item()); }},
      {"to_vector", [](const Tensor& x) { return text_of(x.to_vector<double>()[1]); }},
      {"data", [](const Tensor& x) { return first_of(x.data<double>()); }},
      {"strided_data", [](const Tensor& x) { return first_of(x.strided_data<double>()); }},
      {"of a view", [](const Tensor& x) { return first_of(transpose(x).strided_data<double>()); }},
      {"to_string", [](const Tensor& x) { return to_string(x); }},
      {"<<", [](const Tensor& x) { return text_of(x); }},
      {"statistics", [](const Tensor& x) { return text_of(debug::statistics(x).max); }},
      {"check", [](const Tensor& x) { return debug::check(x > 0), std::string("checked"); }},
      {"nonzero", [](const Tensor& x) { return text_of(nonzero(x > 0.3).numel()); }},
      {"a mask", [](const Tensor& x) { return text_of(masked_select(x, x > 0.3).numel()); }},
      {"allclose", [](const Tensor& x) { return text_of(allclose(x, x + 1e-14)); }},
      {"quantile", [](const Tensor& x) { return text_of(quantile(x, x(0, 0) * 0.5).numel()); }},
      {"matrix_exp", [](const Tensor& x) { return text_of(sum(matrix_exp(matmul(x, transpose(x)))).item()); }},
      {"set_grad",
       [](const Tensor& x) {
         Tensor w = zeros(x.shape(), {.dtype = f64}).requires_grad();
         w.set_grad(x * 1);
         optim::SGD({w}, {.learning_rate = 1}).step();
         return to_string(w);
       }},
      {"dlpack", [](const Tensor& x) { return to_string(io::from_dlpack(io::to_dlpack(x).release())); }},
  };
  return all;
}

// The results of `f` for some examples in a batch and one after the other are equal, down to the text.
void check_equal(const std::function<std::string(int)>& f) {
  std::vector<std::string> expected = batch_map(numbers(5), f, {.immediate = true});
  for (std::int64_t in_flight : {1, 2, 64}) {
    CAPTURE(in_flight);
    CHECK(batch_map(numbers(5), f, {.in_flight = in_flight}) == expected);
  }
}

}  // namespace

TEST_CASE("whatever reads elements of a pending result gets them") {
  for (const Reader& reader : readers()) {
    CAPTURE(reader.name);
    check_equal([&](int i) { return reader.read(tanh(row(i) * 2)); });
  }
}

TEST_CASE("an op computes with the elements that its operands have when it is called") {
  SECTION("overwritten by an op") {
    check_equal([](int i) {
      Tensor x = copy(row(i)), y = x * 2;
      x += 1;
      Tensor z = x * 2;
      x(0) = 5;
      return to_string(y) + to_string(z) + to_string(x);
    });
  }
  SECTION("results that are overwritten") {
    check_equal([](int i) {
      Tensor x = tanh(row(i)), part = x(1), y = part * 3;
      x *= 2;
      return to_string(y) + to_string(part) + to_string(x);
    });
  }
  SECTION("overwritten by what is pending") {
    check_equal([](int i) {
      Tensor x = copy(row(i)), y = tanh(row(i)), z = x - 1;
      copy_(x, y * 2);
      return to_string(z) + to_string(x);
    });
  }
  SECTION("written through a pointer") {
    check_equal([](int i) {
      Tensor x = copy(row(i)), y = x * 2;
      x.write<double>()[0] = -3;
      return to_string(y) + to_string(x * 2);
    });
  }
  SECTION("written through a pointer that is kept") {
    check_equal([](int i) {
      Tensor x = copy(row(i));
      auto elements = x.write<double>();
      elements[0] = -1;
      Tensor y = x * 2;
      elements[0] = -2;
      return to_string(y);
    });
  }
  SECTION("of memory that is not the library's") {
    check_equal([](int i) {
      double elements[2] = {0.5 * i, 1};
      std::int64_t sizes[] = {2};
      io::DLManagedTensor given{{elements, {1, 0}, 1, {2, 64, 1}, sizes, nullptr, 0}, nullptr, nullptr};
      Tensor x = io::from_dlpack(&given), y = x * 2;
      elements[0] = 7;
      return to_string(y) + to_string(x * 2);
    });
  }
  SECTION("a parameter that an optimiser changes") {
    check_equal([](int i) {
      Tensor p = copy(row(i)).requires_grad();
      optim::SGD optimiser({p}, {.learning_rate = 0.5});
      {
        Tape tape;
        tape.backward(sum(p * p));
      }
      Tensor y;
      {
        NoRecord paused;
        y = tanh(row(i)) + p;
      }
      optimiser.step();
      return to_string(y);
    });
  }
}

TEST_CASE("tapes, scopes and uses count from the call") {
  SECTION("NoRecord around a call") {
    auto gradient = [](const BatchOptions& options) {
      Tensor w = full({2, 3}, 0.5, {.dtype = f64}).requires_grad();
      Tape tape;
      std::vector<Tensor> losses = batch_map(
          numbers(4),
          [&](int i) {
            Tensor x = row(i) * w, constant;
            {
              NoRecord paused;
              constant = x * w;
            }
            return sum(x * constant + w);
          },
          options);
      Tensor total = sum(stack(losses)), values = stop_gradient(stack(losses));
      tape.backward(total);
      return std::vector<Tensor>{w.grad(), values};
    };
    check_close(gradient({}), gradient({.immediate = true}));
  }
  SECTION("a tape within the example sees nothing of what was called before") {
    check_equal([](int i) {
      Tensor w = copy(row(i)).requires_grad(), before = w * 3;
      Tape tape;
      Tensor y = sum(before * w);
      std::size_t size = tape.size();
      tape.backward(y);
      return to_string(w.grad()) + text_of(size);
    });
  }
  SECTION("a tensor that is watched after its use is refused") {
    for (bool immediate : {true, false}) {
      Tape tape;
      Tensor w = full({3}, 1.0).requires_grad();
      auto late = [&](int i) {
        Tensor x = copy(row(i)), y = sum(x * 2) * sum(w);
        CHECK_THROWS_AS(tape.watch(x), TapeError);
        CHECK_THROWS_AS(x.requires_grad(), TapeError);
        return y;
      };
      batch_map(numbers(3), late, {.immediate = immediate});
    }
  }
  SECTION("the entries of a tape are those of the calls before") {
    Tape tape;
    Tensor w = full({3}, 1.0).requires_grad();
    std::vector<bool> grew = batch_map(numbers(3), [&](int i) {
      std::size_t before = tape.size();
      Tensor y = tanh(w * (i + 1.0));
      return tape.size() > before && y.defined();
    });
    CHECK(grew == std::vector<bool>(3, true));
  }
  SECTION("anomalies are found at the call") {
    for (bool immediate : {true, false})
      batch_map(numbers(3),
                [&](int i) {
                  Tensor x = row(i) - 10, before = log(x);  // outside of the scope
                  debug::AnomalyScope scope = debug::detect_anomaly();
                  CHECK_THROWS_AS(sqrt(x), AnomalyError);
                  return before;
                },
                {.immediate = immediate});
  }
}

TEST_CASE("an op that refuses elements throws where it is called, with pending operands, too") {
  Tensor table = draw({4, 3}), logits = draw({2, 3});
  for (bool immediate : {true, false})
    for (bool pending : {true, false}) {
      CAPTURE(immediate, pending);
      auto index = [&](int i) {
        Tensor at = tensor({i, i + 1});
        return pending ? at + 1 - 1 : at;
      };
      std::vector<int> refused = batch_map(numbers(6),
                                           [&](int i) {
                                             int count = 0;
                                             auto tries = [&](auto f) {
                                               try {
                                                 f();
                                               } catch (const Error&) {
                                                 ++count;
                                               }
                                             };
                                             tries([&] { embedding(table, index(i)); });
                                             tries([&] { index_select(table, 0, index(i)); });
                                             tries([&] { gather(draw({2, 4}), 1, unsqueeze(index(i), 1)); });
                                             tries([&] { one_hot(index(i), 4); });
                                             tries([&] { cross_entropy(logits, index(i)); });
                                             tries([&] { nll_loss(logits, index(i)); });
                                             tries([&] { cholesky(diag(to(index(i), f64) - 3.5)); });
                                             return count;
                                           },
                                           {.immediate = immediate});
      CHECK(refused == std::vector<int>{1, 1, 3, 7, 6, 6});
    }
}

TEST_CASE("an error of shapes is thrown at the call, and what was called before has run") {
  std::vector<Tensor> kept(4);
  CHECK_THROWS_AS(batch_map(numbers(4),
                            [&](int i) {
                              kept[static_cast<std::size_t>(i)] = tanh(row(i)) * 2;
                              return i == 3 ? matmul(row(i), row(i)) : row(i);
                            }),
                  ShapeError);
  for (int i = 0; i < 4; ++i)
    CHECK(kept[static_cast<std::size_t>(i)].to_vector<double>() == (tanh(row(i)) * 2).to_vector<double>());
}

TEST_CASE("a checkpoint around a batch forms equal groups when it runs again") {
  Tensor W = draw({3, 3}).requires_grad();
  std::vector<std::vector<std::int64_t>> groups;
  Tape tape;
  Tensor y = checkpoint(
      [&](const Tensor& w) {
        BatchReport report;
        std::vector<Tensor> sums = batch_map(numbers(6),
                                             [&](int i) {
                                               Tensor m = row(i);
                                               if (i % 2 == 1)
                                                 m = checkpoint([&](const Tensor& z) { return tanh(matmul(z, W)); }, m);
                                               m = sin(matmul(m, w));
                                               if (i % 3 == 1)
                                                 m = checkpoint([m](const Tensor& z) { return z * m; }, row(i));
                                               if (i % 3 == 2)
                                                 m = checkpoint([&](const Tensor& z) { return tanh(z); }, m * 1);
                                               return sum(tanh(matmul(m, w)));
                                             },
                                             {.report = &report});
        std::vector<std::int64_t>& counts = groups.emplace_back();
        for (const BatchedLine& line : report.lines)
          if (line.op != "checkpoint") counts.insert(counts.end(), {line.calls, line.groups});
        std::ranges::sort(counts);
        return stack(sums);
      },
      W);
  tape.backward(sum(y));
  REQUIRE(groups.size() == 2);
  CHECK(groups[0] == groups[1]);
}

TEST_CASE("everything has run when batch_map returns") {
  std::vector<Tensor> side;
  std::vector<Tensor> made = batch_map(numbers(3), [&](int i) {
    side.push_back(tanh(row(i)));
    return exp(row(i));
  });
  for (int i = 0; i < 3; ++i) {
    CHECK(made[static_cast<std::size_t>(i)].to_vector<double>() == exp(row(i)).to_vector<double>());
    CHECK(side[static_cast<std::size_t>(i)].to_vector<double>() == tanh(row(i)).to_vector<double>());
  }
}

TEST_CASE("calls of one kind run together whose depths differ") {
  Tensor w = draw({3, 3});
  BatchReport report;
  auto example = [&](int i) {
    Tensor x = row(i);
    for (int k = 0; k < i; ++k) x = sin(x);
    return tanh(matmul(x, w));
  };
  std::vector<Tensor> found = batch_map(numbers(5), example, {.report = &report}), expected;
  for (int i : numbers(5)) expected.push_back(example(i));
  check_close(found, expected, 0);
  for (const BatchedLine& line : report.lines) {
    CAPTURE(line.op);
    // One example alone has a fourth sine.
    CHECK(line.groups == (line.op == "sin" ? 3 : line.op == "full" ? 0 : 1));
    if (line.op != "sin" && line.op != "full") CHECK(line.grouped == 5);
  }
}

TEST_CASE("calls that run alone have pending results, and their examples go on") {
  Tensor w = draw({3, 3});
  std::vector<std::string_view> alone{"copy", "expand", "index_add"};
  BatchReport report;
  int tanh_line = 0;
  auto example = [&](int i) {
    Tensor total;
    for (int k = 0; k < 3; ++k) {
      Tensor x = matmul(row(i + k), w), y = copy(x) + expand(slice(x, 1, 0, 1), {2, 3});
      y = index_add(y, 1, tensor({0, 2}), slice(x, 1, 0, 2));
      tanh_line = __LINE__ + 1;
      Tensor one = tanh(y);
      total = total.defined() ? total + one : one;
    }
    return total;
  };
  std::vector<Tensor> found = batch_map(numbers(4), example, {.report = &report}), expected;
  for (int i : numbers(4)) expected.push_back(example(i));
  check_close(found, expected, 0);
  for (const BatchedLine& line : report.lines) {
    if (line.op == "tanh" && line.where.line == tanh_line) CHECK(line.groups == 1);
    if (std::ranges::find(alone, line.op) != alone.end()) CHECK(line.alone_by_op == 12);
  }
}

TEST_CASE("a pending result of another thread is refused as an operand") {
  Tensor w = draw({3, 3});
  std::vector<std::string> errors;
  batch_map(numbers(2), [&](int i) {
    Tensor x = tanh(matmul(row(i), w));
    std::thread([&] {
      try {
        batch_map(numbers(2), [&](int k) { return matmul(sin(row(k)), w) + x; });
      } catch (const Error& error) {
        errors.emplace_back(error.what());
      }
    }).join();
    return x;
  });
  REQUIRE(errors.size() == 2);
  for (const std::string& error : errors) CHECK_THAT(error, contains("has no elements"));
}

TEST_CASE("subtrees of one example are joined without both") {
  Tensor w = draw({3, 3});
  std::function<Tensor(int, int)> tree = [&](int depth, int i) -> Tensor {
    if (depth == 0) return row(i);
    Tensor left = tree(depth - 1, i), right = tree(depth - 1, i + 1);
    return tanh(matmul(left + right, w));
  };
  BatchReport report;
  batch_map(numbers(2), [&](int i) { return tree(4, i); }, {.report = &report});
  for (const BatchedLine& line : report.lines)
    if (line.op == "tanh") {
      CHECK(line.calls == 30);
      CHECK(line.groups == 4);
    }
}

}  // namespace reel_test
