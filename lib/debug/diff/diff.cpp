#include <reel/debug/diff.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "../../core/dtype_dispatch.h"
#include "../../core/op_error.h"

namespace reel::debug {

using namespace detail;

namespace {

std::string form_of(const RecordedTensor& tensor) {
  return fmt::format("{} {}", to_string(tensor.shape), name_of(tensor.dtype));
}

// "matmul at model.cpp:31 in encoder.layers.2, step 4, with t = 3"
std::string sentence_of(const RecordedOp& op) {
  std::string text(op.op);
  if (op.kind == OpKind::gradient) text = "the gradient of the result of " + text;
  if (op.kind == OpKind::backward) text += " within a gradient";
  if (!op.outputs.empty() && !op.outputs[0].name.empty()) text += fmt::format(" '{}'", op.outputs[0].name);
  text += " at " + op.location();
  if (!op.module.empty()) text += fmt::format(" in {}", op.module);
  text += fmt::format(", step {}", op.step);
  if (!op.notes.empty()) text += fmt::format(", with {}", op.notes);
  return text;
}

class Comparison {
 public:
  Comparison(const RecordedRun& a, const RecordedRun& b, const DiffOptions& options)
      : both_whole_(a.dropped() == 0 && b.dropped() == 0), options_(options) {
    // On one device gradient functions run other ops than on another, and data is moved there.
    bool on_one_device = devices_of(a) == devices_of(b);
    a_ = compared_ops(a, on_one_device);
    b_ = compared_ops(b, on_one_device);
  }

  RunDifference run() {
    if (a_.empty() || b_.empty()) {
      if (!a_.empty() || !b_.empty()) add_end(0, 0);
      return std::move(found_);
    }
    // A bounded recording begins with a later op.
    std::uint64_t first = std::max(a_.front()->id, b_.front()->id);
    std::size_t i = both_whole_ ? 0 : index_of(a_, first), j = both_whole_ ? 0 : index_of(b_, first);
    for (; i < a_.size() && j < b_.size(); ++i, ++j) {
      std::string other = other_op(*a_[i], *b_[j]);
      if (!other.empty()) {
        add({OpDifference::Kind::op, a_[i]->id, b_[j]->id, 0, std::move(other)});
        return std::move(found_);
      }
      ++found_.compared;
      compare_values(*a_[i], *b_[j]);
    }
    if (i < a_.size() || j < b_.size()) add_end(i, j);
    return std::move(found_);
  }

 private:
  using Ops = std::vector<const RecordedOp*>;

  static std::set<std::string> devices_of(const RecordedRun& run) {
    std::set<std::string> devices;
    for (const RecordedOp& op : run.ops())
      if (op.kind == OpKind::gradient)
        for (const RecordedTensor& output : op.outputs) devices.insert(to_string(output.device));
    return devices;
  }

  static bool is_move(const RecordedRun& run, const RecordedOp& op) {
    if (op.inputs.empty() || op.outputs.empty()) return false;
    const RecordedTensor* input = run.tensor(op.inputs[0]);
    return op.op == "to" && input && !(input->device == op.outputs[0].device);
  }

  static Ops compared_ops(const RecordedRun& run, bool all) {
    Ops ops;
    for (const RecordedOp& op : run.ops())
      if (all || op.kind == OpKind::gradient || (op.kind == OpKind::forward && !is_move(run, op)) ||
          op.op == "parameter")
        ops.push_back(&op);
    return ops;
  }

  static std::size_t index_of(const Ops& ops, std::uint64_t id) {
    return static_cast<std::size_t>(
        std::lower_bound(ops.begin(), ops.end(), id,
                         [](const RecordedOp* op, std::uint64_t id) { return op->id < id; }) -
        ops.begin());
  }

  void add(OpDifference difference) {
    if (found_.first.size() < options_.most) found_.first.push_back(std::move(difference));
  }

  void add_end(std::size_t i, std::size_t j) {
    bool a_goes_on = i < a_.size();
    const RecordedOp& next = a_goes_on ? *a_[i] : *b_[j];
    add({OpDifference::Kind::end, a_goes_on ? next.id : 0, a_goes_on ? 0 : next.id, 0,
         fmt::format("the {} run ends, the {} one goes on with op {}, {}", a_goes_on ? "second" : "first",
                     a_goes_on ? "first" : "second", next.id, sentence_of(next))});
  }

  // The difference that makes two ops other ones, apart from their values; empty: none.
  std::string other_op(const RecordedOp& a, const RecordedOp& b) const {
    std::string reason;
    if (a.op != b.op || a.kind != b.kind)
      reason = "another op";
    else if (a.module != b.module)
      reason = "another module";
    else if (!options_.ignore_lines && (a.line != b.line || a.file != b.file))
      reason = "another line";
    else if (a.step != b.step)
      reason = "another step";
    else if (a.error != b.error)
      reason = a.error.empty() || b.error.empty() ? "one of them threw" : "another error";
    else if (a.outputs.size() != b.outputs.size())
      reason = "another number of outputs";
    else
      for (std::size_t i = 0; i < a.outputs.size() && reason.empty(); ++i)
        if (a.outputs[i].shape != b.outputs[i].shape || a.outputs[i].dtype != b.outputs[i].dtype)
          reason = fmt::format("output {} is {} and {}", i, form_of(a.outputs[i]), form_of(b.outputs[i]));
    if (reason.empty()) return {};
    std::string text = fmt::format("op {}: {}: {}", a.id, reason, sentence_of(a));
    if (a.id != b.id || sentence_of(a) != sentence_of(b)) text += fmt::format("\n  op {}: {}", b.id, sentence_of(b));
    for (const RecordedOp* op : {&a, &b})
      if (!op->error.empty()) text += fmt::format("\n  {}", op->error);
    return text;
  }

