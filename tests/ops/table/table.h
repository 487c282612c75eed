#pragma once

#include <reel/reel.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

// The table of ops: a row says how to run an op at certain inputs and what it should give, computed in f64
// by plain loops. table_test.cpp puts every row through every check.

namespace reel_test {

/// Values in row-major order.
struct Array {
  reel::Shape shape;
  std::vector<double> values;
  /// The scale of an element's error, where that is more than the element itself: Σ |terms| of a sum.
  std::vector<double> scales = {};

  double scale(std::size_t i) const;
};

using Index = std::vector<std::int64_t>;
using Arrays = std::vector<Array>;
using Random = std::mt19937_64;

/// Calls f(index) for every index of a shape in row-major order.
void for_each_index(const reel::Shape& shape, const std::function<void(const Index&)>& f);
/// The element at an index; axes of size 1 repeat, missing ones in front are left out.
double at(const Array& array, const Index& index);
/// An array made element by element.
Array make(const reel::Shape& shape, const std::function<double(const Index&)>& f);
/// The common broadcast shape.
reel::Shape broadcast_all(const Arrays& inputs);

/// How the elements of an input are drawn; the tensor's dtype then rounds them. All are in [-2, 2] or [0, 2].
enum class Fill : std::uint8_t {
  any,
  positive,  // at least 0.3
  nonzero,   // at least 0.3 from 0
  unit,      // within (−0.9, 0.9)
  coarse,    // within (−0.9, 0.9), multiples of 1/64, which every floating dtype represents
  spread,    // all different, 0.05 apart
  flags,     // bools
  indices,   // as given; only required if there are none
};

/// An input of a row. Indices are given as they are.
struct Input {
  reel::Shape shape;
  Fill fill = Fill::any;
  /// Where they are not drawn.
  std::vector<std::int64_t> indices = {};

  bool takes_row_dtype() const { return fill != Fill::flags && fill != Fill::indices && indices.empty(); }
};

using UnaryOp = decltype(&reel::neg);
using BinaryOp = decltype(&reel::add);
using Function = std::function<reel::Tensor(std::span<const reel::Tensor>)>;

inline const std::vector<reel::DType> floating_dtypes{reel::f32, reel::f64, reel::bf16, reel::f16};
/// Dtypes of rows that compute with numbers; sums and products of the numbers drawn do not fit i8, which would wrap around.
inline const std::vector<reel::DType> all_numbers{reel::f32, reel::f64, reel::bf16, reel::f16,
                                                  reel::i32, reel::i64, reel::i16};
inline const std::vector<reel::DType> all_dtypes{reel::f32, reel::f64, reel::bf16,    reel::f16, reel::i32,
                                                 reel::i64, reel::u8,  reel::boolean, reel::i8,  reel::i16};

/// The attributes of an op's call by name, from which the peer calls its counterpart. A flag is 0 or 1, a list of
/// axes several numbers.
class Attributes {
 public:
  using Numbers = std::vector<double>;
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Numbers>> numbers) : numbers_(numbers) {}

  bool has(const std::string& name) const { return numbers_.contains(name); }
  /// The only number of that name.
  double number(const std::string& name) const { return numbers_.at(name).at(0); }
  std::int64_t integer(const std::string& name) const { return static_cast<std::int64_t>(number(name)); }
  const Numbers& numbers(const std::string& name) const { return numbers_.at(name); }
  bool flag(const std::string& name) const { return has(name) && number(name) != 0; }
  std::vector<std::int64_t> integers(const std::string& name) const {
    const Numbers& found = numbers(name);
    return {found.begin(), found.end()};
  }

 private:
  std::map<std::string, Numbers> numbers_;
};

struct Row {
  /// Starts with the op's name, unless `op` gives it.
  std::string name;
  Function run;
  std::vector<Input> inputs;
  std::function<Array(const Arrays&)> reference;
  /// The error allowed, in units in the last place of the scale; 0.5: rounded correctly.
  double ulps = 0.5;
  std::vector<reel::DType> dtypes = floating_dtypes;
  bool differentiable = true;
  /// Halves are rounded by each op on the way.
  int half_roundings = 1;
  /// Another layout may add in another order.
  bool reorders = false;
  /// The op as the registry names it; by default the word with which `name` starts.
  std::string op = {};
  Attributes attributes = {};
};

/// Returns a required option of a row. Throws: Error if it is undefined.
inline reel::Tensor needed(const reel::Tensor& x) {
  static_cast<void>(x.body());
  return x;
}

/// All rows, with fixed shapes for edge cases.
const std::vector<Row>& table();
/// Rows of random shapes and attributes, for the comparison with the peer: several of each op that has one.
std::vector<Row> random_table(std::uint64_t seed);
/// A size in [low, high].
std::int64_t random_size(Random& random, std::int64_t low = 1, std::int64_t high = 40);
/// A shape of `rank` sizes.
reel::Shape random_shape(Random& random, int rank, std::int64_t high = 40);

/// The rows of a family of ops.
struct RowFamily {
  void (*add)(std::vector<Row>& rows);
  /// Null: the comparison with the peer needs none.
  void (*add_random)(std::vector<Row>& rows, Random& random) = nullptr;
};

extern const RowFamily access_rows, create_rows, elementwise_rows, reduce_rows, shape_rows, arrange_rows, index_rows,
    selection_rows, sort_rows, order_rows, in_place_rows, matmul_rows, einsum_rows, products_rows, network_rows,
    activation_rows, resample_rows, normalise_rows, pooling_rows, convolution_rows, recurrent_rows, attention_rows,
    embedding_rows, loss_rows, label_loss_rows, ctc_rows, linear_algebra_rows, decompositions_rows, sparse_rows,
    sampling_rows, functional_rows;

/// A row's inputs in a dtype, from its name and a seed.
std::vector<reel::Tensor> draw_inputs(const Row& row, reel::DType dtype, std::uint64_t seed);

/// The elements, read through the strides, not through an op.
Array array_of(const reel::Tensor& tensor);
/// Same dtype, shape and bits.
bool same_bits(const reel::Tensor& a, const reel::Tensor& b);
/// The difference of two neighbouring numbers at 1.
double last_place(reel::DType dtype);
/// Returns an empty text if every element of y is within the row's bound of the expected one, else describes the
/// largest error.
std::string mismatch(const Row& row, const reel::Tensor& y, const Array& expected);

}  // namespace reel_test
