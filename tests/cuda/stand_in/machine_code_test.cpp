#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "catch.h"
#include "cuda/stand_in/device.h"
#include "cuda/stand_in/machine_code.h"

// Gates for the kernels of libreel_cuda.so as nvcc has compiled them: what would not run, would be slow, or would give other
// numbers from run to run.

namespace reel_test {

namespace {

using stand_in::Kernel;

std::vector<Kernel> kernels_of_module(std::vector<std::byte>& bytes) {
  return stand_in::kernels_in_file(std::getenv("REEL_CUDA_MODULE"), bytes);
}

// The name without the numbers that nvcc gives to unnamed namespaces, which differ from build to build: 41_GLOBAL__N__, 8
// digits, the file's name, 8 digits.
std::string stable_name(std::string name) {
  const std::string mark = "_GLOBAL__N__";
  for (std::size_t place; (place = name.find(mark)) != name.npos;) {
    std::size_t digits = place;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
    std::size_t length = std::min<std::size_t>(std::stoul(name.substr(digits, place - digits)), name.size() - place);
    std::string file = length > mark.size() + 18 ? name.substr(place + mark.size() + 9, length - mark.size() - 18) : "";
    name.replace(digits, place - digits + length, "(" + file + ")");
  }
  return name;
}

}  // namespace

TEST_CASE("what is read of machine code is right for kernels that are known") {
  std::vector<std::byte> bytes;
  std::map<std::string, Kernel> kernels;
  for (Kernel& kernel : stand_in::kernels_in_file(REEL_PROBE, bytes)) kernels[kernel.name] = kernel;
  REQUIRE(kernels.size() == 8);
  for (const char* name : {"adds_floats", "adds_doubles", "adds_and_returns_floats"}) {
    CAPTURE(name);
    CHECK(stand_in::adds_atomically(kernels.at(name)));
  }
  for (const char* name : {"adds_integers", "raises_integers", "copies_4_bytes"}) {
    CAPTURE(name);
    CHECK(!stand_in::adds_atomically(kernels.at(name)));
  }
  CHECK(stand_in::widest_access(kernels.at("copies_1_byte")) == 1);
  CHECK(stand_in::widest_access(kernels.at("copies_4_bytes")) == 4);
  CHECK(stand_in::widest_access(kernels.at("copies_16_bytes")) == 16);
  CHECK(stand_in::widest_load(kernels.at("copies_16_bytes")) == 16);
  CHECK(stand_in::widest_store(kernels.at("copies_16_bytes")) == 16);
  CHECK(stand_in::widest_load(kernels.at("adds_floats")) == 0);
  CHECK(stand_in::widest_store(kernels.at("adds_and_returns_floats")) == 4);
  const Kernel& returns = kernels.at("adds_and_returns_floats");
  REQUIRE(returns.parameters.size() == 3);
  CHECK(returns.parameters[1].bytes == 4);
  CHECK(returns.parameters[2].offset == 16);
  CHECK(returns.registers > 4);
  CHECK(returns.static_shared == 0);
}

TEST_CASE("every kernel fits a GPU: its registers with its threads, and its shared memory") {
  std::vector<std::byte> bytes;
  std::vector<Kernel> kernels = kernels_of_module(bytes);
  CHECK(kernels.size() > 1000);
  for (const Kernel& kernel : kernels) {
    CAPTURE(kernel.name, kernel.registers, kernel.most_threads, kernel.static_shared);
    CHECK(kernel.registers > 0);
    // A warp gets registers in units of 256.
    int warps = kernel.most_threads / 32;
    CHECK((kernel.registers * 32 + 255) / 256 * 256 * warps <= stand_in::registers_of_block);
    CHECK(kernel.static_shared <= 49152);
    unsigned parameters =
        kernel.parameters.empty() ? 0 : kernel.parameters.back().offset + kernel.parameters.back().bytes;
    CHECK(parameters <= 4096);
  }
}

TEST_CASE("no kernel adds floating-point numbers atomically") {
  std::vector<std::byte> bytes;
  for (const Kernel& kernel : kernels_of_module(bytes)) {
    CAPTURE(kernel.name);
    CHECK(!stand_in::adds_atomically(kernel));
  }
}

TEST_CASE("elementwise kernels and optimisers' steps access 16 bytes at a time") {
  std::vector<std::byte> bytes;
  int packed = 0, steps = 0;
  for (const Kernel& kernel : kernels_of_module(bytes)) {
    bool is_packed = kernel.name.find("PackedLoop") != kernel.name.npos,
         is_step = kernel.name.find("StepLoop") != kernel.name.npos;
    if (!is_packed && !is_step) continue;
    packed += is_packed;
    steps += is_step;
    CAPTURE(kernel.name);
    CHECK(stand_in::widest_access(kernel) == 16);
  }
  CHECK(packed > 300);
  CHECK(steps >= 22);
}

TEST_CASE(
    "kernels of rows in packs load and store 16 bytes at a time, and reductions of floating elements load as many") {
  struct RowKernel {
    const char *file, *program;
    bool stores;
  };
  // The mangled names: with their lengths, and I before the template's arguments.
  constexpr RowKernel row_kernels[] = {
      {"softmax_cu", "7ForwardI", true},
      {"softmax_cu", "8BackwardI", true},
      {"loss_cu", "12CrossEntropyI", false},
      {"loss_cu", "20CrossEntropyGradientI", true},
      {"normalise_cu", "13NormaliseRowsI", true},
      {"normalise_cu", "11RowGradientI", true},
      {"normalise_channels_cu", "9NormaliseI", true},
      {"normalise_channels_cu", "11FindMomentsI", false},
      {"normalise_channels_cu", "8BackwardI", true},
      {"normalise_channels_cu", "16FindGradientSumsI", false},
      {"attention_cu", "12WeighForwardI", true},
      {"attention_cu", "13WeighBackwardI", true},
  };
  struct Type {
    const char *name, *lanes;
  };
  constexpr Type types[] = {{"f", "Li4E"}, {"d", "Li2E"}, {"NS_7Float16E", "Li8E"}, {"NS_8BFloat16E", "Li8E"}};
  std::vector<std::byte> bytes;
  std::vector<Kernel> kernels = kernels_of_module(bytes);
  for (const RowKernel& each : row_kernels)
    for (const Type& type : types) {
      bool is_attention = std::string(each.file) == "attention_cu";  // of f32 and f64
      if (is_attention && std::string(type.name).size() > 1) continue;
      int found = 0;
      for (const Kernel& kernel : kernels) {
        auto has = [&](const std::string& part) { return kernel.name.find(part) != kernel.name.npos; };
        if (!has(each.file) || !has(std::string(each.program) + type.name) || !has(type.lanes)) continue;
        ++found;
        CAPTURE(kernel.name);
        CHECK(stand_in::widest_load(kernel) == 16);
        if (each.stores) CHECK(stand_in::widest_store(kernel) == 16);
      }
      CAPTURE(each.file, each.program, type.name);
      CHECK(found >= 2);  // for rows of a warp, and of a block
    }
  int reductions = 0;
  for (const Kernel& kernel : kernels) {
    if (kernel.name.find("6ReduceI") == kernel.name.npos || kernel.name.find("8ElementsI") == kernel.name.npos)
      continue;
    ++reductions;
    CAPTURE(kernel.name);
    CHECK(stand_in::widest_load(kernel) == 16);
  }
  CHECK(reductions >= 40);
}

// At lower levels of optimisation everything is on the stack. `spills.txt`: the kernels that use it at the highest.
TEST_CASE("no kernel spills registers, but for those of spills.txt") {
  if (REEL_GPU_OPTIMIZATION < 3) return;
  std::set<std::string> allowed;
  std::ifstream file(REEL_SPILLS);
  for (std::string line; std::getline(file, line);) allowed.insert(line);
  REQUIRE(!allowed.empty());
  std::vector<std::byte> bytes;
  for (const Kernel& kernel : kernels_of_module(bytes)) {
    if (kernel.architecture != 90 || kernel.stack == 0 || allowed.contains(stable_name(kernel.name))) continue;
    CAPTURE(stable_name(kernel.name));
    CHECK(kernel.stack == 0);
  }
}

}  // namespace reel_test
