#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <reel/debug/recorded_run.h>

#include "../listener_scope.h"

namespace reel::debug {

/// Turns what a thread runs into recorded ops, while it lives.
class Recorder : public ListenerScope {
 public:
  /// What is recorded.
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
  std::string_view intern(std::string_view text) { return *texts_.emplace(text).first; }
  /// A path as it is recorded.
  std::string_view interned_file(const char* file);
  /// True in steps that are recorded.
  bool records() const { return step_ % options_.every == 0; }
  std::int64_t step() const { return step_; }
  std::int64_t now() const { return (std::chrono::steady_clock::now() - began_).count(); }

 private:
  // A tensor that is in the recording, with what tells that its body is not another tensor's by now.
  struct Known {
    TensorId id;
    const detail::Storage* storage;
    std::uint32_t version;
    std::int32_t line;
    const char* file;
    std::int64_t numel;

    bool is(const detail::Body& body) const;
  };
  // An op that runs.
  struct Running {
    const detail::Call* call;
    std::int64_t start;
    std::vector<TensorId> inputs;
  };
  // A gradient function that runs. `op` is recorded at its end, if it has outputs.
  struct Differentiating {
    const detail::Entry* entry;
    RecordedOp op;
  };
  // What is known of the op of an entry on the tape.
  struct Forward {
    const detail::OpInfo* op;
    std::uint64_t id;
    std::string_view module, notes;
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
  TensorId id_of(const Tensor& input);
  void remember(const Tensor& tensor, TensorId id);
  void link(const detail::Call& call, const RecordedOp& op);
  const Forward* forward_of(const detail::Entry& entry);
  std::string_view module_path();
  std::string_view notes();
  std::string_view name_of_parameter(const Tensor& parameter);
  Options options_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::uint64_t next_id_ = 1;
  std::int64_t step_ = 0;
  std::vector<Running> running_;
  std::vector<std::vector<TensorId>> spare_;  // vectors whose memory is used again
  std::vector<RecordedTensor> spare_outputs_;
  std::vector<Differentiating> differentiating_;
  std::unordered_map<const detail::Body*, Known> known_;
  std::unordered_map<const detail::Body*, std::string_view> names_;
  std::unordered_map<const detail::Entry*, Forward> forwards_;
  std::unordered_map<const char*, std::string_view> files_;
  const char* last_file_ = nullptr;
  std::string_view last_file_text_;
  std::unordered_set<std::string> texts_;
  std::uint64_t epoch_ = 0;  // of the tape to whose entries `forwards_` belongs
  const void* last_call_ = nullptr;
  const void* last_module_ = nullptr;
  std::string_view last_path_;
  std::vector<Updating> updating_;
};

}  // namespace reel::debug
