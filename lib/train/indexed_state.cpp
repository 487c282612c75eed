#include "indexed_state.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <reel/ops/create.h>

#include "../core/op_error.h"

namespace reel::detail {

namespace {

constexpr const char* indexed_name = "train::Checkpoint";
// The names, in the order of the indices.
constexpr const char* names_name = "names";

// "7.mean": an index and a name without a dot.
struct IndexedName {
  std::size_t index;
  std::string_view kept;
};

std::optional<IndexedName> split_indexed(std::string_view name) {
  std::size_t index = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  auto digits = static_cast<std::size_t>(end - name.data());
  if (error != std::errc() || digits == name.size() || name[digits] != '.') return {};
  return IndexedName{index, name.substr(digits + 1)};
}

// A vector with an element for each tensor. `initial`: that of a tensor without a saved state; nothing: its present one.
struct Column {
  const char* name;
  std::optional<double> initial;
};

class SavedByIndex : public CheckpointObject {
 public:
  SavedByIndex(std::vector<Column> columns, LoadOrder order) : columns_(std::move(columns)), order_(order) {}

  LoadOrder load_order() const override { return order_; }

  std::vector<NamedTensor> named(std::vector<NamedTensor> state, const std::string& part, const TensorNames& names,
                                 Location where) const override {
    std::vector<std::string> own = own_names(part, names, where);
    for (NamedTensor& one : state)
      if (std::optional<IndexedName> split = split_indexed(one.name))
        one.name = own.at(split->index) + "." + std::string(split->kept);
    for (NamedTensor& text : tensors_of_texts(names_name, own)) state.push_back(std::move(text));
    return state;
  }

  std::vector<NamedTensor> matched(std::vector<NamedTensor> saved, std::span<const NamedTensor> now,
                                   const std::string& part, Matching& matching, Location where) const override {
    std::vector<std::string> own = own_names(part, matching.names, where);
    std::vector<std::string> theirs = texts_of(taken_names(saved), names_name, where);
    if (theirs == own && all_restored(own, matching)) return indexed(std::move(saved), positions_of(own));
    if (is_whole(saved)) {
      matching.different.push_back(part + ", whose state is that of all its parameters in their order");
      return {};
    }
    return selected(std::move(saved), now, part, own, theirs, matching, where);
  }

 protected:
  virtual const std::vector<Tensor>& tensors() const = 0;

 private:
  using Positions = std::unordered_map<std::string, std::size_t>;

  std::vector<std::string> own_names(const std::string& part, const TensorNames& names, Location where) const {
    std::vector<std::string> own;
    for (const Tensor& tensor : tensors()) {
      auto found = names.find(&tensor.body());
      if (found == names.end())
        fail<Error>(indexed_name, where,
                    "'{}' has a tensor {}, {}, that no module or tensor of the checkpoint has; add its module, too",
                    part, own.size(), describe(tensor));
      own.push_back(found->second);
    }
    return own;
  }

  // Removes the names from a state.
  static std::vector<NamedTensor> taken_names(std::vector<NamedTensor>& saved) {
    std::vector<NamedTensor> taken;
    std::erase_if(saved, [&](const NamedTensor& one) {
      bool is_name = one.name == names_name || one.name == std::string(names_name) + "_lengths";
      if (is_name) taken.push_back(one);
      return is_name;
    });
    return taken;
  }

  static Positions positions_of(const std::vector<std::string>& names) {
    Positions positions;
    for (std::size_t i = 0; i < names.size(); ++i) positions.emplace(names[i], i);
    return positions;
  }

  static bool all_restored(const std::vector<std::string>& names, const Matching& matching) {
    for (const std::string& name : names)
      if (!matching.restored.contains(name)) return false;
    return true;
  }

  // LBFGS has vectors over the elements of all parameters.
  bool is_whole(std::span<const NamedTensor> saved) const {
    for (const NamedTensor& one : saved)
      for (const Column& column : columns_)
        if (one.name == column.name) return false;
    return !columns_.empty();
  }

  // The tensors of known names, under the indices; other names that are those of a tensor are left out.
  static std::vector<NamedTensor> indexed(std::vector<NamedTensor> saved, const Positions& positions) {
    std::vector<NamedTensor> state;
    for (NamedTensor& one : saved) {
      if (std::size_t dot = one.name.rfind('.'); dot != one.name.npos) {
        auto found = positions.find(one.name.substr(0, dot));
        if (found == positions.end()) continue;
        one.name = fmt::format("{}{}", found->second, one.name.substr(dot));
      }
      state.push_back(std::move(one));
    }
    return state;
  }

