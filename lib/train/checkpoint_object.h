#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <reel/location.h>
#include <reel/named_tensor.h>

namespace reel::detail {

struct Body;

/// The names under which modules and tensors of a checkpoint have tensors: "model.hidden.weight".
using TensorNames = std::unordered_map<const Body*, std::string>;

/// How a snapshot compares with the objects of a program.
struct Matching {
  TensorNames names;                         ///< of the program's tensors
  std::unordered_set<std::string> restored;  ///< those of `names` that the snapshot has, too, in equal shape and dtype
  std::vector<std::string> missing, unexpected, different;
};

/// When objects are restored: modules, whose restoring cannot fail, come last, and optimisers after the schedulers,
/// which set their rates.
enum class LoadOrder { others, optimisers, weights };

/// An object that a checkpoint saves and restores.
class CheckpointObject {
 public:
  virtual ~CheckpointObject() = default;
  /// The object's address.
  virtual const void* address() const = 0;
  virtual LoadOrder load_order() const { return LoadOrder::others; }
  /// The object's state, as `load` takes it; tensors may share elements with the object.
  virtual std::vector<NamedTensor> state(Location where) const = 0;
  /// Restores a state. Throws: as the object does, and changes nothing then.
  virtual void load(std::span<const NamedTensor> state, Location where) = 0;

  /// Adds the names of the object's tensors. `part`: the object's own name; `state`: what `state` has returned.
  virtual void add_names(const std::string&, std::span<const NamedTensor>, TensorNames&) const {}
  /// The state under the names of a file. Throws: Error for a tensor that has no name.
  virtual std::vector<NamedTensor> named(std::vector<NamedTensor> state, const std::string&, const TensorNames&,
                                         Location) const {
    return state;
  }
  /// The part of a saved state that fits the object, under the names that `load` knows; adds the rest to `matching`.
  /// `now`: the object's present state.
  virtual std::vector<NamedTensor> matched(std::vector<NamedTensor> saved, std::span<const NamedTensor>,
                                           const std::string&, Matching&, Location) const {
    return saved;
  }
};

/// Tensors that hold texts: their bytes, one after another, and the number of bytes of each.
std::vector<NamedTensor> tensors_of_texts(const std::string& name, const std::vector<std::string>& texts);
/// The texts of such tensors. Throws: Error if a tensor is missing or does not fit.
std::vector<std::string> texts_of(std::span<const NamedTensor> state, const std::string& name, Location where);

/// "model.hidden.weight": the name of a part, and of one of its tensors; "" for one that has only the part's name.
inline std::string joined_name(const std::string& part, const std::string& name) {
  return name.empty() ? part : part + "." + name;
}

}  // namespace reel::detail
