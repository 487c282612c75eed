#include <reel/reel.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "catch.h"
#include "failing_allocator.h"
#include "faulty_models.h"

// Training steps with failing allocations: each allocation of a step fails once, alone or with all that follow, as
// in SQLite's tests. The program replaces `malloc`, so it contains no other tests.
//
// By default only some allocations fail, evenly spread. REEL_ALLOCATION_FAULTS=all in the environment fails every
// one, which takes minutes, and prints their number.

using namespace reel;
using namespace reel_test;

namespace {

struct Threads {
  int per_loop;  // threads that share a loop of the library
  int user;      // threads of the program, each with a tape, that share the parameters
};

bool fails_every_one() {
  const char* wanted = std::getenv("REEL_ALLOCATION_FAULTS");
  return wanted && std::string(wanted) == "all";
}

using Bytes = std::vector<char>;

void append(Bytes& bytes, const Tensor& x) {
  if (!x.defined()) return;
  Tensor packed = contiguous(x);
  const auto* first = static_cast<const char*>(packed.body().data);
  bytes.insert(bytes.end(), first, first + packed.numel() * static_cast<std::int64_t>(size_of(packed.dtype())));
  bytes.push_back('|');
}

Bytes gradients_of(const FaultyModel& model) {
  NoRecord pause;
  Bytes bytes;
  for (const Tensor& parameter : model.parameters) {
    RowGradient rows = parameter.row_grad();
    append(bytes, rows.rows);
    append(bytes, rows.defined() ? rows.values : parameter.grad());
    bytes.push_back('/');
  }
  return bytes;
}

// The bytes of the parameters and of the optimiser's state.
Bytes values_of(const FaultyModel& model) {
  NoRecord pause;
  Bytes bytes;
  for (const Tensor& parameter : model.parameters) append(bytes, parameter);
  for (const NamedTensor& kept : model.optimiser->state()) append(bytes, kept.tensor);
  return bytes;
}

// Calls f() in a thread that has not used the library yet.
void run_in_new_thread(const std::function<void()>& f) { std::thread(f).join(); }

bool names_line(const MemoryError& error) {
  return error.where().file && error.where().line > 0 && std::strstr(error.what(), ": there is no memory") &&
         std::strstr(error.what(), "; at ");
}

// Returns true if f succeeded. Sets `fault` if its exception is wrong: std::bad_alloc may escape only without a message.
template <class F>
bool runs(F f, const char* phase, std::string& fault) {
  try {
    f();
    return true;
  } catch (const MemoryError& error) {
    Uncounted own;
    if (!names_line(error)) fault = fmt::format("{}: an error without op or line: {}", phase, error.what());
  } catch (const std::exception& error) {
    Uncounted own;
    fault = fmt::format("{}: {}", phase, error.what());
  }
  return false;
}

void backward(const FaultyModel& model, int part) {
  Tape tape;
  tape.backward(model.loss(part));
}

// The results of a run without faults.
struct Expected {
  Bytes start, first, second;  // values before, after the first step, after the second
  Bytes gradients[4];          // of none, part 0, part 1, both
  Bytes clipped;               // of all parts
  long allocations = 0;        // of the first step
};

// Runs one model's first step phase by phase with a failing allocation, and checks the model after each phase.
class Trial {
 public:
  Trial(const FaultyModelKind& kind, Threads threads) : threads_(threads) {
    set_thread_count(threads.per_loop);
    set_memory_cache_limit(0);  // so that every tensor is an allocation
    manual_seed(1);
    model_ = kind.make(threads.per_loop > 1);
  }

  Expected without_faults() {
    Expected expected;
    Trial& trial = *this;
    expected.start = values_of(*model_);
    for (int parts = 0; parts < 4; ++parts) {
      model_->optimiser->zero_grad();
      for (int part : {0, 1})
        if (parts >> part & 1) backward(*model_, part);
      expected.gradients[parts] = gradients_of(*model_);
    }
    trial.whole_step();
    expected.first = values_of(*model_);
    trial.whole_step();
    expected.second = values_of(*model_);
    return expected;
  }

  // With memory for everything.
  void whole_step() {
    model_->optimiser->zero_grad();
    for (int part = 0; part < threads_.user; ++part) backward(*model_, part);
    model_->clip();
    clipped_ = gradients_of(*model_);
    model_->optimiser->step();
  }
  const Bytes& clipped() const { return clipped_; }
  Bytes values() const { return values_of(*model_); }

