#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "ops/table/table.h"

// Running error analysis: a computation in f64 that bounds, at each step, the rounding errors of this computation in
// a smaller dtype, whatever the order in which it adds, and to first order in the dtype's last place.
// Source: Higham, Accuracy and Stability of Numerical Algorithms, section 3.3.

namespace reel_test {

/// A value, and a bound of its rounding error, in units in the last place of 1.
struct Number {
  double value = 0, error = 0;
};

inline double value_of(Number a) { return a.value; }

inline Number operator+(Number a, Number b) {
  double sum = a.value + b.value;
  return {sum, a.error + b.error + std::abs(sum) / 2};
}

inline Number operator*(Number a, Number b) {
  double product = a.value * b.value;
  return {product, std::abs(a.value) * b.error + std::abs(b.value) * a.error + std::abs(product) / 2};
}

inline Number one_minus(Number a) { return {1 - a.value, a.error + std::abs(1 - a.value) / 2}; }
inline Number relu_of(Number a) { return {std::max(a.value, 0.0), a.error}; }

inline Number negative(Number a) { return {-a.value, a.error}; }
/// a + by, of which nothing has rounded `by`.
inline Number shifted(Number a, double by) { return {a.value + by, a.error + std::abs(a.value + by) / 2}; }
inline Number inverse_of(Number a) {
  double y = 1 / a.value;
  return {y, a.error * y * y + std::abs(y) / 2};
}
/// 1 / √a, rounded twice.
inline Number rsqrt_of(Number a) {
  double y = 1 / std::sqrt(a.value);
  return {y, a.error * y * y * y / 2 + y};
}
/// A constant in a computation with numbers such as `like`.
inline Number constant(Number /*like*/, Number number) { return number; }

// The errors of these functions are less than three units.
inline Number exp_of(Number a) {
  double y = std::exp(a.value);
  return {y, (a.error + 3) * y};
}

inline Number log_of(Number a) {
  double y = std::log(a.value);
  return {y, a.error / a.value + 3 * std::abs(y)};
}

inline Number sigmoid_of(Number a) {
  double y = 1 / (1 + std::exp(-a.value));
  return {y, a.error * y * (1 - y) + 3 * y};
}

inline Number tanh_of(Number a) {
  double y = std::tanh(a.value);
  return {y, a.error * (1 - y * y) + 3 * std::abs(y)};
}

/// a · factor, which is exact if the factor is always 0, 1 or −1.
inline Number scaled(Number a, Number factor) {
  bool exact = factor.error == 0 && (factor.value == 0 || std::abs(factor.value) == 1);
  return exact ? Number{a.value * factor.value, a.error * std::abs(factor.value)} : a * factor;
}

/// A sum of terms in any order: each passes at most as many additions as there are terms but one.
struct AnySum {
  Number sum;
  double sizes = 0;
  std::size_t terms = 0;

  void add(Number term) {
    sum.value += term.value;
    sum.error += term.error;
    sizes += std::abs(term.value);
    ++terms;
  }
  Number total() const {
    double additions = terms > 0 ? static_cast<double>(terms - 1) : 0;
    return {sum.value, sum.error + sizes * additions / 2};
  }
};

using Numbers = std::vector<Number>;

inline Number sum_of(const Numbers& terms) {
  AnySum sum;
  for (Number term : terms) sum.add(term);
  return sum.total();
}

/// Σ_k x_k w_k in any order.
inline Number dot(const Numbers& x, const Numbers& w) {
  AnySum sum;
  for (std::size_t k = 0; k < x.size(); ++k) sum.add(x[k] * w[k]);
  return sum.total();
}

/// The steps of a computation with their derivatives, for a backward pass from the gradient of its results, with bounds
/// of its errors.
class DerivativeList {
 public:
  struct Step {
    Number value;
    std::size_t first_source, sources;  // of `sources_`
  };
  struct Source {
    std::size_t step;
    Number derivative;
  };

  std::size_t add(Number value, std::initializer_list<Source> sources = {}) {
    return add(value, sources.begin(), sources.end());
  }
  template <class Iterator>
  std::size_t add(Number value, Iterator begin, Iterator end) {
    steps_.push_back({value, sources_.size(), static_cast<std::size_t>(end - begin)});
    sources_.insert(sources_.end(), begin, end);
    return steps_.size() - 1;
  }
  Number value(std::size_t step) const { return steps_[step].value; }

  /// Σ over `results` of seed · result, differentiated by every step.
  Numbers gradient(const std::vector<std::size_t>& results, const std::vector<double>& seed) const {
    std::vector<AnySum> sums(steps_.size());
    for (std::size_t i = 0; i < results.size(); ++i) sums[results[i]].add({seed[i]});
    Numbers gradients(steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;) {
      gradients[i] = sums[i].total();
      if (sums[i].terms == 0) continue;
      for (std::size_t k = 0; k < steps_[i].sources; ++k) {
        const Source& source = sources_[steps_[i].first_source + k];
        sums[source.step].add(scaled(gradients[i], source.derivative));
      }
    }
    return gradients;
  }

 private:
  std::vector<Step> steps_;
  std::vector<Source> sources_;
};

/// A Number whose derivatives are kept.
struct Tracked {
  DerivativeList* list;
  std::size_t step;

