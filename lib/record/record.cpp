#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "record.h"
#include "tape_list.h"

// Recording of ops on a tape list.

namespace reel::detail {

namespace {

constexpr std::uint32_t unusual = ~std::uint32_t{0};

}  // namespace

[[gnu::always_inline]] inline std::uint32_t TapeList::usual_slot(const Body& body) const {
  std::uint64_t epoch = body.epoch.load(std::memory_order_relaxed);
  if (epoch == epoch_)
    return body.slot_version == body.storage->version.load(std::memory_order_relaxed) ? body.slot : unusual;
  return is_untracked(epoch) && !body.requires_grad && !any_hidden_ ? 0 : unusual;
}

[[gnu::always_inline]] inline std::uint32_t TapeList::input_slot(const OpInfo& op, Body& body, const Location& where) {
  std::uint32_t slot = usual_slot(body);
  return slot != unusual ? slot : unusual_slot(op, body, where);
}

bool TapeList::may_refuse(const Body& body) const {
  if (usual_slot(body) != unusual) return false;
  if (body.epoch.load(std::memory_order_relaxed) == epoch_) return !body.requires_grad;
  if (!foreign_leaves_.empty() || inherited_ || outer_) return true;
  std::uint64_t written = body.storage->tracked_by.load(std::memory_order_relaxed);
  return body.requires_grad ? written == epoch_ : !is_untracked(body) || written != 0;
}

bool TapeList::prepare_overwrite(const Call& call, const Tensor& x) {
  const Body& body = x.body();
  const char* op = call.op.name;
  if (body.requires_grad)
    fail<TapeError>(op, call.where,
                    "{}, made at {}, is a parameter, whose gradient would be that of the old values; overwrite it "
                    "under NoRecord, or overwrite a copy",
                    describe(x), to_string(x.made_at()));
  std::uint32_t slot = slot_of(body);
  if (slot && !slots_[slot].producer)
    fail<TapeError>(op, call.where,
                    "{}, made at {}, is watched by an open tape, and its gradient would be that of the old values; "
                    "overwrite a copy, or watch it afterwards",
                    describe(x), to_string(x.made_at()));
  std::uint64_t epoch = body.epoch.load(std::memory_order_relaxed);
  if (!is_untracked(epoch) && (!is_of_this_thread(epoch) || is_tracked_outside(body))) refuse(op, x, call.where);
  if (outer_ && is_untracked(epoch) && (body.slot & ~constant_mark) < context().scope_id)
    fail<TapeError>(op, call.where,
                    "{}, made at {}, comes from outside the function of a checkpoint or of a custom gradient that runs "
                    "now, so that no gradient would flow back through it; return what is to be written, or write under "
                    "NoRecord what needs no gradient",
                    describe(x), to_string(x.made_at()));
  bool tracked = false;
  for (const Tensor* input : call.inputs) tracked |= input_slot(call.op, input->body(), call.where) != 0;
  if (tracked && Heap::owner_of(&body) != context().heap)
    fail<TapeError>(op, call.where,
                    "{}, made at {} by another thread, cannot hold values that this thread's tape tracks; overwrite a "
                    "copy",
                    describe(x), to_string(x.made_at()));
  for (const Tensor* input : call.inputs)
    if (!is_live(input->body()) && !input->is(x)) record_use(context(), input->body(), op, call.where);
  return tracked;
}

[[gnu::always_inline]] inline void TapeList::save(Saved* place, Body& body, int number) {
  Storage& storage = *body.storage;
  // Each storage is counted once; parameters exist without the tape, too.
  if (!body.requires_grad && storage.counted_by.load(std::memory_order_relaxed) != epoch_) {
    storage.counted_by.store(epoch_, std::memory_order_relaxed);
    saved_bytes_ += storage.bytes();
  }
  body.references.retain();
  new (place) Saved{Tensor::adopt(&body), storage.version.load(std::memory_order_relaxed), number};
}

// Allocates an entry that is not linked yet, and slots for the outputs. The caller constructs its saved values.
[[gnu::always_inline]] inline Entry* TapeList::append(Context& context, const Run& run, const std::uint32_t* slots,
                                                      std::size_t saved, std::size_t hidden) {
  const OpInfo& op = run.op;
  std::size_t inputs = run.inputs.size();
  std::size_t attribute_bytes = run.attributes.size();
  auto* entry =
      static_cast<Entry*>(arena_.allocate(Entry::size_for(inputs, saved, attribute_bytes, op.keeps_input_shapes)));
  const Location& where = context.has(Context::caller_named) ? context.caller : run.where;
  *entry = {.op = &op,
            .previous = last_,
            .file = where.file,
            .line = where.line,
            .first_output = slot_count(),
            .input_count = static_cast<std::uint32_t>(inputs),
            .output_count = static_cast<std::uint32_t>(run.outputs.size() + hidden),
            .saved_count = static_cast<std::uint32_t>(saved),
            .attribute_bytes = static_cast<std::uint32_t>(attribute_bytes)};
  for (std::size_t i = 0; i < inputs; ++i) entry->input_slots()[i] = slots[i];
  if (attribute_bytes != 0) std::memcpy(entry->attributes(), run.attributes.data(), attribute_bytes);
  if (op.keeps_input_shapes) [[unlikely]]
    for (std::size_t i = 0; i < inputs; ++i) new (entry->input_shapes() + i) Shape(run.inputs[i]->shape());
  for (const Tensor& output : run.outputs) slots_.push_back({form_of(output.body()), entry});
  return entry;
}

[[gnu::always_inline]] inline void TapeList::link(Entry* entry) {
  last_ = entry;
  ++entry_count_;
  if (warn_bytes != 0 && bytes() > warn_bytes) [[unlikely]]
    warn_of_growth();
}

// An input that the op overwrites is not a use of it: its values are new.
bool TapeList::is_overwritten_by(const Run& run, std::size_t input) {
  return run.outputs.size() == 1 && run.outputs[0].is(*run.inputs[input]);
}

// Results computed from tensors that are cut off from tracked ones are cut off, too.
void TapeList::pass_cut_on(std::span<const Tensor* const> inputs, std::span<Tensor> outputs) {
  Origin cut = Origin::before_tape;
  for (const Tensor* input : inputs) cut = std::max(cut, cut_of(input->body()));
  if (is_cut(cut))
    for (Tensor& output : outputs) set_cut(output.body(), cut);
}

void TapeList::mark_cut_outputs(const Run& run) const {
  bool cuts = std::ranges::any_of(
      run.inputs, [this](const Tensor* input) { return is_live(input->body()) || input->is_parameter(); });
  if (!cuts) return pass_cut_on(run.inputs, run.outputs);
  for (Tensor& output : run.outputs) set_cut(output.body(), Origin::constant_op);
}

[[gnu::always_inline]] inline void TapeList::record(Context& context, const Run& run) {
  const OpInfo& op = run.op;
  scopes_.apply_remote_ends(context);
  if (!context.has(Context::recording)) [[unlikely]]
    return;
  if (!op.gradient) [[unlikely]]
    return mark_cut_outputs(run);
  std::size_t inputs = run.inputs.size();
  constexpr std::size_t few = 8;
  std::uint32_t small[few];
  std::unique_ptr<std::uint32_t[]> large;
  std::uint32_t* slots = small;
  if (inputs > few) [[unlikely]] {
    large = std::make_unique_for_overwrite<std::uint32_t[]>(inputs);
    slots = large.get();
  }
  // The slots are determined before the entry is linked: an exception leaves the list unchanged.
  InputSet tracked = 0;
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    slots[i] = input_slot(op, run.inputs[i]->body(), run.where);
    any |= slots[i];
    if (slots[i] && i < few) tracked |= static_cast<InputSet>(1 << i);
  }
  // Recorded only here: an op that is refused has used nothing.
  for (std::size_t i = 0; i < inputs; ++i)
    if (!slots[i] && !is_overwritten_by(run, i)) record_use(context, run.inputs[i]->body(), op.name, run.where);
  if (!any) return pass_cut_on(run.inputs, run.outputs);

