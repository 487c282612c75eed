#include "batch_maker.h"

#include <new>
#include <string>

#include <reel/autocast.h>
#include <reel/cancellation.h>
#include <reel/no_record.h>
#include <reel/random.h>

#include "../core/context.h"
#include "../core/op_error.h"
#include "../core/printable.h"
#include "../dispatch/listener_scope.h"
#include "permutation.h"

namespace reel::detail {

namespace {

// The thread's generator has its own numbers again at the end.
class KeptGenerator : Immovable {
 public:
  KeptGenerator() : generator_(default_generator()), before_(generator_) {}
  ~KeptGenerator() { generator_ = before_; }
  void begin(std::uint64_t key) { generator_ = Generator(key); }

 private:
  Generator& generator_;
  Generator before_;
};

class MakingBatch final : public BatchInProgress {
 public:
  MakingBatch(std::span<const std::int64_t> indices, std::uint64_t seed, std::int64_t epoch, std::int64_t number,
              const std::atomic<bool>& stopped)
      : indices_(indices),
        seed_(seed),
        epoch_(static_cast<std::uint64_t>(epoch)),
        number_(static_cast<std::uint64_t>(number)),
        stopped_(stopped) {}

  std::span<const std::int64_t> indices() const override { return indices_; }
  void begin_item(std::size_t position) override {
    if (stopped_.load(std::memory_order_relaxed)) throw LoaderStopped();
    position_ = position;
    generator_.begin(derived_key(seed_, epoch_, static_cast<std::uint64_t>(indices_[position])));
  }
  void begin_collate() override {
    position_ = indices_.size();
    // Items' keys have other counters: an index is not negative.
    generator_.begin(derived_key(seed_, epoch_, std::uint64_t{1} << 63 | number_));
  }
  /// The item that is being made; null while the batch is collated.
  const std::int64_t* item() const { return position_ < indices_.size() ? &indices_[position_] : nullptr; }

 private:
  std::span<const std::int64_t> indices_;
  std::uint64_t seed_, epoch_, number_;
  const std::atomic<bool>& stopped_;
  std::size_t position_ = 0;
  KeptGenerator generator_;
};

// "item 3 (a.txt:4)", "the batch of the items 3, 9 (a.txt:4, a.txt:10)"
std::string subject_of(const LoaderFunctions& functions, const MakingBatch& making) {
  if (const std::int64_t* item = making.item()) return item_subject(functions, *item);
  constexpr std::size_t most = 8;
  std::span<const std::int64_t> indices = making.indices();
  std::vector<data::Source> sources;
  std::string text = "the batch of the items";
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i < most) text += fmt::format("{} {}", i > 0 ? "," : "", indices[i]);
    sources.push_back(source_of(functions, indices[i]));
  }
  if (indices.size() > most) text += fmt::format(" and {} more", indices.size() - most);
  std::string lines = data::to_string(sources, most);
  return lines.empty() ? text : fmt::format("{} ({})", text, lines);
}

MadeBatch make_recording_nothing(const LoaderFunctions& functions, std::span<const std::int64_t> indices,
                                 std::uint64_t seed, std::int64_t epoch, std::int64_t number,
                                 const std::atomic<bool>& stopped, Location where) {
  NoRecord pause;
  MakingBatch making(indices, seed, epoch, number, stopped);
  try {
    return {functions.make(making), nullptr};
  } catch (const LoaderStopped&) {
    return {};
  } catch (...) {
    return {nullptr, load_error(subject_of(functions, making), where)};
  }
}

}  // namespace

data::Source source_of(const LoaderFunctions& functions, std::int64_t index) {
  try {
    Unobserved trying(context());
    return functions.source(index);
  } catch (...) {
    return {};
  }
}

std::string item_subject(const LoaderFunctions& functions, std::int64_t index) {
  data::Source source = source_of(functions, index);
  return source.known() ? fmt::format("item {} ({})", index, data::to_string(source)) : fmt::format("item {}", index);
}

std::exception_ptr load_error(const std::string& subject, Location where) {
  try {
    throw;
  } catch (const Cancellation&) {
    return std::current_exception();
  } catch (const MemoryError&) {
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  } catch (const data::LoadError&) {
    return std::current_exception();  // of a loader within the functions: it names an item already
  } catch (const std::exception& error) {
    try {
      std::throw_with_nested(
          data::LoadError(fmt::format("data::Loader: {}: {}", subject, printable(error.what())), where));
    } catch (...) {
      return std::current_exception();
    }
  } catch (...) {
    return std::current_exception();
  }
}

MadeBatch make_batch(const LoaderFunctions& functions, std::span<const std::int64_t> indices, std::uint64_t seed,
                     std::int64_t epoch, std::int64_t number, const std::atomic<bool>& stopped, Location where) {
  if (context().has(Context::autocasting)) {
    // Workers have no autocast, and batches do not depend on who makes them.
    AutocastScope off(DType::f32, where);
    return make_recording_nothing(functions, indices, seed, epoch, number, stopped, where);
  }
  return make_recording_nothing(functions, indices, seed, epoch, number, stopped, where);
}

}  // namespace reel::detail
