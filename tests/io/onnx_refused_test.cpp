#include <reel/io/onnx.h>

#include <reel/batching.h>
#include <reel/reel.h>
#include <reel/testing.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "folder.h"

using namespace reel;
using namespace reel_test;

TEST_CASE("a value that depends on the size of a named axis is refused with its op and line") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  int line = 0;
  std::string said = error_of<Error>([&] {
    io::onnx::save(file,
                   [&](const Tensor& x) {
                     double share = 1.0 / static_cast<double>(x.size(0));
                     line = __LINE__ + 1;
                     return sum(x, {0}) * share;
                   },
                   {{.name = "x", .example = ones({3, 2}), .axes = {"batch"}}});
  });
  INFO(said);
  CHECK_THAT(said, contains("the op mul cannot be exported: its number is 0.3"));
  CHECK_THAT(said, contains("batch = "));
  CHECK_THAT(said, contains("onnx_refused_test.cpp:" + std::to_string(line)));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("an option that depends on the size of a named axis is refused, and a whole number that does is computed") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  auto size = [](const Tensor& x) { return static_cast<double>(x.size(0)); };
  std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> cases{
      {"the op leaky_relu cannot", [&](const Tensor& x) { return leaky_relu(x, {.slope = 1 / size(x)}); }},
      {"the op clamp cannot", [&](const Tensor& x) { return clamp(x, -1 / size(x), 1 / size(x)); }},
      {"the op pad cannot",
       [&](const Tensor& x) {
         return pad(x, {{0, 0}, {1, 1}}, {.value = 1 / size(x)});
       }},
      {"the op layer_norm cannot", [&](const Tensor& x) { return layer_norm(x, {2}, {.epsilon = size(x)}); }},
      {"the op norm cannot", [&](const Tensor& x) { return norm(x, {1}, {.p = size(x)}); }},
      {"the op add cannot", [&](const Tensor& x) { return x + (size(x) + 0.5); }},
      {"the op full cannot",
       [&](const Tensor& x) {
         return concat({x, full({1, 2}, size(x) + 0.5)});
       }},
      {"the op sin cannot", [&](const Tensor& x) { return x * sin(tensor({1 / size(x)})); }},
      {"the op digamma cannot", [&](const Tensor& x) { return x * digamma(tensor({size(x)})); }},
  };
  for (const auto& [refusal, f] : cases) {
    std::string said = error_of<Error>([&, &f = f] {
      io::onnx::save(file, f, {{.name = "x", .example = ones({3, 2}), .axes = {"batch"}}});
    });
    CAPTURE(refusal, said);
    CHECK_THAT(said, contains(refusal));
  }
  auto f = [&](const Tensor& x) {
    // An op of constants alone is run, so it need not be one of ONNX's.
    Tensor constant = digamma(tensor({2.5f})), whole = sin(tensor({static_cast<float>(size(x))}));
    return x + x.size(0) + size(x) * 2 + sum(full({x.size(0)}, x.size(0) - 1)) + constant * whole;
  };
  io::onnx::save(file, f, {{.name = "x", .example = ones({3, 2}), .axes = {"batch"}}});
  CHECK(testing::all_close(io::onnx::load(file)(ones({7, 2})), f(ones({7, 2}))));
}

TEST_CASE("a loop over a named axis is refused with its line, and the remedy") {
  Folder folder;
  std::string said = error_of<Error>([&] {
    io::onnx::save(folder.file("model.onnx"),
                   [](const Tensor& x) {
                     Tensor y = zeros({2});
                     for (std::int64_t t = 0; t < x.size(0); ++t) y = tanh(y + x(t));
                     return y;
                   },
                   {{.name = "x", .example = ones({3, 2}), .axes = {"time"}}});
  });
  INFO(said);
  CHECK_THAT(said, contains("io::onnx::scan"));
  CHECK_THAT(said, contains("onnx_refused_test.cpp:"));
}

TEST_CASE("a number that the program reads of a tensor is refused") {
  Folder folder;
  std::string said = error_of<Error>([&] {
    io::onnx::save(folder.file("model.onnx"), [](const Tensor& x) { return x * max(x).item(); },
                   {{.name = "x", .example = randn({3, 2})}});
  });
  INFO(said);
  CHECK_THAT(said, contains("item reads elements of () f32"));
  CHECK_THAT(said, contains("would be fixed in the file"));
}

