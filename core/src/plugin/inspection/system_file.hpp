#pragma once
// A library of the system, opened only to be read: what the dynamic linker would load.

#include <filesystem>
#include <optional>

#include "plugin/inspection/elf_image.hpp"
#include "plugin/trust/file_map.hpp"

namespace bitnet::plugin {

class system_file {
 public:
  // Nothing if it is no shared object for this machine.
  static std::optional<system_file> open(const std::filesystem::path& path);
  [[nodiscard]] const elf_image& image() const { return image_; }

 private:
  system_file(file_map map, elf_image image) : map_(std::move(map)), image_(std::move(image)) {}
  file_map map_;
  elf_image image_;  // reads map_, whose bytes stay where they are when it moves
};

}  // namespace bitnet::plugin
