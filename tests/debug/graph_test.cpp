#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <regex>
#include <sstream>
#include <thread>

#include <reel/reel.h>

#include "catch.h"
#include "io/folder.h"
#include "temporary_file.h"

namespace reel {
namespace {

using debug::Graph;
using debug::GraphEdge;
using debug::GraphNode;
using debug::GraphNodeKind;
using debug::RecordedRun;
using namespace reel_test;

struct DrawnNet : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 2};

  Tensor operator()(const Arg& x) const {
    return call("DrawnNet", x, [&](const Tensor& x) { return output(tanh(hidden(x))); });
  }
};

std::uint32_t index_of(const Graph& graph, std::string_view label) {
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i)
    if (graph.nodes()[i].label == label) return i;
  FAIL("there is no node " << label);
  return 0;
}

const GraphNode& node(const Graph& graph, std::string_view label) { return graph.nodes()[index_of(graph, label)]; }

bool leads(const Graph& graph, std::string_view from, std::string_view to) {
  return std::any_of(graph.edges().begin(), graph.edges().end(), [&](const GraphEdge& edge) {
    return edge.from == index_of(graph, from) && edge.to == index_of(graph, to);
  });
}

// Checks Graphviz's language, as far as a graph uses it: each line is a node, an edge, an attribute or a bracket.
void check_dot(const std::string& text) {
  const std::string quoted = R"("([^"\\]|\\.)*")", value = "(" + quoted + "|[a-z0-9]+)";
  const std::string list = R"( \[[a-z]+=)" + value + "(, [a-z]+=" + value + R"()*\])";
  const std::regex allowed("digraph reel \\{| *subgraph cluster_[0-9]+ \\{| *\\}| *label=" + quoted + "; *| *node" +
                           list + "; *| *n[0-9]+" + list + "; *| *n[0-9]+ -> n[0-9]+(" + list + ")?; *");
  std::istringstream lines(text);
  int depth = 0;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(std::regex_match(line, allowed));
    depth += line.ends_with("{") - line.ends_with("}");
    CHECK(depth >= 0);
  }
  CHECK(depth == 0);
}

// Checks that elements close in the order in which they opened, and that no other letter of XML stands alone.
void check_xml(const std::string& text) {
  std::vector<std::string> open;
  int elements = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      std::string rest = text.substr(at, 8);
      CHECK(std::regex_search(rest, std::regex("^&(amp|lt|gt|quot|#[0-9]+);")));
    }
    if (text[at] != '<') continue;
    bool is_comment = text.compare(at, 4, "<!--") == 0;
    std::size_t end = text.find(is_comment ? "-->" : ">", at);
    REQUIRE(end != std::string::npos);
    std::string tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (is_comment || tag.starts_with("!") || tag.starts_with("?")) continue;
    REQUIRE(std::count(tag.begin(), tag.end(), '"') % 2 == 0);
    ++elements;
    if (tag.starts_with("/")) {
      REQUIRE(!open.empty());
      REQUIRE(open.back() == tag.substr(1));
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
  }
  CHECK(open.empty());
  CHECK(elements > 0);
}

