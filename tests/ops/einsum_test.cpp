#include <cmath>
#include <string>

#include "ops/table/table.h"

#include "catch.h"
#include "ops/bad_input.h"

// Behaviour of einsum that the op table cannot express.

namespace reel_test {

using namespace reel;

TEST_CASE("einsum without sums and products is a view") {
  Tensor x = reshape(arange(6, {.dtype = f32}), {2, 3}), square = ones({3, 3});
  CHECK(einsum("ij->ji", {x}).strided_data<float>() == x.data<float>());
  CHECK(einsum("...i->i...", {x}).strided_data<float>() == x.data<float>());
  CHECK(einsum("ii->i", {square}).strided_data<float>() == square.data<float>());
  CHECK(einsum("ij", {x}).data<float>() == x.data<float>());
}

TEST_CASE("einsum meets in a common dtype and keeps it through sums") {
  Tensor narrow = full({2, 3}, 200, {.dtype = u8}), wide = ones({3}, {.dtype = i32});
  CHECK(einsum("ij,j->i", {narrow, wide}).dtype() == i32);
  CHECK(einsum("ij,j->i", {narrow, wide}).to_vector<std::int32_t>() == std::vector<std::int32_t>{600, 600});
  CHECK(einsum("ij->i", {narrow}).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{600 % 256, 600 % 256});
  CHECK(einsum("ij->", {full({2, 2}, true, {.dtype = boolean})}).item<bool>());
  CHECK(!einsum("i,i->", {tensor({true, false}), tensor({false, true})}).item<bool>());
  CHECK(array_of(einsum("i,j->ij", {tensor({true, false}), tensor({true})})).values == std::vector<double>{1, 0});
  CHECK(einsum("i,i", {ones({2}, {.dtype = bf16}), ones({2}, {.dtype = f16})}).dtype() == f32);
}

TEST_CASE("einsum takes as many indices as a tensor has axes") {
  Tensor x = ones({2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(einsum("abcdefgh,abcdefgh->", {x, x}).item() == 256);
  CHECK(einsum("abcdefgh,abcdefgh->abcdefg", {x, x}).to_vector<float>() == std::vector<float>(128, 2));
  CHECK(einsum("abcdefgh,hgfedcba->", {x, x}).item() == 256);
}

TEST_CASE("einsum broadcasts axes of size 1") {
  Tensor row = tensor({1.f, 2.f, 3.f}), one = tensor({2.f});
  CHECK(einsum("i,i->i", {row, one}).to_vector<float>() == std::vector<float>{2, 4, 6});
  CHECK(einsum("i,i->", {row, one}).item() == 12);
  CHECK(einsum("ij,i->ij", {ones({1, 2}), row}).shape() == Shape{3, 2});
  CHECK(einsum("ij,ij->ij", {ones({1, 2}), ones({1, 1})}).shape() == Shape{1, 2});
  CHECK(einsum("i,i->i", {zeros({0}), one}).shape() == Shape{0});
  CHECK(einsum("...,...", {ones({2, 1}), ones({3, 1, 4})}).shape() == Shape{3, 2, 4});
}

TEST_CASE("einsum contracts each pair that shares a summed index by one product") {
  auto ops_of = [](const char* equation, const std::vector<Tensor>& operands) {
    std::vector<std::string> ops;
    debug::Listen listen([&](const debug::OpEvent& event) { ops.emplace_back(event.op); });
    static_cast<void>(einsum(equation, operands));
    std::erase_if(ops, [](const std::string& op) { return op == "reshape" || op == "permute"; });
    return ops;
  };
  using Ops = std::vector<std::string>;
  CHECK(ops_of("ij,jk->ik", {ones({2, 3}), ones({3, 4})}) == Ops{"matmul"});
  CHECK(ops_of("bqhd,bkhd->bhqk", {ones({2, 3, 4, 5}), ones({2, 6, 4, 5})}) == Ops{"matmul"});
  CHECK(ops_of("i,i->", {ones({3}), ones({3})}) == Ops{"matmul"});
  CHECK(ops_of("ij,jk,kl->il", {ones({2, 3}), ones({3, 4}), ones({4, 5})}) == Ops{"matmul", "matmul"});
  CHECK(ops_of("i,j->ij", {ones({3}), ones({4})}) == Ops{"mul"});
}

TEST_CASE("einsum takes many operands, and the smallest product first") {
  // From left to right this would need a tensor of 10^8 elements.
  Tensor x = ones({100}), y = ones({100});
  CHECK(einsum("a,b,c,d,a,b,c,d->", {x, x, x, x, y, y, y, y}).item() == 1e8);
  std::vector<Tensor> chain(30, full({2, 2}, 0.5));
  std::string equation;
  for (int i = 0; i < 30; ++i) {
    auto letter = [](int k) { return static_cast<char>(k < 26 ? 'a' + k : 'A' + (k - 26)); };
    if (i > 0) equation += ',';
    equation += {letter(i), letter(i + 1)};
  }
  CHECK(einsum(equation, chain).to_vector<float>() == std::vector<float>(4, 0.5f));
}

TEST_CASE("einsum keeps NaN and infinity") {
  Tensor x = tensor({NAN, 1.f, INFINITY});
  CHECK(std::isnan(einsum("i->", {x}).item()));
  CHECK(std::isnan(einsum("i,i->", {x, zeros({3})}).item()));
  CHECK(einsum("i,i->i", {x, ones({3})}).to_vector<float>()[2] == INFINITY);
}

TEST_CASE("a malformed equation of einsum is one sentence with the equation and the shapes") {
  Tensor m = ones({2, 3}), square = ones({3, 3}), v = ones({4}), number = ones({}), u;
  Tensor large = ones({1, 1, 1, 1, 1, 1, 1, 2});
  all_fail<ShapeError>({
      Bad("einsum: \"ij,jk->ik\" has 2 terms for 1 operands; operands (2, 3)", [&] { einsum("ij,jk->ik", {m}); }),
      Bad("einsum: \"ij\" has 1 terms for 2 operands; operands (2, 3), (4,)",
          [&] {
            einsum("ij", {m, v});
          }),
      Bad("einsum: \"ijk\" names 3 axes of operand 0, which has 2; operands (2, 3)", [&] { einsum("ijk", {m}); }),
      Bad("einsum: \"\" names 0 axes of operand 0, which has 2; operands (2, 3)", [&] { einsum("", {m}); }),
      Bad("einsum: \"...ijk\" names at least 3 axes of operand 0, which has 2", [&] { einsum("...ijk", {m}); }),
      Bad("einsum: \"ij,i\" gives index i the sizes 2 and 4 at operand 1; operands (2, 3), (4,)",
          [&] {
            einsum("ij,i", {m, v});
          }),
      Bad("einsum: \"ii\" gives index i the sizes 2 and 3 at operand 0", [&] { einsum("ii", {m}); }),
      Bad("einsum: \"ii\" gives index i the sizes 1 and 3 at operand 0",
          [&] {
            einsum("ii", {ones({1, 3})});
          }),
      Bad("einsum: \"...,...\" gives an axis of \"...\" the sizes 3 and 4",
          [&] {
            einsum("...,...", {m, v});
          }),
      Bad("einsum: \"ij->ik\" has index k in its output that no operand has", [&] { einsum("ij->ik", {m}); }),
      Bad("einsum: \"ij->ii\" has index i twice in its output", [&] { einsum("ij->ii", {m}); }),
      Bad("einsum: \"i.j\" has dots that are no single", [&] { einsum("i.j", {m}); }),
      Bad("einsum: \"i..\" has dots that are no single", [&] { einsum("i..", {m}); }),
      Bad("einsum: \"......\" has dots that are no single", [&] { einsum("......", {m}); }),
      Bad("einsum: \"...i->i\" leaves the axes of \"...\" out of its output", [&] { einsum("...i->i", {m}); }),
      Bad("einsum: \"ij-ji\" has a \"-\" that is no part of its only \"->\"", [&] { einsum("ij-ji", {m}); }),
      Bad("einsum: \"ij>ji\" has a \">\" that is no part of its only \"->\"", [&] { einsum("ij>ji", {m}); }),
      Bad("einsum: \"ij->j->i\" has a \"-\" that is no part of its only \"->\"", [&] { einsum("ij->j->i", {m}); }),
      Bad("einsum: \"ij->i,j\" has a \",\" that is no part of its only \"->\"", [&] { einsum("ij->i,j", {m}); }),
      Bad("einsum: \"i1->i\" has a character that is no letter", [&] { einsum("i1->i", {m}); }),
      Bad("einsum: \"i\xc3\xa9\" has a character that is no letter", [&] { einsum("i\xc3\xa9", {m}); }),
      Bad("einsum: there are no operands for \"i->i\"", [&] { einsum("i->i", std::span<const Tensor>()); }),
      Bad("einsum: \"...a,b\" asks for an output of 9 axes; a tensor has at most 8",
          [&] {
            einsum("...a,b", {large, v});
          }),
      Bad("einsum: \"abcxyzuv,defxyzuv,ghxyzuv->abcdefgh\" needs a tensor of more than 8 axes on the way",
          [&] {
            Tensor x = ones({2, 2, 2, 2, 2, 2, 2, 2});
            einsum("abcxyzuv,defxyzuv,ghxyzuv->abcdefgh", {x, x, ones({2, 2, 2, 2, 2, 2, 2})});
          }),
  });
  all_fail<Error>({
      Bad("einsum: an operand is an undefined tensor",
          [&] {
            einsum("i,i", {v, u});
          }),
      Bad("einsum: an operand is an undefined tensor", [&] { einsum("i", {u}); }),
  });
}

}  // namespace reel_test
