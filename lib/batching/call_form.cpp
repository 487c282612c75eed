#include "call_form.h"

#include <algorithm>
#include <span>

#include "group.h"
#include "queued_call.h"

namespace reel::detail {
namespace {

// Where a group would save little: an op with an operand or a result of more elements runs at once, since pending ones would
// hold much memory.
constexpr std::int64_t most_elements_of_group = 1 << 15;

// Calls are joined if they agree in op, attributes, dtypes, shapes without the joined axis, and in whether and where they are
// recorded.
template <class Word>
void each_word_of_kind(const Call& call, const Context& context, const CallForm& form, bool tracked, Word word) {
  const Joining& joining = form.joining;
  word(reinterpret_cast<std::uintptr_t>(&call.op));
  word(static_cast<std::uint64_t>(joining.by) | joining.shared << 8 | joining.single << 16 | joining.broadcasts << 24 |
       tracked << 25 | context.has(Context::recording) << 26 | call.specs.size() << 28 | call.inputs.size() << 32);
  word(static_cast<std::uint64_t>(context.scope_id) << 32 | call.attribute_bytes.size());
  auto always = [&](std::uint64_t number) { return word(number), true; };
  each_of_attributes(call, always);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Body& x = call.input(static_cast<int>(i));
    word(header_of(x.dtype, x.rank, false, x.device));
    bool by_rows = joining.by == Joining::By::rows && !has_input(joining.shared, i) && !has_input(joining.single, i);
    each_of(x.dims + by_rows, x.rank - by_rows, always);
  }
  for (const OutputSpec& spec : call.specs) {
    word(header_of(spec.dtype, spec.rank, false, spec.device));
    int rows = joining.by == Joining::By::rows && spec.rank > 0;
    each_of(spec.dims + rows, spec.rank - rows, always);
  }
}

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Fills the sizes of the results, and whether they are too large to be joined.
void describe_results(CallForm& form, const Call& call) {
  if (!call.op.own_attributes) form.attributes.assign(call.attribute_bytes.begin(), call.attribute_bytes.end());
  std::size_t numbers = 0;
  for (const OutputSpec& spec : call.specs) numbers += 2 * static_cast<std::size_t>(spec.rank);
  form.sizes.resize(numbers + 4);  // four are copied at once
  std::int64_t* next = form.sizes.data();
  std::int64_t most = 0;
  for (std::size_t j = 0; j < call.specs.size(); ++j) {
    OutputSpec& spec = form.specs.emplace_back(call.specs[j]);
    std::int64_t count = 1;
    bool overflow = false;
    std::copy_n(spec.dims, spec.rank, next);
    for (int i = spec.rank; i-- > 0;) {
      next[spec.rank + i] = count;
      overflow |= __builtin_mul_overflow(count, spec.dims[i], &count);
    }
    form.at_once |= overflow || count > most_elements || spec.order;
    spec.dims = next;
    spec.like = spec.order = nullptr;
    next += 2 * spec.rank;
    form.counts.push_back(count);
    if (form.joining.dropped_outputs >> j & 1) continue;
    form.bytes += static_cast<std::size_t>(count) * size_of(spec.dtype);
    most = std::max(most, count);
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    std::int64_t count = call.input(static_cast<int>(i)).numel;
    // Without elements there is nothing to join.
    if (count == 0) form.joining = {};
    if (!has_input(form.joining.shared, i)) most = std::max(most, count);
  }
  // The steps of several sequences run together, so that their number does not matter.
  form.large = !(form.joining.own_rows && call.op.shares_weight) && most > most_elements_of_group;
}

// Fills the expected gains of a form's calls from being joined.
void expect_gains(CallForm& form, const Call& call, const GroupExpectation& expected) {
  bool looks_up = call.op.shares_weight && call.op.accepts_elements;
  std::int64_t weights = 0;
  if (call.op.shares_weight && !looks_up)
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      if (has_input(form.joining.shared, i)) weights += element_bytes(call.input(static_cast<int>(i)));
  // A sequence reads its weights at each step.
  if (form.joining.own_rows) weights *= call.input(0).dims[0];
  for (bool tracked : {false, true}) {
    form.gains[tracked] = expected.gain(tracked, weights);
    form.pays[tracked] = looks_up ? expected.lookup_pays(tracked) : expected.pays(tracked, weights);
  }
}

}  // namespace

[[gnu::noinline]] CallForm& CallForms::find_form(const Call& call, const Context& context,
                                                 const GroupExpectation& expected) {
  words_.clear();
  each_word_of_form(call, context, expected.together(),
                    [&](std::uint64_t word) { return words_.push_back(word), true; });
  std::vector<std::unique_ptr<CallForm>>& alike = forms_[hash_of(words_)];
  for (const std::unique_ptr<CallForm>& form : alike)
    if (form->words == words_) return *form;
  auto made = std::make_unique<CallForm>();
  made->joining = joining_of(call);
  describe_results(*made, call);
  expect_gains(*made, call, expected);
  made->words = words_;
  return *alike.emplace_back(std::move(made));
}

[[gnu::noinline]] CallKind& CallForms::find_kind(const Call& call, const Context& context, CallForm& form,
                                                 bool is_tracked) {
  words_.clear();
  each_word_of_kind(call, context, form, is_tracked, [&](std::uint64_t word) { words_.push_back(word); });
  std::vector<std::unique_ptr<CallKind>>& alike = kinds_[hash_of(words_)];
  for (const std::unique_ptr<CallKind>& kind : alike)
    if (kind->key == words_) return *(form.kinds[is_tracked] = kind.get());
  CallKind*& numbered = by_number_.emplace_back(nullptr);
  alike.push_back(std::make_unique<CallKind>(CallKind{.key = words_,
                                                      .joining = form.joining,
                                                      .number = static_cast<std::uint32_t>(by_number_.size()),
                                                      .scope_id = context.scope_id,
                                                      .recording = context.has(Context::recording),
                                                      .buckets = {}}));
  numbered = form.kinds[is_tracked] = alike.back().get();
  return *numbered;
}

}  // namespace reel::detail
