#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"
#include "core/device/device_module.h"
#include "cuda/gpu.h"
#include "cuda/stand_in/record.h"
#include "cuda/stand_in/row_runs.h"

// How many calls an op, or a step of a training, makes once it has run before, compared with counts.txt. A rise fails; where a
// count has fallen, or something is new, `REEL_WRITE_COUNTS=1 tools/test 'calls are not more'` writes the file anew.

namespace reel_test {

using namespace reel;

namespace {

struct Calls {
  std::int64_t launches = 0, of_libraries = 0, of_driver = 0;
};

using Table = std::map<std::string, Calls>;

// Calls that are only made while something is new.
const std::vector<std::string> calls_of_beginnings{"cudaMalloc",
                                                   "cudaFree",
                                                   "cudaHostAlloc",
                                                   "cudaSetDevice",
                                                   "cudaEventCreateWithFlags",
                                                   "cudaEventDestroy",
                                                   "cudaStreamCreateWithFlags",
                                                   "cublasLtMatmulAlgoGetHeuristic",
                                                   "cuDNN plan"};

// The calls of f when it runs the third time.
Calls calls_of(const std::string& name, const std::function<void()>& f) {
  for (int i = 0; i < 2; ++i) f();
  detail::device_module().synchronise(0);
  stand_in::forget_counts();
  f();
  stand_in::Counts counts = stand_in::counts();
  detail::device_module().synchronise(0);
  Calls calls;
  for (const auto& [call, number] : counts) {
    if (call == "launch")
      calls.launches += number;
    else if (call.starts_with("cuda"))
      calls.of_driver += number;
    else
      calls.of_libraries += number;
  }
  for (const std::string& call : calls_of_beginnings)
    if (counts.contains(call)) {
      CAPTURE(name, call, counts[call]);
      CHECK(!counts.contains(call));
    }
  return calls;
}

void count_ops(Table& table) {
  std::vector<std::string> counted;
  for (const Row& plain : reel_test::table()) {
    if (!runs_on_device(plain) || std::find(counted.begin(), counted.end(), plain.op) != counted.end()) continue;
    Row row = on_device(plain);
    std::vector<Tensor> there = on(gpu, draw_inputs(row, row.dtypes[0], table_seed));
    // Nothing is launched for tensors without elements.
    if (std::ranges::any_of(there, [](const Tensor& x) { return x.numel() == 0; })) continue;
    counted.push_back(plain.op);
    auto refused = [](const std::function<void()>& f) {
      try {
        f();
      } catch (const Error&) {
        // Results of 0 may be refused on the CPU, such as sizes that depend on values.
      }
    };
    table[plain.op] = calls_of(plain.op, [&] { refused([&] { static_cast<void>(row.run(there)); }); });
    if (!row.differentiable || !is_floating(row.dtypes[0])) continue;
    std::vector<Tensor> sources = floating_inputs(row, there);
    Function f = of_floating_inputs(row, there);
    table[plain.op + " and gradient"] = calls_of(plain.op, [&] {
      refused([&] {
        Tape tape;
        for (const Tensor& source : sources) tape.watch(source);
        Tensor y = f(sources);
        static_cast<void>(tape.gradient(y, sources, {.seed = y, .unconnected = Unconnected::zeros}));
      });
    });
  }
}

struct Perceptron : nn::Module {
  nn::Linear first, second, last;
  Perceptron() : first(*this, "first", 64, 128), second(*this, "second", 128, 128), last(*this, "last", 128, 10) {}
  Tensor operator()(const Tensor& x) const { return last(relu(second(relu(first(x))))); }
};

struct Recurrent : nn::Module {
  nn::LSTM layer;
  nn::Linear last;
  Recurrent() : layer(*this, "layer", 16, 64), last(*this, "last", 64, 4) {}
  Tensor operator()(const Tensor& x) const { return last(layer(x).output); }
};

template <class Net, class Loss>
void count_training(Table& table, const std::string& name, const Tensor& x, const Loss& loss_of) {
  DeviceGuard guard(gpu);
  Net net;
  optim::SGD optimiser(net.parameters(), {.learning_rate = 0.1, .momentum = 0.9});
  table[name + ": forward"] = calls_of(name, [&] { static_cast<void>(loss_of(net(x))); });
  auto gradients = [&] {
    Tape tape;
    tape.backward(loss_of(net(x)));
  };
  table[name + ": forward and backward"] = calls_of(name, [&] {
    optimiser.zero_grad();
    gradients();
  });
  table[name + ": whole step"] = calls_of(name, [&] {
    optimiser.zero_grad();
    gradients();
    optimiser.step();
  });
  table[name + ": clip_grad_norm"] =
      calls_of(name, [&] { static_cast<void>(optim::clip_grad_norm(net.parameters(), 0)); });
  table[name + ": clip_grad_value"] = calls_of(name, [&] { optim::clip_grad_value(net.parameters(), 1); });
}

template <class Optimiser>
void count_optimiser(Table& table, const std::string& name) {
  DeviceGuard guard(gpu);
  Perceptron net;
  Optimiser optimiser(net.parameters(), {.learning_rate = 0.1});
  for (Tensor parameter : net.parameters()) parameter.set_grad(ones_like(parameter));
  table["step of " + name + " for 6 parameters"] = calls_of(name, [&] { optimiser.step(); });
}

// Steps of parameters whose addresses exceed the arguments of a kernel, and of two groups.
void count_many_parameters(Table& table) {
  DeviceGuard guard(gpu);
  auto count = [&](const std::string& name, const std::function<void()>& f) { table[name] = calls_of(name, f); };
  std::vector<Tensor> parameters;
  for (int i = 0; i < 300; ++i) {
    parameters.push_back(zeros({i % 7 + 1}).requires_grad());
    parameters.back().set_grad(ones_like(parameters.back()));
  }
  optim::AdamW adam(parameters, {.learning_rate = 0.1});
  count("step of AdamW for 300 parameters", [&] { adam.step(); });
  optim::AdamW grouped({parameters[0], parameters[2]}, {.learning_rate = 0.1});
  grouped.add_group({parameters[1], parameters[3]}, {.learning_rate = 0.01});
  count("step of AdamW for 2 groups of 2 parameters", [&] { grouped.step(); });
  count("clip_grad_norm of 300 parameters", [&] { static_cast<void>(optim::clip_grad_norm(parameters, 0)); });
  optim::MovingAverage average(parameters, {.decay = 0.9});
  count("MovingAverage of 300 parameters", [&] { average.update(); });
  // Every second parameter of the first ten has made a step less than those beside it.
  std::vector<Tensor> few(parameters.begin(), parameters.begin() + 10);
  optim::Adam later(few, {.learning_rate = 0.1});
  for (std::size_t i = 0; i < few.size(); i += 2) few[i].requires_grad(false);
  later.step();
  for (std::size_t i = 0; i < few.size(); i += 2) few[i].requires_grad();
  count("step of Adam for 10 parameters, 5 of which were frozen", [&] { later.step(); });
}

// Sums at more indices than a search of the list for each is worth.
void count_indexed_sums(Table& table) {
  DeviceGuard guard(gpu);
  auto count = [&](const std::string& name, const std::function<void()>& f) { table[name] = calls_of(name, f); };
  auto indices = [](const Shape& shape) { return zeros(shape, {.dtype = i64}); };
  Tensor words = zeros({50000, 128}).requires_grad();
  for (std::int64_t number : {8192, 1 << 20})
    count(fmt::format("embedding and gradient, {} indices of 50000", number), [&, list = indices({number})] {
      {
        Tape tape;
        tape.backward(sum(embedding(words, list)));
      }
      words.set_grad({});
    });
  Tensor rows = zeros({50000, 128}), some = zeros({8192, 128}), line = zeros({1 << 20}), square = zeros({1024, 1024});
  Tensor of_rows = indices({8192}), of_line = indices({1 << 20}), of_square = indices({1024, 1024});
  count("index_add of 8192 rows to 50000", [&] { static_cast<void>(index_add(rows, 0, of_rows, some)); });
  count("scatter_add of 1048576 elements", [&] { static_cast<void>(scatter_add(line, 0, of_line, line)); });
  count("scatter_add of 1024 lists of 1024", [&] { static_cast<void>(scatter_add(square, 0, of_square, square)); });
}

void count_halves(Table& table) {
  for (DType dtype : {f16, bf16}) {
    Tensor x = zeros({32, 64}, {.dtype = dtype, .device = gpu}), w = zeros({64, 16}, {.dtype = dtype, .device = gpu}),
           b = zeros({16}, {.dtype = dtype, .device = gpu});
    std::string name = fmt::format("addmm of {} with a bias", name_of(dtype));
    table[name] = calls_of(name, [&] { static_cast<void>(addmm(b, x, w)); });
  }
}

Table count_all() {
  Table table;
  count_ops(table);
  count_many_parameters(table);
  count_indexed_sums(table);
  count_halves(table);
  Generator generator(1);
  RandomOptions random{.device = gpu, .generator = &generator};
  Tensor classes = zeros({32}, {.dtype = i64, .device = gpu});
  count_training<Perceptron>(table, "MLP", randn({32, 64}, random),
                             [&](const Tensor& y) { return cross_entropy(y, classes); });
  count_training<Recurrent>(table, "LSTM", randn({20, 8, 16}, random), [](const Tensor& y) { return mean(square(y)); });
  count_optimiser<optim::SGD>(table, "SGD");
  count_optimiser<optim::Adam>(table, "Adam");
  count_optimiser<optim::AdamW>(table, "AdamW");
  count_optimiser<optim::Adamax>(table, "Adamax");
  count_optimiser<optim::NAdam>(table, "NAdam");
  count_optimiser<optim::RAdam>(table, "RAdam");
  count_optimiser<optim::RMSprop>(table, "RMSprop");
  count_optimiser<optim::Rprop>(table, "Rprop");
  count_optimiser<optim::Adagrad>(table, "Adagrad");
  count_optimiser<optim::Adadelta>(table, "Adadelta");
  count_optimiser<optim::Lion>(table, "Lion");
  return table;
}

const char* const path = REEL_COUNTS;

void write(const Table& table) {
  std::ofstream file(path);
  file << "# launches, calls of libraries, calls of the driver | once the same has run before\n";
  for (const auto& [name, calls] : table)
    file << fmt::format("{:3} {:3} {:3} | {}\n", calls.launches, calls.of_libraries, calls.of_driver, name);
}

Table read() {
  Table table;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream numbers(line);
    Calls calls;
    numbers >> calls.launches >> calls.of_libraries >> calls.of_driver;
    table[line.substr(line.find('|') + 2)] = calls;
  }
  return table;
}

// A line of pytorch.txt: what PyTorch calls for an entry, and why we call more.
struct Compared {
  std::string entry, why;
  std::int64_t calls = 0;
};

std::vector<Compared> read_compared() {
  std::vector<Compared> all;
  std::ifstream file(REEL_PYTORCH);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::vector<std::string> columns;
    std::istringstream rest(line);
    for (std::string column; std::getline(rest, column, '|');) {
      std::size_t begin = column.find_first_not_of(' '), end = column.find_last_not_of(' ');
      columns.push_back(begin == column.npos ? std::string() : column.substr(begin, end - begin + 1));
    }
    columns.resize(4);
    std::istringstream numbers(columns[0]);
    std::int64_t launches = 0, of_libraries = 0;
    numbers >> launches >> of_libraries;
    all.push_back({columns[1], columns[3], launches + of_libraries});
  }
  return all;
}

}  // namespace

