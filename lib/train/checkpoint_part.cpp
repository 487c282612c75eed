#include <reel/train/checkpoint.h>

#include <bit>

#include <reel/nn/module.h>
#include <reel/ops/create.h>
#include <reel/ops/elementwise.h>
#include <reel/ops/in_place.h>
#include <reel/ops/shape.h>
#include <reel/optim/loss_scaler.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../ops/if_needed.h"
#include "../optim/state_reader.h"
#include "checkpoint_object.h"
#include "indexed_state.h"

namespace reel::detail {

namespace {

constexpr const char* part_name = "train::Checkpoint";

// Adds what differs between the tensors of a part and the saved ones, and returns those that fit.
std::vector<NamedTensor> matched_weights(std::vector<NamedTensor> saved, std::span<const NamedTensor> own,
                                         const std::string& part, Matching& matching) {
  std::unordered_map<std::string, const Tensor*> present;
  for (const NamedTensor& named : own) present.emplace(named.name, &named.tensor);
  std::vector<NamedTensor> fitting;
  for (NamedTensor& named : saved) {
    std::string name = joined_name(part, named.name);
    auto found = present.find(named.name);
    if (found == present.end()) {
      matching.unexpected.push_back(name + " " + describe(named.tensor));
      continue;
    }
    const Tensor& now = *found->second;
    present.erase(found);
    if (now.shape() != named.tensor.shape() || now.dtype() != named.tensor.dtype()) {
      matching.different.push_back(name + " " + describe(named.tensor) + ", here " + describe(now));
      continue;
    }
    matching.restored.insert(name);
    fitting.push_back(std::move(named));
  }
  for (const NamedTensor& named : own)
    if (present.contains(named.name))
      matching.missing.push_back(joined_name(part, named.name) + " " + describe(named.tensor));
  return fitting;
}

class SavedModule : public CheckpointObject {
 public:
  explicit SavedModule(nn::Module& module) : module_(module) {}
  const void* address() const override { return &module_; }
  LoadOrder load_order() const override { return LoadOrder::weights; }
  std::vector<NamedTensor> state(Location) const override {
    std::vector<NamedTensor> state = module_.named_parameters();
    for (NamedTensor& buffer : module_.named_buffers()) state.push_back(std::move(buffer));
    return state;
  }
  void add_names(const std::string& part, std::span<const NamedTensor> state, TensorNames& names) const override {
    for (const NamedTensor& named : state) names.emplace(&named.tensor.body(), joined_name(part, named.name));
  }
  std::vector<NamedTensor> matched(std::vector<NamedTensor> saved, std::span<const NamedTensor> now,
                                   const std::string& part, Matching& matching, Location) const override {
    return matched_weights(std::move(saved), now, part, matching);
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    std::vector<NamedTensor> own = this->state(where);
    std::unordered_map<std::string, const Tensor*> present;
    for (const NamedTensor& named : own) present.emplace(named.name, &named.tensor);
    // Nothing is overwritten before all is on its device.
    std::vector<std::pair<const Tensor*, Tensor>> values;
    for (const NamedTensor& named : state) {
      const Tensor& tensor = *present.at(named.name);
      values.emplace_back(&tensor, to_if_needed(Arg(named.tensor, where), tensor.device()));
    }
    for (const auto& [tensor, value] : values) copy_(Destination(*tensor, where), Arg(value, where));
  }

 private:
  nn::Module& module_;
};

// An undefined tensor is saved as one without elements of this name.
constexpr const char* undefined_name = "undefined";

class SavedTensor : public CheckpointObject {
 public:
  explicit SavedTensor(Tensor& tensor) : tensor_(tensor) {}
  const void* address() const override { return &tensor_; }
  LoadOrder load_order() const override { return LoadOrder::weights; }
  std::vector<NamedTensor> state(Location) const override {
    if (!tensor_.defined()) return {{undefined_name, zeros({0})}};
    return {{"", tensor_}};
  }
  void add_names(const std::string& part, std::span<const NamedTensor>, TensorNames& names) const override {
    if (tensor_.defined()) names.emplace(&tensor_.body(), part);
  }
  std::vector<NamedTensor> matched(std::vector<NamedTensor> saved, std::span<const NamedTensor> now,
                                   const std::string& part, Matching& matching, Location where) const override {
    if (tensor_.defined() && tensor_.is_parameter()) return matched_weights(std::move(saved), now, part, matching);
    if (saved.size() != 1 || (!saved[0].name.empty() && saved[0].name != undefined_name))
      fail<Error>(part_name, where, "the snapshot's '{}' is no tensor", part);
    if (saved[0].name.empty()) matching.restored.insert(part);
    return saved;
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    if (state.empty()) return;
    if (state[0].name == undefined_name) return tensor_.reset();
    Tensor found = tensor_.defined() ? to_if_needed(Arg(state[0].tensor, where), tensor_.device()) : state[0].tensor;
    if (tensor_.defined() && tensor_.is_parameter())
      copy_(Destination(tensor_, where), Arg(found, where));
    else
      tensor_ = found;
  }

