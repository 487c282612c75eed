#include <reel/debug/profile.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/batching.h>
#include <reel/data.h>
#include <reel/reel.h>
#include <reel/threads.h>
#include <reel/train/checkpoint.h>

#include "catch.h"
#include "core/device/device_module.h"
#include "core/threads/parallel.h"
#include "io/folder.h"
#include "temporary_file.h"

using namespace reel;
using debug::Profile;
using debug::ProfileBy;
using debug::ProfileRow;
using namespace reel_test;

namespace {

ProfileRow row_of(const Profile& profile, const std::string& name, ProfileBy by = ProfileBy::op) {
  for (const ProfileRow& row : profile.rows(by))
    if (row.name == name) return row;
  return {};
}

// Numbers, each of which takes some milliseconds to read.
struct SlowNumbers {
  std::int64_t count;
  int milliseconds;
  std::int64_t size() const { return count; }
  std::int64_t operator[](std::int64_t index) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return index;
  }
};

struct Net : nn::Module {
  nn::Linear hidden{*this, "hidden", 3, 4};
  nn::Linear output{*this, "output", 4, 1};

  Tensor operator()(const Tensor& x) const { return output(tanh(hidden(x))); }
};

}  // namespace

TEST_CASE("a profile counts calls, time and bytes by op, line and module, forward and backward") {
  Net net;
  Tensor x = ones({5, 3});
  Profile profile;
  int line = __LINE__ + 3;
  for (int i = 0; i < 3; ++i) {
    Tape tape;
    tape.backward(sum(net(x)));
  }
  profile.stop();
  static_cast<void>(exp(x));  // after the end
  ProfileRow activation = row_of(profile, "tanh");
  CHECK(activation.calls == 3);
  CHECK(activation.forward > 0);
  CHECK(activation.backward > 0);
  CHECK(activation.bytes == 3 * 5 * 4 * sizeof(float));
  CHECK(activation.backward_bytes >= 3 * 5 * 4 * sizeof(float));
  CHECK(activation.backward_bytes % (3 * 5 * 4 * sizeof(float)) == 0);
  CHECK(row_of(profile, "hidden", ProfileBy::module).backward_bytes > 0);
  CHECK(row_of(profile, "exp").calls == 0);
  CHECK(row_of(profile, "hidden", ProfileBy::module).calls == 3);
  CHECK(row_of(profile, "hidden", ProfileBy::module).backward > 0);
  CHECK(row_of(profile, "output", ProfileBy::module).calls == 3);
  std::string place = "tests/debug/profile_test.cpp:" + std::to_string(line);
  CHECK(row_of(profile, place, ProfileBy::line).calls >= 3);
  std::int64_t measured = 0;
  for (const ProfileRow& row : profile.rows(ProfileBy::op)) measured += row.forward + row.backward;
  CHECK(measured <= profile.duration());
  CHECK(profile.peak_bytes() > 0);
  std::string table = to_string(profile);
  CHECK_THAT(table, contains("tanh") && contains("forward ms") && contains("backward MB") && contains(" ms in all, "));
}

TEST_CASE("the table of a profile has its rows, the rest of its time, its peak and its waits") {
  Profile profile;
  {
    Tape tape;
    Tensor w = ones({300, 200}).requires_grad();
    tape.backward(sum(tanh(w)));
    data::Loader<std::int64_t> loader(SlowNumbers{2, 4}, {.batch_size = 1, .workers = 1});
    for (auto& batch : loader) CHECK(batch.size() == 1);
  }
  profile.stop();
  std::vector<ProfileRow> rows = profile.rows(ProfileBy::op);
  auto milliseconds = [](std::int64_t time) { return static_cast<double>(time) / 1e6; };
  auto megabytes = [](auto bytes) { return static_cast<double>(bytes) / 1e6; };
  auto share = [&](std::int64_t time) {
    return 100 * static_cast<double>(time) / static_cast<double>(profile.duration());
  };
  std::int64_t rest = profile.duration();
  for (const ProfileRow& row : rows) rest -= row.forward + row.backward;
  std::string expected;
  for (const ProfileRow& row : rows)
    expected += fmt::format("{}  {}  {:.3f}  {:.3f}  {:.1f} %  {:.2f}  {:.2f}\n", row.name, row.calls,
                            milliseconds(row.forward), milliseconds(row.backward), share(row.forward + row.backward),
                            megabytes(row.bytes), megabytes(row.backward_bytes));
  expected +=
      fmt::format("{:.3f} ms in all, {:.1f} % of it outside of ops and gradients; at most {:.2f} MB of tensors\n",
                  milliseconds(profile.duration()), share(rest), megabytes(profile.peak_bytes()));
  for (const debug::ProfileWait& wait : profile.waits())
    expected += fmt::format("{:.3f} ms, {:.1f} %, of waiting for {}, {} times\n", milliseconds(wait.duration),
                            share(wait.duration), wait.reason, wait.count);
  std::string table = to_string(profile);
  table = table.substr(table.find('\n') + 1);
  // Columns are as wide as their widest cell.
  auto words = [](std::string_view text) {
    std::istringstream stream{std::string(text)};
    return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  CHECK(words(table) == words(expected));
  CHECK(profile.peak_bytes() >= 2 * 300 * 200 * sizeof(float));
}

TEST_CASE("the time of a profile is that of the clock") {
  auto began = std::chrono::steady_clock::now();
  Profile profile;
  Tensor x = ones({300, 300});
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(30)) x = tanh(x);
  profile.stop();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  ProfileRow row = row_of(profile, "tanh");
  CHECK(static_cast<double>(row.forward) / 1e9 <= seconds);
  CHECK(static_cast<double>(row.forward) / 1e9 > 0.3 * seconds);
}

