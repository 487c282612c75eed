#include <reel/reel.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "temporary_file.h"

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

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 2};

  Tensor operator()(const Tensor& x) const { return output(tanh(hidden(x))); }
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

TEST_CASE("recordings and a profile that run together all hear what the innermost one hears") {
  reel_test::TemporaryFile outer_file("outer.reel"), inner_file("inner.reel");
  Net net;
  optim::SGD sgd(net.parameters(), {.learning_rate = 0.1});
  std::vector<debug::ProfileRow> rows;
  {
    debug::Recording outer(outer_file.path());
    debug::Profile profile;
    debug::Recording inner(inner_file.path());
    {
      Tape tape;
      tape.backward(sum(square(debug::name(net(ones({2, 3})), "output"))));
    }
    sgd.step();
    CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
    rows = profile.rows(debug::ProfileBy::op);
  }
  debug::RecordedRun outer = debug::RecordedRun::read(outer_file.path()),
                     inner = debug::RecordedRun::read(inner_file.path());
  auto said = [](const debug::RecordedRun& run) {
    std::vector<std::string> ops;
    for (const debug::RecordedOp& op : run.ops()) {
      std::string text = std::string(name_of(op.kind)) + " " + std::string(op.op) + " " + std::string(op.error);
      for (const debug::RecordedTensor& output : op.outputs) text += " '" + std::string(output.name) + "'";
      ops.push_back(text + " of " + std::to_string(op.forward) + " in step " + std::to_string(op.step));
    }
    for (const debug::RecordedUpdate& update : run.updates())
      ops.push_back("update of " + std::string(update.parameter));
    return ops;
  };
  CHECK(said(outer) == said(inner));
  CHECK(std::ranges::count(inner.ops(), debug::OpKind::gradient, &debug::RecordedOp::kind) > 4);
  CHECK(inner.updates().size() == 4);
  CHECK(std::ranges::any_of(rows, [](const debug::ProfileRow& row) { return row.name == "tanh" && row.backward > 0; }));
}
