#pragma once
// Makes a folder for each child, for drivers that must write files, such as compiled code.

#include <filesystem>
#include <string>

#include "plugin/trust/trust.hpp"

namespace bitnet::probe {

// The parent folder: `wanted` if only root and this user can move things in it, by the rules for
// plugins; else /tmp.
[[nodiscard]] std::filesystem::path scratch_place(const std::filesystem::path& wanted);

// Removes folders in `place` that killed processes of this user left and no process holds.
void sweep_scratch_folders(const std::filesystem::path& place);

class scratch_folder {
 public:
  // Makes an empty folder bitnet-probe-XXXXXX in `place`, with mode 0700, and locks it.
  explicit scratch_folder(const std::filesystem::path& place);
  ~scratch_folder() { remove(); }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  // "" if it could not be made, or is removed.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Why it could not be made; "": it could.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  void remove();

 private:
  std::filesystem::path path_;
  std::string problem_;
  // Locked while the process lives; the kernel releases it however the process ends.
  plugin::file_descriptor held_;
};

}  // namespace bitnet::probe
