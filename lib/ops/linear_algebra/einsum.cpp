#include <reel/ops/einsum.h>

#include <reel/ops/elementwise.h>
#include <reel/ops/matmul.h>
#include <reel/ops/reduce.h>
#include <reel/ops/shape.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "../../core/memory_error.h"
#include "../../core/op_error.h"
#include "../if_needed.h"

namespace reel {

using namespace detail;

// einsum: diagonals and sums of single operands, then pairwise products. It is composed of ops, as are its gradients.

namespace {

// An index: 0…25 are A…Z, 26…51 a…z, then the ellipsis's axes, counted from the right. An implicit output has the axes
// in this order, except that the ellipsis comes first.
using Label = int;
constexpr Label first_ellipsis = 52, label_count = first_ellipsis + max_rank;
using Labels = std::vector<Label>;

// Labels as bits.
using LabelSet = std::uint64_t;
constexpr LabelSet bit(Label label) { return LabelSet{1} << label; }
LabelSet set_of(const Labels& labels) {
  LabelSet set = 0;
  for (Label label : labels) set |= bit(label);
  return set;
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
Label label_of(char letter) { return letter <= 'Z' ? letter - 'A' : 26 + (letter - 'a'); }
char letter_of(Label label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + (label - 26)); }

// A tensor with the labels of its axes.
struct Factor {
  Tensor tensor;
  Labels labels;
};

struct Contraction {
  std::vector<Factor> factors;
  Labels output;
  std::int64_t sizes[label_count];
};

// Parses an equation for given operands.
class Reader {
 public:
  Reader(std::string_view equation, std::span<const Tensor> operands, Location where)
      : equation_(equation), operands_(operands), where_(where) {
    for (char c : equation)
      if (!std::isspace(static_cast<unsigned char>(c))) text_ += c;
  }

  Contraction read() {
    Contraction made;
    std::fill_n(made.sizes, label_count, 1);
    std::size_t arrow = text_.find("->");
    std::vector<std::string_view> terms = split_terms(std::string_view(text_).substr(0, arrow));
    if (terms.size() != operands_.size()) fail_equation("has {} terms for {} operands", terms.size(), operands_.size());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      made.factors.push_back({operands_[i], labels_of_operand(terms[i], static_cast<int>(i))});
      record_sizes(made, static_cast<int>(i));
    }
    made.output =
        arrow == std::string::npos ? implicit_output(made) : explicit_output(std::string_view(text_).substr(arrow + 2));
    if (made.output.size() > static_cast<std::size_t>(max_rank))
      fail_equation("asks for an output of {} axes; a tensor has at most 8", made.output.size());
    return made;
  }

  template <class... T>
  [[noreturn]] void fail_equation(fmt::format_string<T...> sentence, T&&... values) const {
    std::string shapes;
    for (std::size_t i = 0; i < operands_.size() && i < 8; ++i)
      shapes += (i > 0 ? ", " : "") + to_string(operands_[i].shape());
    fail<ShapeError>("einsum", where_, "\"{}\" {}; operands {}{}", equation_,
                     fmt::format(sentence, std::forward<T>(values)...), shapes, operands_.size() > 8 ? ", …" : "");
  }

 private:
  static std::vector<std::string_view> split_terms(std::string_view text) {
    std::vector<std::string_view> terms;
    while (true) {
      std::size_t comma = text.find(',');
      terms.push_back(text.substr(0, comma));
      if (comma == std::string_view::npos) return terms;
      text.remove_prefix(comma + 1);
    }
  }

  // The labels of a term; an ellipsis expands to `ellipsis_rank` labels.
  static Labels expanded(std::string_view term, int ellipsis_rank) {
    Labels labels;
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (term[i] == '.')
        for (i += 2; ellipsis_rank > 0;) labels.push_back(first_ellipsis + --ellipsis_rank);
      else
        labels.push_back(label_of(term[i]));
    }
    return labels;
  }