TEST_CASE("where counts.txt has more calls than PyTorch makes, pytorch.txt says why") {
  Table ours = read();
  std::vector<Compared> all = read_compared();
  CHECK(all.size() > 40);
  for (const Compared& compared : all) {
    CAPTURE(compared.entry, compared.calls);
    REQUIRE(ours.contains(compared.entry));
    const Calls& calls = ours[compared.entry];
    CHECK((calls.launches + calls.of_libraries <= compared.calls || !compared.why.empty()));
  }
}

TEST_CASE(
    "calls are not more than counts.txt says, and none allocates, selects a device or makes an event, once it has "
    "run") {
  // Each tensor is an allocation then.
  if (lacks_device() || std::getenv("REEL_CUDA_NO_CACHE")) return;
  Table found = count_all(), expected = read();
  static_cast<void>(stand_in::take_violations());
  if (std::getenv("REEL_WRITE_COUNTS")) return write(found);
  for (const auto& [name, calls] : found) {
    CAPTURE(name);
    REQUIRE(expected.contains(name));
    const Calls& most = expected[name];
    CHECK(calls.launches <= most.launches);
    CHECK(calls.of_libraries <= most.of_libraries);
    CHECK(calls.of_driver <= most.of_driver);
  }
  CHECK(found.size() == expected.size());
}

}  // namespace reel_test
