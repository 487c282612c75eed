#include "call_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "../core/storage.h"

namespace reel::detail {
namespace {

// Calls word(number) for each number of a call's key, until it returns false. Calls are joined if they agree in op,
// attributes, dtypes, shapes without the joined axis, and in whether and where they are recorded.
template <class Word>
bool each_word(const Call& call, const Joining& joining, const Context& context, bool tracked, Word word) {
  if (!word(reinterpret_cast<std::uintptr_t>(&call.op))) return false;
  if (!word(static_cast<std::uint64_t>(joining.by) | joining.shared << 8 | joining.single << 16 |
            joining.broadcasts << 24 | tracked << 25 | (context.flags & Context::recording) << 26 |
            call.specs.size() << 28 | call.inputs.size() << 32))
    return false;
  if (!word(static_cast<std::uint64_t>(context.scope_id) << 32 | call.attribute_bytes.size())) return false;
  for (std::size_t at = 0; at < call.attribute_bytes.size(); at += 8) {
    std::uint64_t part = 0;
    std::memcpy(&part, call.attribute_bytes.data() + at, std::min<std::size_t>(8, call.attribute_bytes.size() - at));
    if (!word(part)) return false;
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Body& x = call.input(static_cast<int>(i));
    if (!word(static_cast<std::uint64_t>(x.dtype) | static_cast<std::uint64_t>(x.rank) << 8 |
              static_cast<std::uint64_t>(std::bit_cast<std::uint16_t>(x.device)) << 16))
      return false;
    bool by_rows = joining.by == Joining::By::rows && !has_input(joining.shared, i) && !has_input(joining.single, i);
    for (int axis = by_rows; axis < x.rank; ++axis)
      if (!word(static_cast<std::uint64_t>(x.dims[axis]))) return false;
  }
  for (const OutputSpec& spec : call.specs) {
    if (!word(static_cast<std::uint64_t>(spec.dtype) | static_cast<std::uint64_t>(spec.rank) << 8)) return false;
    for (int axis = joining.by == Joining::By::rows; axis < spec.rank; ++axis)
      if (!word(static_cast<std::uint64_t>(spec.dims[axis]))) return false;
  }
  return true;
}

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Consecutive arrays in a block of memory.
class Arrays {
 public:
  explicit Arrays(void* block) : next_(static_cast<std::byte*>(block)) {}

  template <class T>
  static constexpr std::size_t bytes_of(std::size_t count) {
    static_assert(alignof(T) <= 8);
    return (count * sizeof(T) + 7) & ~std::size_t{7};
  }
  template <class T>
  T* take(std::size_t count) {
    auto* first = reinterpret_cast<T*>(next_);
    next_ += bytes_of<T>(count);
    return first;
  }

