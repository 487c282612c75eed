#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/table/running_error.h"

// The formulas of recurrent cells and nets for a number type N: one that bounds errors, or one that also bounds
// the derivatives' errors.

namespace reel_test {

/// Elements `begin` to `begin + count` in steps of `step`.
template <class N>
std::vector<N> part_of(const std::vector<N>& elements, std::int64_t begin, std::int64_t count, std::int64_t step = 1) {
  std::vector<N> part;
  for (std::int64_t k = 0; k < count; ++k) part.push_back(elements[static_cast<std::size_t>(begin + k * step)]);
  return part;
}

/// Row `row` of x, of `width` columns.
template <class N>
std::vector<N> row_of(const std::vector<N>& x, std::int64_t row, std::int64_t width) {
  return part_of(x, row * width, width);
}

template <class N>
void append(std::vector<N>& to, const std::vector<N>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <class N>
struct Carried {
  std::vector<N> h, c;
};

enum class Kind : std::uint8_t { lstm, gru, tanh, relu };

template <class N>
struct Weights {
  const std::vector<N>*W_x, *W_h, *bias;  // null: zeros
};

/// One step of a cell of `gates` blocks of columns. `zero` is the number 0.
template <class N>
Carried<N> step(Kind kind, std::int64_t gates, const std::vector<N>& x, const Carried<N>& before,
                const Weights<N>& weights, N zero) {
  auto size = static_cast<std::int64_t>(before.h.size());
  auto bias = [&](std::int64_t column) {
    return weights.bias ? (*weights.bias)[static_cast<std::size_t>(column)] : zero;
  };
  auto product = [&](const std::vector<N>& row, const std::vector<N>& w, std::int64_t column) {
    return row.empty() ? zero : dot(row, part_of(w, column, std::ssize(row), gates * size));
  };
  auto from_input = [&](std::int64_t column) { return product(x, *weights.W_x, column); };
  auto from_state = [&](std::int64_t column) { return product(before.h, *weights.W_h, column); };
  Carried<N> after = before;
  for (std::int64_t k = 0; k < size; ++k) {
    auto j = static_cast<std::size_t>(k);
    auto argument = [&](std::int64_t gate) {
      std::int64_t column = gate * size + k;
      return from_input(column) + from_state(column) + bias(column);
    };
    if (kind == Kind::lstm) {
      N i = sigmoid_of(argument(0)), f = sigmoid_of(argument(1)), g = tanh_of(argument(2));
      after.c[j] = f * before.c[j] + i * g;
      after.h[j] = sigmoid_of(argument(3)) * tanh_of(after.c[j]);
    } else if (kind == Kind::gru) {
      N r = sigmoid_of(argument(0)), z = sigmoid_of(argument(1));
      N m = from_state(2 * size + k) + bias(3 * size + k);
      N n = tanh_of(from_input(2 * size + k) + bias(2 * size + k) + r * m);
      after.h[j] = one_minus(z) * n + z * before.h[j];
    } else {
      N a = argument(0);
      after.h[j] = kind == Kind::tanh ? tanh_of(a) : relu_of(a);
    }
  }
  return after;
}

inline std::int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

/// The product of a row and a column, which may be empty. `zero` is the number 0.
template <class N>
N product_of(const std::vector<N>& row, const std::vector<N>& column, N zero) {
  return row.empty() ? zero : dot(row, column);
}

/// A step of a cell: from x, h, c of lstm, W_x, W_h and the bias to h and c of each example.
struct CellCase {
  Kind kind;
  std::int64_t batch, input, size;
  bool bias = true, rounded = false;  // rounded: weights of f32 are rounded to bf16

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    std::size_t first = kind == Kind::lstm ? 3 : 2;
    std::vector<N> results;
    for (std::int64_t row = 0; row < batch; ++row) {
      Carried<N> before{row_of(x[1], row, size), {}};
      if (kind == Kind::lstm) before.c = row_of(x[2], row, size);
      Carried<N> after = step(kind, gates_of(kind), row_of(x[0], row, input), before,
                              {&x[first], &x[first + 1], bias ? &x[first + 2] : nullptr}, zero);
      append(results, after.h);
      append(results, after.c);
    }
    return results;
  }
};

/// A step of lstm_cell: from p, q and c to h and c of each example.
struct PartsCase {
  std::int64_t batch, size;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N) const {
    std::vector<N> all;
    for (std::int64_t row = 0; row < batch; ++row) {
      std::vector<N> p = row_of(x[0], row, 4 * size), q = row_of(x[1], row, 4 * size), h, c;
      for (std::int64_t k = 0; k < size; ++k) {
        auto argument = [&](std::int64_t gate) {
          auto column = static_cast<std::size_t>(gate * size + k);
          return p[column] + q[column];
        };
        const N& before = x[2][static_cast<std::size_t>(row * size + k)];
        c.push_back(sigmoid_of(argument(1)) * before + sigmoid_of(argument(0)) * tanh_of(argument(2)));
        h.push_back(sigmoid_of(argument(3)) * tanh_of(c.back()));
      }
      append(all, h);
      append(all, c);
    }
    return all;
  }
};

/// A step of lstm_cell: from projected inputs p, h of a width of its own, c and W_h to h and c of each example.
struct ProjectedCase {
  std::int64_t batch, width, size;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    Elements<N> parts{x[0], {}, x[2]};
    for (std::int64_t row = 0; row < batch; ++row)
      for (std::int64_t column = 0; column < 4 * size; ++column)
        parts[1].push_back(product_of(row_of(x[1], row, width), part_of(x[3], column, width, 4 * size), zero));
    return PartsCase{batch, size}(parts, zero);
  }
};