  std::size_t candidates = std::min<std::size_t>(inputs, std::size(op.saves_input_for)), saved = 0;
  for (std::size_t i = 0; i < candidates; ++i) saved += (op.saves_input_for[i] & tracked) != 0;
  std::size_t results = std::min<std::size_t>(run.outputs.size(), std::size(op.saves_output_for));
  for (std::size_t i = 0; i < results; ++i) saved += (op.saves_output_for[i] & tracked) != 0;
  Entry* entry = append(context, run, slots, saved, 0);

  // Nothing throws after this.
  Saved* place = entry->saved();
  for (std::size_t i = 0; i < candidates; ++i)
    if (op.saves_input_for[i] & tracked) save(place++, run.inputs[i]->body(), static_cast<int>(i));
  for (std::size_t i = 0; i < results; ++i)
    if (op.saves_output_for[i] & tracked) save(place++, run.outputs[i].body(), -1 - static_cast<int>(i));
  std::uint32_t slot = entry->first_output;
  for (Tensor& output : run.outputs) assign_floating_slot(output.body(), slot++);
  link(entry);
}

void TapeList::record(Context& context, Call& call) {
  record(context, {call.op, call.inputs, call.attribute_bytes, call.outputs, call.where});
}

[[gnu::noinline]] void TapeList::record_at_length(Context& context, const OpInfo& op, Body& output,
                                                  const Location& where, std::initializer_list<Body*> inputs) {
  with_memory_error(op.name, where, [&] {
    auto held = [](Body* body) {
      body->references.retain();
      return Tensor::adopt(body);
    };
    Tensor result = held(&output), operands[2];
    const Tensor* listed[2];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      operands[i] = held(inputs.begin()[i]);
      listed[i] = &operands[i];
    }
    record(context, {op, {listed, inputs.size()}, {}, {&result, 1}, where});
  });
}

