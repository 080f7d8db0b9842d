#pragma once
// A folder of its own for each child, for drivers that cannot work without writing, such as those
// that compile into files.

#include <filesystem>
#include <string>

#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

// Where such folders are made: `wanted` if only root and this user can move things in it, by the
// rules for plugins; else /tmp.
[[nodiscard]] std::filesystem::path scratch_place(const std::filesystem::path& wanted);

// Removes those that killed processes of this user left in `place`: no process holds them.
void sweep_scratch_folders(const std::filesystem::path& place);

class scratch_folder {
 public:
  // Makes bitnet-probe-XXXXXX in `place`, empty and of mode 0700, and holds it.
  explicit scratch_folder(const std::filesystem::path& place);
  ~scratch_folder() { remove(); }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  // "" if it could not be made, or is removed.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Why it could not be made, "" if it could.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  void remove();

 private:
  std::filesystem::path path_;
  std::string problem_;
  // Locked as long as the process lives: the kernel lets go of it however that ends.
  plugin::file_descriptor held_;
};

}  // namespace bitnet::probe