TEST_CASE("profiles nest, and go on after an op that throws") {
  Profile outer;
  static_cast<void>(exp(ones({2})));
  {
    Profile inner;
    static_cast<void>(exp(ones({2})));
    CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2, 3})), ShapeError);
    static_cast<void>(exp(ones({2})));
    CHECK(row_of(inner, "exp").calls == 2);
  }
  CHECK(row_of(outer, "exp").calls == 3);
}

TEST_CASE("a profile measures the groups of batch_map") {
  std::vector<int> examples(8);
  Profile profile;
  auto results = batch_map(examples, [](int) { return tanh(ones({1, 4})); });
  CHECK(results.size() == 8);
  CHECK(row_of(profile, "tanh").calls == 1);
}

TEST_CASE("each thread has its own profile") {
  Profile profile;
  std::thread other([] {
    Profile own;
    static_cast<void>(exp(ones({2})));
    CHECK(row_of(own, "exp").calls == 1);
  });
  other.join();
  CHECK(row_of(profile, "exp").calls == 0);
}

TEST_CASE("a profile says how long its thread has waited for batches, and a trace shows it") {
  constexpr int items = 20, milliseconds = 4;
  auto profiled = [&](int workers, Profile& profile) {
    data::Loader<std::int64_t> loader(SlowNumbers{items, milliseconds}, {.batch_size = 1, .workers = workers});
    int count = 0;
    for (auto& batch : loader) count += static_cast<int>(batch.size());
    CHECK(count == items);
    profile.stop();
  };
  Profile waits;
  profiled(1, waits);
  std::vector<debug::ProfileWait> found = waits.waits();
  REQUIRE(found.size() == 1);
  CHECK(found[0].reason == "data::Loader");
  CHECK((found[0].count >= 1 && found[0].count <= items + 1));  // for each item, and for the end
  // One worker sleeps for all items, while this thread does nothing else.
  CHECK(found[0].duration >= items * milliseconds * 1'000'000 / 2);
  CHECK(found[0].duration <= waits.duration());
  CHECK_THAT(to_string(waits), contains("of waiting for data::Loader, " + std::to_string(found[0].count) + " times"));
  CHECK(row_of(waits, "data::Loader").calls == 0);
  TemporaryFile trace("trace.json");
  waits.trace(trace.path());
  nlohmann::json written = nlohmann::json::parse(std::ifstream(trace.path()));
  std::int64_t slices = 0;
  for (const nlohmann::json& event : written.at("traceEvents"))
    slices += event.at("cat") == "wait" && event.at("name") == "waiting for data::Loader";
  CHECK(slices == found[0].count);
  // A thread that makes its batches itself works.
  Profile works;
  profiled(0, works);
  CHECK(works.waits().empty());
}

