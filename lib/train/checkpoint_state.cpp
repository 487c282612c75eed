#include "checkpoint_state.h"

#include <algorithm>
#include <utility>

#include <reel/io/weights.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/printable.h"
#include "../core/storage.h"
#include "../dispatch/listener_scope.h"
#include "../ops/if_needed.h"

namespace reel::detail {

namespace {

constexpr const char* state_name = "train::Checkpoint";
// A longer list ends with the number of omitted lines.
constexpr std::size_t most_misfit_lines = 40;

bool is_shared(const Tensor& tensor) {
  const Body& body = tensor.body();
  return !body.references.unique() || !body.storage->references.unique();
}

bool has_form_of(const Tensor& buffer, const Tensor& tensor) {
  return buffer.defined() && buffer.shape() == tensor.shape() && buffer.dtype() == tensor.dtype() &&
         buffer.device() == cpu && !is_shared(buffer);
}

std::vector<const CheckpointEntry*> in_load_order(const std::vector<CheckpointEntry>& entries) {
  std::vector<const CheckpointEntry*> order;
  for (const CheckpointEntry& entry : entries) order.push_back(&entry);
  std::ranges::stable_sort(order, {}, [](const CheckpointEntry* entry) { return entry->object->load_order(); });
  return order;
}

bool has_weights(const CheckpointEntry& entry) { return entry.object->load_order() == LoadOrder::weights; }

// Restores several objects, or none of them.
class Restoring {
 public:
  Restoring(const std::vector<CheckpointEntry>& entries, bool partial, Location where)
      : order_(in_load_order(entries)), partial_(partial), where_(where) {
    for (const CheckpointEntry* entry : order_) {
      before_.push_back(entry->object->state(where));
      entry->object->add_names(entry->name, before_.back(), matching_.names);
      std::vector<Tensor> no_buffers;
      // Weights are only compared.
      if (!has_weights(*entry)) make_own(before_.back(), no_buffers, where);
    }
    states_.resize(order_.size());
    found_.resize(order_.size());
  }

  void match(TensorsByPart saved, const std::string& optional_part) {
    // The weights are matched first: the tensors that other objects take depend on which weights fit.
    for (bool weights : {true, false})
      for (std::size_t i = 0; i < order_.size(); ++i)
        if (has_weights(*order_[i]) == weights) match_one(i, saved, optional_part);
    for (const auto& [name, tensors] : saved)
      if (name != optional_part) matching_.unexpected.push_back("the part " + shown(name));
    if (!partial_) refuse_misfits();
  }

  void load() {
    std::size_t i = 0;
    try {
      for (; i < order_.size(); ++i) load_one(i);
    } catch (...) {
      restore_before(i);
      throw;
    }
  }

  void report(train::Resumed& result) {
    result.missing = std::move(matching_.missing);
    result.unexpected = std::move(matching_.unexpected);
    result.different = std::move(matching_.different);
  }

 private:
  void match_one(std::size_t i, TensorsByPart& saved, const std::string& optional_part) {
    const CheckpointEntry& entry = *order_[i];
    auto found = saved.find(entry.name);
    if (found == saved.end()) {
      // A module without tensors is not in a snapshot.
      if (entry.name != optional_part && !before_[i].empty())
        matching_.missing.push_back("the part " + shown(entry.name));
      return;
    }
    found_[i] = true;
    states_[i] = entry.object->matched(std::move(found->second), before_[i], entry.name, matching_, where_);
    saved.erase(found);
  }

  void refuse_misfits() const {
    std::vector<std::string> lines;
    auto add = [&](const char* kind, const std::vector<std::string>& names) {
      for (const std::string& name : names) lines.push_back(std::string(kind) + printable(name));
    };
    add("missing in the snapshot: ", matching_.missing);
    add("not in the program: ", matching_.unexpected);
    add("different: ", matching_.different);
    if (lines.empty()) return;
    std::string list;
    for (std::size_t i = 0; i < std::min(lines.size(), most_misfit_lines); ++i) list += "\n  " + lines[i];
    if (lines.size() > most_misfit_lines) list += fmt::format("\n  and {} more", lines.size() - most_misfit_lines);
    throw io::MisfitError(
        fmt::format(
            "{}: the snapshot does not fit the objects of this program; .partial = true passes over what differs",
            state_name),
        where_, list);
  }

