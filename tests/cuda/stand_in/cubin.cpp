#include "cubin.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

namespace reel_test::stand_in {
namespace {

using Bytes = std::span<const std::byte>;

template <class T>
T read(Bytes bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) throw std::runtime_error("a cubin ends too early");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Bytes part(Bytes bytes, std::size_t offset, std::size_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) throw std::runtime_error("a cubin ends too early");
  return bytes.subspan(offset, size);
}

std::string text(Bytes table, std::size_t offset) {
  std::string found;
  while (offset < table.size() && table[offset] != std::byte{0}) found += static_cast<char>(table[offset++]);
  return found;
}

// Attributes of .nv.info sections.
constexpr unsigned sized = 4, parameter_attribute = 0x17, thread_attribute = 0x05, register_attribute = 0x2f,
                   frame_attribute = 0x11;

// Calls f(attribute, payload) for each attribute with a payload.
template <class F>
void for_each_attribute(Bytes info, const F& f) {
  for (std::size_t place = 0; place + 4 <= info.size();) {
    auto format = read<std::uint8_t>(info, place), attribute = read<std::uint8_t>(info, place + 1);
    std::size_t size = format == sized ? read<std::uint16_t>(info, place + 2) : 0;
    if (format == sized) f(attribute, part(info, place + 4, size));
    place += 4 + (size + 3) / 4 * 4;
  }
}

void read_parameters(Kernel& kernel, Bytes info) {
  std::map<unsigned, Parameter> by_number;
  for_each_attribute(info, [&](unsigned attribute, Bytes payload) {
    if (attribute == parameter_attribute)
      by_number[read<std::uint16_t>(payload, 4)] = {read<std::uint16_t>(payload, 6),
                                                    read<std::uint32_t>(payload, 8) >> 18};
    if (attribute == thread_attribute)
      kernel.most_threads = static_cast<int>(read<std::uint32_t>(payload, 0) * read<std::uint32_t>(payload, 4) *
                                             read<std::uint32_t>(payload, 8));
  });
  for (const auto& [number, parameter] : by_number) kernel.parameters.push_back(parameter);
}

struct Section {
  std::string name;
  Elf64_Shdr header;
};

std::vector<Section> sections_of(Bytes elf) {
  auto header = read<Elf64_Ehdr>(elf, 0);
  std::vector<Section> sections;
  for (std::size_t i = 0; i < header.e_shnum; ++i)
    sections.push_back({{}, read<Elf64_Shdr>(elf, header.e_shoff + i * header.e_shentsize)});
  if (header.e_shstrndx >= sections.size()) throw std::runtime_error("an ELF file has no names of sections");
  const Elf64_Shdr& names = sections[header.e_shstrndx].header;
  Bytes table = part(elf, names.sh_offset, names.sh_size);
  for (Section& section : sections) section.name = text(table, section.header.sh_name);
  return sections;
}

void read_cubin(Bytes elf, int architecture, std::vector<Kernel>& kernels) {
  std::vector<Section> sections = sections_of(elf);
  std::map<std::string, Kernel> found;
  std::vector<std::string> symbols;
  auto contents = [&](const Section& section) { return part(elf, section.header.sh_offset, section.header.sh_size); };
  auto after = [](const std::string& name, const std::string& prefix) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string();
  };
  for (const Section& section : sections)
    if (std::string name = after(section.name, ".text."); !name.empty()) {
      Kernel& kernel = found[name];
      kernel.name = name;
      kernel.architecture = architecture;
      kernel.code = contents(section);
    } else if (section.header.sh_type == SHT_SYMTAB) {
      const Elf64_Shdr& names = sections.at(section.header.sh_link).header;
      for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= section.header.sh_size; at += sizeof(Elf64_Sym))
        symbols.push_back(text(part(elf, names.sh_offset, names.sh_size),
                               read<Elf64_Sym>(elf, section.header.sh_offset + at).st_name));
    }
  auto symbol = [&](Bytes payload) -> Kernel* {
    auto number = read<std::uint32_t>(payload, 0);
    auto place = number < symbols.size() ? found.find(symbols[number]) : found.end();
    return place == found.end() ? nullptr : &place->second;
  };
  for (const Section& section : sections) {
    if (section.name == ".nv.info")
      for_each_attribute(contents(section), [&](unsigned attribute, Bytes payload) {
        if (attribute != register_attribute && attribute != frame_attribute) return;
        if (Kernel* kernel = symbol(payload))
          (attribute == register_attribute ? kernel->registers : kernel->stack) =
              static_cast<int>(read<std::uint32_t>(payload, 4));
      });
    if (auto kernel = found.find(after(section.name, ".nv.info.")); kernel != found.end())
      read_parameters(kernel->second, contents(section));
    if (auto kernel = found.find(after(section.name, ".nv.shared.")); kernel != found.end())
      kernel->second.static_shared = static_cast<int>(section.header.sh_size);
  }
  for (auto& [name, kernel] : found) kernels.push_back(std::move(kernel));
}

constexpr std::uint32_t fat_magic = 0xba55ed50;
constexpr std::uint16_t machine_code = 2;
constexpr std::uint32_t compressed = 0xa000;  // by LZ4 or Zstandard

// Reads one container; returns its size.
std::size_t read_container(Bytes bytes, std::vector<Kernel>& kernels) {
  if (read<std::uint32_t>(bytes, 0) != fat_magic)
    throw std::runtime_error("the kernels of a library are not in a container of nvcc");
  std::size_t place = read<std::uint16_t>(bytes, 6), end = place + read<std::uint64_t>(bytes, 8);
  while (place < end) {
    auto kind = read<std::uint16_t>(bytes, place);
    auto header = read<std::uint32_t>(bytes, place + 4);
    auto size = read<std::uint64_t>(bytes, place + 8);
    auto architecture = static_cast<int>(read<std::uint32_t>(bytes, place + 28));
    if (kind == machine_code) {
      if ((read<std::uint32_t>(bytes, place + 40) & compressed) != 0)
        throw std::runtime_error("the kernels are compressed; compile them with -Xfatbin -no-compress");
      read_cubin(part(bytes, place + header, size), architecture, kernels);
    }
    place += header + size;
  }
  return end;
}

}  // namespace

std::vector<Kernel> kernels_of(const void* fat_binary) {
  struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* data;
    const void* file;
  };
  const auto* data = static_cast<const Wrapper*>(fat_binary)->data;
  std::vector<Kernel> kernels;
  std::size_t size = read<std::uint64_t>({data, 16}, 8) + read<std::uint16_t>({data, 16}, 6);
  read_container({data, size}, kernels);
  return kernels;
}

std::vector<Kernel> kernels_in_file(const std::string& path, std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + path);
  bytes.resize(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::vector<Kernel> kernels;
  for (const Section& section : sections_of(bytes)) {
    if (section.name != ".nv_fatbin") continue;
    Bytes fat = part(bytes, section.header.sh_offset, section.header.sh_size);
    // Padding is between the containers of two object files.
    for (std::size_t place = 0; place + 16 <= fat.size();)
      if (read<std::uint32_t>(fat, place) == fat_magic)
        place += read_container(fat.subspan(place), kernels);
      else
        place += 8;
  }
  return kernels;
}

}  // namespace reel_test::stand_in
