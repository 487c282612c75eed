#include <reel/reel.h>

#include "ops/bad_input.h"

namespace reel_test {

using namespace reel;

TEST_CASE("elements of another dtype, or in another order, are not handed out") {
  Tensor x = ones({2, 3}), transposed = transpose(x);
  all_fail<DTypeError>({
      Bad("data: elements of (2, 3) f32 cannot be read as f64", [&] { x.data<double>(); }),
      Bad("data: elements of (2, 3) f32 cannot be read as i64", [&] { x.to_vector<std::int64_t>(); }),
      Bad("strided_data: elements of (3, 2) f32 cannot be read as f64", [&] { transposed.strided_data<double>(); }),
      Bad("write: elements of (2, 3) f32 cannot be written as i32", [&] { x.write<int>(); }),
  });
  all_fail<ShapeError>({
      Bad("item: needs exactly one element, not (2, 3) f32", [&] { x.item(); }),
      Bad("item: needs exactly one element, not (0,) f32", [&] { zeros({0}).item(); }),
      Bad("data: (3, 2) f32 has gaps or another order (strides (1, 3)); read contiguous(x), or strided_data",
          [&] { transposed.data<float>(); }),
      Bad("write: (3, 2) f32 has gaps or another order (strides (1, 3)); write to a contiguous copy",
          [&] { transposed.write<float>(); }),
  });
  Tensor undefined;
  all_fail<Error>({
      Bad("tensor: it is undefined", [&] { undefined.item(); }),
      Bad("tensor: it is undefined", [&] { undefined.data<float>(); }),
      Bad("tensor: it is undefined", [&] { undefined.write<float>(); }),
  });
}

}  // namespace reel_test
