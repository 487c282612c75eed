#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <reel/debug/recorded_run.h>

#include "../../kernels/element_summary.h"
#include "../listener_scope.h"

namespace reel::debug {

/// The statistics of `numel` elements.
RecordedStatistics statistics_of(const detail::ElementSummary& summary, std::int64_t numel);

/// Turns what a thread runs into recorded ops, while it lives.
class Recorder : public ListenerScope {
 public:
  /// The kinds of data that are recorded.
  struct Options {
    bool statistics = true, fingerprints = true, updates = true;
    std::int64_t value_elements = 0;
    std::int64_t every = 1;
    /// False if `record` reads values before it returns, so that they need not be copied.
    bool copies_values = true;
  };
  explicit Recorder(const Options& options);

  void starting(const detail::Call& call, Location where) override;
  void finished(const detail::Call& call, Location where) override;
  void failed(const detail::Call& call) noexcept override;
  void refused(const char* op, Location where, const std::string& sentence) noexcept override;
  void gradient_starting(const detail::Entry& entry, std::span<const Tensor> gradients) override;
  void gradient_finished(const detail::Entry& entry) noexcept override;
  void leaf_gradient(const Tensor& leaf, const Tensor& gradient) override;
  void updating(std::span<const Tensor> parameters) override;
  void updated(std::span<const Tensor> parameters) override;
  void named(const Tensor& tensor, std::string_view name) override;

 protected:
  /// Takes a recorded op. Its texts live as long as this object, but for `error`. A gradient comes after the ops that
  /// its gradient function ran, whose ids are greater.
  virtual void record(const RecordedOp& op) = 0;
  virtual void record_update(const RecordedUpdate& update) = 0;
  virtual void record_name(TensorId id, std::string_view name) = 0;
  /// A copy of a tensor's elements on the CPU, which no tape and no listener sees.
  static Tensor copy_of(const Tensor& tensor);
  std::string_view intern(std::string_view text) {
    auto found = texts_.find(text);
    return found != texts_.end() ? *found : *texts_.emplace(text).first;
  }
  /// A path as it is recorded.
  std::string_view interned_file(const char* file);
  /// True in steps that are recorded.
  bool records() const { return step_ % options_.every == 0; }
  std::int64_t step() const { return step_; }
  std::int64_t now() const { return (std::chrono::steady_clock::now() - began_).count(); }

 private:
  // Knowledge of a tensor, which its serial number identifies: another one may have its body by now.
  struct Known {
    std::uint32_t serial = 0;
    std::uint32_t version = 0;  // of its storage when it was recorded
    TensorId id = {};           // of op 0: it is not in the recording
    std::string_view name = {};
    bool is_named = false;  // by the program or a running module: the name does not change any more
    bool is_zero = false;   // all of its elements, as recorded
  };
  // An op that runs.
  struct Running {
    const detail::Call* call;
    std::int64_t start;
    std::vector<TensorId> inputs;
    bool has_zero_input = false;  // an input of zeros only
  };
  // A gradient function that runs. `op` is recorded at its end, if it has outputs.
  struct Differentiating {
    const detail::Entry* entry;
    RecordedOp op;
  };
  // The op of an entry on the tape.
  struct Forward {
    std::uint64_t id;
    std::string_view module, notes;
  };
  // The ops of one filling of a tape list, by the slots of their first outputs.
  struct Forwards {
    std::uint64_t epoch = 0;
    std::unordered_map<std::uint32_t, Forward> by_slot = {};
  };
  // A parameter during a step of an optimiser.
  struct Updating {
    std::size_t index;
    double weight_norm, gradient_norm;
    Tensor before;
  };

  void record_call(const detail::Call& call, Location where, std::int64_t end, std::string_view error);
  Running take_running(const detail::Call& call);
  RecordedOp opened(OpKind kind, const char* op, Location where, std::int64_t start);
  // `at_once`: whether it is recorded before the program goes on.
  RecordedTensor described(const Tensor& tensor, bool summarised, bool at_once) const;
  static void find_zero_units(RecordedTensor& record, const Tensor& tensor);
  Known& known(const Tensor& tensor);
  const Known& recorded(const Tensor& input);
  void remember(const Tensor& tensor, TensorId id, const RecordedTensor& described);
  void link(const detail::Call& call, const RecordedOp& op);
  const Forward* forward_of(const detail::Entry& entry);
  std::string_view module_path();
  std::string_view notes();
  std::string_view name_of_parameter(const Tensor& parameter, const std::string& otherwise = {});
  std::string_view name_of_its_own(const std::string& name, std::uint32_t serial);
  Options options_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t next_id_ = 1;
  std::int64_t step_ = 0;
  std::vector<Running> running_;
  std::vector<std::vector<TensorId>> spare_;  // vectors whose memory is used again
  std::vector<RecordedTensor> spare_outputs_;
  std::vector<Differentiating> differentiating_;
  std::unordered_map<const detail::Body*, Known> known_;        // bodies are used again, which bounds it
  std::unordered_map<std::string_view, std::uint32_t> owners_;  // serial numbers of parameters, by their names
  std::unordered_map<std::uint64_t, Forwards> forwards_;        // by the id of the tape list
  std::string_view last_file_;
  struct HashText : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_set<std::string, HashText, std::equal_to<>> texts_;
  const void* last_call_ = nullptr;  // of a module, with the number of calls that had begun
  std::uint64_t calls_before_path_ = 0;
  std::string_view last_path_;
  std::vector<Updating> updating_;
};

}  // namespace reel::debug
