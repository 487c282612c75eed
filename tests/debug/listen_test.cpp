#include <reel/reel.h>

#include <algorithm>
#include <functional>

#include "catch.h"

using namespace reel;
using debug::Listen;
using debug::OpEvent;

namespace {

// The ops that ran, in order, as "mul:12".
struct Heard {
  std::vector<std::string> ops;
  std::vector<int> lines;
  std::function<void(const OpEvent&)> listener() {
    return [this](const OpEvent& event) {
      ops.emplace_back(event.op);
      lines.push_back(event.where.line);
    };
  }
};

}  // namespace

TEST_CASE("a listener hears every op with the line that called it") {
  Tensor x = ones({2, 2}), w = ones({2, 2});
  Heard heard;
  int first;
  {
    Listen listen(heard.listener());
    first = __LINE__ + 1;
    Tensor y = matmul(x, w);
    Tensor z = tanh(y) + y;
    Tensor m = max(z);
  }
  Tensor unheard = x + x;
  CHECK(heard.ops == std::vector<std::string>{"matmul", "tanh", "add", "max", "reshape"});
  CHECK(heard.lines == std::vector<int>{first, first + 1, first + 1, first + 2, first + 2});
}

TEST_CASE("the ops of a composed function carry the line of its caller") {
  Tensor x = ones({2, 3});
  Heard heard;
  Listen listen(heard.listener());
  int line = __LINE__ + 1;
  Tensor loss = cross_entropy(x, tensor({0, 1}));
  CHECK(heard.ops.size() > 2);
  for (int heard_line : heard.lines) CHECK(heard_line == line);
}

TEST_CASE("in a backward a listener hears the lines of the forward ops") {
  Tensor x = full({3}, 2).requires_grad();
  Tape tape;
  int line = __LINE__ + 1;
  Tensor y = square(x);
  Tensor z = tanh(y);
  Tensor loss = sum(z);
  Heard heard;
  {
    Listen listen(heard.listener());
    tape.backward(loss);
  }
  auto lines_of = [&](const std::string& op) {
    std::vector<int> lines;
    for (std::size_t i = 0; i < heard.ops.size(); ++i)
      if (heard.ops[i] == op) lines.push_back(heard.lines[i]);
    return lines;
  };
  CHECK(lines_of("expand") == std::vector<int>{line + 2});
  CHECK(lines_of("tanh_gradient") == std::vector<int>{line + 1});
  for (int mul_line : lines_of("mul")) CHECK(mul_line == line);
  CHECK_FALSE(lines_of("mul").empty());
}

TEST_CASE("an event shows inputs and outputs") {
  Tensor a = full({2}, 3), b = full({2}, 4);
  int events = 0;
  Listen listen([&](const OpEvent& event) {
    ++events;
    REQUIRE(event.inputs.size() == 2);
    CHECK(event.inputs[0]->is(a));
    CHECK(event.inputs[1]->is(b));
    REQUIRE(event.outputs.size() == 1);
    CHECK(event.outputs[0].to_vector<float>() == std::vector<float>{7, 7});
  });
  Tensor sum = a + b;
  CHECK(events == 1);
}

TEST_CASE("listeners nest, and each hears while it lives") {
  Tensor x = ones({1});
  Heard outer, inner;
  {
    Listen first(outer.listener());
    Tensor y = x + x;
    {
      Listen second(inner.listener());
      Tensor z = x * x;
    }
    Tensor w = x - x;
  }
  CHECK(outer.ops == std::vector<std::string>{"add", "mul", "sub"});
  CHECK(inner.ops == std::vector<std::string>{"mul"});
}

TEST_CASE("an op that fails is not heard") {
  Heard heard;
  Listen listen(heard.listener());
  CHECK_THROWS(ones({2}) + ones({3}));
  CHECK(std::find(heard.ops.begin(), heard.ops.end(), "add") == heard.ops.end());
}
