#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <reel/reel.h>

#include "catch.h"
#include "io/folder.h"
#include "logging/figure/figure.h"
#include "logging/graph.h"
#include "logging/picture.h"
#include "logging/protobuf.h"

using namespace reel;
using logging::Fields;
using namespace reel_test;

namespace {

using Bytes = std::vector<std::uint8_t>;

detail::Pixels picture(const Tensor& x, std::int64_t gap = 2) { return logging::picture_of("image", x, gap, {}); }

std::vector<std::uint8_t> pixel(const detail::Pixels& pixels, std::int64_t x, std::int64_t y) {
  auto at = pixels.values.begin() + (y * pixels.width + x) * pixels.channels;
  return {at, at + pixels.channels};
}

// The number of pixels that differ by at most `most` from a colour in each channel: lines and letters have smooth edges.
int count_of(const detail::Pixels& pixels, const Bytes& colour, int most = 60) {
  int count = 0;
  for (std::size_t i = 0; i < pixels.values.size(); i += 3) {
    bool is_near = true;
    for (std::size_t k = 0; k < 3; ++k) is_near = is_near && std::abs(pixels.values[i + k] - colour[k]) <= most;
    count += is_near;
  }
  return count;
}

// True, after a line that says so, in a build without cairo.
bool lacks_figures() {
  std::string said = error_of<io::FileError>([] { logging::draw(logging::LinePlot{}, {}); });
  if (said.find("libreel_figure.so") == said.npos) return false;
  reel_test::skip("this build has no cairo");
  return true;
}

// A node of a graph: "name = op(inputs)".
std::string line_of(Fields node) {
  std::string name, op, inputs;
  while (node.next()) {
    if (node.field() == 1) name = node.text();
    if (node.field() == 2) op = node.text();
    if (node.field() == 3) inputs += (inputs.empty() ? "" : " ") + std::string(node.text());
  }
  return name + " = " + op + "(" + inputs + ")\n";
}

std::string lines_of(const std::string& graph) {
  std::string lines;
  for (Fields fields(graph); fields.next();)
    if (fields.field() == 1) lines += line_of(Fields(fields.text()));
  return lines;
}

}  // namespace

TEST_CASE("a picture has the channels of a pixel together") {
  detail::Pixels found =
      picture(tensor({{{1, 2, 3}, {4, 5, 6}}, {{7, 8, 9}, {10, 11, 12}}, {{0, 0, 0}, {0, 0, 1}}}) / 255.0);
  CHECK(found.height == 2);
  CHECK(found.width == 3);
  CHECK(found.channels == 3);
  CHECK(found.values == Bytes{1, 7, 0, 2, 8, 0, 3, 9, 0, 4, 10, 0, 5, 11, 0, 6, 12, 1});
}

TEST_CASE("values of a picture beyond 0 and 1 are cut off, and NaN is 0") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Tensor x = tensor({-1.0f, 0.5f, 2.0f, infinity, -infinity, infinity - infinity});
  CHECK(picture(reshape(x, {1, 1, 6})).values == Bytes{0, 128, 255, 255, 0, 0});
  CHECK(picture(reshape(to(tensor({0, 1}), boolean), {1, 1, 2})).values == Bytes{0, 255});
  CHECK(picture(reshape(to(tensor({0, 200}), u8), {1, 1, 2})).values == Bytes{0, 200});
}

TEST_CASE("several pictures are a grid") {
  detail::Pixels found = picture(to(reshape(arange(1, 6), {5, 1, 1, 1}), u8));
  CHECK(found.width == 7);
  CHECK(found.height == 4);
  CHECK(found.values == Bytes{1, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 5, 0, 0, 0});
}

