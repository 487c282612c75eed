#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <reel/nn/linear.h>
#include <reel/nn/module.h>
#include <reel/nn/module_list.h>
#include <reel/nn/unroll.h>

/// \file
/// Cells around cells, for `unroll`: stacked ones, residual ones, dropout, a read-out. A cell is moved into its wrapper:
///
///     nn::StackedCells<nn::ResidualCell<nn::LSTMCell>> cell;
///     for (int layer = 0; layer < 3; ++layer) cell.push_back(nn::ResidualCell(nn::LSTMCell(64, 64)));
///     auto [output, states] = nn::unroll(cell, words);         // states: one LSTMState a layer

namespace reel::detail {

/// x + y. Throws: ShapeError unless the shapes agree.
Tensor residual(const Tensor& x, const Tensor& y);
/// x with dropout, while training.
Tensor dropped(const Tensor& x, double probability, bool training);
/// Throws: Error unless it is in [0, 1].
void check_probability(const char* name, double probability, Location where);
/// Throws: Error without cells, and unless there are as many states.
void check_stack(std::size_t cells, std::size_t states);

}  // namespace reel::detail

namespace reel::nn {

/// A module that is a cell, and makes its own first state.
template <class Cell>
concept ModuleCell = std::derived_from<Cell, Module> && std::move_constructible<Cell> && CellWithState<Cell> &&
                     CellOver<Cell, StateOf<Cell>>;

/// Base class of wrappers of one cell: holds the cell, and its first state.
template <ModuleCell Cell>
struct CellWrapper : Module {
  using State = StateOf<Cell>;  ///< the state of the wrapped cell

  Cell cell;  ///< the wrapped cell

  /// The first state of the wrapped cell.
  State initial_state(std::int64_t batch) const { return cell.initial_state(batch); }

 protected:
  /// Wraps a cell. Throws: Error if it is part of a module already.
  explicit CellWrapper(Cell wrapped, Location where) : cell(std::move(wrapped)) {
    reel::detail::check_free(cell, where);
    cell.join(*this, "cell", where);
  }
};

/// A cell whose output is added to its input: y = x + cell(x). Both have one shape.
/// Source: Wu et al., Google's neural machine translation system (2016), section 3.1; TensorFlow's ResidualWrapper.
template <ModuleCell Cell>
struct ResidualCell : CellWrapper<Cell> {
  using State = StateOf<Cell>;  ///< the state of the wrapped cell

  /// A cell by itself, not part of a module. Throws: Error if the wrapped cell is part of a module already.
  explicit ResidualCell(Cell cell, Location where = Location::here()) : CellWrapper<Cell>(std::move(cell), where) {}
  /// A cell that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and if the wrapped cell is part of a
  /// module already.
  ResidualCell(Module& parent, std::string_view name, Cell cell, Location where = Location::here())
      : ResidualCell(std::move(cell), where) {
    this->join(parent, name, where);
  }

  /// The next state, and x + the output of the wrapped cell. Throws: ShapeError unless that has the shape of x; what
  /// the cell throws.
  CellStep<State> operator()(const Arg& x, const State& state) const {
    return this->call("ResidualCell", x, [&](const Tensor& x) {
      CellStep<State> step = step_of<State>(this->cell, x, state);
      step.output = detail::residual(x, step.output);
      return step;
    });
  }
};

/// Options of DropoutCell.
struct DropoutCellOptions {
  double input = 0;   ///< the probability, in [0, 1], with which an element of x becomes 0 while training; default 0
  double output = 0;  ///< the probability, in [0, 1], with which an element of the output becomes 0; default 0
};

/// A cell with dropout on its inputs and outputs while training, anew at each step; not on the state that it passes on.
/// Source: Zaremba et al., Recurrent neural network regularization (2014); TensorFlow's DropoutWrapper.
template <ModuleCell Cell>
struct DropoutCell : CellWrapper<Cell> {
  using State = StateOf<Cell>;  ///< the state of the wrapped cell