// The picture of a graph; none, after a line that says so, where Graphviz is not installed.
std::optional<std::string> svg_of(const Graph& graph) {
  try {
    return graph.svg();
  } catch (const Error& error) {
    if (std::string(error.what()).find("install Debian's graphviz") == std::string::npos) throw;
    reel_test::skip("Graphviz is not installed");
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("the graph of a tape has its parameters and ops with their lines and shapes") {
  DrawnNet net;
  Tape tape;
  Tensor x = ones({5, 3});
  tape.watch(x);
  Tensor loss = sum(square(net(x)));
  int line = __LINE__ - 1;
  Graph graph = debug::graph(tape, {.names = net.named_parameters()});
  check_dot(graph.dot());
  CHECK(node(graph, "hidden.weight").kind == GraphNodeKind::parameter);
  CHECK(node(graph, "hidden.weight").form == "f32 (3, 4)");
  CHECK(node(graph, "watched").kind == GraphNodeKind::data);
  const GraphNode& squared = node(graph, "square");
  CHECK(squared.kind == GraphNodeKind::op);
  CHECK(squared.line == line);
  CHECK_THAT(squared.file, contains("graph_test.cpp"));
  CHECK(squared.form == "f32 (5, 2)");
  CHECK(leads(graph, "square", "sum"));
  CHECK_FALSE(leads(graph, "sum", "square"));
  CHECK_THAT(graph.dot(), contains("label=\"hidden\""));
  std::optional<std::string> svg = svg_of(graph);
  if (!svg) return;
  check_xml(*svg);
  CHECK_THAT(*svg, contains(">square</text>") && contains("square at "));
}

TEST_CASE("a graph is laid out by Graphviz, with every node in its picture") {
  Generator generator(7);
  for (int round = 0; round < 3; ++round) {
    int count = 1 + static_cast<int>(randint(0, 60, {1}, {.generator = &generator}).item<std::int64_t>());
    std::vector<GraphNode> nodes(static_cast<std::size_t>(count));
    std::vector<GraphEdge> edges;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      nodes[i].label = "op\"<&>\\\x01" + std::string(i % 30, 'x');
      for (std::uint32_t from = 0; from <= i; ++from)
        if (randint(0, 20, {1}, {.generator = &generator}).item<std::int64_t>() == 0) edges.push_back({from, i});
    }
    std::optional<std::string> svg = svg_of(Graph(nodes, edges));
    if (!svg) return;
    check_xml(*svg);
    int drawn = 0;
    for (std::size_t at = 0; (at = svg->find("class=\"node\"", at)) != std::string::npos; ++at) ++drawn;
    CHECK(drawn == count);
  }
}

TEST_CASE("a picture of a graph says where Graphviz is missing or fails") {
  reel_test::InFolder folder;
  Graph graph({{.label = "op"}}, {});
  std::string path = std::getenv("PATH");
  setenv("PATH", ".", 1);
  std::string missing = reel_test::error_of<Error>([&] { graph.save("graph.svg"); });
  reel_test::put_bytes("dot", "#!/bin/sh\necho 'out of ink' >&2\nexit 3\n");
  std::filesystem::permissions("dot", std::filesystem::perms::owner_all);
  std::string failed = reel_test::error_of<Error>([&] { static_cast<void>(graph.svg()); });
  setenv("PATH", path.c_str(), 1);
  CHECK_THAT(missing,
             contains("debug::Graph::save") && contains("install Debian's graphviz, or save the graph as .dot"));
  CHECK_FALSE(std::filesystem::exists("graph.svg"));
  CHECK_THAT(failed, contains("debug::Graph::svg: Graphviz's dot failed: out of ink"));
}

TEST_CASE("the runs of a loop are one node of a graph, with their number, and unfolded one each") {
  Tensor w = ones({3, 3}).requires_grad();
  Tape tape;
  Tensor h = ones({1, 3});
  for (int t = 0; t < 20; ++t) h = tanh(matmul(h, w));
  Graph folded = debug::graph(tape);
  check_dot(folded.dot());
  CHECK(folded.nodes().size() == 3);
  CHECK(node(folded, "tanh").count == 20);
  CHECK(leads(folded, "tanh", "matmul"));
  CHECK(leads(folded, "matmul", "tanh"));
  CHECK_THAT(folded.dot(), contains("tanh ×20"));

  Graph unfolded = debug::graph(tape, {.fold_loops = false});
  check_dot(unfolded.dot());
  CHECK(unfolded.nodes().size() == 41);
  CHECK(
      std::all_of(unfolded.edges().begin(), unfolded.edges().end(), [](const GraphEdge& e) { return e.from < e.to; }));
}

TEST_CASE("layers that are called on one line are nodes of their own, and only a recurrence goes round") {
  struct Block : nn::Module {
    Block() = default;
    Block(nn::Module& parent, std::string_view name) { join(parent, name); }
    nn::Linear first{*this, "first", 4, 4}, second{*this, "second", 4, 4};
    Tensor operator()(const Tensor& x) const { return x + second(tanh(first(relu(x)))); }
  };
  struct Deep : nn::Module {
    Block a{*this, "a"}, b{*this, "b"}, c{*this, "c"};
    nn::Linear wide{*this, "wide", 4, 8}, narrow{*this, "narrow", 8, 4};
    Tensor operator()(const Tensor& x) const {
      Tensor h = relu(narrow(relu(wide(relu(c.first(relu(x)))))));
      for (const Block* block : {&a, &b, &c}) h = (*block)(h);
      return h;
    }
  } net;
  nn::Linear cell(4, 4);
  TemporaryFile file("run.reel");
  auto check = [&](const Graph& graph, bool goes_round) {
    check_dot(graph.dot());
    CHECK(std::ranges::any_of(graph.edges(), [](const GraphEdge& edge) { return edge.from >= edge.to; }) == goes_round);
  };
  for (bool loop : {false, true}) {
    std::optional<debug::Recording> recording(file.path());
    Tape tape;
    Tensor x = ones({1, 4});
    tape.watch(x);
    Tensor h = net(x);
    for (int t = 0; loop && t < 5; ++t) h = tanh(cell(h)) + x;
    static_cast<void>(sum(h));
    INFO("with a loop: " << loop);
    check(debug::graph(tape), loop);
    check(debug::graph(tape, {.names = net.named_parameters()}), loop);
    recording.reset();
    check(debug::graph(RecordedRun::read(file.path())), loop);
    if (!loop) continue;
    // The loop's ops are one node each.
    Graph graph = debug::graph(tape);
    CHECK(std::ranges::count_if(graph.nodes(), [](const GraphNode& n) { return n.count == 5; }) >= 3);
  }
}

TEST_CASE("a loop that begins with a parameter is folded like any other") {
  Tensor w = ones({3, 3}).requires_grad(), start = ones({1, 3}).requires_grad();
  Tape tape;
  Tensor h = start;
  for (int t = 0; t < 20; ++t) h = tanh(matmul(h, w));
  Graph graph = debug::graph(tape);
  CHECK(graph.nodes().size() == 4);
  CHECK(node(graph, "matmul").count == 20);
  CHECK(leads(graph, "tanh", "matmul"));
}

TEST_CASE("an op is told from others of its line by its parameters, or by the layer that its inputs had last") {
  Tensor A = ones({3, 3}).requires_grad(), B = ones({3, 3}).requires_grad();
  auto add = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto multiply = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
  Tensor x = ones({2, 3});
  Tape tape;
  tape.watch(x);
  Tensor a = tanh(matmul(x, A));
  Tensor b = relu(matmul(x, B));
  // The sums of an older and a newer layer, in either order, and with what has no parameters, belong to the newer one.
  for (const Tensor& sum : {add(a, b), add(b, a), add(b, x), add(x, b)}) CHECK(sum.shape() == x.shape());
  CHECK(add(a, x).shape() == x.shape());
  // A parameter of the op's own tells more than those before it.
  for (const Tensor* factor : {&A, &B}) CHECK(multiply(b, *factor).shape() == x.shape());
  Graph graph = debug::graph(tape);
  check_dot(graph.dot());
  std::vector<std::int64_t> counts;
  for (const GraphNode& one : graph.nodes())
    if (one.label == "add") counts.push_back(one.count);
  CHECK(counts == std::vector<std::int64_t>{4, 1});
  auto products = std::ranges::count_if(graph.nodes(), [](const GraphNode& n) { return n.label == "matmul"; });
  CHECK(products == 4);
}

TEST_CASE("in a catch, the graph of what was recorded ends with the op that threw") {
  Tensor w = ones({3, 4}).requires_grad();
  Tape tape;
  Tensor h = tanh(matmul(ones({2, 3}), w));
  int line = 0;
  try {
    line = __LINE__ + 1;
    matmul(h, ones({5, 6}));
    FAIL("matmul took matrices that do not fit");
  } catch (const ShapeError&) {
    Graph graph = debug::graph(tape);
    check_dot(graph.dot());
    REQUIRE(graph.nodes().back().kind == GraphNodeKind::failed);
    CHECK(graph.nodes().back().label == "matmul");
    CHECK(graph.nodes().back().line == line);
    CHECK_THAT(graph.nodes().back().message, contains("(5, 6)"));
    CHECK(graph.edges().back().order);
    CHECK_THAT(graph.dot(), contains("✗ matmul"));
  }
  CHECK(debug::graph(tape).nodes().back().kind == GraphNodeKind::op);
}

TEST_CASE("an op that throws before anything is recorded is a graph by itself") {
  Tape tape;
  try {
    matmul(ones({2, 3}), ones({5, 6}));
  } catch (const ShapeError&) {
    Graph graph = debug::graph(tape);
    check_dot(graph.dot());
    CHECK(graph.nodes().size() == 1);
    CHECK(graph.edges().empty());
  }
  try {
    throw std::runtime_error("a <reader> said \"no\" & left\\");
  } catch (const std::runtime_error&) {
    Graph graph = debug::graph(tape);
    check_dot(graph.dot());
    CHECK(graph.nodes()[0].message == "a <reader> said \"no\" & left\\");
  }
}

TEST_CASE("the ops of a module are one node of a graph if asked for") {
  DrawnNet net;
  Tape tape;
  Tensor loss = mean(square(net(ones({5, 3}))));
  Graph graph = debug::graph(tape, {.names = net.named_parameters(), .module_depth = 1});
  check_dot(graph.dot());
  CHECK(node(graph, "hidden").kind == GraphNodeKind::module);
  CHECK(leads(graph, "hidden", "tanh"));
  CHECK(leads(graph, "tanh", "output"));
}

TEST_CASE("the graph of a recording knows the module of each op, and the inputs of an op that threw") {
  TemporaryFile file("run.reel");
  {
    debug::Recording recording(file.path());
    DrawnNet net;
    Tape tape;
    tape.backward(mean(square(net(ones({5, 3})))));
    CHECK_THROWS_AS(embedding(ones({4, 2}), tensor<std::int64_t>({7})), IndexError);
  }
  Graph graph = debug::graph(debug::RecordedRun::read(file.path()), {.names = {}});
  check_dot(graph.dot());
  CHECK(node(graph, "tanh").module == "DrawnNet");
  auto failed = std::find_if(graph.nodes().begin(), graph.nodes().end(),
                             [](const GraphNode& n) { return n.kind == GraphNodeKind::failed; });
  REQUIRE(failed != graph.nodes().end());
  CHECK_THAT(failed->label, contains("embedding"));
}

TEST_CASE("a graph of 10,000 entries is made and written in less than two seconds") {
  Tensor w = ones({2}).requires_grad();
  Tape tape;
  Tensor x = w, y = w;
  for (int i = 0; i < 5000; ++i) {
    x = x + y;
    y = y * x;
  }
  std::clock_t began = std::clock();
  for (bool fold : {true, false}) {
    Graph graph = debug::graph(tape, {.fold_loops = fold});
    CHECK(graph.nodes().size() == (fold ? 3u : 10001u));
    CHECK(graph.dot().size() > graph.nodes().size());
  }
  CHECK(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC < 2);
}

TEST_CASE("a graph is saved by the ending of the file, and refused where there is nothing to draw") {
  Tensor w = ones({3}).requires_grad();
  Tape tape;
  CHECK_THROWS_WITH(debug::graph(tape), contains("the tape has no entries"));
  Tensor y = sum(w * 2.0);
  Graph graph = debug::graph(tape);
  TemporaryFile picture("graph.svg"), language("graph.dot");
  graph.save(language.path());
  CHECK(reel_test::bytes_of(language.path()) == graph.dot());
  if (std::optional<std::string> svg = svg_of(graph)) {
    graph.save(picture.path());
    CHECK(reel_test::bytes_of(picture.path()) == *svg);
  }
  CHECK_THROWS_WITH(graph.save("graph.png"), contains("must end in .svg, .dot or .gv"));
  CHECK_THROWS_AS(graph.save("/nowhere/at/all/graph.dot"), Error);
  CHECK_THROWS_AS(Graph({}, {{0, 1}}), Error);
  std::thread([&] { CHECK_THROWS_WITH(debug::graph(tape), contains("another thread")); }).join();
}

TEST_CASE("the example of a graph draws what was recorded before the error") {
  reel_test::InFolder folder;
  Tensor x = ones({5, 3}), w = ones({3, 2}).requires_grad(), y = ones({4, 2});
  auto run = [&] {
#include "examples/debug_graph_1.h"
  };
  if (!svg_of(Graph({{.label = "op"}}, {}))) return;
  CHECK_THROWS_AS(run(), ShapeError);
  CHECK(reel_test::bytes_of("graph.svg").find("matmul") != std::string::npos);
}

}  // namespace reel
