#include <cmath>
#include <string>

#include "ops/table/table.h"

namespace reel_test {

using namespace reel;

namespace {

// An equation with letters for the axes of an ellipsis and for an output that is left out.
struct Plain {
  std::vector<std::string> terms;
  std::string output;

  explicit Plain(const std::string& equation) {
    std::size_t arrow = equation.find("->");
    output = equation.substr(arrow + 2);
    terms.emplace_back();
    for (char c : equation.substr(0, arrow))
      if (c == ',')
        terms.emplace_back();
      else
        terms.back() += c;
  }

  std::map<char, std::int64_t> sizes(const Arrays& inputs) const {
    std::map<char, std::int64_t> found;
    for (std::size_t i = 0; i < terms.size(); ++i)
      for (std::size_t axis = 0; axis < terms[i].size(); ++axis)
        if (std::int64_t size = inputs[i].shape[static_cast<int>(axis)]; size != 1 || !found.contains(terms[i][axis]))
          found[terms[i][axis]] = size;
    return found;
  }
};

// The sum over all products of all indices.
Array by_loops(const Plain& plain, const Arrays& inputs) {
  std::map<char, std::int64_t> sizes = plain.sizes(inputs);
  std::string summed;
  for (auto [letter, size] : sizes)
    if (plain.output.find(letter) == std::string::npos) summed += letter;
  auto shape_of = [&](const std::string& letters) {
    Shape shape;
    for (char letter : letters) shape.push_back(sizes[letter]);
    return shape;
  };
  Array result{shape_of(plain.output), {}};
  std::map<char, std::int64_t> place;
  auto set_places = [&](const std::string& letters, const Index& index) {
    for (std::size_t i = 0; i < letters.size(); ++i) place[letters[i]] = index[i];
  };
  for_each_index(result.shape, [&](const Index& outer) {
    set_places(plain.output, outer);
    double total = 0, scale = 0;
    for_each_index(shape_of(summed), [&](const Index& inner) {
      set_places(summed, inner);
      double term = 1;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        Index index;
        for (char letter : plain.terms[i]) index.push_back(place[letter]);
        term *= at(inputs[i], index);
      }
      total += term;
      scale += std::abs(term);
    });
    result.values.push_back(total);
    result.scales.push_back(scale);
  });
  return result;
}

// `steps`: how often the halves are rounded on the way to a sum; beyond one, an error in a term may be large beside the sum.
void add_equation(std::vector<Row>& rows, const std::string& equation, const std::string& plain_equation,
                  const std::vector<Shape>& shapes, int steps = 1) {
  Plain plain(plain_equation);
  Row row{.name = "einsum " + equation,
          .run = [equation](auto x) { return einsum(equation, x); },
          .inputs = {},
          .reference = [plain](const Arrays& x) { return by_loops(plain, x); },
          .dtypes = steps > 1 ? std::vector<DType>{f32, f64, i32, i64} : all_numbers,
          .reorders = true,
          .attributes = {{"equation", {equation.begin(), equation.end()}}}};
  Arrays empty;
  for (const Shape& shape : shapes) {
    row.name += to_string(shape);
    row.inputs.push_back({shape});
    empty.push_back({shape, {}});
  }
  // A half unit for each factor and each sum of each term.
  double terms = 1;
  for (auto [letter, size] : plain.sizes(empty))
    if (plain.output.find(letter) == std::string::npos) terms *= static_cast<double>(size);
  row.ulps = terms + static_cast<double>(shapes.size());
  rows.push_back(std::move(row));
}

void add_rows(std::vector<Row>& rows) {
  // One operand: views, diagonals, sums.
  add_equation(rows, "ij->ji", "ij->ji", {{2, 3}});
  add_equation(rows, "bA", "bA->Ab", {{2, 3}});
  add_equation(rows, "ijk->", "ijk->", {{2, 3, 2}});
  add_equation(rows, "ijk->j", "ijk->j", {{2, 3, 2}});
  add_equation(rows, "ii", "ii->", {{4, 4}});
  add_equation(rows, "ii->i", "ii->i", {{4, 4}});
  add_equation(rows, "iji->ji", "iji->ji", {{3, 2, 3}});
  add_equation(rows, "iii->i", "iii->i", {{3, 3, 3}});
  add_equation(rows, "ijij->j", "ijij->j", {{2, 3, 2, 3}});
  add_equation(rows, "i...i->...", "iabi->ab", {{3, 2, 2, 3}});
  add_equation(rows, "i ... -> ... i", "iab->abi", {{2, 3, 4}});
  add_equation(rows, "->", "->", {{}});
  add_equation(rows, "ij->i", "ij->i", {{2, 0}});
  add_equation(rows, "ii->i", "ii->i", {{0, 0}});
  add_equation(rows, "aij->ja", "aij->ja", {{1, 3, 1}});
  // Two.
  add_equation(rows, "ij,jk->ik", "ij,jk->ik", {{2, 3}, {3, 4}});
  add_equation(rows, "ij,jk", "ij,jk->ik", {{70, 33}, {33, 65}});
  add_equation(rows, "ji,kj->ki", "ji,kj->ki", {{3, 2}, {4, 3}});
  add_equation(rows, "i,i", "i,i->", {{5}, {5}});
  add_equation(rows, "i,j->ij", "i,j->ij", {{3}, {2}});
  add_equation(rows, "ij,ij->ij", "ij,ij->ij", {{2, 3}, {2, 3}});
  add_equation(rows, ",ij->ji", ",ij->ji", {{}, {2, 3}});
  add_equation(rows, "bij,bjk->bik", "bij,bjk->bik", {{2, 3, 2}, {2, 2, 3}});
  add_equation(rows, "bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", {{2, 2, 3, 2}, {2, 2, 2, 2}});
  add_equation(rows, "aibj,jcib->ca", "aibj,jcib->ca", {{2, 2, 3, 2}, {2, 2, 2, 3}});
  add_equation(rows, "...ij,...jk->...ik", "abij,bjk->abik", {{2, 1, 2, 3}, {2, 3, 2}});
  add_equation(rows, "i...,...i", "iab,bi->ab", {{3, 2, 2}, {2, 3}});
  add_equation(rows, "...,...->...", "ab,b->ab", {{2, 3}, {3}});
  add_equation(rows, "ij,jk->ik", "ij,jk->ik", {{2, 1}, {3, 4}}, 2);
  add_equation(rows, "ij,ij->i", "ij,ij->i", {{1, 3}, {4, 3}});
  add_equation(rows, "ij,jk->ik", "ij,jk->ik", {{2, 0}, {0, 3}});
  add_equation(rows, "ij,kl->jl", "ij,kl->jl", {{2, 3}, {2, 2}}, 2);
  add_equation(rows, "iij,jk->ik", "iij,jk->ik", {{2, 2, 3}, {3, 2}});
  // More.
  add_equation(rows, "ij,jk,kl->il", "ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 4}}, 2);
  add_equation(rows, "i,i,i->", "i,i,i->", {{4}, {4}, {4}}, 2);
  add_equation(rows, "bn,anm,bm->ba", "bn,anm,bm->ba", {{2, 3}, {2, 3, 2}, {2, 2}}, 2);
  add_equation(rows, "ab,bc,cd,de,ea", "ab,bc,cd,de,ea->", {{2, 2}, {2, 3}, {3, 2}, {2, 2}, {2, 2}}, 2);
  add_equation(rows, "a...,b...,ab", "aX,bX,ab->X", {{2, 3}, {3, 1}, {2, 3}}, 2);
}

void add_random_rows(std::vector<Row>& rows, Random& random) {
  for (int trial = 0; trial < 3; ++trial) {
    std::int64_t a = random_size(random, 1, 9), b = random_size(random, 1, 9), c = random_size(random, 1, 9),
                 d = random_size(random, 1, 9);
    add_equation(rows, "aab->ba", "aab->ba", {{a, a, b}});
    add_equation(rows, "abc,cdb->da", "abc,cdb->da", {{a, b, c}, {c, d, b}});
    add_equation(rows, "...ab,...bc->c...a", "XYab,Ybc->cXYa", {{d, 1, a, b}, {c, b, a}});
    add_equation(rows, "ab,cb,ad->dc", "ab,cb,ad->dc", {{a, b}, {c, b}, {a, d}});
  }
}

}  // namespace

const RowFamily einsum_rows{add_rows, add_random_rows};

}  // namespace reel_test
