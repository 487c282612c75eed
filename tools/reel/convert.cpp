#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <reel/io/numpy.h>
#include <reel/io/safetensors.h>

#include "print.h"
#include "tensor_list.h"
#include "verb.h"

namespace {

void write(const TensorList& list, const std::string& path) {
  std::vector<reel::NamedTensor> tensors;
  for (const ListedTensor& tensor : list.tensors) tensors.push_back({tensor.name, tensor.values()});
  if (path.ends_with(".safetensors")) return reel::io::save(path, tensors, list.metadata, {});
  if (path.ends_with(".npz")) return reel::io::save_npz(path, tensors, {}, {});
  if (!path.ends_with(".npy"))
    throw std::runtime_error(fmt::format("{} ends in none of .safetensors, .npz and .npy, which say the format", path));
  if (tensors.size() != 1)
    throw std::runtime_error(fmt::format("an npy file holds one array, but {} has {}", list.path, tensors.size()));
  reel::io::save_npy(path, tensors[0].tensor, {});
}

}  // namespace

std::function<int()> add_convert(CLI::App& command) {
  struct Arguments {
    std::string from, to;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  command
      .add_option("IN", given->from, "safetensors or its index, npy, npz, PyTorch, HDF5, or a folder of checkpoints")
      ->required();
  command.add_option("OUT", given->to, "a file whose name ends in .safetensors, .npz or .npy")->required();
  command.add_flag("--json", given->json, "prints JSON");
  return [given] {
    TensorList list = list_tensors(given->from, true);
    write(list, given->to);
    bool drops_metadata = !list.metadata.empty() && !given->to.ends_with(".safetensors");
    if (given->json)
      print_json(
          nlohmann::json{{"file", given->to}, {"tensors", list.tensors.size()}, {"metadata_dropped", drops_metadata}},
          -1);
    else
      print("{}: {} tensor{}{}\n", given->to, list.tensors.size(), list.tensors.size() == 1 ? "" : "s",
            drops_metadata ? ", without the metadata, for which the format has no room" : "");
    return 0;
  };
}
