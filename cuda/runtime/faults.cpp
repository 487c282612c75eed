#include "faults.h"

#include <atomic>

#include "../../lib/core/context.h"
#include "../../lib/core/fail.h"
#include "../../lib/core/op.h"
#include "../device/fault_log.h"
#include "driver.h"

namespace reel::detail::inline REEL_TARGET {
namespace {

[[noreturn]] void throw_matrix_fault(const FaultSource& source, std::int64_t number, const char* fault) {
  const Shape& shape = source.shape;
  if (shape.rank() <= 2) fail<Error>(source.op, source.where, "the matrix {}", fault);
  Shape place(std::span(shape.data(), static_cast<std::size_t>(shape.rank() - 2)));
  for (int axis = place.rank(); axis-- > 0; number /= shape[axis]) place[axis] = number % shape[axis];
  fail<Error>(source.op, source.where, "matrix {} of {} {} {}", to_string(place), to_string(shape),
              name_of(source.dtype), fault);
}

[[noreturn]] void throw_few_classes(const FaultSource& source, const FaultRecord& found, const char* how) {
  fail<Error>(source.op, source.where, "row {} has {} classes above 0, too few to draw {}{}", found.first, found.second,
              static_cast<std::int64_t>(found.number), how);
}

}  // namespace

FaultSource running_op() {
  const Context& context = detail::context();
  const Call* call = context.running;
  if (!call) return {"an op", context.call_site({}), {}, DType::f32};
  FaultSource source{call->op.name, context.call_site(call->where), {}, DType::f32};
  if (call->inputs.empty() || !call->inputs[0]->defined()) return source;
  const Body& first = call->input(0);
  source.shape = Shape(std::span(first.dims, static_cast<std::size_t>(first.rank)));
  source.dtype = first.dtype;
  return source;
}

void throw_fault(const FaultRecord& found, const FaultSource& source) {
  switch (found.kind) {
    case Fault::index:
      fail<IndexError>(source.op, source.where, "index {} is out of range for an axis of size {}", found.first,
                       found.second);
    case Fault::class_index:
      fail<IndexError>(source.op, source.where, "the class {} does not lie in [0, {})", found.first, found.second);
    case Fault::probability:
      fail<Error>(source.op, source.where, "the probability {} lies outside [0, 1]", found.number);
    case Fault::one_hot:
      fail<IndexError>(source.op, source.where, "index {} is none of the {} classes, for the indices {} {}",
                       found.first, found.second, to_string(source.shape), name_of(source.dtype));
    case Fault::bag_start:
      fail<IndexError>(source.op, source.where,
                       "the offset {} does not fit: they start with 0, ascend, and are at most {}", found.first,
                       found.second);
    case Fault::singular: throw_matrix_fault(source, found.first, "is singular");
    case Fault::singular_triangle: throw_matrix_fault(source, found.first, "is singular: it has a 0 on its diagonal");
    case Fault::not_positive_definite: throw_matrix_fault(source, found.first, "is not positive definite");
    case Fault::not_finite: throw_matrix_fault(source, found.first, "holds NaN or infinity");
    case Fault::target:
      fail<IndexError>(source.op, source.where, "target {} is not a class of the input, which has {}", found.first,
                       found.second);
    case Fault::class_probability:
      fail<Error>(source.op, source.where, "row {} has the probability {}, which is not a finite number from 0 on",
                  found.first, found.number);
    case Fault::few_classes: throw_few_classes(source, found, "");
    case Fault::few_classes_to_draw_once: throw_few_classes(source, found, " without replacement");
    case Fault::ctc_input_length:
      fail<IndexError>(source.op, source.where,
                       "the input length {} of example {} is not one that the log-probabilities can have", found.first,
                       found.second);
    case Fault::ctc_target_length:
      fail<IndexError>(source.op, source.where,
                       "the target length {} of example {} is not one that the targets can have", found.first,
                       found.second);
    case Fault::ctc_label:
      fail<IndexError>(source.op, source.where,
                       "label {} of example {} is no class of the log-probabilities, or is the blank", found.first,
                       found.second);
    case Fault::changed:
      fail<TapeError>(
          source.op, source.where,
          "its function, run again for the gradient, gave another result {} than the first time, so that the "
          "gradient is wrong: it depends on something that has changed, such as a generator of its own, or "
          "what it counts; draw from the thread's generator, and pass what changes as an input",
          found.first);
    case Fault::none: break;
  }
  throw InternalError("a kernel reported no fault");
}

FaultReporter FaultLog::reporter(bool in_graph) { return reporter(running_op(), in_graph); }

FaultReporter FaultLog::reporter(const FaultSource& source, bool in_graph) {
  if (!record_) {
    auto* made = static_cast<FaultRecord*>(driver_allocate_pinned(sizeof(FaultRecord)));
    *made = {};
    record_ = made;
    sources_.resize(remembered);
  }
  auto* record = const_cast<FaultRecord*>(record_);
  if (in_graph) {
    graph_sources_.push_back(source);
    return {record, of_graph | (graph_sources_.size() - 1)};
  }
  sources_[++last_ % remembered] = source;
  return {record, last_};
}

void FaultLog::throw_found() {
  if (record_->state != 2) return;  // the kernel is still writing
  std::atomic_thread_fence(std::memory_order_acquire);
  FaultRecord found{2,
                    static_cast<Fault>(static_cast<std::uint32_t>(record_->kind)),
                    record_->ticket,
                    record_->first,
                    record_->second,
                    record_->number};
  record_->state = 0;
  bool in_graph = (found.ticket & of_graph) != 0;
  if (!in_graph && found.ticket <= forgotten_) return;
  // Later faults may be consequences of this one.
  forgotten_ = last_;
  // The call site was determined when the op ran; the present caller's name does not apply.
  Context& context = detail::context();
  bool named = context.has(Context::caller_named);
  context.set(Context::caller_named, false);
  struct Restore {
    Context& context;
    bool named;
    ~Restore() { context.set(Context::caller_named, named); }
  } restore{context, named};
  if (!in_graph && last_ - found.ticket >= remembered) throw_fault(found, {.op = "an op of a while ago"});
  throw_fault(found, in_graph ? graph_sources_[found.ticket & ~of_graph] : sources_[found.ticket % remembered]);
}

}  // namespace reel::detail::inline REEL_TARGET