  bool near(double x, double y) const {
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) == std::isnan(y);
    if (x == y) return true;
    return std::abs(x - y) <= options_.tolerance + options_.relative * std::max(std::abs(x), std::abs(y));
  }

  bool are_near(const Tensor& x, const Tensor& y) const {
    bool all = true;
    with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < x.numel() && all; ++i)
        all = near(static_cast<double>(x.data<T>()[i]), static_cast<double>(y.data<T>()[i]));
    });
    return all;
  }

  bool are_near(const RecordedStatistics& x, const RecordedStatistics& y) const {
    // A sum over n elements may differ by more than each of them, so the norm and the mean are compared as they are.
    return x.nans == y.nans && x.infinities == y.infinities && near(x.min, y.min) && near(x.max, y.max) &&
           near(x.mean, y.mean) && near(x.norm, y.norm);
  }

  bool are_equal(const RecordedTensor& x, const RecordedTensor& y) const {
    if (x.fingerprint != 0 && x.fingerprint == y.fingerprint) return true;
    if (options_.tolerance > 0 || options_.relative > 0) {
      if (x.values.defined() && y.values.defined()) return are_near(x.values, y.values);
      if (x.has_statistics && y.has_statistics) return are_near(x.statistics, y.statistics);
    }
    return x.fingerprint == 0 || y.fingerprint == 0;
  }

  void compare_values(const RecordedOp& a, const RecordedOp& b) {
    for (std::size_t i = 0; i < a.outputs.size(); ++i) {
      if (are_equal(a.outputs[i], b.outputs[i])) continue;
      ++found_.differing;
      if (found_.first.size() < options_.most)
        add({OpDifference::Kind::values, a.id, b.id, static_cast<std::uint32_t>(i),
             fmt::format("op {}: {}\n  {}", a.id, sentence_of(a), values_text(i, a.outputs[i], b.outputs[i]))});
      return;
    }
  }

  static std::string values_text(std::size_t output, const RecordedTensor& x, const RecordedTensor& y) {
    std::string text = fmt::format("output {}, {}", output, form_of(x));
    if (x.values.defined() && y.values.defined()) text += largest_difference(x.values, y.values);
    if (x.has_statistics && y.has_statistics) {
      const RecordedStatistics &p = x.statistics, &q = y.statistics;
      text += fmt::format(": mean {:.9g} and {:.9g}, norm {:.9g} and {:.9g}", p.mean, q.mean, p.norm, q.norm);
      if (p.nans + q.nans > 0) text += fmt::format(", NaN {} and {}", p.nans, q.nans);
      if (p.infinities + q.infinities > 0) text += fmt::format(", Inf {} and {}", p.infinities, q.infinities);
    }
    return text;
  }

  static std::string largest_difference(const Tensor& x, const Tensor& y) {
    double largest = -1;
    std::int64_t at = 0, count = 0;
    with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        auto p = static_cast<double>(x.data<T>()[i]), q = static_cast<double>(y.data<T>()[i]);
        if (p == q || (std::isnan(p) && std::isnan(q))) continue;
        ++count;
        double difference = std::isnan(p) || std::isnan(q) ? INFINITY : std::abs(p - q);
        if (difference > largest) {
          largest = difference;
          at = i;
        }
      }
    });
    return count == 0 ? std::string()
                      : fmt::format(", {} of {} elements differ, the most by {:.3g} at element {}", count, x.numel(),
                                    largest, at);
  }

  Ops a_, b_;
  bool both_whole_;
  const DiffOptions& options_;
  RunDifference found_;
};

}  // namespace

RunDifference diff(const RecordedRun& a, const RecordedRun& b, const DiffOptions& options, Location where) {
  if (options.tolerance < 0 || options.relative < 0)
    fail<Error>("debug::diff", where, "a tolerance is negative: .tolerance {}, .relative {}", options.tolerance,
                options.relative);
  return Comparison(a, b, options).run();
}

std::string to_string(const RunDifference& difference) {
  if (difference.equal()) return fmt::format("The runs agree in all {} ops.", difference.compared);
  std::string text = "The runs differ first at " + difference.first[0].description;
  for (std::size_t i = 1; i < difference.first.size(); ++i)
    text += fmt::format("\n{}{}", i == 1 ? "then at " : "        ", difference.first[i].description);
  return text + fmt::format("\n{} of {} ops that both runs have differ in their values.", difference.differing,
                            difference.compared);
}

}  // namespace reel::debug