  // The number of letters of a term, not counting an ellipsis.
  int count_letters(std::string_view term, bool& ellipsis) const {
    int letters = 0;
    ellipsis = false;
    for (std::size_t i = 0; i < term.size(); ++i) {
      char c = term[i];
      if (is_letter(c)) {
        ++letters;
      } else if (c == '.' && term.substr(i, 3) == "..." && !ellipsis) {
        ellipsis = true;
        i += 2;
      } else if (c == '.') {
        fail_equation("has dots that are no single \"...\" in the term \"{}\"", term);
      } else if (c == '-' || c == '>' || c == ',') {
        fail_equation("has a \"{}\" that is no part of its only \"->\" with one output behind it", c);
      } else {
        fail_equation("has a character that is no letter, comma, \"...\" or \"->\" in the term \"{}\"", term);
      }
    }
    return letters;
  }

  Labels labels_of_operand(std::string_view term, int number) {
    bool ellipsis;
    int letters = count_letters(term, ellipsis), rank = operands_[static_cast<std::size_t>(number)].rank();
    if (ellipsis ? letters > rank : letters != rank)
      fail_equation("names {}{} axes of operand {}, which has {}", ellipsis ? "at least " : "", letters, number, rank);
    ellipsis_rank_ = std::max(ellipsis_rank_, rank - letters);
    return expanded(term, rank - letters);
  }

  void record_sizes(Contraction& made, int number) const {
    const Factor& factor = made.factors.back();
    std::int64_t own[label_count] = {};
    LabelSet seen = 0;
    for (int axis = 0; axis < factor.tensor.rank(); ++axis) {
      Label label = factor.labels[static_cast<std::size_t>(axis)];
      std::int64_t size = factor.tensor.size(axis);
      std::int64_t& known = made.sizes[label];
      bool twice = seen & bit(label);
      if (twice ? own[label] != size : known != 1 && size != 1 && known != size)
        fail_equation("gives {} the sizes {} and {} at operand {}", name_of_label(label), twice ? own[label] : known,
                      size, number);
      seen |= bit(label);
      own[label] = size;
      if (size != 1) known = size;
    }
  }

  static std::string name_of_label(Label label) {
    return label >= first_ellipsis ? "an axis of \"...\"" : fmt::format("index {}", letter_of(label));
  }

  Labels implicit_output(const Contraction& made) const {
    int occurrences[label_count] = {};
    for (const Factor& factor : made.factors)
      for (Label label : factor.labels) ++occurrences[label];
    Labels output = expanded("...", ellipsis_rank_);
    for (Label label = 0; label < first_ellipsis; ++label)
      if (occurrences[label] == 1) output.push_back(label);
    return output;
  }

  Labels explicit_output(std::string_view term) const {
    bool ellipsis;
    count_letters(term, ellipsis);
    if (!ellipsis && ellipsis_rank_ > 0)
      fail_equation("leaves the axes of \"...\" out of its output; write them there, or name and sum them");
    Labels output = expanded(term, ellipsis_rank_);
    LabelSet given = 0, seen = 0;
    for (std::string_view from = std::string_view(text_).substr(0, text_.find("->")); char c : from)
      if (is_letter(c)) given |= bit(label_of(c));
    for (Label label : output) {
      if (label < first_ellipsis && !(given & bit(label)))
        fail_equation("has index {} in its output that no operand has", letter_of(label));
      if (seen & bit(label)) fail_equation("has index {} twice in its output", letter_of(label));
      seen |= bit(label);
    }
    return output;
  }

  std::string_view equation_;
  std::span<const Tensor> operands_;
  Location where_;
  std::string text_;  // without spaces
  int ellipsis_rank_ = 0;
};

// The axes of a factor that have the given labels.
Shape axes_of(const Factor& factor, const Labels& labels) {
  Shape axes;
  for (Label label : labels)
    axes.push_back(std::find(factor.labels.begin(), factor.labels.end(), label) - factor.labels.begin());
  return axes;
}

Tensor permuted(const Factor& factor, const Labels& labels) {
  return factor.labels == labels ? factor.tensor : permute(factor.tensor, axes_of(factor, labels));
}

Tensor reshaped(const Tensor& x, const Shape& shape) { return x.shape() == shape ? x : reshape(x, shape); }

