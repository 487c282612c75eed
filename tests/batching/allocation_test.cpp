#include <map>
#include <string>
#include <thread>
#include <vector>

#include "batching/checks.h"
#include "failing_allocator.h"

// Batches whose allocations fail, one at a time or all from one on. The program replaces `malloc`, so it contains no other
// tests.

namespace reel_test {

using namespace reel;

TEST_CASE("an allocation of a batch that fails ends in a MemoryError, or the calls run by themselves") {
  Tensor W = full({4, 4}, 0.1).requires_grad();
  std::vector<Tensor> inputs;
  for (int i = 0; i < 5; ++i) inputs.push_back(full({1, 4}, 0.1 * i));
  std::vector<int> examples = numbers(5);
  for (bool immediate : {false, true})
    for (Fault fault : {Fault::once, Fault::from_then_on}) {
      CAPTURE(immediate, fault == Fault::once);
      std::map<std::string, int> outcomes;
      bool reached = true;
      for (long at = 0; reached; ++at) {
        CAPTURE(at);
        std::string outcome = "result";
        // A thread that has not used the library yet.
        std::thread([&] {
          Tensor result;
          fail_allocation(at, fault);
          try {
            BatchReport report;
            Tape tape;
            std::vector<Tensor> made = batch_map(examples,
                                                 [&](int i) {
                                                   Tensor h = inputs[static_cast<std::size_t>(i)];
                                                   for (int k = 0; k < 1 + i % 3; ++k) h = copy(tanh(matmul(h, W)));
                                                   auto [a, b] =
                                                       both([&] { return sum(h); }, [&] { return sum(h * 2); });
                                                   Tensor total = tanh(a * 1);
                                                   total = total + b;
                                                   total += a;
                                                   return total;
                                                 },
                                                 {.immediate = immediate, .report = &report});
            tape.backward(sum(stack(made)));
          } catch (const MemoryError&) {
            outcome = "MemoryError";
          } catch (const std::exception& error) {
            outcome = error.what();
          }
          stop_failing();
          reached = has_failed();
        }).join();
        ++outcomes[outcome];
      }
      for (const auto& [outcome, count] : outcomes) {
        CAPTURE(outcome, count);
        CHECK((outcome == "MemoryError" || outcome == "result"));
      }
      CHECK(outcomes["MemoryError"] > 20);
    }
}

}  // namespace reel_test