/// A node of a tree: from the gates' arguments and the children's c to h and c of each example.
struct TreeCase {
  std::int64_t batch, size, children;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N) const {
    std::vector<N> results;
    for (std::int64_t row = 0; row < batch; ++row) {
      std::vector<N> a = row_of(x[0], row, (3 + children) * size), h, c;
      for (std::int64_t k = 0; k < size; ++k) {
        auto argument = [&](std::int64_t gate) { return a[static_cast<std::size_t>(gate * size + k)]; };
        N sum = sigmoid_of(argument(0)) * tanh_of(argument(2));
        for (std::int64_t child = 0; child < children; ++child)
          sum = sum + sigmoid_of(argument(3 + child)) *
                          x[static_cast<std::size_t>(1 + child)][static_cast<std::size_t>(row * size + k)];
        c.push_back(sum);
        h.push_back(sigmoid_of(argument(1)) * tanh_of(sum));
      }
      append(results, h);
      append(results, c);
    }
    return results;
  }
};

/// A node of a tree: from p, one row for all or one each, W_h and the children's h and c to h and c of each example.
struct NodeCase {
  TreeCase tree;
  bool one_row;

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    auto [batch, size, children] = tree;
    std::int64_t width = children * size, columns = (3 + children) * size;
    Elements<N> parts(static_cast<std::size_t>(1 + children));
    for (std::int64_t row = 0; row < batch; ++row) {
      std::vector<N> p = row_of(x[0], one_row ? 0 : row, 4 * size), h;
      for (std::int64_t k = 0; k < children; ++k) append(h, row_of(x[static_cast<std::size_t>(2 + 2 * k)], row, size));
      for (std::int64_t column = 0; column < columns; ++column) {
        std::int64_t gate = std::min<std::int64_t>(column / size, 3);
        parts[0].push_back(p[static_cast<std::size_t>(gate * size + column % size)] +
                           product_of(h, part_of(x[1], column, width, columns), zero));
      }
    }
    for (std::int64_t k = 0; k < children; ++k)
      parts[static_cast<std::size_t>(1 + k)] = x[static_cast<std::size_t>(3 + 2 * k)];
    return tree(parts, zero);
  }
};

/// A whole net: from x, h and c of lstm, W_x, W_h and the bias of each net to all steps of the output and the last states.
struct NetCase {
  Kind kind;
  std::int64_t steps, batch, input, size;
  std::vector<std::int64_t> lengths = {};  // none: all steps
  std::int64_t layers = 1;
  bool bidirectional = false, state = true, bias = true, rounded = false;  // rounded: weights of f32 are rounded to f16

  std::int64_t directions() const { return bidirectional ? 2 : 1; }
  std::int64_t nets() const { return layers * directions(); }
  std::size_t first_weight() const { return state ? kind == Kind::lstm ? 3 : 2 : 1; }
  std::size_t weights_each() const { return bias ? 3 : 2; }

  // One example at a time. Both are added to: what is read by a later layer, and the states at the end.
  template <class N>
  std::vector<std::vector<N>> layer(const std::vector<std::vector<N>>& rows, std::int64_t number, std::int64_t example,
                                    const Elements<N>& x, N zero, std::vector<Carried<N>>& ends) const {
    std::vector<std::vector<N>> outputs(rows.size());
    for (std::int64_t direction = 0; direction < directions(); ++direction) {
      std::int64_t net = number * directions() + direction;
      std::size_t at = first_weight() + static_cast<std::size_t>(net) * weights_each();
      auto first = [&](std::size_t given) {
        return state ? row_of(x[given], net * batch + example, size)
                     : std::vector<N>(static_cast<std::size_t>(size), zero);
      };
      Carried<N> carried{first(1), {}};
      if (kind == Kind::lstm) carried.c = first(2);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        std::size_t t = direction == 0 ? i : rows.size() - 1 - i;
        carried = step(kind, gates_of(kind), rows[t], carried, {&x[at], &x[at + 1], bias ? &x[at + 2] : nullptr}, zero);
        append(outputs[t], carried.h);
      }
      ends.push_back(carried);
    }
    return outputs;
  }

  template <class N>
  std::vector<N> operator()(const Elements<N>& x, N zero) const {
    std::vector<std::vector<std::vector<N>>> outputs;
    std::vector<std::vector<Carried<N>>> ends;
    for (std::int64_t b = 0; b < batch; ++b) {
      std::vector<std::vector<N>> rows;
      auto length =
          lengths.empty() ? steps : static_cast<std::int64_t>(value_of(x.back()[static_cast<std::size_t>(b)]));
      for (std::int64_t t = 0; t < length; ++t) rows.push_back(row_of(x[0], t * batch + b, input));
      ends.emplace_back();
      for (std::int64_t number = 0; number < layers; ++number) rows = layer(rows, number, b, x, zero, ends.back());
      rows.resize(static_cast<std::size_t>(steps), std::vector<N>(static_cast<std::size_t>(directions() * size), zero));
      outputs.push_back(rows);
    }
    std::vector<N> results;
    for (std::size_t t = 0; t < static_cast<std::size_t>(steps); ++t)
      for (const auto& rows : outputs) append(results, rows[t]);
    for (std::vector<N> Carried<N>::*part : {&Carried<N>::h, &Carried<N>::c})
      for (std::size_t net = 0; net < static_cast<std::size_t>(nets()); ++net)
        for (const auto& carried : ends) append(results, carried[net].*part);
    return results;
  }
};

}  // namespace reel_test
