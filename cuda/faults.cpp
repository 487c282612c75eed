#include "faults.h"

#include <atomic>

#include "../lib/core/invoke.h"
#include "../lib/core/op_error.h"
#include "driver.h"
#include "fault_log.h"

namespace reel::detail {
inline namespace REEL_TARGET {

void throw_fault(const FaultRecord& found, const FaultSource& source) {
  switch (found.kind) {
    case Fault::index:
      fail<IndexError>(source.op, source.where, "index {} is out of range for an axis of size {}", found.first,
                       found.second);
    case Fault::class_index:
      fail<IndexError>(source.op, source.where, "the class {} does not lie in [0, {})", found.first, found.second);
    case Fault::probability: fail<Error>(source.op, source.where, "{} is no probability", found.number);
    case Fault::target:
      fail<IndexError>(source.op, source.where, "target {} is not a class of the input, which has {}", found.first,
                       found.second);
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
    case Fault::none: break;
  }
  throw InternalError("a kernel reported no fault");
}

FaultNote FaultLog::note(bool in_graph) {
  if (!record_) {
    auto* made = static_cast<FaultRecord*>(driver_allocate_pinned(sizeof(FaultRecord)));
    *made = {};
    record_ = made;
    sources_.resize(remembered);
  }
  const Context& context = detail::context();
  const Call* call = context.running;
  FaultSource source{call ? call->op.name : "an op", context.resolve(call ? call->where : Location{})};
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
  // What later ops have found may be due to this.
  forgotten_ = last_;
  // The place was settled when the op ran; the caller's name of now has nothing to do with it.
  Context& context = detail::context();
  bool named = context.has(Context::caller_named);
  context.set(Context::caller_named, false);
  struct Restore {
    Context& context;
    bool named;
    ~Restore() { context.set(Context::caller_named, named); }
  } restore{context, named};
  if (!in_graph && last_ - found.ticket >= remembered) throw_fault(found, {"an op of a while ago", {}});
  throw_fault(found, in_graph ? graph_sources_[found.ticket & ~of_graph] : sources_[found.ticket % remembered]);
}

}  // namespace REEL_TARGET
}  // namespace reel::detail