  // Describes the fault after the allocation `index` has failed; empty if none. With LONG_MAX − 1 no allocation fails.
  std::string fault(long index, Fault fault, const Expected& expected, long& counted) {
    int ran = run_backwards(index, fault);
    check(gradients_of, expected.gradients[ran], "a backward that failed has left something in the gradients");
    int all = (1 << threads_.user) - 1;
    if (ran != all) {
      counted = stop_failing();
      return finish(expected);
    }
    bool clips = runs([&] { model_->clip(); }, "clip", fault_);
    if (!clips) counted = stop_failing();
    if (clips)
      check(gradients_of, expected.clipped, "the gradients are not clipped");
    else
      check(gradients_of, expected.gradients[all], "a clipping that failed has changed gradients");
    if (!clips) return finish(expected);
    bool steps = runs([&] { model_->optimiser->step(); }, "step", fault_);
    counted = stop_failing();
    if (steps) return finish_second(expected);
    check(values_of, expected.start, "a step that failed has changed something");
    model_->optimiser->step();
    check(values_of, expected.first, "the step cannot be made afterwards");
    return fault_;
  }

 private:
  // Checks what `look` returns for the model against the expected value; only the first fault is kept.
  void check(Bytes (*look)(const FaultyModel&), const Bytes& expected, const char* otherwise) {
    Uncounted own;
    if (fault_.empty() && look(*model_) != expected) fault_ = otherwise;
  }

  // The parts whose backward ran, as bits. Allocations are counted meanwhile.
  int run_backwards(long index, Fault kind) {
    model_->optimiser->zero_grad();
    if (threads_.user == 1) {
      fail_allocation(index, kind);
      return runs([&] { backward(*model_, 0); }, "backward", fault_) ? 1 : 0;
    }
    std::string faults[2];
    std::atomic<bool> may_start = false;
    std::atomic<int> ran = 0, ready = 0;
    std::vector<std::thread> threads;
    std::atomic<int> done = 0;
    for (int part : {0, 1})
      threads.emplace_back([&, part] {
        ++ready;
        while (!may_start) std::this_thread::yield();
        if (runs(
                [&] {
                  set_thread_count(threads_.per_loop);
                  set_memory_cache_limit(0);
                  backward(*model_, part);
                },
                "backward", faults[part]))
          ran |= 1 << part;
        ++done;
        while (may_start) std::this_thread::yield();
      });
    while (ready < 2) std::this_thread::yield();
    fail_allocation(index, kind);
    may_start = true;
    while (done < 2) std::this_thread::yield();
    Uncounted own;
    may_start = false;
    for (std::thread& thread : threads) thread.join();
    for (const std::string& fault : faults)
      if (!fault.empty()) fault_ = fault;
    return ran;
  }

  // The whole step, repeated, gives the results of a run without faults.
  std::string finish(const Expected& expected) {
    check(values_of, expected.start, "a backward or a clipping has changed values");
    whole_step();
    check(values_of, expected.first, "the next step gives other values");
    return fault_;
  }
  std::string finish_second(const Expected& expected) {
    check(values_of, expected.first, "a step that ran has given other values");
    whole_step();
    check(values_of, expected.second, "the second step gives other values");
    return fault_;
  }