TEST_CASE("tensors that are no pictures are refused") {
  CHECK_THAT(error_of<ShapeError>([] { picture(zeros({2, 3})); }), contains("this is (2, 3) f32"));
  CHECK_THAT(error_of<ShapeError>([] { picture(zeros({5, 3, 3})); }), contains("1 to 4 channels"));
  CHECK_FALSE(error_of<ShapeError>([] { picture(zeros({1, 0, 3})); }).empty());
  CHECK_FALSE(error_of<DTypeError>([] { picture(to(zeros({1, 2, 3}), i64)); }).empty());
  CHECK_FALSE(error_of<Error>([] { picture(Tensor()); }).empty());
}

TEST_CASE("a line plot shows each curve in its colour, and leaves out what is not finite") {
  if (lacks_figures()) return;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Bytes blue{0, 114, 178}, orange{213, 94, 0};
  detail::Pixels found = logging::draw(logging::LinePlot{.curves = {{"", {}, {0, 1}}, {"", {}, {1, 0}}}}, {});
  CHECK(found.width == 640);
  CHECK(found.height == 480);
  CHECK(count_of(found, blue) > 500);
  CHECK(count_of(found, orange) > 500);
  found = logging::draw(logging::LinePlot{.curves = {{"", {}, {nan, -1, 0}}}, .log_y = true}, {});
  CHECK(count_of(found, blue) == 0);
  // A point without neighbours.
  found = logging::draw(logging::LinePlot{.curves = {{"", {}, {nan, 5, nan}}}}, {});
  CHECK(count_of(found, blue) > 10);
  CHECK(count_of(found, blue) < 40);
}

TEST_CASE("a legend has a short line of each named curve's colour") {
  if (lacks_figures()) return;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<logging::Curve> curves{{"first", {}, {nan}}, {"", {}, {nan}}, {"third", {}, {nan}}};
  detail::Pixels found = logging::draw(logging::LinePlot{.curves = curves}, {});
  // Twenty pixels long, three high.
  CHECK(std::abs(count_of(found, {0, 114, 178}) - 60) <= 20);
  CHECK(count_of(found, {213, 94, 0}) == 0);
  CHECK(std::abs(count_of(found, {0, 158, 115}) - 60) <= 20);
}

TEST_CASE("a heat map shows each element, and those that are not finite in grey") {
  if (lacks_figures()) return;
  Tensor values = tensor({{0.0f, 1.0f}, {std::numeric_limits<float>::infinity(), 0.0f}});
  detail::Pixels found = logging::draw(logging::HeatMap{.values = values, .width = 300, .height = 200}, {});
  CHECK(pixel(found, 60, 40) == Bytes{48, 18, 84});
  CHECK(pixel(found, 220, 40) == Bytes{250, 232, 44});
  CHECK(pixel(found, 60, 150) == Bytes{170, 170, 170});
  CHECK(pixel(found, 220, 150) == Bytes{48, 18, 84});
  CHECK_NOTHROW(logging::draw(logging::HeatMap{.values = zeros({0, 3})}, {}));
}

TEST_CASE("a heat map shows numbers beyond its scale in the colours of its ends") {
  if (lacks_figures()) return;
  constexpr double largest = std::numeric_limits<double>::max();
  Tensor values = reshape(tensor({-largest, largest}), {1, 2});
  detail::Pixels found = logging::draw(logging::HeatMap{.values = values, .width = 300, .height = 200}, {});
  CHECK(count_of(found, {48, 18, 84}) > 1000);
  CHECK(count_of(found, {250, 232, 44}) > 1000);
}

TEST_CASE("texts of a figure are drawn whatever they hold") {
  if (lacks_figures()) return;
  const Bytes ink{30, 30, 30};
  auto inked = [&](const std::string& title) {
    return count_of(logging::draw(logging::LinePlot{.title = title}, {}), ink, 120) -
           count_of(logging::draw(logging::LinePlot{}, {}), ink, 120);
  };
  CHECK(inked("Loss of two models") > 50);
  CHECK(inked("größe\x80\n") > 20);
}

