#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program.h"
#include "scalars.h"

namespace reel_test::programs {

/// The outcome of an instruction, actual or required.
enum class Outcome : std::uint8_t {
  done,
  tape_error,
  shape_error,
  user_error,      ///< a hook threw
  may_tape_error,  ///< done, or a TapeError: which values a derivative of higher order needs is the library's choice
  unknown,         ///< more than that is the library's choice; what there is then is not known either
};

/// Elements that tensors share.
struct Memory {
  std::vector<Scalar> cells;  ///< constants
  int version = 0;
  int tracked_version = 0;  ///< since when what older handles show is not what the tape knows
  int tracked_by = 0;       ///< during which filling of the tape; 0: never
};

/// The model of a handle's tensor: a view of a memory, and the tape's state of it.
struct ModelTensor {
  int memory;
  Sizes shape, strides;
  std::int64_t offset = 0;
  int filling = 0;  ///< of the tape that gave the slot; 0: none
  int slot = 0;
  int version = 0;  ///< of the memory that the slot, or its absence, holds for
  bool parameter = false;
  bool has_leaf = false;
  int grad = -1;
  /// During which filling of the tape it was used untracked while a tape recorded, and when last.
  struct Use {
    int filling = 0, time = 0;
  };
  Use use = {};           ///< by an op
  Use possible_use = {};  ///< by a backward pass, which may use its seed and what was saved for it
  /// Nodes of its elements that expressions refer to, although it is not tracked: during a filling, of a version.
  std::vector<int> nodes = {};
  int nodes_filling = 0, nodes_version = 0;
};

/// One call of a hook.
struct HookCall {
  int hook;
  std::vector<double> gradient;
  std::vector<double> errors = {};  ///< of the gradient's elements; not known of those that reel computes
};

/// A second implementation of what programs mean: of memory and views, of what tapes record, and of derivatives, which
/// it takes from the scalar expression of each element.
class Interpreter {
 public:
  explicit Interpreter(std::uint64_t seed) : random_seed_(seed) {}

  /// False if the instruction makes no sense here: its operands are not there, or its shapes do not fit.
  bool can_run(const Instruction& instruction) const;
  Outcome run(const Instruction& instruction);

  // The present variables, tensors and memories.
  const std::map<int, int>& variables() const { return variables_; }  ///< which tensor each one stands for
  const ModelTensor& tensor(int variable) const { return tensors_[static_cast<std::size_t>(variables_.at(variable))]; }
  const Memory& memory(const ModelTensor& tensor) const { return memories_[static_cast<std::size_t>(tensor.memory)]; }
  std::vector<Scalar> values(const ModelTensor& tensor) const;
  bool is_tracked(const ModelTensor& tensor) const { return live_slot(tensor) != 0; }
  /// True if the tracked tensor is a parameter or watched.
  bool is_leaf(const ModelTensor& tensor) const {
    return slots_[static_cast<std::size_t>(live_slot(tensor))].producer < 0;
  }
  bool is_recording() const { return !scopes_.empty() && scopes_.back().is_tape; }
  struct Scope {
    int number;
    bool is_tape = false, persistent = false;
    int first_slot = 0, filling = 0, opened_at = 0;
  };
  const std::vector<Scope>& scopes() const { return scopes_; }
  int open_tapes() const;
  std::size_t traces_of(int tape) const { return traced_.contains(tape) ? traced_.at(tape).size() : 0; }
  bool repeats(const ModelTensor& tensor) const;
  const std::vector<HookCall>& hook_calls() const { return hook_calls_; }
  /// The largest magnitude that a tensor's element has had.
  double scale() const { return scale_; }

 private:
  struct Operand {
    int tensor, slot;
    std::vector<Scalar> values;
  };
  // A value that a gradient needs: of a memory at a version, or, with memory −1, of what cannot change.
  struct Need {
    int memory, version;
    int tensor = -1;        // that is saved; −1: one of the op's own
    int slot = 0;           // that it had then
    bool captured = false;  // it was not tracked when a checkpoint's function used it
  };
  struct Input {
    int slot;
    std::vector<Need> needs;
  };
  struct Entry {
    std::vector<Input> inputs;
    int output;
    std::vector<std::pair<int, int>> nodes;  // ranges, the latest first
    bool derived;  // by a differentiation: what is needed to differentiate it again is not known exactly
    bool checkpoint;
    Op op = Op::copy;  // of those that can be hooked
  };
  struct Slot {
    std::vector<int> nodes;
    Sizes shape = {};
    int producer = -1;  // an entry; −1: a leaf
    int leaf = -1;
    int filling_before = 0;
    ModelTensor::Use use_before = {}, possible_use_before = {};
  };
  struct Adjoint {
    bool defined = false;
    std::vector<Scalar> values;
    int slot = 0;
  };
  struct Hook {
    int tape, slot, filling, parameter, number;
    HookKind kind;
  };
  struct OpHook {
    int tape, number;
    Op op;
    HookKind kind;
  };
  struct Trace {
    int slot, tape;  // tape −1: all
  };
  struct Refusal {
    Outcome outcome;
  };
  // One reverse pass.
  struct Differentiation {
    int tape = 0, target = 0;
    bool recorded = false;
    std::vector<int> wanted;           // slots whose gradients are kept
    std::vector<char> reached, leads;  // by slot: the target depends on it; it depends on what is wanted
    std::vector<Adjoint> sums;         // by slot
    std::vector<Need> seed;            // what is given as the seed, which gradients are computed from
    bool wants(int slot) const { return leads[static_cast<std::size_t>(slot)]; }
  };