  // The state of those tensors that are in both, and were restored themselves; what the others start with.
  std::vector<NamedTensor> selected(std::vector<NamedTensor> saved, std::span<const NamedTensor> now,
                                    const std::string& part, const std::vector<std::string>& own,
                                    const std::vector<std::string>& theirs, Matching& matching, Location where) const {
    const Positions before = positions_of(theirs), present = positions_of(own);
    Positions fitting = present;
    for (const std::string& name : own) {
      bool is_known = before.contains(name);
      if (!is_known) matching.missing.push_back(fmt::format("{}, the state of {}", part, name));
      if (!is_known || !matching.restored.contains(name)) fitting.erase(name);
    }
    for (const std::string& name : theirs)
      if (!present.contains(name)) matching.unexpected.push_back(fmt::format("{}, the state of {}", part, name));
    std::vector<NamedTensor> state = indexed(std::move(saved), fitting);
    for (NamedTensor& one : state)
      for (const Column& column : columns_)
        if (one.name == column.name)
          one.tensor = reordered(one, column, now, own, before, fitting, theirs.size(), where);
    add_initial(state, now, fitting, own);
    return state;
  }

  // Tensors that are not per step, such as averages, which every index must have.
  void add_initial(std::vector<NamedTensor>& state, std::span<const NamedTensor> now, const Positions& fitting,
                   const std::vector<std::string>& own) const {
    if (!columns_.empty()) return;
    for (const NamedTensor& one : now)
      if (std::optional<IndexedName> split = split_indexed(one.name))
        if (!fitting.contains(own.at(split->index))) state.push_back(one);
  }

  static Tensor reordered(const NamedTensor& saved, const Column& column, std::span<const NamedTensor> now,
                          const std::vector<std::string>& own, const Positions& before, const Positions& fitting,
                          std::size_t count, Location where) {
    if (saved.tensor.rank() != 1 || saved.tensor.size(0) != static_cast<std::int64_t>(count))
      fail<Error>(indexed_name, where, "the snapshot's '{}' has not an element for each of {} tensors", saved.name,
                  count);
    return saved.tensor.dtype() == DType::i64
               ? reordered_elements<std::int64_t>(saved, column, now, own, before, fitting)
               : reordered_elements<double>(saved, column, now, own, before, fitting);
  }

  template <class T>
  static Tensor reordered_elements(const NamedTensor& saved, const Column& column, std::span<const NamedTensor> now,
                                   const std::vector<std::string>& own, const Positions& before,
                                   const Positions& fitting) {
    auto values = saved.tensor.to_vector<T>();
    std::vector<T> present(own.size(), static_cast<T>(column.initial.value_or(0)));
    for (const NamedTensor& one : now)
      if (!column.initial && one.name == saved.name) present = one.tensor.to_vector<T>();
    for (std::size_t i = 0; i < own.size(); ++i)
      if (fitting.contains(own[i])) present[i] = values[before.at(own[i])];
    return tensor(present);
  }

  std::vector<Column> columns_;
  LoadOrder order_;
};

class SavedOptimiser : public SavedByIndex {
 public:
  explicit SavedOptimiser(optim::Optimiser& optimiser)
      : SavedByIndex({{"steps", 0}, {"momentum_product", 1}, {"groups", {}}}, LoadOrder::optimisers),
        optimiser_(optimiser) {}
  const void* address() const override { return &optimiser_; }
  std::vector<NamedTensor> state(Location where) const override { return optimiser_.state(where); }
  void load(std::span<const NamedTensor> state, Location where) override {
    if (!state.empty()) optimiser_.load_state(state, where);
  }

 protected:
  const std::vector<Tensor>& tensors() const override { return optimiser_.parameters(); }

 private:
  optim::Optimiser& optimiser_;
};

class SavedAverage : public SavedByIndex {
 public:
  explicit SavedAverage(optim::MovingAverage& average) : SavedByIndex({}, LoadOrder::others), average_(average) {}
  const void* address() const override { return &average_; }
  std::vector<NamedTensor> state(Location where) const override { return average_.state(where); }
  void load(std::span<const NamedTensor> state, Location where) override { average_.load_state(state, where); }

 protected:
  const std::vector<Tensor>& tensors() const override { return average_.tensors(); }

 private:
  optim::MovingAverage& average_;
};

}  // namespace

std::shared_ptr<CheckpointObject> saved_optimiser(optim::Optimiser& optimiser) {
  return std::make_shared<SavedOptimiser>(optimiser);
}

std::shared_ptr<CheckpointObject> saved_average(optim::MovingAverage& average) {
  return std::make_shared<SavedAverage>(average);
}

}  // namespace reel::detail