 private:
  Tensor& tensor_;
};

class SavedScaler : public CheckpointObject {
 public:
  explicit SavedScaler(optim::LossScaler& scaler) : scaler_(scaler) {}
  const void* address() const override { return &scaler_; }
  std::vector<NamedTensor> state(Location) const override {
    return {{"scale", tensor({scaler_.current_scale()})}, {"growth_progress", tensor({scaler_.growth_progress()})}};
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    StateReader reader("LossScaler", state, where);
    auto scale = reader.number<double>("scale");
    auto progress = reader.number<std::int64_t>("growth_progress");
    reader.finish();
    scaler_.restore(scale, progress, where);
  }

 private:
  optim::LossScaler& scaler_;
};

class SavedGenerator : public CheckpointObject {
 public:
  explicit SavedGenerator(Generator& generator) : generator_(generator) {}
  const void* address() const override { return &generator_; }
  std::vector<NamedTensor> state(Location) const override {
    return {{"seed", tensor({std::bit_cast<std::int64_t>(generator_.seed())})},
            {"calls", tensor({std::bit_cast<std::int64_t>(generator_.calls())})}};
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    StateReader reader("Generator", state, where);
    Generator restored(std::bit_cast<std::uint64_t>(reader.number<std::int64_t>("seed")));
    restored.set_calls(std::bit_cast<std::uint64_t>(reader.number<std::int64_t>("calls")));
    reader.finish();
    generator_ = restored;
  }

 private:
  Generator& generator_;
};

// A state without tensors is saved as one tensor of this name, so that the snapshot has the part.
constexpr const char* no_state_name = "no_state";

class SavedByItself : public CheckpointObject {
 public:
  SavedByItself(const void* address, SavedState access) : address_(address), access_(std::move(access)) {}
  const void* address() const override { return address_; }
  std::vector<NamedTensor> state(Location where) const override {
    std::vector<NamedTensor> state = access_.state(where);
    if (state.empty()) state.push_back({no_state_name, zeros({0})});
    return state;
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    bool is_empty = state.size() == 1 && state[0].name == no_state_name;
    access_.load(is_empty ? std::span<const NamedTensor>() : state, where);
  }

 private:
  const void* address_;
  SavedState access_;
};

class SavedNumberValues : public CheckpointObject {
 public:
  SavedNumberValues(const void* address, SavedNumbers numbers) : address_(address), numbers_(std::move(numbers)) {}
  const void* address() const override { return address_; }
  std::vector<NamedTensor> state(Location) const override {
    std::vector<std::int64_t> bits = numbers_.read();
    Tensor values;
    if (numbers_.kind == SavedNumbers::Kind::floating) {
      std::vector<double> reals;
      for (std::int64_t one : bits) reals.push_back(std::bit_cast<double>(one));
      values = tensor(reals);
    } else {
      values = tensor(bits);
      if (numbers_.kind == SavedNumbers::Kind::boolean) values = to(values, DType::boolean);
    }
    return {{"", numbers_.is_list ? values : reshape(values, {})}};
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    StateReader reader(part_name, state, where);
    Shape shape = numbers_.is_list ? Shape{reader.rows("")} : Shape{};
    std::vector<std::int64_t> bits;
    if (numbers_.kind == SavedNumbers::Kind::floating) {
      for (double real : reader.find("", shape, DType::f64).to_vector<double>())
        bits.push_back(std::bit_cast<std::int64_t>(real));
    } else {
      DType dtype = numbers_.kind == SavedNumbers::Kind::boolean ? DType::boolean : DType::i64;
      bits = to(reader.find("", shape, dtype), DType::i64).to_vector<std::int64_t>();
    }
    reader.finish();
    for (std::int64_t one : bits)
      if (numbers_.kind == SavedNumbers::Kind::integer && (one < numbers_.least || one > numbers_.largest))
        fail<Error>(part_name, where, "the saved number {} is out of the range of the variable, {} to {}", one,
                    numbers_.least, numbers_.largest);
    numbers_.write(bits);
  }

