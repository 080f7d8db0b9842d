#pragma once
// A library of the system that the dynamic linker would load, opened for reading only.

#include <filesystem>
#include <optional>

#include "plugin/inspection/elf_image.hpp"
#include "plugin/trust/file_map.hpp"

namespace bitnet::plugin {

class system_file {
 public:
  // nullopt if it is no shared object for this machine.
  static std::optional<system_file> open(const std::filesystem::path& path);
  [[nodiscard]] const elf_image& image() const { return image_; }

 private:
  system_file(file_map map, elf_image image) : map_(std::move(map)), image_(std::move(image)) {}
  file_map map_;
  elf_image image_;  // views the bytes of map_, which keep their address when it moves
};

}  // namespace bitnet::plugin
