#include <reel/batching.h>

#include <algorithm>
#include <string>
#include <typeinfo>

#include <fmt/format.h>

#include <reel/error.h>

#include "../core/context.h"
#include "../core/extended_error.h"
#include "../core/op_error.h"
#include "scheduler.h"

namespace reel::detail {
namespace {

// An error of one example, which catch clauses for E meet.
template <class E>
struct ErrorOfExample : E {
  ErrorOfExample(const Error& error, const std::string& text) : E(std::string(), error.where(), text) {}
};

// Throws the error with the example's index, if it is one of these.
template <class... E>
void throw_with_index(const Error& error, const std::string& text) {
  // An inner batch_map may have added its index.
  ((typeid(error) == typeid(E) || typeid(error) == typeid(ErrorOfExample<E>) ? throw ErrorOfExample<E>(error, text)
                                                                             : void()),
   ...);
}

// Throws the exception that is being handled.
[[noreturn]] void rethrow_with_index(std::size_t index, Location where) {
  try {
    throw;
  } catch (const MemoryError& error) {
    char text[80];
    auto end = fmt::format_to_n(text, sizeof text, ", in example {} of the batch_map at ", index);
    throw_extended(error, {text, end.size}, where);
    throw;
  } catch (const Error& error) {
    std::string text = error.what();
    // Further lines say more of the error.
    text.insert(std::min(text.find('\n'), text.size()),
                fmt::format(", in example {} of the batch_map at {}", index, to_string(where)));
    throw_with_index<Error, ShapeError, DTypeError, IndexError, DeviceError, TapeError>(error, text);
    if (auto* throw_other = throw_with_text.load()) throw_other(error, text);
    throw;
  }
}

// Gives a thread other random numbers while it lives.
class GeneratorScope {
 public:
  GeneratorScope(Context& context, Generator generator)
      : context_(context), before_(context.generator), generator_(generator) {
    context.generator = &generator_;
  }
  ~GeneratorScope() { context_.generator = before_; }
  GeneratorScope(const GeneratorScope&) = delete;
  GeneratorScope& operator=(const GeneratorScope&) = delete;

 private:
  Context& context_;
  Generator* before_;
  Generator generator_;
};

void run_immediately(std::size_t count, IndexedFunction function, std::size_t& failed) {
  Context& context = detail::context();
  std::uint64_t call = context.generator->next_call();
  for (std::size_t i = 0; i < count; ++i) {
    GeneratorScope own(context, stream_of(*context.generator, call, i));
    failed = i;
    function.call(function.function, i);
  }
}

void check(const BatchOptions& options, Location where) {
  if (options.in_flight < 1)
    fail<Error>("batch_map", where, "in_flight is {}: at least one example must be under way", options.in_flight);
  constexpr std::size_t least = 64 << 10, most = std::size_t{1} << 34;
  if (options.stack_bytes < least || options.stack_bytes > most || options.stack_bytes % 4096 != 0)
    fail<Error>("batch_map", where, "stack_bytes is {}: it must be a multiple of 4096 in [64 KiB, 16 GiB]",
                options.stack_bytes);
}

}  // namespace

void run_batch(std::size_t count, IndexedFunction function, const BatchOptions& options, Location where) {
  check(options, where);
  if (count == 0) return;
  Context& context = detail::context();
  std::size_t failed = 0;
  try {
    auto limit = static_cast<std::size_t>(options.in_flight);
    bool batches = !options.immediate && count > 1;
    if (Scheduler* around = batches ? Scheduler::of(context) : nullptr)
      around->run_all(count, function, limit, failed);
    else if (batches && !context.interceptor)
      Scheduler(context, options).run_all(count, function, limit, failed);
    else
      run_immediately(count, function, failed);
  } catch (...) {
    rethrow_with_index(failed, where);
  }
}

void run_both(IndexedFunction functions) {
  Context& context = detail::context();
  if (Scheduler* scheduler = Scheduler::of(context)) return scheduler->run_both(functions);
  Generator second = stream_of(*context.generator, context.generator->next_call(), 1);
  functions.call(functions.function, 0);
  GeneratorScope own(context, second);
  functions.call(functions.function, 1);
}

}  // namespace reel::detail
