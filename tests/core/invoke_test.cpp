#include <reel/reel.h>

#include <boost/context/fiber.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "catch.h"
#include "core/context.h"
#include "dispatch/invoke.h"

using namespace reel;
namespace fibres = boost::context;

namespace {

// Runs functions on fibres. A fibre that calls an op waits at the dispatcher; when all wait, calls of one op that
// share the second operand run as one product, and every fibre gets its rows of it.
class Scheduler : public detail::Interceptor {
 public:
  void spawn(std::function<void()> f) {
    Task& task = *tasks_.emplace_back(std::make_unique<Task>());
    task.context = detail::context();
    task.context.interceptor = this;
    task.context.set(detail::Context::intercepted, true);
    task.fibre = fibres::fiber([&task, f](fibres::fiber&& main) {
      task.main = std::move(main);
      f();
      task.done = true;
      return std::move(task.main);
    });
  }

  void run_all() {
    while (true) {
      std::vector<Task*> waiting;
      for (auto& task : tasks_)
        if (!task->done && !task->call) resume(*task);
      for (auto& task : tasks_)
        if (task->call) waiting.push_back(task.get());
      if (waiting.empty()) return;
      run_together(waiting);
    }
  }

  void run(detail::Call& call) override {
    Task& task = *running_;
    task.call = &call;
    task.main = std::move(task.main).resume();
  }

  int products = 0;

 private:
  struct Task {
    detail::Context context;
    fibres::fiber fibre, main;
    detail::Call* call = nullptr;
    bool done = false;
  };

  void resume(Task& task) {
    running_ = &task;
    detail::Context* own = std::exchange(detail::current_context, &task.context);
    task.fibre = std::move(task.fibre).resume();
    detail::current_context = own;
  }

  void run_together(const std::vector<Task*>& waiting) {
    const detail::Call& first = *waiting[0]->call;
    std::vector<Tensor> rows;
    std::vector<std::int64_t> sizes;
    for (Task* task : waiting) {
      REQUIRE(task->call->same_kind(first));
      REQUIRE(task->call->inputs[1]->is(*first.inputs[1]));
      rows.push_back(*task->call->inputs[0]);
      sizes.push_back(rows.back().size(0));
    }
    Tensor x = concat(rows), w = *first.inputs[1];
    Tensor product = detail::invoke(first.op, {&x, &w}, {Shape{x.size(0), w.size(1)}, x.dtype(), x.device()},
                                    first.where, first.attribute_bytes);
    ++products;
    std::vector<Tensor> parts = split(product, sizes);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      waiting[i]->call->outputs[0] = parts[i];
      waiting[i]->call = nullptr;
    }
  }

  std::vector<std::unique_ptr<Task>> tasks_;
  Task* running_ = nullptr;
};

}  // namespace

TEST_CASE("two suspended fibres' products run as one through the same OpInfo, gradients included") {
  Tensor x0 = randn({2, 3}, {.dtype = f64}), x1 = randn({4, 3}, {.dtype = f64});
  Tensor w = randn({3, 5}, {.dtype = f64}).requires_grad();
  Tape tape;
  tape.watch(x0);
  tape.watch(x1);
  Tensor y0, y1;
  Scheduler scheduler;
  scheduler.spawn([&] { y0 = matmul(x0, w); });
  scheduler.spawn([&] { y1 = matmul(x1, w); });
  scheduler.run_all();
  CHECK(scheduler.products == 1);
  auto [g0, g1, gw] = tape.gradient(sum(square(y0)) + sum(square(y1)), x0, x1, w);

  tape.watch(x0);
  tape.watch(x1);
  Tensor z0 = matmul(x0, w), z1 = matmul(x1, w);
  auto [e0, e1, ew] = tape.gradient(sum(square(z0)) + sum(square(z1)), x0, x1, w);
  auto near = [](const Tensor& a, const Tensor& b) {
    NoRecord pause;
    return max(square(a - b)).item() < 1e-24;
  };
  CHECK(near(y0, z0));
  CHECK(near(y1, z1));
  CHECK(near(g0, e0));
  CHECK(near(g1, e1));
  CHECK(near(gw, ew));
}

TEST_CASE("a listener sees every op of a training step with its line, inputs and outputs") {
  struct Seen {
    std::string op;
    int line;
    std::vector<Shape> inputs, outputs;
  };
  std::vector<Seen> seen;
  Tensor x = randn({4, 3}), w = randn({3, 2}).requires_grad();
  Tape tape;
  int product_line = 0, loss_line = 0;
  {
    debug::Listen listen([&](const debug::OpEvent& event) {
      Seen one{event.op, event.where.line, {}, {}};
      for (const Tensor* input : event.inputs) one.inputs.push_back(input->shape());
      for (const Tensor& output : event.outputs) one.outputs.push_back(output.shape());
      seen.push_back(one);
    });
    product_line = __LINE__ + 1;
    Tensor y = matmul(x, w);
    loss_line = __LINE__ + 1;
    Tensor loss = mean(square(y));
    tape.backward(loss);
  }
  std::vector<std::string> names;
  for (const Seen& one : seen) names.push_back(one.op);
  CAPTURE(names);
  REQUIRE(seen.size() >= 9);
  CHECK(names[0] == "matmul");
  CHECK(seen[0].line == product_line);
  CHECK(seen[0].inputs == std::vector<Shape>{{4, 3}, {3, 2}});
  CHECK(seen[0].outputs == std::vector<Shape>{{4, 2}});
  CHECK(names[1] == "square");
  CHECK(seen[1].line == loss_line);
  // The last op of backward is the product that gives w's gradient, under the line of the forward product.
  CHECK(names.back() == "matmul");
  CHECK(seen.back().line == product_line);
  CHECK(seen.back().outputs == std::vector<Shape>{{3, 2}});
  // A destroyed listener is not notified.
  std::size_t count = seen.size();
  Tensor quiet = x + x;
  CHECK(seen.size() == count);
}
