#include <reel/reel.h>

#include "catch.h"
#include "folder.h"
#include "golden_folder.h"

using namespace reel;
using namespace reel_test;

namespace {

// The image that write_files.py makes: (channels, 3, 4).
Tensor known_image(int channels) {
  Tensor c = reshape(arange(channels), {channels, 1, 1}), y = reshape(arange(3), {3, 1}), x = arange(4);
  Tensor values = c * 70 + y * 40 + x * 20;
  return to(where(values > 255, values - 256, values), u8);
}

void check_same(const Tensor& a, const Tensor& b) {
  REQUIRE(a.dtype() == u8);
  REQUIRE(a.shape() == b.shape());
  CHECK(a.to_vector<std::uint8_t>() == b.to_vector<std::uint8_t>());
}

}  // namespace

TEST_CASE("images are read with their channels first, and written for others to read") {
  Folder folder;
  for (auto [name, channels] :
       {std::pair{"grey", 1}, std::pair{"grey_alpha", 2}, std::pair{"rgb", 3}, std::pair{"rgba", 4}}) {
    CAPTURE(name);
    Tensor image = io::read_image(by_python + name + ".png");
    check_same(image, known_image(channels));
    io::write_image(folder.file("a.png"), image);
    check_same(io::read_image(folder.file("a.png")), image);
  }
  Tensor flat = known_image(1)(0);
  io::write_image(folder.file("a.png"), transpose(flat));
  check_same(io::read_image(folder.file("a.png")), reshape(transpose(flat), {1, 4, 3}));
  CHECK(io::read_image(by_python + "rgb.jpg").shape() == Shape{3, 16, 24});
  CHECK(folder.names() == std::set<std::string>{"a.png"});
}

TEST_CASE("an image is converted to the channels that the caller asks for") {
  auto read = [](const std::string& name, int channels) {
    return io::read_image(by_python + name + ".png", {.channels = channels});
  };
  Tensor rgb = known_image(3), opaque = full({1, 3, 4}, 255, {.dtype = u8});
  check_same(read("rgba", 3), known_image(4)(slice(0, 3)));
  check_same(read("rgb", 4), concat({rgb, opaque}, 0));
  check_same(read("grey", 3), contiguous(expand(known_image(1), {3, 3, 4})));
  check_same(read("grey_alpha", 1), known_image(1));
  Tensor wide = to(rgb, f64);
  Tensor grey = wide(slice(0, 1)) * 299 + wide(slice(1, 2)) * 587 + wide(slice(2, 3)) * 114;
  check_same(read("rgb", 1), to(floor((grey + 500) / 1000), u8));
  CHECK_THAT(error_of<Error>([&] { read("rgb", 2); }), contains("channels are 1, 3, 4, or 0"));
}

TEST_CASE("what is no image is refused, whether read or written") {
  Folder folder;
  put_bytes(folder.file("a.png"), "no image");
  CHECK_THAT(error_of<io::FileError>([&] { io::read_image(folder.file("a.png")); }),
             contains("io::read_image: '" + folder.file("a.png") + "' is neither a PNG nor a JPEG file") &&
                 contains("image_test.cpp:"));
  CHECK_THAT(error_of<io::FileError>([&] { io::read_image(folder.file("none.png")); }), contains("No such file"));
  auto said = [&](const Tensor& x) { return error_of<Error>([&] { io::write_image(folder.file("b.png"), x); }); };
  CHECK_THAT(said(ones({3, 4, 4})), contains("takes u8, not (3, 4, 4) f32: to(x * 255, u8) is it"));
  for (const Shape& shape : {Shape{5, 4, 4}, Shape{4}, Shape{1, 3, 4, 4}, Shape{3, 0, 4}, Shape{0, 4, 4}})
    CHECK_THAT(said(zeros(shape, {.dtype = u8})), contains("takes an image of shape (channels, height, width)"));
  CHECK_THAT(said(Tensor()), contains("the image is undefined"));
  CHECK(folder.names() == std::set<std::string>{"a.png"});
}
