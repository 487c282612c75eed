#include "tape_list.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/memory_error.h"
#include "../core/op_error.h"
#include "../core/warning.h"
#include "prefetcher.h"

namespace reel::detail {
namespace {

std::uint64_t first_epoch() {
  static std::atomic<std::uint64_t> made = 0;
  return (made.fetch_add(1, std::memory_order_relaxed) + 1) << 32 | 1;
}

}  // namespace

TapeList::TapeList(Scopes& scopes)
    : epoch_(first_epoch()),
      outer_(nullptr),
      scopes_(scopes),
      own_uses_(std::make_unique<UseLog>()),
      uses_(*own_uses_) {
  slots_.push_back({});
}

TapeList::TapeList(TapeList& outer)
    : epoch_(first_epoch()), outer_(&outer), scopes_(outer.scopes_), uses_(outer.uses_) {
  slots_.push_back({});
}

TapeList::TapeList(const TapeList& inherited, int parent) : TapeList(inherited.scopes_) {
  inherited_ = &inherited;
  parent_ = parent;
}

TapeList& TapeList::inner() {
  if (!inner_) inner_ = std::make_unique<TapeList>(*this);
  return *inner_;
}

std::uint32_t TapeList::foreign_slot_of(const Body& body) const {
  auto found = foreign_leaves_.find(&body);
  return found == foreign_leaves_.end() ? 0 : found->second.slot;
}

bool TapeList::is_overwritten(const Body& body) const {
  return body.epoch.load(std::memory_order_relaxed) == epoch_ && !body.requires_grad &&
         body.slot_version != body.storage->version.load(std::memory_order_relaxed);
}

const SlotForm* TapeList::new_form(const Body& body) {
  auto* form = static_cast<SlotForm*>(arena_.allocate(offsetof(SlotForm, dims) + body.rank * sizeof(std::int64_t)));
  form->dtype = body.dtype;
  form->device = body.device;
  form->rank = body.rank;
  std::copy_n(body.dims, body.rank, form->dims);
  return last_form_ = form;
}

std::uint32_t TapeList::track(const char* op, const Tensor& leaf, Location where) {
  Body& body = leaf.body();
  if (std::uint32_t slot = slot_of(body)) return slot;
  if (is_tracked_outside(body)) return adopt(op, leaf, where);
  check_tracked_values(op, leaf, body.slot_version, where);
  std::uint64_t before = body.epoch.load(std::memory_order_relaxed);
  if (!body.requires_grad && !is_untracked(before) && !is_of_this_thread(before)) refuse(op, leaf, where);
  std::uint32_t slot = slot_count();
  slots_.push_back({form_of(body), nullptr});
  if (Heap::owner_of(&body) == context().heap) {
    leaves_.push_back({leaf, slot, before, body.slot});
    assign_slot(body, slot);
  } else {
    leaves_.push_back({leaf, slot, 0, 0});
    try {
      foreign_leaves_.emplace(&body, ForeignLeaf{slot, body.storage->version.load(std::memory_order_relaxed)});
    } catch (...) {
      leaves_.pop_back();
      throw;
    }
    any_hidden_ = true;
  }
  return slot;
}

bool TapeList::is_tracked_outside(const Body& body) const {
  if (outer_ && body.requires_grad) return true;
  for (const TapeList* list = outer_; list; list = list->outer_)
    if (list->is_live(body)) return true;
  return false;
}

std::uint32_t TapeList::adopt(const char* op, const Tensor& tensor, Location where) {
  const Body& body = tensor.body();
  for (const TapeList* list = outer_; list; list = list->outer_)
    if (list->is_overwritten(body)) list->check_overwritten(op, tensor, body.slot_version, where);
  std::uint32_t version = body.storage->version.load(std::memory_order_relaxed);
  auto [found, is_new] = foreign_leaves_.try_emplace(&body, ForeignLeaf{0, version});
  try {
    if (is_new) adopted_.push_back(tensor);
  } catch (...) {
    foreign_leaves_.erase(found);
    throw;
  }
  any_hidden_ = true;
  if (only_collects_uses && depth <= 1) return 0;
  std::uint32_t& slot = found->second.slot;
  if (!slot) {
    std::uint32_t made = slot_count();
    slots_.push_back({form_of(body), nullptr});
    leaves_.push_back({tensor, made, 0, 0});
    slot = made;
  }
  return slot;
}

void TapeList::adopt_constant(const char* op, const Tensor& tensor, Location where) {
  struct CollectingUses {
    explicit CollectingUses(bool& flag) : flag(flag), before(std::exchange(flag, true)) {}
    ~CollectingUses() { flag = before; }
    bool &flag, before;
  };
  {
    CollectingUses collecting(only_collects_uses);
    adopt(op, tensor, where);
  }
  foreign_leaves_.find(&tensor.body())->second.constant = true;
}

// A tensor that was overwritten through another handle does not have the recorded values any more. A parameter is
// exempt: it is not computed, and training overwrites it.
void TapeList::check_overwritten(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const {
  const Body& body = tensor.body();
  if (body.requires_grad) return check_tracked_values(op, tensor, version, where);
  fail<TapeError>(op, where,
                  "operand {}, made at {}, is tracked by an open tape but was overwritten at {} through a tensor that "
                  "shares its elements; use that one from then on, or overwrite a copy",
                  describe(tensor), to_string(tensor.made_at()), to_string(body.storage->last_overwrite()));
}

// A tensor that existed before tracked values were written to its storage through another one has no slot for them.
void TapeList::check_tracked_values(const char* op, const Tensor& tensor, std::uint32_t version, Location where) const {
  const Storage& storage = *tensor.body().storage;
  if (storage.tracked_by.load(std::memory_order_relaxed) != epoch_) return;
  std::uint32_t since = storage.tracked_version.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(version - since) >= 0) return;
  fail<TapeError>(op, where,
                  "operand {}, made at {}, shares its elements with a tensor of an open tape, into which values were "
                  "written, last at {}, and their gradients could not flow back through it; write to it as a whole or "
                  "as x(…) = y, or use the tensor that was written to",
                  describe(tensor), to_string(tensor.made_at()), to_string(storage.last_overwrite()));
}

std::uint32_t TapeList::unusual_slot(const OpInfo& op, Body& body, const Location& where) {
  body.references.retain();
  Tensor tensor = Tensor::adopt(&body);
  if (body.epoch.load(std::memory_order_relaxed) == epoch_) {
    check_overwritten(op.name, tensor, body.slot_version, where);
    return body.slot;
  }
  if (auto found = foreign_leaves_.find(&body); found != foreign_leaves_.end()) {
    ForeignLeaf leaf = found->second;
    if (leaf.version != body.storage->version.load(std::memory_order_relaxed))
      check_overwritten(op.name, tensor, leaf.version, where);
    // To a tape that the function opened, the tensor is no constant.
    bool stays = leaf.slot || !outer_ || (leaf.constant && depth <= 1);
    return stays ? leaf.slot : adopt(op.name, tensor, where);
  }
  if (inherited_ && depth == 0)
    fail<TapeError>(op.name, where,
                    "the tape that is open was opened before fork(), by process {}, and operand {} would be recorded; "
                    "open a tape in this process, or compute under NoRecord",
                    parent_, describe(tensor));
  if (is_tracked_outside(body)) return adopt(op.name, tensor, where);
  if (body.requires_grad) return track(op.name, tensor, where);
  if (!is_untracked(body)) refuse(op.name, tensor, where);
  for (const TapeList* list = this; list; list = list->outer_) {
    list->check_tracked_values(op.name, tensor, body.slot_version, where);
    list->check_forgotten_values(op.name, tensor, where);
  }
  return 0;
}

// The check of check_tracked_values for a tape that has finished: the tensor has no slot for tracked values in its storage.
void TapeList::check_forgotten_values(const char* op, const Tensor& tensor, Location where) const {
  const Body& body = tensor.body();
  const Storage& storage = *body.storage;
  std::uint64_t writer = storage.tracked_by.load(std::memory_order_relaxed);
  if (writer == epoch_ || list_id(writer) != list_id(epoch_)) return;
  std::uint32_t since = storage.tracked_version.load(std::memory_order_relaxed);
  if (static_cast<std::int32_t>(body.slot_version - since) >= 0) return;
  fail<TapeError>(op, where,
                  "operand {}, made at {}, shares its elements with a tensor of a tape that has finished, into which "
                  "values were written, last at {}, so no gradient can flow back through it; use stop_gradient to "
                  "carry its values on, or overwrite it as a whole",
                  describe(tensor), to_string(tensor.made_at()), to_string(storage.last_overwrite()));
}

void TapeList::make_room(const char* op, Location where) {
  with_memory_error(op, where, [&] {
    // More than an entry of an in-place op needs, with the forms of shapes that are new to the list.
    constexpr std::size_t most_entry_bytes = 4096, most_slots = 8;
    arena_.reserve(most_entry_bytes);
    if (slots_.capacity() - slots_.size() < most_slots) slots_.reserve(2 * slots_.capacity() + most_slots);
  });
}

void TapeList::mark_tracked_write(const Body& x) {
  Storage& storage = *x.storage;
  storage.tracked_version.store(storage.version.load(std::memory_order_relaxed), std::memory_order_relaxed);
  storage.tracked_by.store(epoch_, std::memory_order_relaxed);
  any_hidden_ = wrote_tracked_ = true;
}

void TapeList::forget(Body& body) const {
  if (list_id(body.epoch.load(std::memory_order_relaxed)) != list_id(epoch_)) return UseLog::forget(body);
  body.epoch.store(0, std::memory_order_relaxed);
  body.slot = context().scope_id;
}

// The mark that records the uses of a tensor while it was untracked. A leaf's was replaced by its slot, and is kept in
// the list.
std::uint64_t TapeList::mark_of(const Body& body) const {
  std::uint64_t epoch = body.epoch.load(std::memory_order_relaxed);
  if (epoch != epoch_) return epoch;
  auto leaf = std::ranges::lower_bound(leaves_, body.slot, {}, &LeafSlot::slot);
  return leaf != leaves_.end() && leaf->slot == body.slot ? leaf->epoch_before : 0;
}

void TapeList::check_unused(const char* op, const Tensor& tensor, std::uint32_t since, Location where) const {
  std::uint64_t mark = mark_of(tensor.body());
  if (!uses_.has_used(mark, since)) return;
  UseLog::Use use = uses_.use_of(mark);
  std::string by = use.op ? fmt::format("by {} at {}", use.op, to_string(use.where)) : "by an op";
  fail<TapeError>(
      op, where,
      "{}, made at {}, was used {} while a tape recorded, so that its gradient would lack that use; call {} "
      "before the first use, or use stop_gradient of it there if it is to be a constant",
      describe(tensor), to_string(tensor.made_at()), by, op == std::string_view("requires_grad") ? op : "watch");
}

void TapeList::check_own(const char* op, const Tensor& tensor, Location where) const {
  if (!std::ranges::binary_search(shared_, slot_of(tensor.body()))) return;
  fail<TapeError>(op, where,
                  "{}, made at {}, is one tensor for several examples of batch_map, which have taken this view of one "
                  "tensor, and its gradient would be that of all of them; let each compute with a copy of it",
                  describe(tensor), to_string(tensor.made_at()));
}

std::uint32_t TapeList::tracked_slot(const char* op, const Tensor& tensor, Location where) const {
  const Body& body = tensor.body();
  if (std::uint32_t slot = slot_of(body)) {
    if (is_overwritten(body)) check_overwritten(op, tensor, body.slot_version, where);
    return slot;
  }
  if (!is_untracked(body)) refuse(op, tensor, where);
  fail<TapeError>(op, where, "{}, made at {}, is not tracked; call requires_grad() on it, or tape.watch first",
                  describe(tensor), to_string(tensor.made_at()));
}

int TapeList::parent_that_opened(std::uint64_t epoch) const {
  for (const TapeList* mine = this; mine->inherited_; mine = mine->inherited_)
    if (list_id(mine->inherited_->epoch_) == list_id(epoch)) return mine->parent_;
  return 0;
}

void TapeList::refuse_tape(const char* function, const TapeList& other, Location where) const {
  if (int parent = parent_that_opened(other.epoch_))
    fail<TapeError>(function, where, "this tape was opened before fork(), by process {}; open one in this process",
                    parent);
  for (const TapeList* list = outer_; list; list = list->outer_)
    if (list == &other)
      fail<TapeError>(
          function, where,
          "this tape was opened outside the function of a checkpoint or of a custom gradient that runs now; "
          "use it outside, or open one in the function");
  if (is_of_this_thread(other.epoch_) && other.outer_)
    fail<TapeError>(
        function, where,
        "this tape was opened inside the function of a checkpoint or of a custom gradient, and has ended with "
        "it; open one here");
  fail<TapeError>(function, where, "this tape was opened by another thread; open one in this thread");
}

bool TapeList::is_of_this_thread(std::uint64_t epoch) const {
  const TapeList* list = this;
  while (list->outer_) list = list->outer_;
  for (; list; list = list->inner_.get())
    if (list_id(list->epoch_) == list_id(epoch)) return true;
  return false;
}

void TapeList::refuse(const char* op, const Tensor& tensor, Location where) const {
  std::uint64_t epoch = tensor.body().epoch.load(std::memory_order_relaxed);
  if (is_tracked_outside(tensor.body()))
    fail<TapeError>(op, where,
                    "{}, computed at {}, comes from outside the function that overwrites it, and is tracked there; "
                    "overwrite a copy",
                    describe(tensor), to_string(tensor.made_at()));
  if (int parent = parent_that_opened(epoch))
    fail<TapeError>(op, where,
                    "operand {}, computed at {}, belongs to a tape that was opened before fork(), by process {}; use "
                    "stop_gradient to carry its value on, or compute it again on a tape of this process",
                    describe(tensor), to_string(tensor.made_at()), parent);
  if (!is_of_this_thread(epoch))
    fail<TapeError>(op, where,
                    "operand {}, computed at {}, belongs to the tape of another thread; hand it over with "
                    "stop_gradient there, and watch it here",
                    describe(tensor), to_string(tensor.made_at()));
  fail<TapeError>(op, where,
                  "operand {}, computed at {}, belongs to a tape that has finished, so no gradient can flow back "
                  "through it; use stop_gradient to carry its value on",
                  describe(tensor), to_string(tensor.made_at()));
}

void TapeList::update_depth(const Scopes& scopes) noexcept {
  int before = std::exchange(depth, scopes.tapes_on(this));
  if (depth >= before) return;
  std::erase_if(hooked_ops_, [&](const HookedOp& hooked) { return !scopes.is_open(hooked.tape); });
  if (depth == 0) return clear();
  std::erase_if(traces_, [&](const Trace& trace) { return trace.tape && !scopes.is_open(trace.tape); });
}

void TapeList::end() noexcept {
  hooked_ops_.clear();
  if (std::exchange(depth, 0) > 0) clear();
}

// Keeps capacity for the next epochs, as the arena does: an eighth less after each epoch that needs less.
void TapeList::clear_slots() noexcept {
  kept_slots_ = std::max(slots_.size(), kept_slots_ - kept_slots_ / 8);
  slots_.resize(1);
  if (slots_.capacity() / 2 <= std::max<std::size_t>(kept_slots_, 4096)) return;
  try {
    std::vector<Slot> fewer;
    fewer.reserve(kept_slots_);
    fewer.push_back({});
    slots_.swap(fewer);
  } catch (const std::bad_alloc&) {
    // Without memory for smaller vectors, the large ones stay.
  }
}

void TapeList::release_memory() noexcept {
  if (slots_.size() > 1 || arena_.used() > 0) return;
  arena_.release();
  kept_slots_ = 0;
  clear_slots();
}

void TapeList::clear() noexcept {
  peak_bytes_ = peak_bytes();
  context().heap->count_used_bytes(bytes());
  for (Prefetcher ahead(outgrows_caches() ? last_ : nullptr); last_ != released_; last_ = last_->previous) {
    ahead.advance();
    release_saved(*last_);
  }
  last_ = nullptr;
  released_ = nullptr;
  // Leaves are reset: they were not computed here, so they can be used again. Computed tensors keep their dead slots.
  for (const LeafSlot& leaf : leaves_)
    if (Body& body = leaf.tensor.body(); body.epoch.load(std::memory_order_relaxed) == epoch_) {
      body.epoch.store(leaf.epoch_before, std::memory_order_relaxed);
      body.slot = leaf.slot_before;
    }
  clear_slots();
  leaves_.clear();
  traces_.clear();
  shared_.clear();
  foreign_leaves_.clear();
  adopted_.clear();
  kept_.clear();
  any_hidden_ = wrote_tracked_;
  look_at_hidden();
  last_form_ = nullptr;
  entry_count_ = 0;
  saved_bytes_ = 0;
  arena_.rewind();
  ++epoch_;
  if (own_uses_) own_uses_->restart();
}

void TapeList::look_at_hidden() noexcept {
  for (const TapeList* list = outer_; list; list = list->outer_) any_hidden_ |= list->any_hidden_;
}

void TapeList::warn_of_growth() noexcept {
  warn([&] {
    std::map<std::pair<std::string, int>, std::size_t> by_line;
    std::set<const Storage*> counted;
    for (const Entry* entry = last_; entry; entry = entry->previous)
      for (std::uint32_t i = 0; i < entry->saved_count; ++i) {
        const Body& body = entry->saved()[i].tensor.body();
        if (body.requires_grad || !counted.insert(body.storage).second) continue;
        by_line[{entry->file ? entry->file : "", entry->line}] += body.storage->bytes();
      }
    std::vector<std::pair<std::size_t, std::pair<std::string, int>>> most;
    most.reserve(by_line.size());
    for (const auto& [line, bytes] : by_line) most.emplace_back(bytes, line);
    std::sort(most.rbegin(), most.rend());
    std::string text = fmt::format(
        "the tape holds {} entries and {:.1f} MB without a backward; the lines that save most:", entry_count_,
        static_cast<double>(bytes()) / 1e6);
    for (std::size_t i = 0; i < std::min<std::size_t>(most.size(), 5); ++i)
      text += fmt::format("\n  {}: {:.1f} MB", to_string(Location{most[i].second.first.c_str(), most[i].second.second}),
                          static_cast<double>(most[i].first) / 1e6);
    return text;
  });
  warn_bytes = 0;
}

}  // namespace reel::detail
