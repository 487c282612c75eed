#include <reel/debug/profile.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <reel/device.h>
#include <reel/nn/module.h>

#include "../../batching/group_listener.h"
#include "../../core/device/device_module.h"
#include "../../core/op.h"
#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "../../io/atomic_file.h"
#include "../listener_scope.h"
#include "slices.h"

namespace reel::debug {

using namespace detail;

namespace {

using Clock = std::chrono::steady_clock;

// A counter that costs a few nanoseconds to read, unlike the clock.
std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
}

}  // namespace

/// A measured call, as it is written while the program runs: texts and links are found afterwards.
struct ProfileEvent {
  std::uint64_t start, end;  // ticks
  const char* op;
  const char* file;
  std::uint64_t epoch;  // of the tape list, with the slot of the first output: tells which call a gradient belongs to
  std::uint64_t bytes;
  std::uint32_t slot;
  std::int32_t line;
  std::uint32_t module;
  OpKind kind;
  bool waits = false;  // then `op` is the reason
};

class Profile::Collector : public ListenerScope, public GroupListener {
 public:
  explicit Collector(DeviceModule* ranges)
      : ListenerScope(detail::context()), ranges_(is_of_example_ ? nullptr : ranges) {
    modules_.emplace_back();
  }
  ~Collector() override { end_ranges(); }

  void starting(const Call& call, Location where) override {
    const Context& here = detail::context();
    if (!is_outermost_ && !is_of_group(here)) ListenerScope::starting(call, where);
    if (Listener* outer = group_listener_around(here)) outer->starting(call, where);
    // Calls that wait for others are not measured; the group's is. An example's own profile measures the waiting, too.
    if (!here.interceptor || is_of_example_) begin(here, call, where);
  }
  void runs_alone(const Call& call) override {
    const Context& here = detail::context();
    if (auto* outer = is_outermost_ ? nullptr : find_listener<GroupListener>(this->outer())) outer->runs_alone(call);
    if (!is_of_example_) begin(here, call, here.call_site(call.where));
  }
  void finished(const Call& call, Location where) override {
    std::uint64_t end = ticks();
    const Context& here = detail::context();
    if (std::uint64_t at = take_started(call)) add_call(here, call, where, at, end);
    if (!is_outermost_ && !is_of_group(here)) ListenerScope::finished(call, where);
    if (Listener* outer = group_listener_around(here)) outer->finished(call, where);
  }
  void failed(const Call& call) noexcept override {
    const Context& here = detail::context();
    take_started(call);
    if (!is_of_group(here)) ListenerScope::failed(call);
    if (Listener* outer = group_listener_around(here)) outer->failed(call);
  }
  void gradient_starting(const Entry& entry, std::span<const Tensor> gradients) override {
    ListenerScope::gradient_starting(entry, gradients);
    if (ranges_) begin_range("gradient of ", entry.op->name, entry.where(), modules_[0]);
    differentiating_.push_back({&entry, ticks()});
  }
  void gradient_finished(const Entry& entry) noexcept override {
    std::uint64_t end = ticks();
    if (!differentiating_.empty() && differentiating_.back().entry == &entry) {
      add_gradient(entry, differentiating_.back().at, end);
      differentiating_.pop_back();
      end_range();
    }
    ListenerScope::gradient_finished(entry);
  }

  void wait_starting(const char* reason) noexcept override {
    ListenerScope::wait_starting(reason);
    wait_reason_ = reason;
    wait_start_ = ticks();
  }
  void wait_finished() noexcept override {
    std::uint64_t end = ticks();
    ListenerScope::wait_finished();
    // A profile may begin while its thread waits.
    if (const char* reason = std::exchange(wait_reason_, nullptr)) add_wait(reason, wait_start_, end);
  }

  void stop() {
    if (end_ticks_ != 0) return;
    detail::Scopes::end(this);
    end_ranges();
    end_ticks_ = ticks();
    end_ = Clock::now();
    peak_bytes_ = memory_statistics().peak_bytes;
  }
  std::int64_t duration() const { return ((end_ticks_ != 0 ? end_ : Clock::now()) - began_).count(); }
  std::size_t peak_bytes() const { return end_ticks_ != 0 ? peak_bytes_ : memory_statistics().peak_bytes; }

