#include <reel/debug/recorded_run.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "../../core/printable.h"

namespace reel::debug {

std::string_view name_of(OpKind kind) {
  constexpr std::string_view names[] = {"source", "forward", "backward", "gradient"};
  return names[static_cast<std::size_t>(kind)];
}

std::string RecordedOp::location() const { return file.empty() ? "unknown place" : fmt::format("{}:{}", file, line); }

struct RecordedRun::Contents {
  struct HashTensorId {
    std::size_t operator()(const TensorId& id) const { return id.op * 0x9E3779B97F4A7C15u + id.output; }
  };

  std::deque<RecordedOp> ops;
  std::unordered_map<TensorId, std::vector<std::uint64_t>, HashTensorId> consumers;
  std::unordered_map<std::uint64_t, std::uint64_t> gradients;  // by the differentiated op
  std::vector<RecordedUpdate> updates;
  std::set<std::string, std::less<>> texts;
  std::map<std::string_view, std::string> sources;
  std::string program;
  bool is_complete = false;
  std::uint64_t dropped = 0;

  auto place_of(std::uint64_t id) {
    return std::lower_bound(ops.begin(), ops.end(), id,
                            [](const RecordedOp& op, std::uint64_t id) { return op.id < id; });
  }
  RecordedOp* find(std::uint64_t id) {
    auto found = place_of(id);
    return found != ops.end() && found->id == id ? &*found : nullptr;
  }
};

RecordedRun::RecordedRun() : contents_(std::make_unique<Contents>()) {}
RecordedRun::RecordedRun(RecordedRun&&) noexcept = default;
RecordedRun& RecordedRun::operator=(RecordedRun&&) noexcept = default;
RecordedRun::~RecordedRun() = default;

const std::deque<RecordedOp>& RecordedRun::ops() const { return contents_->ops; }

const RecordedOp* RecordedRun::find(std::uint64_t id) const { return contents_->find(id); }

const RecordedTensor* RecordedRun::tensor(TensorId id) const {
  const RecordedOp* op = find(id.op);
  return op && id.output < op->outputs.size() ? &op->outputs[id.output] : nullptr;
}

const std::vector<std::uint64_t>& RecordedRun::consumers(TensorId id) const {
  static const std::vector<std::uint64_t> none;
  auto found = contents_->consumers.find(id);
  return found != contents_->consumers.end() ? found->second : none;
}

const RecordedOp* RecordedRun::gradient_of(std::uint64_t op) const {
  auto found = contents_->gradients.find(op);
  return found != contents_->gradients.end() ? find(found->second) : nullptr;
}

const std::vector<RecordedUpdate>& RecordedRun::updates() const { return contents_->updates; }
std::string_view RecordedRun::program() const { return contents_->program; }
bool RecordedRun::is_complete() const { return contents_->is_complete; }
std::uint64_t RecordedRun::dropped() const { return contents_->dropped; }

std::string_view RecordedRun::source(std::string_view file) const {
  auto found = contents_->sources.find(file);
  return found != contents_->sources.end() ? found->second : std::string_view();
}

// Escapes what a terminal or a page would obey, so that no reader of the run has to.
std::string_view RecordedRun::intern(std::string_view text) {
  if (text.empty()) return {};
  auto found = contents_->texts.find(text);
  return found != contents_->texts.end() ? *found : *contents_->texts.insert(detail::printable(text)).first;
}

const RecordedOp& RecordedRun::add(RecordedOp op) {
  for (const TensorId& input : op.inputs) {
    std::vector<std::uint64_t>& ids = contents_->consumers[input];
    // An op may have one tensor as several inputs.
    if (auto place = std::lower_bound(ids.begin(), ids.end(), op.id); place == ids.end() || *place != op.id)
      ids.insert(place, op.id);
  }
  if (op.kind == OpKind::gradient && op.forward != 0) {
    auto [found, is_new] = contents_->gradients.try_emplace(op.forward, op.id);
    if (!is_new) found->second = std::min(found->second, op.id);
  }
  std::deque<RecordedOp>& ops = contents_->ops;
  if (ops.empty() || ops.back().id < op.id) return ops.emplace_back(std::move(op));
  return *ops.insert(contents_->place_of(op.id), std::move(op));
}

void RecordedRun::add_update(RecordedUpdate update) { contents_->updates.push_back(update); }

void RecordedRun::add_source(std::string_view file, std::string_view text) { contents_->sources[file] = text; }

void RecordedRun::rename(TensorId id, std::string_view name) {
  RecordedOp* op = contents_->find(id.op);
  if (op && id.output < op->outputs.size()) op->outputs[id.output].name = intern(name);
}

void RecordedRun::keep_last(std::size_t count) {
  std::deque<RecordedOp>& ops = contents_->ops;
  while (ops.size() > count) {
    const RecordedOp& oldest = ops.front();
    for (std::size_t i = 0; i < oldest.outputs.size(); ++i)
      contents_->consumers.erase({oldest.id, static_cast<std::uint32_t>(i)});
    contents_->gradients.erase(oldest.id);
    ops.pop_front();
    ++contents_->dropped;
  }
}

std::size_t RecordedRun::keep_last_updates(std::size_t count) {
  std::vector<RecordedUpdate>& updates = contents_->updates;
  std::size_t dropped = updates.size() - std::min(count, updates.size());
  updates.erase(updates.begin(), updates.begin() + static_cast<std::ptrdiff_t>(dropped));
  return dropped;
}

void RecordedRun::describe(std::string_view program, bool is_complete, std::uint64_t dropped) {
  contents_->program = detail::printable(program);
  contents_->is_complete = is_complete;
  contents_->dropped = dropped;
}

}  // namespace reel::debug