  Threads threads_;
  std::unique_ptr<FaultyModel> model_;
  Bytes clipped_;
  std::string fault_;
};

// Calls f() and compares the bytes of the thread's tensors before and after.
template <class F>
std::string leak_after(F f) {
  set_memory_cache_limit(0);
  MemoryStatistics before = memory_statistics();
  f();
  release_memory_cache();
  MemoryStatistics after = memory_statistics();
  if (before.live_tensors == after.live_tensors && before.live_storages == after.live_storages &&
      before.live_bytes == after.live_bytes)
    return {};
  return fmt::format("{} tensors and {} bytes were left", after.live_tensors - before.live_tensors,
                     static_cast<std::int64_t>(after.live_bytes) - static_cast<std::int64_t>(before.live_bytes));
}

struct Result {
  std::string fault;
  long counted = 0;
  bool failed = false;
};

Result run_trial(const FaultyModelKind& kind, Threads threads, long index, Fault fault, const Expected& expected) {
  Result result;
  run_in_new_thread([&] {
    std::string leak =
        leak_after([&] { result.fault = Trial(kind, threads).fault(index, fault, expected, result.counted); });
    result.failed = has_failed();
    if (result.fault.empty()) result.fault = leak;
  });
  return result;
}

Expected expected_of(const FaultyModelKind& kind, Threads threads) {
  Expected expected;
  run_in_new_thread([&] {
    Trial trial(kind, threads);
    expected = trial.without_faults();
    Trial again(kind, threads);
    again.whole_step();
    expected.clipped = again.clipped();
  });
  return expected;
}

// Fails allocations of a model's step until one is not reached any more.
void fail_each(const FaultyModelKind& kind, Threads threads, Fault fault, long stride) {
  Expected expected = expected_of(kind, threads);
  long last = run_trial(kind, threads, LONG_MAX - 1, fault, expected).counted;
  long tried = 0, wrong = 0;
  for (long index = stride > 1 ? last % stride : 0; index < last; index += stride) {
    Result result = run_trial(kind, threads, index, fault, expected);
    tried += result.failed;
    if (result.fault.empty()) continue;
    UNSCOPED_INFO(fmt::format("{}, {} and {} threads, allocation {} of {}, {}: {}", kind.name, threads.per_loop,
                              threads.user, index, last, fault == Fault::once ? "once" : "from then on", result.fault));
    if (++wrong == 20) break;
  }
  CHECK(wrong == 0);
  CHECK(tried > 0);
  if (stride == 1)
    std::cout << fmt::format("{}, {} threads share loops, {} train, {}: {} allocations failed\n", kind.name,
                             threads.per_loop, threads.user, fault == Fault::once ? "once" : "from then on", tried);
}

void fail_each(Threads threads) {
  for (const FaultyModelKind& kind : faulty_models())
    for (Fault fault : {Fault::once, Fault::from_then_on}) fail_each(kind, threads, fault, fails_every_one() ? 1 : 23);
}

}  // namespace

TEST_CASE("a training step whose allocations fail in turn is an error with op and line, and changes nothing") {
  fail_each({.per_loop = 1, .user = 1});
}

TEST_CASE("a training step that shares loops with a second thread loses nothing when an allocation fails") {
  fail_each({.per_loop = 2, .user = 1});
}

TEST_CASE("when one of two threads that train one model gets no memory, the other's gradients are whole") {
  fail_each({.per_loop = 1, .user = 2});
}

namespace {

// Calls f() in a forked process with a time limit. Returns its exit code, or 1000 plus the signal that ended it. f writes
// faults to standard error.
int run_in_new_process(const std::function<int()>& f) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Makes and trains a model while an allocation fails. Returns true if one failed.
bool begin_with_fault(const FaultyModelKind& kind, long index, Fault fault) {
  fail_allocation(index, fault);
  try {
    Trial(kind, {.per_loop = 2, .user = 1}).whole_step();
  } catch (const MemoryError&) {
  } catch (const std::bad_alloc&) {  // layers allocate strings and vectors
  }
  stop_failing();
  return has_failed();
}

}  // namespace

// A test of its own for what a process makes once, such as tables and helper threads: tools/test starts each test in a
// new process.
TEST_CASE("a process whose first allocations fail does what it does without when there is memory again") {
  const FaultyModelKind& kind = faulty_models()[0];
  auto values_after = [&](long index, Fault fault, bool& failed) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int code = run_in_new_process([&] {
      bool reached = begin_with_fault(kind, index, fault);
      Trial again(kind, {.per_loop = 2, .user = 1});
      again.whole_step();
      Bytes values = again.values();
      std::size_t seen = std::hash<std::string_view>()({values.data(), values.size()});
      return write(ends[1], &seen, sizeof seen) == sizeof seen ? reached : 2;
    });
    std::size_t seen = 0;
    CHECK((code == 0 || code == 1));
    if (code <= 1) CHECK(read(ends[0], &seen, sizeof seen) == sizeof seen);
    close(ends[0]);
    close(ends[1]);
    failed = code != 0;
    return seen;
  };
  bool failed = false;
  std::size_t usual = values_after(LONG_MAX - 1, Fault::once, failed);
  long stride = fails_every_one() ? 1 : 17, tried = 0;
  for (Fault fault : {Fault::once, Fault::from_then_on}) {
    failed = true;
    for (long index = 0; failed; index += stride) {
      INFO("allocation " << index << (fault == Fault::once ? ", once" : ", from then on"));
      CHECK(values_after(index, fault, failed) == usual);
      tried += failed;
    }
  }
  CHECK(tried > 0);
  if (stride == 1) std::cout << "first step of a process: " << tried << " allocations failed\n";
}