  // All events, in the order in which the calls ended.
  std::vector<ProfileEvent> events() const {
    std::vector<ProfileEvent> all;
    for (const std::unique_ptr<Chunk>& chunk : chunks_)
      all.insert(all.end(), chunk->begin(),
                 chunk->begin() + static_cast<std::ptrdiff_t>(chunk == chunks_.back() ? next_ : chunk_events));
    return all;
  }

  // The events with their texts, in nanoseconds, gradients with the modules of their forward calls.
  std::vector<Slice> slices() const {
    std::uint64_t end = end_ticks_ != 0 ? end_ticks_ : ticks();
    double scale =
        static_cast<double>(duration()) / static_cast<double>(std::max<std::uint64_t>(end - begin_ticks_, 1));
    auto nanoseconds = [&](std::uint64_t at) { return std::llround(static_cast<double>(at) * scale); };
    std::vector<Slice> slices;
    struct Forward {
      std::uint64_t flow;
      std::uint32_t module;
    };
    std::unordered_map<std::uint64_t, Forward> forwards;
    std::uint64_t flow = 0;
    // In the order in which calls end, a forward call comes before its gradient.
    for (const ProfileEvent& event : events()) {
      Slice slice{.start = nanoseconds(event.start - begin_ticks_),
                  .duration = nanoseconds(event.end - event.start),
                  .op = event.op,
                  .file = file_of(event.file),
                  .module = modules_[event.module],
                  .line = event.line,
                  .kind = event.kind,
                  .bytes = event.bytes,
                  .flow = 0,
                  .waits = event.waits};
      std::uint64_t key = event.epoch * 0x9E3779B97F4A7C15u ^ event.slot;
      if (event.kind == OpKind::forward && event.slot != 0) {
        slice.flow = ++flow;
        forwards[key] = {flow, event.module};
      }
      if (event.kind == OpKind::gradient)
        if (auto found = forwards.find(key); found != forwards.end()) {
          slice.flow = found->second.flow;
          slice.module = modules_[found->second.module];
        }
      slices.push_back(slice);
    }
    return slices;
  }

 private:
  struct Started {
    const Call* call;
    std::uint64_t at;
  };
  struct Differentiating {
    const Entry* entry;
    std::uint64_t at;
  };

