// Converts files of tensors for the judges: loads each by one reader and saves it by another.
//
// Usage: convert
//
// Reads lines "IN" or "IN<tab>OUT" and prints for each "ok", or "refused: " and the error. The ends of the names say which
// formats they have; the tensor of an .npy file is "array", those of a .wav file are "samples" and "sample_rate", and an
// archive named small.npz is compressed.

#include <exception>
#include <iostream>
#include <string>

#include <reel/reel.h>

using namespace reel;

namespace {

io::Contents loaded(const std::string& path) {
  if (path.ends_with(".pt")) return io::load_pytorch(path);
  if (path.ends_with(".npz")) return io::load_npz(path);
  if (path.ends_with(".npy")) return {{{"array", io::load_npy(path)}}, {}};
  if (path.ends_with(".wav")) {
    io::Audio audio = io::read_audio(path);
    return {{{"samples", audio.samples}, {"sample_rate", tensor({audio.sample_rate})}}, {}};
  }
  return io::load(path);
}

void save_as(const std::string& path, const io::Contents& contents) {
  if (path.ends_with(".npz")) return io::save_npz(path, contents.tensors, {.compress = path.ends_with("small.npz")});
  if (path.ends_with(".npy")) return io::save_npy(path, contents.at("array"));
  if (path.ends_with(".wav"))
    return io::write_wav(path, contents.at("samples"), static_cast<std::int64_t>(contents.at("sample_rate").item()));
  io::save(path, contents.tensors, contents.metadata);
}

void convert(const std::string& line) {
  std::size_t tab = line.find('\t');
  io::Contents contents = loaded(line.substr(0, tab));
  if (tab != line.npos) save_as(line.substr(tab + 1), contents);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      convert(line);
      std::cout << "ok\n";
    } catch (const std::exception& error) {
      std::string words = error.what();
      for (char& character : words)
        if (character == '\n') character = ' ';
      std::cout << "refused: " << words << '\n';
    }
  }
}
