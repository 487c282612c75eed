#include <reel/debug/recording.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "../../core/op_error.h"
#include "../../core/storage.h"
#include "format.h"
#include "recorder.h"
#include "segment_file.h"
#include "sources.h"

namespace reel::debug {

using namespace detail;

namespace {

constexpr const char* recording_name = "debug::Recording";

// The arguments of this process, separated by spaces.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0') c = ' ';
  return text;
}

void check_options(const RecordingOptions& options, Location where) {
  if (options.max_bytes < std::size_t{1} << 20)
    fail<Error>(recording_name, where, ".max_bytes is {}, but must be at least 1 MB (1,048,576)", options.max_bytes);
  if (options.value_elements < 0 || options.value_elements > 65'536)
    fail<Error>(recording_name, where, ".value_elements is {}, but must be in [0, 65536]", options.value_elements);
  if (options.every < 1) fail<Error>(recording_name, where, ".every is {}, but must be at least 1", options.every);
}

}  // namespace

/// The file of a recording, opened before the recorder begins to listen, which is notified of errors.
struct OpenedRecordingFile {
  SegmentFile file_;
};

class Recording::Writer final : OpenedRecordingFile, public Recorder {
 public:
  Writer(const std::string& file, const RecordingOptions& options, Location where)
      : OpenedRecordingFile{{recording_name, file, options.max_bytes, command_line(), where}},
        Recorder({.statistics = options.statistics,
                  .fingerprints = options.fingerprints,
                  .updates = options.updates,
                  .value_elements = options.value_elements,
                  .every = options.every,
                  .copies_values = false}),
        source_folders_(options.sources) {}

  void starting(const Call& call, Location where) override {
    if (records() && file_.is_owner()) file_.set_running(call.op.name, interned_file(where.file), where.line);
    Recorder::starting(call, where);
  }
  void finished(const Call& call, Location where) override {
    if (file_.is_owner()) file_.clear_running();
    Recorder::finished(call, where);
  }
  void failed(const Call& call) noexcept override {
    if (file_.is_owner()) file_.clear_running();
    Recorder::failed(call);
  }

 private:
  // Texts are written once in each segment, so a record is encoded again if the next segment begins with it.
  template <class Encode>
  void write(RecordType type, Encode encode) {
    if (!file_.is_owner()) return;
    encode_record(type, encode);
    if (!file_.has_room(waiting_.bytes().size())) {
      begin_segment();
      encode_record(type, encode);
    }
    // A record beyond all measure, as of an op with ten thousand inputs, is left out.
    if (waiting_.bytes().size() > file_.most_record_bytes()) {
      begin_segment();
    } else {
      file_.append(waiting_.bytes());
    }
  }
  // Fills `waiting_` with the texts that the record needs, and the record.
  template <class Encode>
  void encode_record(RecordType type, Encode encode) {
    waiting_.clear();
    body_.clear();
    encode();
    add_record(type, body_.bytes());
  }
  void add_record(RecordType type, std::string_view content) {
    waiting_.byte(static_cast<std::uint8_t>(type));
    waiting_.varint(content.size());
    waiting_.append(content);
  }
  // A text that lives as long as the recorder, so that its address identifies it.
  void text(std::string_view text) {
    if (text.empty()) return body_.varint(0);
    auto address = reinterpret_cast<std::uintptr_t>(text.data());
    RecentText& recent = recent_[address / 8 % recent_.size()];
    if (recent.address != address) {
      auto [found, is_new] = texts_.try_emplace(text.data(), text_count_ + 1);
      if (is_new) add_text(text);
      recent = {address, found->second};
    }
    body_.varint(recent.index);
  }
  void text_of_its_own(std::string_view text) {
    if (!text.empty()) add_text(text);
    body_.varint(text.empty() ? 0 : text_count_);
  }
  void add_text(std::string_view text) {
    ++text_count_;
    add_record(RecordType::text, text);
  }
  void begin_segment() {
    file_.begin_segment();
    texts_.clear();
    recent_.fill({});
    text_count_ = 0;
    written_sources_.clear();
    source_bytes_ = 0;
  }

