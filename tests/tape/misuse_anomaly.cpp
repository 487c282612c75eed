#include <limits>

#include "misuse.h"

// Errors of detect_anomaly.

namespace reel_test {

using namespace reel;

MisuseGroup anomaly_misuse() {
  return {
      "While debug::detect_anomaly() is in scope",
      {
          {"log(x);  // x holds a 0 and a negative number",
           "AnomalyError: log: gave 1 NaN and 1 Inf among the 3 elements of its result (3,) f32, the first at [1]; its "
           "inputs held finite numbers only",
           [] {
             auto scope = debug::detect_anomaly();
             log(tensor({1.f, 0.f, -2.f}));
           }},
          {"tape.backward(sum(sqrt(w)));  // w holds a 0",
           "AnomalyError: div: in the gradient of sqrt, gave 1 Inf among the 2 elements of its result (2,) f32, the "
           "first at [1]; its inputs held finite numbers only",
           [] {
             Tensor w = tensor({4.f, 0.f}).requires_grad();
             Tape tape;
             auto scope = debug::detect_anomaly();
             tape.backward(sum(sqrt(w)));
           }},
          {"x * 2;  // x was read from a file, with a NaN",
           "AnomalyError: mul: gave 1 NaN among the 3 elements of its result (3,) f32, the first at [2]; its input 0, "
           "made at …, already held 1 NaN",
           [] {
             Tensor x = tensor({1.f, 2.f, std::numeric_limits<float>::quiet_NaN()});
             auto scope = debug::detect_anomaly();
             x * 2;
           }},
      },
  };
}

}  // namespace reel_test