  void load_one(std::size_t i) {
    if (!found_[i]) return;
    CheckpointObject& object = *order_[i]->object;
    if (!partial_) return object.load(states_[i], where_);
    try {
      Unobserved trying(context());
      object.load(states_[i], where_);
    } catch (const Error& error) {
      matching_.different.push_back(fmt::format("the part {}: {}", shown(order_[i]->name), error.what()));
      if (!has_weights(*order_[i])) object.load(before_[i], where_);
    }
  }

  // In the order in which they are loaded, as some objects set what belongs to others.
  void restore_before(std::size_t failed) {
    for (std::size_t i = 0; i < order_.size() && i <= failed; ++i)
      if (!has_weights(*order_[i])) order_[i]->object->load(before_[i], where_);
    for (std::size_t i = failed + 1; i < order_.size(); ++i)
      if (order_[i]->object->load_order() == LoadOrder::optimisers) order_[i]->object->load(before_[i], where_);
  }

  std::vector<const CheckpointEntry*> order_;
  bool partial_;
  Location where_;
  Matching matching_;
  std::vector<std::vector<NamedTensor>> before_, states_;
  std::vector<bool> found_;
};

}  // namespace

TensorsByPart divided_by_part(std::vector<NamedTensor> tensors) {
  TensorsByPart parts;
  for (NamedTensor& named : tensors) {
    std::size_t dot = named.name.find('.');
    std::string part = named.name.substr(0, dot);
    named.name = dot == named.name.npos ? "" : named.name.substr(dot + 1);
    parts[part].push_back(std::move(named));
  }
  return parts;
}

std::vector<NamedTensor> collected(const std::vector<CheckpointEntry>& entries, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  TensorNames names;
  std::vector<std::vector<NamedTensor>> states;
  std::size_t count = 0;
  for (const CheckpointEntry& entry : entries) {
    states.push_back(entry.object->state(where));
    entry.object->add_names(entry.name, states.back(), names);
    count += states.back().size();
  }
  std::vector<NamedTensor> all;
  all.reserve(count + 2 * entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const CheckpointEntry& entry = entries[i];
    for (NamedTensor& one : entry.object->named(std::move(states[i]), entry.name, names, where)) {
      if (!one.tensor.defined())
        fail<Error>(state_name, where, "the state of '{}' has an undefined tensor {}", entry.name, shown(one.name));
      one.name = joined_name(entry.name, one.name);
      if (one.tensor.device() != cpu) one.tensor = to(one.tensor, cpu);
      all.push_back(std::move(one));
    }
  }
  return all;
}

void make_own(std::vector<NamedTensor>& tensors, std::vector<Tensor>& buffers, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  buffers.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Tensor& tensor = tensors[i].tensor;
    wait_for(tensor, where);  // another thread writes it
    if (!is_shared(tensor)) {
      buffers[i].reset();
      continue;
    }
    if (has_form_of(buffers[i], tensor))
      copy_(Destination(buffers[i], where), Arg(tensor, where));
    else
      buffers[i] = copy(Arg(tensor, where));
    tensor = buffers[i];
  }
}

void restore(const std::vector<CheckpointEntry>& entries, TensorsByPart saved, const std::string& optional_part,
             bool partial, train::Resumed& result, Location where) {
  NoRecord pause;
  CallerScope caller(where);
  Restoring restoring(entries, partial, where);
  restoring.match(std::move(saved), optional_part);
  restoring.load();
  restoring.report(result);
}

}  // namespace reel::detail