TEST_CASE("figures that cannot be drawn are refused") {
  CHECK_THAT(error_of<Error>([] { logging::draw(logging::LinePlot{.width = 10}, {}); }), contains("10 × 480 pixels"));
  CHECK_THAT(error_of<Error>([] {
               logging::draw(logging::LinePlot{.curves = {{"a", {1}, {1, 2}}}}, {});
             }),
             contains("the curve 'a' has 1 positions and 2 values"));
  CHECK_FALSE(error_of<Error>([] { logging::draw(logging::HeatMap{}, {}); }).empty());
  CHECK_FALSE(error_of<ShapeError>([] { logging::draw(logging::HeatMap{.values = zeros({3})}, {}); }).empty());
  CHECK_THAT(error_of<Error>([] {
               logging::draw(logging::HeatMap{.values = zeros({2, 2}), .row_labels = {"a"}}, {});
             }),
             contains("1 labels do not fit 2 rows"));
}

TEST_CASE("the graph of a tape has a node for each op and parameter") {
  Tensor weight = ones({3, 2}).requires_grad(), bias = ones({2}).requires_grad(), x = ones({4, 3});
  Tape tape;
  tape.watch(x);
  Tensor h = tanh(matmul(x, weight) + bias);
  Tensor y = tanh(h) * h;
  CHECK(lines_of(logging::graph_of(tape, std::vector<NamedTensor>{{"layer.weight", weight}, {"tanh", bias}}, {})) ==
        "watched = Watched()\n"
        "layer/weight = Parameter()\n"
        "tanh = Parameter()\n"
        "matmul = matmul(watched layer/weight)\n"
        "add = add(matmul tanh)\n"
        "tanh_1 = tanh(add)\n"
        "tanh_2 = tanh(tanh_1)\n"
        "mul = mul(tanh_2 tanh_1)\n");
}

TEST_CASE("the graph of a tape without entries, or of another thread's, is refused") {
  Folder folder;
  logging::Writer log(folder.file("run"));
  Tape tape;
  CHECK_THAT(error_of<TapeError>([&] { log.graph(tape); }), contains("the tape has no entries"));
  std::string said;
  std::thread([&] { said = error_of<TapeError>([&] { log.graph(tape); }); }).join();
  CHECK_THAT(said, contains("the tape was opened by another thread"));
}

TEST_CASE("vectors for the projector replace those of their tag and keep the others") {
  Folder folder;
  {
    logging::Writer log(folder.file("run"));
    log.embedding("a/b", zeros({2, 1}), {"x", "y"});
    log.embedding("c\"", ones({1, 2}), {}, zeros({1, 1, 3, 4}));
  }
  logging::Writer log(folder.file("run"));
  log.embedding("a/b", tensor({{1.5f}, {2.0f}}));
  CHECK(bytes_of(folder.file("run/projector_config.pbtxt")) ==
        "embeddings {\n  tensor_name: \"c\\\"\"\n  tensor_shape: 1\n  tensor_shape: 2\n"
        "  tensor_path: \"projector/c=22/tensors.tsv\"\n  sprite {\n    image_path: \"projector/c=22/sprite.png\"\n"
        "    single_image_dim: 4\n    single_image_dim: 3\n  }\n}\n"
        "embeddings {\n  tensor_name: \"a/b\"\n  tensor_shape: 2\n  tensor_shape: 1\n"
        "  tensor_path: \"projector/a=2fb/tensors.tsv\"\n}\n");
  CHECK(bytes_of(folder.file("run/projector/a=2fb/tensors.tsv")) == "1.5\n2\n");
  CHECK_THAT(error_of<Error>([&] {
               log.embedding("a", zeros({2, 2}), {"x"});
             }),
             contains("1 labels do not fit 2 rows"));
  CHECK_FALSE(error_of<ShapeError>([&] { log.embedding("a", zeros({2})); }).empty());
  CHECK_FALSE(error_of<ShapeError>([&] { log.embedding("a", zeros({2, 2}), {}, zeros({1, 1, 2, 2})); }).empty());
}