// Replaces two axes of one label by the diagonal: y_…i = x_…i…i.
void take_diagonal(Factor& factor, int first, int second) {
  Shape axes, shape;
  Labels labels;
  for (int axis = 0; axis < factor.tensor.rank(); ++axis) {
    if (axis == first || axis == second) continue;
    axes.push_back(axis);
    shape.push_back(factor.tensor.size(axis));
    labels.push_back(factor.labels[static_cast<std::size_t>(axis)]);
  }
  axes.push_back(first);
  axes.push_back(second);
  labels.push_back(factor.labels[static_cast<std::size_t>(first)]);
  std::int64_t size = factor.tensor.size(first);
  bool empty = factor.tensor.numel() == 0;  // then size² may overflow
  shape.push_back(empty ? size : size * size);
  Tensor flat = reshape(permute(factor.tensor, axes), shape);
  factor = {empty ? flat : slice(flat, -1, 0, size * size, size + 1), std::move(labels)};
}

void take_diagonals(Factor& factor) {
  for (std::size_t second = 1; second < factor.labels.size(); ++second)
    for (std::size_t first = 0; first < second; ++first)
      if (factor.labels[first] == factor.labels[second]) {
        take_diagonal(factor, static_cast<int>(first), static_cast<int>(second));
        return take_diagonals(factor);
      }
}

// Removes axes of size 1, which broadcast and are their own sums.
void drop_single_axes(Factor& factor) {
  Shape shape;
  Labels labels;
  for (int axis = 0; axis < factor.tensor.rank(); ++axis)
    if (factor.tensor.size(axis) != 1) {
      shape.push_back(factor.tensor.size(axis));
      labels.push_back(factor.labels[static_cast<std::size_t>(axis)]);
    }
  factor = {reshaped(factor.tensor, shape), std::move(labels)};
}

// Sums over labels that neither the output nor another factor has.
void sum_alone(Factor& factor, LabelSet kept) {
  Labels summed, labels;
  for (Label label : factor.labels) (kept & bit(label) ? labels : summed).push_back(label);
  if (summed.empty()) return;
  // A sum of integers would have dtype i64.
  factor = {to_if_needed(sum(factor.tensor, axes_of(factor, summed)), factor.tensor.dtype()), std::move(labels)};
}

// The roles of the labels of a pair in its product.
struct Roles {
  Labels batch, left, right, summed;

  Roles(const Factor& a, const Factor& b, LabelSet kept) {
    LabelSet in_a = set_of(a.labels), in_b = set_of(b.labels);
    for (Label label : a.labels)
      (in_b & ~kept & bit(label) ? summed : in_b & bit(label) ? batch : left).push_back(label);
    for (Label label : b.labels)
      if (!(in_a & bit(label))) right.push_back(label);
  }
  Labels result() const { return joined({&batch, &left, &right}); }
  static Labels joined(std::initializer_list<const Labels*> parts) {
    Labels all;
    for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
    return all;
  }
};

class Contractor {
 public:
  explicit Contractor(Contraction contraction) : all_(std::move(contraction)), output_(set_of(all_.output)) {}

  // Returns an undefined tensor if a product would need more than 8 axes.
  Tensor run() {
    std::vector<Factor>& factors = all_.factors;
    for (Factor& factor : factors) {
      take_diagonals(factor);
      drop_single_axes(factor);
    }
    for (std::size_t i = 0; i < factors.size(); ++i) sum_alone(factors[i], needed_beside(i, i));
    while (factors.size() > 1) {
      std::size_t first = 0, second = 0;
      if (!find_pair(first, second)) return {};
      factors[first] = contracted(factors[first], factors[second], needed_beside(first, second));
      factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
    }
    return in_output_order(factors[0]);
  }

 private:
  LabelSet needed_beside(std::size_t first, std::size_t second) const {
    LabelSet needed = output_;
    for (std::size_t i = 0; i < all_.factors.size(); ++i)
      if (i != first && i != second) needed |= set_of(all_.factors[i].labels);
    return needed;
  }