TEST_CASE("what reads elements that depend on an input is refused by its name and line, whatever the dtype") {
  Folder folder;
  manual_seed(3);
  Tensor x = rand({5, 3, 2}), row = rand({5});
  nn::Embedding table(10, 2);
  nn::CRF crf(2);
  nn::LSTM lstm(2, 3);
  using Ints = std::vector<std::int64_t>;
  Tensor lengths = tensor(Ints{3, 2, 5});
  struct Case {
    const char* by;
    int line;
    std::function<Tensor(const Tensor&)> f;
    Tensor example;
  };
  // clang-format off
  std::vector<Case> cases{
      {"item", __LINE__, [&](const Tensor& n) { return table(n) * n(0).item(); }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return table(n) * max(n).item(); }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return table(n) * n(0).item(); }, to(lengths, i32)},
      {"item", __LINE__, [&](const Tensor& n) { return to(one_hot(n, max(n).item<std::int64_t>() + 1), f32); }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return unsqueeze(arange(max(n).item<std::int64_t>()), 1) < n; }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return n(0).item<bool>() ? to(n, f32) * 2 : to(n, f32); }, lengths > 2},
      {"item", __LINE__, [&](const Tensor& n) { return n(0).item() > 2 ? x : -x; }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return slice(x, 0, 0, n(1).item<std::int64_t>()) + to(n, f32)(0); }, lengths},
      {"item", __LINE__, [&](const Tensor& n) { return Arg(n(0)).item() * row; }, lengths},
      {"item", __LINE__, [&](const Tensor& x) { return x(0).item() > 0 ? x : -x; }, row},
      {"to_vector", __LINE__, [&](const Tensor& n) { return table(tensor(n.to_vector<std::int64_t>())); }, lengths},
      {"to_vector", __LINE__, [&](const Tensor& n) { return repeat(slice(x, 0, 0, 3), (n + 1).to_vector<std::int64_t>(), 0); }, lengths},
      {"data", __LINE__, [&](const Tensor& n) { return table(n) * static_cast<double>(n.data<std::int64_t>()[1]); }, lengths},
      {"write", __LINE__, [&](const Tensor& n) { Tensor m = n + 1; return row * static_cast<double>(m.write<std::int64_t>()[0]); }, lengths},
      {"to_dlpack", __LINE__, [&](const Tensor& n) { return io::to_dlpack(n) ? x : -x; }, lengths},
      {"pack", __LINE__, [&](const Tensor& n) { return nn::masked_mean(nn::pack(x, n)); }, lengths},
      {"pack", __LINE__, [&](const Tensor& n) { return nn::pack(x, n).mask(); }, lengths},
      {"pack", __LINE__, [&](const Tensor& n) { return crf.log_partition(nn::pack(x, n)); }, lengths},
      {"LSTM", __LINE__, [&](const Tensor& n) { return lstm(x, {}, n).output; }, lengths},
      {"CRF", __LINE__, [&](const Tensor& n) { return crf(nn::pack(x, tensor(Ints{1, 1, 1})), n); }, tensor(Ints{1, 0, 1})},
      {"bincount", __LINE__, [&](const Tensor& n) { return bincount(n); }, lengths},
      {"histc", __LINE__, [&](const Tensor& x) { return histc(x); }, row},
      {"matrix_exp", __LINE__, [&](const Tensor& x) { return matrix_exp(x); }, rand({2, 2})},
      {"allclose", __LINE__, [&](const Tensor& x) { return allclose(x, 0) ? x : -x; }, row},
      {"scatter_reduce", __LINE__, [&](const Tensor& n) { return scatter_reduce(row, 0, n - 1, ones({3}), ScatterReduction::prod); }, lengths},
      {"select_rows", __LINE__, [&](const Tensor& n) { return to_dense(select_rows(csr_from_dense(x(slice(), slice(), 0)), n - 1)); }, lengths},
      {"odeint", __LINE__, [&](const Tensor& x) { return odeint([](double, const Tensor& y) { return -y; }, x, std::vector<double>{0, 1}); }, row},
  };
  // clang-format on
  for (const auto& [by, line, f, example] : cases)
    for (const std::vector<std::string>& axes : {std::vector<std::string>{}, std::vector<std::string>{"k"}}) {
      bool has_free_axis = !axes.empty() && std::string(by) != "pack" && std::string(by) != "LSTM";
      std::string said = error_of<Error>([&, &f = f, &example = example] {
        io::onnx::save(folder.file("model.onnx"), f,
                       {{.name = "n", .example = example, .axes = has_free_axis ? axes : std::vector<std::string>{}}});
      });
      CAPTURE(line, axes, said);
      CHECK_THAT(said, contains(std::string(by) + " reads elements of "));
      CHECK_THAT(said, contains("onnx_refused_test.cpp:" + std::to_string(line)));
      CHECK_FALSE(std::filesystem::exists(folder.file("model.onnx")));
    }
}