 private:
  const void* address_;
  SavedNumbers numbers_;
};

class SavedTextValues : public CheckpointObject {
 public:
  SavedTextValues(const void* address, SavedTexts texts) : address_(address), texts_(std::move(texts)) {}
  const void* address() const override { return address_; }
  std::vector<NamedTensor> state(Location) const override {
    std::vector<std::string> texts = texts_.read();
    if (texts_.is_list) return tensors_of_texts("text", texts);
    return {{"", text_tensor(texts.front())}};
  }
  void load(std::span<const NamedTensor> state, Location where) override {
    if (texts_.is_list) return texts_.write(texts_of(state, "text", where));
    StateReader reader(part_name, state, where);
    auto bytes = reader.list<std::uint8_t>("", static_cast<std::size_t>(reader.rows("")));
    reader.finish();
    texts_.write({std::string(bytes.begin(), bytes.end())});
  }

 private:
  const void* address_;
  SavedTexts texts_;
};

}  // namespace

std::vector<NamedTensor> tensors_of_texts(const std::string& name, const std::vector<std::string>& texts) {
  std::string bytes;
  std::vector<std::int64_t> lengths;
  for (const std::string& text : texts) {
    bytes += text;
    lengths.push_back(std::ssize(text));
  }
  return {{name, text_tensor(bytes)}, {name + "_lengths", tensor(lengths)}};
}

std::vector<std::string> texts_of(std::span<const NamedTensor> state, const std::string& name, Location where) {
  StateReader reader(part_name, state, where);
  std::string lengths_name = name + "_lengths";
  auto bytes = reader.list<std::uint8_t>(name, static_cast<std::size_t>(reader.rows(name)));
  auto lengths = reader.list<std::int64_t>(lengths_name, static_cast<std::size_t>(reader.rows(lengths_name)));
  std::vector<std::string> texts;
  auto from = bytes.begin();
  for (std::int64_t length : lengths) {
    if (length < 0 || length > bytes.end() - from)
      fail<Error>(part_name, where, "the snapshot's '{}' are not lengths of its texts", lengths_name);
    texts.emplace_back(from, from + length);
    from += length;
  }
  if (from != bytes.end())
    fail<Error>(part_name, where, "the snapshot's '{}' are not lengths of its texts", lengths_name);
  return texts;
}

}  // namespace reel::detail

namespace reel::train {

using namespace detail;

CheckpointPart::CheckpointPart(std::string name, nn::Module& module)
    : name_(std::move(name)), object_(std::make_shared<SavedModule>(module)) {}

CheckpointPart::CheckpointPart(std::string name, optim::Optimiser& optimiser)
    : name_(std::move(name)), object_(saved_optimiser(optimiser)) {}

CheckpointPart::CheckpointPart(std::string name, optim::MovingAverage& average)
    : name_(std::move(name)), object_(saved_average(average)) {}

CheckpointPart::CheckpointPart(std::string name, optim::LossScaler& scaler)
    : name_(std::move(name)), object_(std::make_shared<SavedScaler>(scaler)) {}

CheckpointPart::CheckpointPart(std::string name, Generator& generator)
    : name_(std::move(name)), object_(std::make_shared<SavedGenerator>(generator)) {}

CheckpointPart::CheckpointPart(std::string name, Tensor& tensor)
    : name_(std::move(name)), object_(std::make_shared<SavedTensor>(tensor)) {}

CheckpointPart::CheckpointPart(std::string name, const void* address, SavedState state)
    : name_(std::move(name)), object_(std::make_shared<SavedByItself>(address, std::move(state))) {}

CheckpointPart::CheckpointPart(std::string name, const void* address, SavedNumbers numbers)
    : name_(std::move(name)), object_(std::make_shared<SavedNumberValues>(address, std::move(numbers))) {}

CheckpointPart::CheckpointPart(std::string name, const void* address, SavedTexts texts)
    : name_(std::move(name)), object_(std::make_shared<SavedTextValues>(address, std::move(texts))) {}

}  // namespace reel::train
