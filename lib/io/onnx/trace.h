#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <reel/io/onnx.h>

#include "../../dispatch/listener_scope.h"

namespace reel::io::onnx {

/// The index of a tensor in its trace; undefined inputs have `no_value`.
using ValueId = std::int32_t;
constexpr ValueId no_value = -1;

/// A tensor of a traced call. It is kept, so that its body is no other tensor's.
struct TracedValue {
  enum class Kind : std::uint8_t { input, constant, result };
  Tensor tensor;
  Kind kind = Kind::constant;
  std::uint32_t version = 0;  ///< of its elements when it was first seen
  bool varies = false;        ///< with the elements of an input, or from step to step of a loop
  std::int32_t step = -1;     ///< of a result: the step that made it
  std::string name = {};      ///< of a parameter or buffer of a module: its path
};

struct Trace;

/// The kind of a step.
enum class StepKind : std::uint8_t { op, size, scan, loop };

/// An op, the size of an axis, or a loop with its body, in the order in which they ran.
struct TracedStep {
  StepKind kind = StepKind::op;
  const detail::OpInfo* op = nullptr;
  std::vector<std::byte> attributes = {};  ///< of a size: the axis
  std::vector<ValueId> inputs = {}, outputs = {};
  Location where = {};
  std::string module = {};                ///< the path of the module that called it
  std::shared_ptr<Trace> body = nullptr;  ///< of a loop
  std::size_t states = 0;                 ///< of a loop: how many of its inputs and outputs are states

  /// The name for messages.
  const char* name() const;
};

/// The steps and values of one call of a function. The trace of a loop's body also has the values of the enclosing trace
/// that the body uses: `captured` has their ids there.
struct Trace {
  std::vector<TracedValue> values;
  std::vector<TracedStep> steps;
  std::vector<ValueId> outputs;
  std::unordered_map<ValueId, ValueId> captured = {};  ///< of a body: its value → that of the trace around it
};

/// Observes this thread's ops while it lives and lists them.
class Tracer : public detail::ListenerScope {
 public:
  explicit Tracer(std::span<const Tensor> inputs);

  /// The trace, whose outputs these are. Throws: Error for an undefined output.
  Trace finish(std::span<const Tensor> outputs, const char* function, Location where);

  /// The innermost tracer of this thread; null if nothing is exported.
  static Tracer* current();

  /// Begins the trace of a loop's body, whose inputs these are: ops are listed there until `end_body`.
  void begin_body(std::span<const Tensor> inputs);
  std::shared_ptr<Trace> end_body(std::span<const Tensor> outputs, const char* function, Location where);
  /// Drops the trace of a body that threw.
  void abandon_body() { levels_.pop_back(); }
  /// While the remaining steps of a loop run, nothing is listed.
  void pause(bool paused) { paused_ = paused; }
  bool listens() const { return !paused_; }
  /// Lists a loop or a size.
  void add(TracedStep step, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

  void starting(const detail::Call& call, Location where) override;
  void finished(const detail::Call& call, Location where) override;
  void failed(const detail::Call& call) noexcept override;
  /// Throws: Error for a tensor that varies, since what the program makes of its elements would be fixed in the file.
  void reading(const Tensor& tensor, const char* by, Location where) override;

 private:
  // A trace that grows, with the values of the bodies that it knows.
  struct Level {
    std::shared_ptr<Trace> trace = std::make_shared<Trace>();
    std::unordered_map<const detail::Body*, ValueId> ids = {};
  };
  struct Running {
    const detail::Call* call;
    std::vector<ValueId> inputs;
  };

  ValueId id_of(std::size_t level, const Tensor& tensor);
  ValueId find(std::size_t level, const Tensor& tensor);
  ValueId find_in(const Level& level, const Tensor& tensor) const;
  ValueId add_value(std::size_t level, TracedValue value);
  bool varies(const Tensor& tensor) const;
  void add_inputs(std::span<const Tensor> inputs);
  std::string name_of(const Tensor& tensor);

  std::vector<Level> levels_;
  std::vector<Running> running_;
  std::unordered_map<const detail::Body*, std::string> names_;
  bool paused_ = false;
};

/// The step for messages in place of the given one: of a number, the op that takes it.
const TracedStep& shown_step(const Trace& trace, std::size_t step);

/// Returned by `first_difference` for traces that agree.
constexpr std::size_t no_difference = static_cast<std::size_t>(-1);

/// Returns the index of the first step that differs in two traces: in the op, or in the values that it takes; with
/// `numbers`, which traces of one size have, also in its attributes or in the elements of a constant.
std::size_t first_difference(const Trace& a, const Trace& b, bool numbers = false);

}  // namespace reel::io::onnx