TEST_CASE("what depends on no element of an input may be read, and any element may be checked and printed") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  Tensor weights = rand({3}), other = rand({5, 3});
  auto f = [&](const Tensor& x) {
    debug::check(x > -1.0);
    CHECK_FALSE(to_string(x).empty());
    double count = io::onnx::size_of(x, 1).item(), factor = weights(1).item() + ones({2}).to_vector<float>()[0];
    distributions::Normal normal(x, exp(x));
    Tensor chosen = distributions::Categorical(x).log_prob(argmax(x, 1));
    return normal.log_prob(x) + unsqueeze(chosen, 1) + distributions::Uniform(x - 1, x + 1).log_prob(x) +
           masked_scatter(x, x > 0.5, weights(0) + zeros({15})) * (count * factor);
  };
  {
    debug::Recording recording(folder.file("run.reelrun"));
    io::onnx::save(file, f, {{.name = "x", .example = rand({2, 3}), .axes = {"rows"}}});
  }
  CHECK(testing::all_close(io::onnx::load(file)(other), f(other)));
}

TEST_CASE("what batch_map, a checkpoint or a derivative computes of integers is exported as its ops") {
  Folder folder;
  manual_seed(5);
  std::string file = folder.file("model.onnx");
  nn::Embedding table(10, 3);
  nn::Linear layer(3, 2);
  std::vector<std::function<Tensor(const Tensor&)>> functions{
      [&](const Tensor& n) {
        std::vector<Tensor> rows{table(n(0)), table(n(1)), table(n(2))};
        return stack(batch_map(rows, [&](const Tensor& row) { return tanh(layer(unsqueeze(row, 0))); }));
      },
      [&](const Tensor& n) {
        Tape tape;
        return tape.gradient(checkpoint([&](const Tensor& n) { return sum(square(layer(table(n)))); }, n), layer.bias);
      },
      [&](const Tensor& n) {
        Tape tape;
        return tape.gradient(sum(square(layer(table(n)))), layer.weight);
      },
  };
  using Ints = std::vector<std::int64_t>;
  Tensor example = tensor(Ints{3, 2, 5}), other = tensor(Ints{1, 8, 2});
  for (const auto& f : functions) {
    io::onnx::save(file, f, {{.name = "n", .example = example}});
    CHECK(testing::all_close(io::onnx::load(file)(other), f(other), {.relative = 1e-5, .absolute = 1e-6}));
  }
}

TEST_CASE("a number that changes from step to step of a loop is refused with its line") {
  Folder folder;
  using Tensors = std::span<const Tensor>;
  int t = 0;
  auto scanned = [&](auto step) {
    return std::function<Tensor(const Tensor&)>([&t, step](const Tensor& x) {
      t = 0;
      return io::onnx::scan([&](Tensors s, Tensors in) { return io::onnx::ScanStep{{step(s[0], in[0])}}; },
                            {zeros({3})}, {x})
          .state[0];
    });
  };
  struct Case {
    const char* said;
    int line;
    std::function<Tensor(const Tensor&)> f;
  };
  // clang-format off
  std::vector<Case> cases{
      {"with other numbers", __LINE__, scanned([&t](const Tensor& s, const Tensor& in) { return s + in * ++t; })},
      {"with other numbers", __LINE__, scanned([&t](const Tensor& s, const Tensor& in) { return s + leaky_relu(in, {.slope = 0.1 * ++t}); })},
      {"with other numbers", __LINE__, scanned([&t](const Tensor& s, const Tensor& in) { return s + in * tensor({1.f, 2.f, static_cast<float>(++t)}); })},
      {"runs in one step", __LINE__, scanned([&t](const Tensor& s, const Tensor& in) { return ++t == 4 ? tanh(s) : s + in; })},
      {"item reads elements", __LINE__, scanned([](const Tensor& s, const Tensor& in) { return s + in(0).item(); })},
      {"return different tensors", __LINE__, [&t](const Tensor& x) { t = 0; return io::onnx::scan([&t](Tensors s, Tensors in) { return io::onnx::ScanStep{{++t == 4 ? s[0] : in[0]}}; }, {zeros({3})}, {x}).state[0]; }},
      {"item reads elements", __LINE__, [](const Tensor& x) { return io::onnx::loop(io::onnx::size_of(x, 0), [](const Tensor& i, Tensors s) { return std::vector<Tensor>{s[0] * i.item()}; }, {x})[0]; }},
  };
  // clang-format on
  for (const auto& [sentence, line, f] : cases) {
    std::string said = error_of<Error>([&, &f = f] {
      io::onnx::save(folder.file("model.onnx"), f, {{.name = "x", .example = rand({5, 3}), .axes = {"time"}}});
    });
    CAPTURE(line, said);
    CHECK_THAT(said, contains(sentence));
    CHECK_THAT(said, contains("onnx_refused_test.cpp:" + std::to_string(line)));
  }
}