TEST_CASE("a profile says how long its thread has waited for a save, and for other threads of a loop") {
  TemporaryFile folder("checkpoint");
  Tensor x = randn({100'000});
  train::Checkpoint checkpoint(folder.path(), {{"x", x}}, {.asynchronous = true});
  Profile outer;
  {
    Profile inner;
    checkpoint.save();
    checkpoint.wait();
    inner.stop();
    REQUIRE(inner.waits().size() == 1);
    CHECK(inner.waits()[0].reason == "the thread that saves");
    CHECK(inner.waits()[0].count == 1);
  }
  CHECK(outer.waits().size() == 1);
  if (thread_count() < 2) return reel_test::skip("there is one processor");
  // Whichever thread takes the last piece, sooner or later it is another one than this.
  auto waits_for_loops = [&] {
    for (const debug::ProfileWait& wait : outer.waits())
      if (wait.reason == "other threads of a loop") return wait.duration;
    return std::int64_t{0};
  };
  // A machine with much else to do may have no processor for the other threads.
  constexpr int enough = 30;
  int with_help = 0;
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (with_help < enough && waits_for_loops() == 0 && std::chrono::steady_clock::now() < end) {
    std::atomic<bool> has_help = false;
    detail::parallel_for(64, 1, [&, caller = std::this_thread::get_id()](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != caller) has_help = true;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    });
    with_help += has_help ? 1 : 0;
  }
  CHECK((waits_for_loops() > 0 || with_help < enough));
}

TEST_CASE("ranges of NVTX are refused where there is no CUDA backend, and else change no result") {
  if (!detail::device_module_absence().empty()) {
    CHECK_THAT(error_of<DeviceError>([] { Profile profile({.nvtx = true}); }),
               contains("debug::Profile: .nvtx needs the CUDA backend: "));
    return;
  }
  Profile profile({.nvtx = true});
  CHECK(sum(exp(zeros({3}))).item() == 3);
  CHECK(row_of(profile, "exp").calls == 1);
}

TEST_CASE("a trace is Chrome's JSON or Perfetto's protobuf, of at most 100 bytes an op") {
  TemporaryFile json("trace.json"), perfetto("trace.perfetto-trace");
  Profile profile;
  Tensor w = ones({4}).requires_grad();
  constexpr int steps = 500;
  for (int i = 0; i < steps; ++i) {
    Tape tape;
    tape.backward(sum(tanh(w)));
  }
  profile.stop();
  profile.trace(json.path());
  profile.trace(perfetto.path());
  nlohmann::json events = nlohmann::json::parse(bytes_of(json.path()))["traceEvents"];
  std::set<std::int64_t> begun;
  int ends = 0;
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "X") CHECK(event["dur"] >= 0);
    if (event["ph"] == "s") CHECK(begun.insert(event["id"].get<std::int64_t>()).second);
    if (event["ph"] == "f") CHECK(begun.contains(event["id"].get<std::int64_t>()));
    ends += event["ph"] == "f";
  }
  CHECK(ends >= 2 * steps);  // the gradients of tanh and sum
  std::int64_t slices = 0;
  for (const nlohmann::json& event : events) slices += event["ph"] == "X";
  // Each name is written once.
  std::string packets = bytes_of(perfetto.path()), name = "gradient of tanh";
  CHECK(packets.find(name) != packets.npos);
  CHECK(packets.find(name) == packets.rfind(name));
  CHECK(packets.find("waiting for") == packets.npos);
  CHECK(static_cast<std::int64_t>(bytes_of(perfetto.path()).size()) < 100 * slices);
  CHECK_THAT(error_of<Error>([&] { profile.trace("/nowhere/trace.json"); }),
             contains("Profile::trace") && contains("/nowhere"));
}

TEST_CASE("a flame graph is an SVG with modules, lines and ops") {
  TemporaryFile file("flames.svg");
  Net net;
  Profile profile;
  for (int i = 0; i < 50; ++i) {
    Tape tape;
    tape.backward(sum(net(ones({64, 3}))));
  }
  profile.flame_graph(file.path());
  std::string svg = bytes_of(file.path());
  CHECK(svg.starts_with("<svg "));
  CHECK_THAT(svg, contains("<title>hidden: ") && contains("<title>tanh: ") && contains("<title>backward: ") &&
                      contains("profile_test.cpp:"));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("a flame graph has the time of calls and gradients, once, and no waits") {
  TemporaryFile file("flames.svg");
  Net net;
  Profile profile;
  data::Loader<std::int64_t> loader(SlowNumbers{3, 4}, {.batch_size = 1, .workers = 1});
  for (auto& batch : loader) {
    Tape tape;
    tape.backward(sum(net(full({64, 3}, static_cast<double>(batch[0])))));
  }
  profile.stop();
  CHECK_FALSE(profile.waits().empty());
  std::int64_t forward = 0, backward = 0;
  for (const ProfileRow& row : profile.rows(ProfileBy::op)) {
    forward += row.forward;
    backward += row.backward;
  }
  profile.flame_graph(file.path());
  auto title = [](const char* name, std::int64_t time) {
    return fmt::format("<title>{}: {:.3f} ms</title>", name, static_cast<double>(time) / 1e6);
  };
  CHECK_THAT(bytes_of(file.path()), contains(title("all", forward + backward)) && contains(title("forward", forward)) &&
                                        contains(title("backward", backward)));
}

TEST_CASE("a trace connects the calls that a tape has recorded to their gradients, and no others") {
  TemporaryFile json("trace.json");
  Tensor w = ones({4}).requires_grad();
  Profile profile;
  {
    Tape outer;
    Tape tape;
    Tensor x = ones({4});
    static_cast<void>(exp(x));
    static_cast<void>(w * x);
    x += 1;
    tape.backward(sum(tanh(w)));
  }
  profile.stop();
  profile.trace(json.path());
  std::set<std::int64_t> begun, ended;
  nlohmann::json events = nlohmann::json::parse(bytes_of(json.path()))["traceEvents"];
  for (const nlohmann::json& event : events) {
    if (event["ph"] == "s") begun.insert(event["id"].get<std::int64_t>());
    if (event["ph"] == "f") ended.insert(event["id"].get<std::int64_t>());
  }
  CHECK(ended.size() >= 2);                 // tanh and those of sum
  CHECK(begun.size() == ended.size() + 1);  // mul leads to no loss
}