  Number value() const { return list->value(step); }
};

inline double value_of(Tracked a) { return a.value().value; }

inline Tracked operator+(Tracked a, Tracked b) {
  return {a.list, a.list->add(a.value() + b.value(), {{a.step, {1}}, {b.step, {1}}})};
}
inline Tracked operator*(Tracked a, Tracked b) {
  return {a.list, a.list->add(a.value() * b.value(), {{a.step, b.value()}, {b.step, a.value()}})};
}
inline Tracked one_minus(Tracked a) { return {a.list, a.list->add(one_minus(a.value()), {{a.step, {-1}}})}; }
inline Tracked relu_of(Tracked a) {
  return {a.list, a.list->add(relu_of(a.value()), {{a.step, {a.value().value > 0 ? 1.0 : 0.0}}})};
}
inline Tracked sigmoid_of(Tracked a) {
  Number y = sigmoid_of(a.value());
  return {a.list, a.list->add(y, {{a.step, y * one_minus(y)}})};
}
inline Tracked tanh_of(Tracked a) {
  Number y = tanh_of(a.value());
  return {a.list, a.list->add(y, {{a.step, one_minus(y * y)}})};
}
inline Tracked shifted(Tracked a, double by) { return {a.list, a.list->add(shifted(a.value(), by), {{a.step, {1}}})}; }
inline Tracked constant(Tracked like, Number number) { return {like.list, like.list->add(number)}; }
inline Tracked exp_of(Tracked a) {
  Number y = exp_of(a.value());
  return {a.list, a.list->add(y, {{a.step, y}})};
}
inline Tracked inverse_of(Tracked a) {
  Number y = inverse_of(a.value()), slope = y * y;
  return {a.list, a.list->add(y, {{a.step, {-slope.value, slope.error}}})};
}
inline Tracked rsqrt_of(Tracked a) {
  Number y = rsqrt_of(a.value()), cube = y * y * y;
  return {a.list, a.list->add(y, {{a.step, {-cube.value / 2, cube.error / 2}}})};
}
inline Tracked sum_of(const std::vector<Tracked>& terms) {
  AnySum sum;
  std::vector<DerivativeList::Source> sources;
  for (Tracked term : terms) {
    sum.add(term.value());
    sources.push_back({term.step, {1}});
  }
  DerivativeList* list = terms.front().list;
  return {list, list->add(sum.total(), sources.begin(), sources.end())};
}
inline Tracked dot(const std::vector<Tracked>& x, const std::vector<Tracked>& w) {
  AnySum sum;
  std::vector<DerivativeList::Source> sources;
  for (std::size_t k = 0; k < x.size(); ++k) {
    sum.add(x[k].value() * w[k].value());
    sources.push_back({x[k].step, w[k].value()});
    sources.push_back({w[k].step, x[k].value()});
  }
  DerivativeList* list = x.front().list;
  return {list, list->add(sum.total(), sources.begin(), sources.end())};
}

/// e^x_i / Σ_k e^x_k, with the largest element subtracted first. The largest element rounds nothing: it cancels.
template <class N>
std::vector<N> softmax_of(const std::vector<N>& x) {
  std::vector<N> terms;
  if (x.empty()) return terms;
  double most = value_of(x.front());
  for (N element : x) most = std::max(most, value_of(element));
  for (N element : x) terms.push_back(exp_of(shifted(element, -most)));
  N inverse = inverse_of(sum_of(terms));
  for (N& term : terms) term = term * inverse;
  return terms;
}

/// x_i − log Σ_k e^x_k, with the largest element subtracted first.
inline Numbers log_softmax_of(const Numbers& x) {
  Numbers differences, terms;
  if (x.empty()) return terms;
  double most = value_of(x.front());
  for (Number element : x) most = std::max(most, element.value);
  for (Number element : x) {
    differences.push_back(shifted(element, -most));
    terms.push_back(exp_of(differences.back()));
  }
  Number logarithm = log_of(sum_of(terms));
  for (Number& difference : differences) difference = difference + negative(logarithm);
  return differences;
}

/// Its derivatives by x_k are 1, where k is i, and −e^y_k.
inline std::vector<Tracked> log_softmax_of(const std::vector<Tracked>& x) {
  Numbers values;
  for (Tracked element : x) values.push_back(element.value());
  Numbers logarithms = log_softmax_of(values);
  std::vector<DerivativeList::Source> sources;
  for (std::size_t k = 0; k < x.size(); ++k) sources.push_back({x[k].step, negative(exp_of(logarithms[k]))});
  std::vector<Tracked> results;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sources.push_back({x[i].step, {1}});
    DerivativeList* list = x[i].list;
    results.push_back({list, list->add(logarithms[i], sources.begin(), sources.end())});
    sources.pop_back();
  }
  return results;
}

/// The inputs of a row, element by element.
template <class N>
using Elements = std::vector<std::vector<N>>;

/// The function of a row's inputs: maps Elements<N> and N's 0 to a vector of N.
template <class Run>
Array expected_of(const Run& run, const Arrays& x, const reel::Shape& shape) {
  Elements<Number> elements;
  for (const Array& array : x) {
    elements.emplace_back();
    for (double value : array.values) elements.back().push_back({value});
  }
  Array y{shape, {}};
  for (Number number : run(elements, Number{})) {
    y.values.push_back(number.value);
    y.scales.push_back(number.error);
  }
  return y;
}

/// Bounds of the errors of the inputs' gradients where `seed` is that of the results.
template <class Run>
Arrays gradient_errors_of(const Run& run, const Arrays& x, const Array& seed) {
  DerivativeList list;
  Elements<Tracked> elements;
  for (const Array& array : x) {
    elements.emplace_back();
    for (double value : array.values) elements.back().push_back({&list, list.add({value})});
  }
  std::vector<std::size_t> results;
  for (Tracked result : run(elements, Tracked{&list, list.add({})})) results.push_back(result.step);
  Numbers gradient = list.gradient(results, seed.values);
  Arrays errors;
  std::size_t next = 0;
  for (const Array& array : x) {
    errors.push_back({array.shape, {}});
    for (std::size_t i = 0; i < array.values.size(); ++i) errors.back().values.push_back(gradient[next++].error);
  }
  return errors;
}

}  // namespace reel_test