  // True while the op of a group runs, of which other listeners see the examples' calls.
  static bool is_of_group(const Context& here) { return here.parent && !here.interceptor; }
  // The profile around this one, while the op of a group runs; else null.
  Listener* group_listener_around(const Context& here) const {
    return is_outermost_ || !is_of_group(here) ? nullptr
                                               : dynamic_cast<Listener*>(find_listener<GroupListener>(outer()));
  }
  void begin(const Context& here, const Call& call, Location where) {
    if (ranges_) begin_range("", call.op.name, where, here.module_call ? modules_[module_index(here)] : modules_[0]);
    started_.push_back({&call, ticks()});
  }
  // Removes a call from the measured ones and returns its time of start; 0 if it is not measured. Calls of several examples
  // do not end in the order of their starts.
  std::uint64_t take_started(const Call& call) noexcept {
    for (std::size_t i = started_.size(); i-- > 0;)
      if (started_[i].call == &call) {
        std::uint64_t at = started_[i].at;
        started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(i));
        end_range();
        return at;
      }
    return 0;
  }

  void add_call(const Context& here, const Call& call, Location where, std::uint64_t start, std::uint64_t end) {
    std::uint64_t bytes = 0, epoch = 0;
    std::uint32_t slot = 0;
    if (!call.outputs.empty() && call.outputs[0].defined()) {
      const Body& body = call.outputs[0].body();
      epoch = body.epoch.load(std::memory_order_relaxed);
      slot = epoch != 0 ? body.slot : 0;
    }
    if (!call.specs.empty())
      for (const Tensor& output : call.outputs)
        if (output.defined()) bytes += static_cast<std::uint64_t>(output.body().numel) * size_of(output.body().dtype);
    place() = {.start = start,
               .end = end,
               .op = call.op.name,
               .file = where.file,
               .epoch = epoch,
               .bytes = bytes,
               .slot = slot,
               .line = where.line,
               .module = here.module_call ? module_index(here) : 0,
               .kind = differentiating_.empty() ? OpKind::forward : OpKind::backward};
  }

  void add_gradient(const Entry& entry, std::uint64_t start, std::uint64_t end) noexcept try {
    place() = {.start = start,
               .end = end,
               .op = entry.op->name,
               .file = entry.file,
               .epoch = detail::context().tapes->epoch(),
               .bytes = 0,
               .slot = entry.first_output,
               .line = entry.line,
               .module = 0,
               .kind = OpKind::gradient};
  } catch (const std::bad_alloc&) {  // without memory the run goes on, unmeasured
  }

  void add_wait(const char* reason, std::uint64_t start, std::uint64_t end) noexcept try {
    place() = {.start = start,
               .end = end,
               .op = reason,
               .file = nullptr,
               .epoch = 0,
               .bytes = 0,
               .slot = 0,
               .line = 0,
               .module = 0,
               .kind = OpKind::forward,
               .waits = true};
  } catch (const std::bad_alloc&) {  // without memory the run goes on, unmeasured
  }

  // Where the next event is to be written.
  ProfileEvent& place() {
    if (next_ == chunk_events) {
      chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
      next_ = 0;
    }
    return (*chunks_.back())[next_++];
  }

  std::uint32_t module_index(const Context& here) {
    const auto* call = static_cast<const nn::ModuleCall*>(here.module_call);
    const nn::Module* module = &call->module();
    if (call == last_call_ && nn::ModuleCall::observed_calls() == calls_before_index_) return last_index_;
    std::string path = module->path();
    if (path.empty()) path = module->type_name();
    auto [found, is_new] = module_indices_.try_emplace(path, static_cast<std::uint32_t>(modules_.size()));
    if (is_new) modules_.push_back(path);
    last_call_ = call;
    calls_before_index_ = nn::ModuleCall::observed_calls();
    return last_index_ = found->second;
  }

  void begin_range(const char* before, const char* op, Location where, const std::string& module) {
    range_name_.clear();
    fmt::format_to(std::back_inserter(range_name_), "{}{} at {}:{}{}{}", before, op, file_of(where.file), where.line,
                   module.empty() ? "" : " in ", module);
    ranges_->begin_range(range_name_.c_str());
    ++open_ranges_;
  }
  void end_range() noexcept {
    if (open_ranges_ == 0) return;
    ranges_->end_range();
    --open_ranges_;
  }
  // Calls of cancelled fibres never finish.
  void end_ranges() noexcept {
    while (open_ranges_ > 0) end_range();
  }

  static std::string_view file_of(const char* file) {
    std::string_view text = file ? file : "";
    while (text.starts_with("../")) text.remove_prefix(3);
    return text;
  }

  Clock::time_point began_ = Clock::now(), end_;
  std::uint64_t begin_ticks_ = ticks(), end_ticks_ = 0;
  // Looking for an enclosing listener takes longer than the measurement. One that begins later is nested within.
  const bool is_outermost_ = outer() == nullptr;
  const bool is_of_example_ = detail::context().interceptor != nullptr;
  static constexpr std::size_t chunk_events = 1024;
  using Chunk = std::array<ProfileEvent, chunk_events>;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t next_ = chunk_events;  // in the last chunk
  std::vector<Started> started_;
  std::vector<Differentiating> differentiating_;
  std::deque<std::string> modules_;  // of index 0: none
  std::unordered_map<std::string, std::uint32_t> module_indices_;
  const void* last_call_ = nullptr;  // with the number of calls that had begun
  std::uint64_t calls_before_index_ = 0;
  std::uint32_t last_index_ = 0;
  std::size_t peak_bytes_ = 0;
  DeviceModule* ranges_;  // null: no ranges
  std::string range_name_;
  int open_ranges_ = 0;
  const char* wait_reason_ = nullptr;
  std::uint64_t wait_start_ = 0;
};

namespace {

DeviceModule& module_for_ranges(Location where) {
  const std::string& absence = device_module_absence();
  if (!absence.empty()) fail<DeviceError>("debug::Profile", where, ".nvtx needs the CUDA backend: {}", absence);
  return device_module();
}

}  // namespace

Profile::Profile(const ProfileOptions& options, Location where)
    : collector_(std::make_unique<Collector>(options.nvtx ? &module_for_ranges(where) : nullptr)) {}
Profile::~Profile() = default;