  /// A cell by itself, not part of a module.
  /// Throws: Error unless the probabilities are in [0, 1], and if the wrapped cell is part of a module already.
  explicit DropoutCell(Cell cell, DropoutCellOptions options, Location where = Location::here())
      : CellWrapper<Cell>(std::move(cell), where), options_(options) {
    detail::check_probability("DropoutCell", options.input, where);
    detail::check_probability("DropoutCell", options.output, where);
  }
  /// A cell that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, unless the probabilities are in
  /// [0, 1], and if the wrapped cell is part of a module already.
  DropoutCell(Module& parent, std::string_view name, Cell cell, DropoutCellOptions options,
              Location where = Location::here())
      : DropoutCell(std::move(cell), options, where) {
    this->join(parent, name, where);
  }

  /// The next state of the wrapped cell, and its output with dropout. Throws: what the cell throws.
  CellStep<State> operator()(const Arg& x, const State& state) const {
    return this->call("DropoutCell", x, [&](const Tensor& x) {
      bool training = this->is_training();
      CellStep<State> step = step_of<State>(this->cell, detail::dropped(x, options_.input, training), state);
      step.output = detail::dropped(step.output, options_.output, training);
      return step;
    });
  }

 private:
  DropoutCellOptions options_;
};

/// A cell whose output passes a linear layer: y = cell(x) W + b.
/// Source: TensorFlow's OutputProjectionWrapper.
template <ModuleCell Cell>
struct ReadOutCell : CellWrapper<Cell> {
  using State = StateOf<Cell>;  ///< the state of the wrapped cell

  Linear output;  ///< (H → out)

  /// A cell by itself, not part of a module; `output` maps the outputs of the wrapped cell.
  /// Throws: Error if the cell or the layer is part of a module already.
  ReadOutCell(Cell cell, Linear layer, Location where = Location::here())
      : CellWrapper<Cell>(std::move(cell), where), output(std::move(layer)) {
    reel::detail::check_free(output, where);
    output.join(*this, "output", where);
  }
  /// A cell that is registered in `parent` under `name`.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot, and if the cell or the layer is part
  /// of a module already.
  ReadOutCell(Module& parent, std::string_view name, Cell cell, Linear layer, Location where = Location::here())
      : ReadOutCell(std::move(cell), std::move(layer), where) {
    this->join(parent, name, where);
  }

  /// The next state of the wrapped cell, and the linear layer's result for its output. Throws: what both throw.
  CellStep<State> operator()(const Arg& x, const State& state) const {
    return this->call("ReadOutCell", x, [&](const Tensor& x) {
      CellStep<State> step = step_of<State>(this->cell, x, state);
      step.output = output(step.output);
      return step;
    });
  }
};

/// Cells one above the other: each has the output of the one below as its input, and a state of its own.
/// Source: TensorFlow's MultiRNNCell.
template <ModuleCell Cell>
struct StackedCells : Module {
  using State = std::vector<StateOf<Cell>>;  ///< a state of each cell, the lowest first

  ModuleList<Cell> cells{*this, "cells"};  ///< the lowest first

  /// Without cells; by itself, or registered in a parent under a name.
  /// Throws: Error unless the name is new in `parent`, not empty and without a dot.
  using Module::Module;

  /// Moves a cell to the top. Throws: Error if it is part of a module already.
  Cell& push_back(Cell&& cell, Location where = Location::here()) { return cells.push_back(std::move(cell), where); }
  /// The number of cells.
  std::size_t size() const { return cells.size(); }
  /// The first state of each cell.
  State initial_state(std::int64_t batch) const {
    State states;
    for (const Cell& cell : cells) states.push_back(cell.initial_state(batch));
    return states;
  }

  /// The next states, and the output of the highest cell. Throws: Error without cells, and unless there is a state for
  /// each; what the cells throw.
  CellStep<State> operator()(const Arg& x, const State& states) const {
    return call("StackedCells", x, [&](const Tensor& x) {
      detail::check_stack(cells.size(), states.size());
      CellStep<State> all{x, states};
      for (std::size_t i = 0; i < cells.size(); ++i) {
        CellStep<StateOf<Cell>> step = step_of<StateOf<Cell>>(cells[i], all.output, states[i]);
        all.output = std::move(step.output);
        all.state[i] = std::move(step.state);
      }
      return all;
    });
  }
};

}  // namespace reel::nn
