#include <reel/io/safetensors.h>

#include "guard.h"
#include "handles.h"

using namespace reel;
using namespace reel::detail;

reel_status reel_weights_load(const char* path, reel_weights** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    auto loaded = std::make_unique<reel_weights>(reel_weights{io::load(given(path, "path"), Location())});
    *result = loaded.release();
  });
}

void reel_weights_free(reel_weights* weights) { std::unique_ptr<reel_weights> freed(weights); }

size_t reel_weights_count(const reel_weights* weights) { return weights ? weights->contents.tensors.size() : 0; }

const char* reel_weights_name(const reel_weights* weights, size_t index) {
  return index < reel_weights_count(weights) ? weights->contents.tensors[index].name.c_str() : nullptr;
}

reel_status reel_weights_tensor(const reel_weights* weights, const char* name, reel_tensor** result) {
  return guarded(__func__, [&] {
    given(result, "result");
    *result = handle_of(given(weights, "weights")->contents.at(given(name, "name"), Location())).release();
  });
}