void Profile::stop() { collector_->stop(); }
std::int64_t Profile::duration() const { return collector_->duration(); }
std::size_t Profile::peak_bytes() const { return collector_->peak_bytes(); }

std::vector<ProfileRow> Profile::rows(ProfileBy by) const {
  std::map<std::string, ProfileRow> rows;
  std::size_t within_gradient = 0;  // bytes of the ops that the next gradient function to end has run
  for (const Slice& slice : collector_->slices()) {
    if (slice.waits) continue;
    if (slice.kind == OpKind::backward) {
      // Its time is in that of the gradient function.
      within_gradient += slice.bytes;
      continue;
    }
    std::string name = by == ProfileBy::op       ? std::string(slice.op)
                       : by == ProfileBy::module ? std::string(slice.module)
                       : slice.file.empty()      ? std::string("unknown place")
                                                 : fmt::format("{}:{}", slice.file, slice.line);
    ProfileRow& row = rows[name];
    row.name = std::move(name);
    if (slice.kind == OpKind::gradient) {
      row.backward += slice.duration;
      row.backward_bytes += std::exchange(within_gradient, 0);
    } else {
      ++row.calls;
      row.forward += slice.duration;
      row.bytes += slice.bytes;
    }
  }
  std::vector<ProfileRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater(), [](const ProfileRow& row) { return row.forward + row.backward; });
  return sorted;
}

std::vector<ProfileWait> Profile::waits() const {
  std::map<std::string_view, ProfileWait> waits;
  for (const Slice& slice : collector_->slices()) {
    if (!slice.waits) continue;
    ProfileWait& wait = waits[slice.op];
    wait.reason = slice.op;
    ++wait.count;
    wait.duration += slice.duration;
  }
  std::vector<ProfileWait> sorted;
  for (auto& [reason, wait] : waits) sorted.push_back(std::move(wait));
  std::ranges::stable_sort(sorted, std::greater(), &ProfileWait::duration);
  return sorted;
}

void Profile::trace(const std::string& file, Location where) const {
  write_trace(collector_->slices(), "reel", file, where);
}

void Profile::flame_graph(const std::string& file, Location where) const {
  std::string svg = flame_graph_svg(collector_->slices());
  io::AtomicFile output("Profile::flame_graph", file, where);
  output.write(std::as_bytes(std::span(svg)));
  output.commit();
}

std::string to_string(const Profile& profile, ProfileBy by) {
  constexpr const char* headings[] = {"op", "line", "module"};
  std::vector<ProfileRow> rows = profile.rows(by);
  auto total = static_cast<double>(std::max<std::int64_t>(profile.duration(), 1));
  std::size_t width = 6;
  double measured = 0;
  for (ProfileRow& row : rows) {
    if (row.name.empty()) row.name = "(none)";
    width = std::max(width, row.name.size());
    measured += static_cast<double>(row.forward + row.backward);
  }
  std::string text =
      fmt::format("{:{}}  {:>9}  {:>12}  {:>12}  {:>7}  {:>10}  {:>11}\n", headings[static_cast<std::size_t>(by)],
                  width, "calls", "forward ms", "backward ms", "share", "forward MB", "backward MB");
  for (const ProfileRow& row : rows)
    text += fmt::format("{:{}}  {:>9}  {:>12.3f}  {:>12.3f}  {:>5.1f} %  {:>10.2f}  {:>11.2f}\n", row.name, width,
                        row.calls, static_cast<double>(row.forward) / 1e6, static_cast<double>(row.backward) / 1e6,
                        100 * static_cast<double>(row.forward + row.backward) / total,
                        static_cast<double>(row.bytes) / 1e6, static_cast<double>(row.backward_bytes) / 1e6);
  text += fmt::format("{:.3f} ms in all, {:.1f} % of it outside of ops and gradients; at most {:.2f} MB of tensors\n",
                      total / 1e6, 100 * (1 - measured / total), static_cast<double>(profile.peak_bytes()) / 1e6);
  for (const ProfileWait& wait : profile.waits())
    text += fmt::format("{:.3f} ms, {:.1f} %, of waiting for {}, {} times\n", static_cast<double>(wait.duration) / 1e6,
                        100 * static_cast<double>(wait.duration) / total, wait.reason, wait.count);
  return text;
}

}  // namespace reel::debug
