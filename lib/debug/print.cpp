#include <reel/debug/print.h>

#include <map>
#include <string>
#include <utility>

#include <reel/debug/name.h>
#include <reel/debug/statistics.h>
#include <reel/ops/shape.h>
#include <reel/tape.h>

#include "../core/op_error.h"
#include "../core/per_thread.h"
#include "line_sink.h"

namespace reel::debug {

using namespace detail;

namespace {

// The calls of `print` from each line of this thread.
struct PrintedLines {
  std::map<std::pair<std::string, int>, std::int64_t> counts;
};

std::int64_t count_call(Location where) {
  static constinit PerThread<PrintedLines> lines;
  return ++lines.get([] { return PrintedLines(); }).counts[{where.file ? where.file : "", where.line}];
}

}  // namespace

Tensor name(const Tensor& x, std::string_view name, Location where) {
  tensor_of("debug::name", Arg(x, where));
  wait_for(x, where);
  if (Listener* listener = context().listener) listener->named(x, name);
  return x;
}

Tensor print(const Tensor& x, std::string_view name, const PrintOptions& options, Location where) {
  tensor_of("debug::print", Arg(x, where));
  Context& context = detail::context();
  Location site = context.call_site(where);
  if (options.first_n >= 0 && count_call(site) > options.first_n) return x;
  NoRecord pause;
  std::string text(name);
  std::string notes = notes_text(context.notes);
  if (!notes.empty()) text.append(" with ").append(notes);
  text += fmt::format("; at {}: {}", to_string(site), to_string(statistics(x, site)));
  std::int64_t shown = options.summarize < 0 ? x.numel() : std::min(options.summarize, x.numel());
  if (shown == x.numel())
    text.append("\n").append(to_string(x));
  else if (shown > 0)
    text += fmt::format("\n{} and {} more", to_string(slice(flatten(x), 0, 0, shown)), x.numel() - shown);
  or_stderr(options.sink)(text);
  return x;
}

}  // namespace reel::debug