  // Memory and views.
  int make(const Sizes& shape, std::vector<Scalar> values);
  /// Lays a new tensor out as an elementwise result: its axes have the order in memory of those of the first operand that
  /// has its shape and repeats no element, or else of the first that has its shape. Returns it.
  int in_order_of(std::initializer_list<int> operands, int result);
  int view(int tensor, const Sizes& shape, const Sizes& strides, std::int64_t offset);
  std::vector<std::int64_t> places(const ModelTensor& tensor) const;
  ModelTensor& at(int tensor) { return tensors_[static_cast<std::size_t>(tensor)]; }
  const ModelTensor& at(int tensor) const { return tensors_[static_cast<std::size_t>(tensor)]; }
  Memory& memory_of(int tensor) { return memories_[static_cast<std::size_t>(at(tensor).memory)]; }
  int id(int variable) const { return variables_.at(variable); }

  // Recording on the tape.
  void check_operand(const ModelTensor& x) const;
  Operand accept(int tensor);
  void record_use(int tensor);
  void record_possible_use(int tensor);
  Operand operand(int tensor);
  std::pair<Operand, Operand> operands(int x, int y);
  int live_slot(const ModelTensor& tensor) const { return tensor.filling == filling_ ? tensor.slot : 0; }
  int track(int tensor);
  std::vector<int> nodes_of(int tensor);
  void accumulate_nodes(Operand& operand);
  int tracked_slot(int tensor) const;
  void check_hidden(const ModelTensor& tensor) const;
  void assign_slot(int tensor, int slot);
  int new_slot(std::vector<int> nodes);
  int record(int begin, const std::vector<Scalar>& values, std::vector<Input> inputs, bool checkpoint = false);
  int record_derived(int begin, const std::vector<Scalar>& values, std::vector<Input> inputs, const Entry* of);
  static void add_input(std::vector<Input>& inputs, int slot, std::vector<Need> needs = {});
  Need need(const Operand& operand) const;
  int finish(int begin, const Sizes& shape, const std::vector<Scalar>& values, std::vector<Input> inputs);

  // Ops.
  int compute(const Instruction& instruction);
  int unary(Op op, int x);
  int binary(Op op, int x, int y);
  int binary(Op op, Operand a, Operand b, bool a_is_kept, bool b_is_kept);
  int with_number(Op op, int x, double number);
  int matmul(int x, int y);
  int sum(int x, int axis, bool keep);
  int joined(Op op, int x, int y);
  int rows(int x, const Sizes& indices);
  int custom(CustomKind kind, int x);
  int checkpoint(CheckpointKind kind, int x, int captured);
  std::vector<Scalar> dropped(const std::vector<Scalar>& x);
  struct Layout {
    Sizes shape, strides;
    std::int64_t offset = 0;
  };
  static Layout layout_of(const Instruction& instruction, Layout x);
  /// `logical`: the layout that the view would have of x in row-major order.
  int recorded_view(int x, const Layout& layout, const Layout& logical);
  int view_op(const Instruction& instruction);
  void overwrite(const Instruction& instruction);
  void overwrite_whole(Op op, int x, int y, double number);
  void overwrite_part(const Instruction& instruction, int x, int y);
  void write_cells(int tensor, const std::vector<Scalar>& values);
  void check_destination(int owner, bool recorded);
  void end_overwrite(int x, bool recorded);

  // Tapes.
  void run_scope(const Instruction& instruction);
  void clear_tape();
  const Scope& tape(int number) const;
  bool is_enclosed(int tape) const;
  void check_unused(const ModelTensor& tensor, int since);
  void check_unused(int tape, const ModelTensor& tensor);
  bool is_used(const ModelTensor::Use& use, int since) const { return use.filling == filling_ && use.time >= since; }
  void gradient(const Instruction& instruction);
  void backward(const Instruction& instruction);
  int target_of(const Instruction& instruction, const std::vector<int>& sources);
  Adjoint seed_of(const Instruction& instruction, bool recorded);
  bool is_recorded(int tape) const { return is_enclosed(tape) && is_recording(); }
  Differentiation begin(const Instruction& instruction, int target, std::vector<int> wanted);
  /// Throws: Refusal, after which a tape that is consumed by it is empty.
  void pass_back(Differentiation& run, Adjoint seed);
  void visit(Differentiation& run, Entry entry);
  void check_needs(const Entry& entry, const Input& input);
  void add_to(Differentiation& run, int slot, Adjoint more);
  void complete(Differentiation& run, int slot);
  void trace(Differentiation& run, int slot);
  void call_hook(const Adjoint& seen, int number, HookKind kind);
  Adjoint scaled(Adjoint adjoint);
  bool is_tracked_since(const Need& need) const { return !need.slot && live_slot(at(need.tensor)); }
  int slot_of(const Hook& hook) const;
  void take_nodes(Adjoint& adjoint) const;
  void consume(int tape);
  void commit(int parameter, const Adjoint& found);
  void run_leaf(const Instruction& instruction);

  std::uint64_t random_seed_;
  std::uint64_t random_calls_ = 0;
  Scalars scalars_;
  std::vector<Memory> memories_;
  std::vector<ModelTensor> tensors_;
  std::map<int, int> variables_;
  std::vector<Scope> scopes_;
  int filling_ = 1;
  std::vector<Slot> slots_{Slot{}};
  std::vector<Entry> entries_;
  std::vector<int> leaves_;  // slots
  std::vector<Hook> hooks_;
  std::vector<OpHook> op_hooks_;
  std::vector<Trace> traces_;
  std::map<int, std::vector<int>> traced_;  // by tape: tensors; −1: nothing flowed there
  int clock_ = 0;
  std::vector<HookCall> hook_calls_;
  bool uncertain_ = false;
  double scale_ = 1;
};

}  // namespace reel_test::programs