TEST_CASE("ops without a counterpart, and ops that draw, are refused by name and line") {
  Folder folder;
  auto save = [&](auto f) {
    return error_of<Error>([&] {
      io::onnx::save(folder.file("model.onnx"), f, {{.name = "x", .example = rand({3, 3})}});
    });
  };
  std::string said = save([](const Tensor& x) { return digamma(x); });
  INFO(said);
  CHECK_THAT(said, contains("the op digamma cannot be exported"));
  CHECK_THAT(said, contains("onnx_refused_test.cpp:"));
  said = save([](const Tensor& x) { return x + randn({3, 3}); });
  CHECK_THAT(said, contains("the op randn cannot be exported: it draws random numbers"));
  said = save([](const Tensor& x) {
    Tensor y = x * 2;
    Tensor view = y(0);
    y += 1;
    return view;
  });
  CHECK_THAT(said, contains("overwritten"));
}

TEST_CASE("names and inputs that do not fit are refused") {
  Folder folder;
  auto same = [](const Tensor& x) { return x * 2; };
  auto save = [&](std::vector<io::onnx::Input> inputs, io::onnx::SaveOptions options = {}) {
    return error_of<Error>([&] { io::onnx::save(folder.file("model.onnx"), same, inputs, options); });
  };
  CHECK_THAT(save({}), contains("there are no inputs"));
  CHECK_THAT(save({{.name = "", .example = ones({2})}}), contains("has no name"));
  CHECK_THAT(save({{.name = "x", .example = {}}}), contains("has no example"));
  CHECK_THAT(save({{.name = "x", .example = ones({2})}, {.name = "x", .example = ones({2})}}), contains("two inputs"));
  CHECK_THAT(save({{.name = "x", .example = ones({2})}, {.name = "y", .example = ones({2})}}),
             contains("takes 1 tensors"));
  CHECK_THAT(save({{.name = "x", .example = ones({2}), .axes = {"a", "b"}}}), contains("fewer axes"));
  CHECK_THAT(save({{.name = "x", .example = ones({2, 3}), .axes = {"a", "a"}}}), contains("has size 2"));
  CHECK_THAT(save({{.name = "x", .example = ones({2})}}, {.outputs = {"x"}}), contains("have the name 'x'"));
  CHECK(save({{.name = "x", .example = ones({2})}}).empty());
}

TEST_CASE("what is overwritten after its use has the elements of that time in a file, or is refused") {
  Folder folder;
  std::string file = folder.file("model.onnx");
  Tensor outer = rand({3}), x = rand({3});
  std::vector<std::pair<const char*, std::function<Tensor()>>> cases{
      {"", [] { return ones({3}); }},
      {"", [] { return arange(3.0); }},
      {"", [&] { return outer * 2; }},
      {"", [&] { return ones({3}) * 2; }},
      {"the op digamma cannot be exported", [&] { return digamma(outer); }},
      {"its operand (3,) f32 is overwritten later",
       [] {
         return tensor({1.f, 2.f, 3.f});
       }},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [refusal, constant] = cases[i];
    auto f = [&constant = constant](const Tensor& x) {
      Tensor c = constant(), y = x * c;
      c += 1;
      return y;
    };
    std::string said = error_of<Error>([&] { io::onnx::save(file, f, {{.name = "x", .example = ones({3})}}); });
    CAPTURE(i, said);
    CHECK(said.empty() == std::string_view(refusal).empty());
    CHECK_THAT(said, contains(refusal));
    if (said.empty()) CHECK(testing::all_close(io::onnx::load(file)(x), f(x)));
  }
}