  // Finds the pair with the smallest product. Returns false if all products have more than 8 axes.
  bool find_pair(std::size_t& first, std::size_t& second) const {
    double smallest = 0;
    for (std::size_t j = 1; j < all_.factors.size(); ++j)
      for (std::size_t i = 0; i < j; ++i) {
        Labels labels = Roles(all_.factors[i], all_.factors[j], needed_beside(i, j)).result();
        if (labels.size() > static_cast<std::size_t>(max_rank)) continue;
        double size = 1;
        for (Label label : labels) size *= static_cast<double>(all_.sizes[label]);
        if (second == 0 || size < smallest) {
          smallest = size;
          first = i;
          second = j;
        }
      }
    return second != 0;
  }

  Factor contracted(const Factor& a, const Factor& b, LabelSet kept) const {
    Roles roles(a, b, kept);
    Labels result = roles.result();
    if (roles.summed.empty()) {
      Tensor left = permuted(a, Roles::joined({&roles.batch, &roles.left}));
      Tensor right = permuted(b, Roles::joined({&roles.batch, &roles.right}));
      return {mul(reshaped(left, shape_of(result, ~set_of(roles.right))),
                  reshaped(right, shape_of(result, ~set_of(roles.left)))),
              result};
    }
    Tensor left = permuted(a, Roles::joined({&roles.batch, &roles.left, &roles.summed}));
    Tensor right = permuted(b, Roles::joined({&roles.batch, &roles.summed, &roles.right}));
    // Batch axes stay separate, which needs no copy, if there is room for two more.
    Shape batch = roles.batch.size() + 2 <= static_cast<std::size_t>(max_rank) ? shape_of(roles.batch, ~LabelSet{0})
                                                                               : Shape{product_of(roles.batch)};
    auto matrices = [&](std::int64_t rows, std::int64_t columns) {
      Shape shape = batch;
      shape.push_back(rows);
      shape.push_back(columns);
      return shape;
    };
    std::int64_t inner = product_of(roles.summed);
    Tensor product = matmul(reshaped(left, matrices(product_of(roles.left), inner)),
                            reshaped(right, matrices(inner, product_of(roles.right))));
    return {reshaped(product, shape_of(result, ~LabelSet{0})), result};
  }

  // The sizes of labels, with 1 for those outside a set.
  Shape shape_of(const Labels& labels, LabelSet present) const {
    Shape shape;
    for (Label label : labels) shape.push_back(present & bit(label) ? all_.sizes[label] : 1);
    return shape;
  }

  std::int64_t product_of(const Labels& labels) const {
    std::int64_t product = 1;
    // Without elements, sizes may be large; reshape refuses products that overflow.
    for (Label label : labels)
      if (__builtin_mul_overflow(product, all_.sizes[label], &product)) return 0;
    return product;
  }

  // Restores the axes of size 1 that were removed.
  Tensor in_output_order(const Factor& factor) const {
    Labels present;
    LabelSet held = set_of(factor.labels);
    std::copy_if(all_.output.begin(), all_.output.end(), std::back_inserter(present),
                 [&](Label label) { return (held & bit(label)) != 0; });
    return reshaped(permuted(factor, present), shape_of(all_.output, held));
  }

  Contraction all_;
  LabelSet output_;
};

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands, Location where) {
  return with_memory_error("einsum", where, [&] {
    if (operands.empty()) fail<ShapeError>("einsum", where, "there are no operands for \"{}\"", equation);
    DType dtype = tensor_of("einsum", Arg(operands[0], where)).dtype();
    for (const Tensor& operand : operands) {
      dtype = promote(dtype, tensor_of("einsum", Arg(operand, where)).dtype());
      check_same_device("einsum", operands[0], operand, where);
    }
    Reader reader(equation, operands, where);
    Contraction contraction = reader.read();
    OpScope caller(where, "einsum");
    for (Factor& factor : contraction.factors) factor.tensor = to_if_needed(factor.tensor, dtype);
    Tensor result = Contractor(std::move(contraction)).run();
    if (!result.defined()) reader.fail_equation("needs a tensor of more than 8 axes on the way");
    return result.is(operands[0]) ? reshape(result, result.shape()) : result;
  });
}

}  // namespace reel