  void record(const RecordedOp& op) override {
    write(RecordType::op, [&] { encode(op); });
    if (!source_folders_.empty() && !written_sources_.contains(op.file.data())) write_source(op.file);
  }
  // Each segment has the sources of its ops, since others are overwritten, in a quarter of its bytes at most.
  [[gnu::noinline, gnu::cold]] void write_source(std::string_view file) {
    auto [found, is_new] = sources_.try_emplace(file.data());
    if (is_new) found->second = source_below(file, source_folders_);
    const std::string& source = found->second;
    if (!source.empty() && source_bytes_ + source.size() + file.size() + most_overhead <= file_.most_record_bytes()) {
      write(RecordType::source, [&] {
        text_of_its_own(file);
        body_.append(source);
      });
      source_bytes_ += source.size();
    }
    written_sources_.insert(file.data());
  }
  void record_update(const RecordedUpdate& update) override {
    write(RecordType::update, [&] {
      body_.varint(static_cast<std::uint64_t>(update.step));
      text(update.parameter);
      body_.fixed(update.weight_norm);
      body_.fixed(update.gradient_norm);
      body_.fixed(update.update_norm);
    });
  }
  void record_name(TensorId id, std::string_view name) override {
    write(RecordType::name, [&] {
      body_.varint(id.op);
      body_.varint(id.output);
      text(name);
    });
  }

  void encode(const RecordedOp& op) {
    body_.varint(op.id);
    body_.varint(static_cast<std::uint64_t>(op.kind));
    for (std::string_view one : {op.op, op.file, op.module, op.notes}) text(one);
    text_of_its_own(op.error.substr(0, 4000));
    for (std::int64_t number : {std::int64_t{op.line}, op.step, op.start, op.duration, std::int64_t{op.thread}})
      body_.varint(static_cast<std::uint64_t>(number));
    body_.varint(op.forward);
    body_.varint(op.inputs.size());
    for (const TensorId& input : op.inputs) {
      body_.varint(input.op);
      body_.varint(input.output);
    }
    body_.varint(op.outputs.size());
    for (const RecordedTensor& output : op.outputs) encode(output);
  }
  void encode(const RecordedTensor& tensor) {
    body_.byte(static_cast<std::uint8_t>(tensor.dtype));
    body_.byte(tensor.device == cpu ? 0 : 1);
    body_.varint(tensor.device.index);
    text(tensor.name);
    body_.varint(static_cast<std::uint64_t>(tensor.shape.rank()));
    for (std::int64_t size : tensor.shape) body_.varint(static_cast<std::uint64_t>(size));
    body_.byte(static_cast<std::uint8_t>(
        (tensor.has_statistics ? has_statistics_flag : 0) | (tensor.fingerprint != 0 ? has_fingerprint_flag : 0) |
        (tensor.values.defined() ? has_values_flag : 0) | (tensor.zero_units.empty() ? 0 : has_zero_units_flag)));
    if (tensor.has_statistics) {
      const RecordedStatistics& statistics = tensor.statistics;
      for (double number : {statistics.min, statistics.max, statistics.mean, statistics.norm}) body_.fixed(number);
      for (std::int64_t count : {statistics.nans, statistics.infinities, statistics.zeros})
        body_.varint(static_cast<std::uint64_t>(count));
    }
    if (tensor.fingerprint != 0) body_.fixed(tensor.fingerprint);
    if (tensor.values.defined()) {
      body_.varint(tensor.bytes());
      body_.append({tensor.values.body().as<char>(), tensor.bytes()});
    }
    if (!tensor.zero_units.empty()) body_.varint(tensor.zero_units.size());
    std::int32_t before = -1;
    for (std::int32_t unit : tensor.zero_units)
      body_.varint(static_cast<std::uint64_t>(unit - std::exchange(before, unit)));
  }

  std::unordered_map<const char*, std::uint64_t> texts_;  // of the segment, by their addresses, with their indices
  // A cache in front of `texts_`, by the address's last bits.
  struct RecentText {
    std::uintptr_t address = 0;
    std::uint64_t index = 0;
  };
  std::array<RecentText, 64> recent_;
  std::uint64_t text_count_ = 0;
  static constexpr std::size_t most_overhead = 32;  // of two records, beside their texts
  std::vector<std::string> source_folders_;
  // By the addresses of the files' names.
  std::unordered_map<const char*, std::string> sources_;
  std::unordered_set<const char*> written_sources_;  // in the segment, or without room there
  std::size_t source_bytes_ = 0;                     // of the segment
  RecordBytes body_, waiting_;
};

Recording::Recording(const std::string& file, const RecordingOptions& options, Location where) {
  check_options(options, where);
  writer_ = std::make_unique<Writer>(file, options, where);
}

Recording::~Recording() = default;

}  // namespace reel::debug