// All uncommon cases, and all that need memory, take the long path, so that this function calls nothing.
template <class... Input>
[[gnu::always_inline]] inline void TapeList::record(Context& context, const OpInfo& op, Body& output,
                                                    const Location& where, Input&... inputs) {
  constexpr std::size_t count = sizeof...(Input);
  if (!op.gradient) return;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const std::uint32_t slots[] = {usual_slot(inputs)...};
    // All bits of an uncommon slot are set. Its operand may be refused, and then the op has used nothing.
    if ((slots[i] | ...) == unusual) [[unlikely]]
      return record_at_length(context, op, output, where, {&inputs...});
    std::uint32_t tracked = ((static_cast<std::uint32_t>(slots[i] != 0) << i) | ...);
    if (tracked != (1u << count) - 1) [[unlikely]] {
      ((slots[i] ? void() : uses_.record_use(context, inputs, op.name, where)), ...);
      if (!tracked) {
        if (Origin cut = std::max({cut_of(inputs)...}); is_cut(cut)) [[unlikely]]
          set_cut(output, cut);
        return;
      }
    }
    std::size_t saved = (((op.saves_input_for[i] & tracked) != 0) + ...) + ((op.saves_output_for[0] & tracked) != 0);
    std::size_t bytes = Entry::size_for(count, saved, 0, false);
    if (!arena_.has(bytes) || slots_.size() == slots_.capacity()) [[unlikely]]
      return record_at_length(context, op, output, where, {&inputs...});

    const SlotForm* form = slots_[slots[0] ? slots[0] : slots[count - 1]].form;
    auto* entry = static_cast<Entry*>(arena_.take(bytes));
    const Location& call_site = context.has(Context::caller_named) ? context.caller : where;
    std::uint32_t slot = slot_count();
    *entry = {.op = &op,
              .previous = last_,
              .file = call_site.file,
              .line = call_site.line,
              .first_output = slot,
              .input_count = count,
              .output_count = 1,
              .saved_count = static_cast<std::uint32_t>(saved),
              .attribute_bytes = 0};
    ((entry->input_slots()[i] = slots[i]), ...);
    // The capacity was ensured before; this spares the code for growing.
    if (slots_.size() == slots_.capacity()) __builtin_unreachable();
    slots_.push_back({form, entry});
    auto* next = reinterpret_cast<Saved*>(entry->input_slots() + (count + 1) / 2 * 2);
    ((op.saves_input_for[i] & tracked ? save(next++, inputs, static_cast<int>(i)) : void()), ...);
    if (op.saves_output_for[0] & tracked) save(next, output, -1);
    assign_slot(output, slot);
    link(entry);
  }(std::index_sequence_for<Input...>());
}

void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& x) {
  context.tapes->record(context, op, output, where, x);
}

void record(Context& context, const OpInfo& op, Body& output, const Location& where, Body& a, Body& b) {
  context.tapes->record(context, op, output, where, a, b);
}

void TapeList::record_uses(Context& context, const Call& call) noexcept {
  if (!context.has(Context::recording) || !call.op.gradient) return;
  for (const Tensor* input : call.inputs) {
    Body& body = input->body();
    bool tracks = body.requires_grad || (body.marks & Body::to_track) || is_live(body);
    if (!tracks) record_use(context, body, call.op.name, call.where);
  }
}

bool TapeList::record_saving(Context& context, const Call& call, const OpInfo& op, std::span<const ToSave> values,
                             std::span<const Tensor> hidden) {
  std::vector<std::uint32_t> slots(call.inputs.size());
  std::uint32_t any = 0;
  for (std::size_t i = 0; i < slots.size(); ++i)
    any |= slots[i] = input_slot(call.op, call.inputs[i]->body(), call.where);
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i]) record_use(context, call.inputs[i]->body(), call.op.name, call.where);
  if (!any) {
    pass_cut_on(call.inputs, call.outputs);
    return false;
  }
  Run run{op, call.inputs, call.attribute_bytes, call.outputs, call.where};
  Entry* entry = append(context, run, slots.data(), values.size(), hidden.size());
  for (const Tensor& value : hidden) slots_.push_back({form_of(value.body()), entry});

  Saved* place = entry->saved();
  for (const ToSave& value : values) save(place++, value.tensor.body(), value.number);
  std::uint32_t slot = entry->first_output;
  for (Tensor& output : call.outputs) assign_floating_slot(output.body(), slot++);
  for (const Tensor& value : hidden) assign_floating_slot(value.body(), slot++);
  link(entry);
  return true;
}

}  // namespace reel::detail