 private:
  std::byte* next_;
};

}  // namespace

CallQueue::~CallQueue() { clear(); }

CallKind& CallQueue::kind_of(const Call& call, const Joining& joining, const Context& context, bool tracked) {
  std::uint64_t site =
      (reinterpret_cast<std::uintptr_t>(&call.op) >> 4 ^ reinterpret_cast<std::uintptr_t>(call.where.file) ^
       static_cast<std::uint64_t>(call.where.line) << 20) *
      0x9E3779B97F4A7C15u;
  CallKind*& recent = by_site_[site >> 55];
  if (recent) {
    // The words so far tell what follows: a key cannot end earlier than one that begins like it.
    const std::uint64_t* next = recent->key.data();
    if (each_word(call, joining, context, tracked, [&](std::uint64_t word) { return *next++ == word; })) return *recent;
  }
  key_.clear();
  each_word(call, joining, context, tracked, [&](std::uint64_t word) {
    key_.push_back(word);
    return true;
  });
  std::vector<std::unique_ptr<CallKind>>& alike = kinds_[hash_of(key_)];
  for (const std::unique_ptr<CallKind>& kind : alike)
    if (kind->key == key_) return *(recent = kind.get());
  alike.push_back(std::make_unique<CallKind>(CallKind{.key = key_, .joining = joining, .at_depth = {}}));
  return *(recent = alike.back().get());
}

CallBucket& CallQueue::bucket_of(CallKind& kind, std::uint32_t depth) {
  if (depth >= kind.at_depth.size()) kind.at_depth.resize(std::bit_ceil(depth + 1));
  CallKind::AtDepth& found = kind.at_depth[depth];
  if (found.filling == filling_) return *found.bucket;
  if (depth >= levels_.size()) levels_.resize(std::bit_ceil(depth + 1));
  auto* bucket = new (arena_.allocate(sizeof(CallBucket))) CallBucket{.kind = &kind};
  // In the order of their first calls.
  Level& level = levels_[depth];
  (level.first ? level.last->next : level.first) = bucket;
  level.last = bucket;
  found = {filling_, bucket};
  return *bucket;
}

void CallQueue::add(QueuedCall& call, CallKind& kind, std::uint32_t depth) {
  CallBucket& bucket = bucket_of(kind, depth);
  if (bucket.count == bucket.capacity) {
    std::uint32_t capacity = std::max<std::uint32_t>(8, 2 * bucket.capacity);
    auto** grown = static_cast<QueuedCall**>(arena_.allocate(capacity * sizeof(QueuedCall*)));
    std::copy_n(bucket.calls, bucket.count, grown);
    bucket.calls = grown;
    bucket.capacity = capacity;
  }
  bucket.calls[bucket.count++] = &call;
  ++calls_;
}

QueuedCall& CallQueue::keep(const Call& call, const Location& call_site) {
  std::size_t inputs = call.inputs.size(), outputs = call.outputs.size(), specs = call.specs.size(),
              bytes = call.attribute_bytes.size(), sizes = 0;
  for (std::size_t j = 0; j < specs; ++j)
    if (!call.outputs[j].defined()) sizes += static_cast<std::size_t>(call.specs[j].rank);
  Arrays arrays(arena_.allocate(Arrays::bytes_of<Kept>(1) + Arrays::bytes_of<Tensor>(inputs + outputs) +
                                Arrays::bytes_of<const Tensor*>(inputs) + Arrays::bytes_of<OutputSpec>(specs) +
                                Arrays::bytes_of<std::int64_t>(sizes) + Arrays::bytes_of<std::byte>(bytes)));
  auto* place = arrays.take<Kept>(1);
  auto* held = arrays.take<Tensor>(inputs + outputs);
  auto* pointers = arrays.take<const Tensor*>(inputs);
  auto* own_specs = arrays.take<OutputSpec>(specs);
  auto* dims = arrays.take<std::int64_t>(sizes);
  auto* attributes = arrays.take<std::byte>(bytes);
  for (std::size_t i = 0; i < inputs; ++i) pointers[i] = new (held + i) Tensor(*call.inputs[i]);
  for (std::size_t j = 0; j < outputs; ++j) new (held + inputs + j) Tensor(call.outputs[j]);
  for (std::size_t j = 0; j < specs; ++j) {
    auto* spec = new (own_specs + j) OutputSpec(call.specs[j]);
    spec->like = spec->order = nullptr;
    if (call.outputs[j].defined()) {
      spec->dims = call.output(static_cast<int>(j)).dims;
    } else {
      spec->dims = dims;
      dims = std::copy_n(call.specs[j].dims, spec->rank, dims);
    }
  }
  if (bytes != 0) std::memcpy(attributes, call.attribute_bytes.data(), bytes);
  last_kept_ = new (place) Kept{
      {{call.op, {pointers, inputs}, {attributes, bytes}, {own_specs, specs}, {held + inputs, outputs}, call_site}},
      last_kept_,
      held};
  return last_kept_->queued;
}

bool CallQueue::reads(const Body& x) const {
  for (const Level& level : levels_)
    for (const CallBucket* bucket = level.first; bucket; bucket = bucket->next)
      for (std::uint32_t k = 0; k < bucket->count; ++k)
        for (const Tensor* input : bucket->calls[k]->call.inputs)
          if (input->body().storage == x.storage) return true;
  return false;
}

CallBucket* CallQueue::take_level() {
  for (; level_ < levels_.size(); ++level_)
    if (CallBucket* first = std::exchange(levels_[level_], {}).first) {
      for (const CallBucket* bucket = first; bucket; bucket = bucket->next) calls_ -= bucket->count;
      return first;
    }
  return nullptr;
}

void CallQueue::clear() noexcept {
  for (Kept* kept = std::exchange(last_kept_, nullptr); kept; kept = kept->before)
    std::destroy_n(kept->held, kept->queued.call.inputs.size() + kept->queued.call.outputs.size());
  arena_.rewind();
  ++filling_;
  level_ = calls_ = bytes_ = 0;
}

}  // namespace reel::detail
