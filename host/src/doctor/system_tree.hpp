#pragma once
// Files of the kernel and of the system below a root folder, read without trust in what they hold:
// small parts of regular files, bounded lists of names, never a device.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitnet::host::doctor {

class system_tree {
 public:
  // `root` has proc, sys, dev and etc in it. Paths of all calls are relative to it.
  explicit system_tree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // At most this much of a file is read: of /proc/cpuinfo the first processors.
  static constexpr std::size_t longest_text = 65'536;  // bytes
  static constexpr std::size_t most_names = 4096;      // of one folder

  [[nodiscard]] std::optional<std::string> text(const std::filesystem::path& path) const;
  // The first line, printable and without blanks around it; "" where there is none.
  [[nodiscard]] std::string line(const std::filesystem::path& path) const;
  // Of a file that begins with one, in decimal; "max" is none.
  [[nodiscard]] std::optional<uint64_t> number(const std::filesystem::path& path) const;
  // What is in a folder, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::filesystem::path& folder) const;
  // The last name of what a symbolic link points to: of a device's `driver`, the driver's.
  [[nodiscard]] std::string link_end(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;

  [[nodiscard]] bool is_this_machine() const { return root_ == "/"; }
  [[nodiscard]] std::filesystem::path whole(const std::filesystem::path& path) const {
    return root_ / path;
  }

 private:
  std::filesystem::path root_;
};

// A decimal number that is the whole text.
[[nodiscard]] std::optional<uint64_t> number_of(std::string_view text);
// What follows `name` and a colon on a line of its own: "MemTotal: 16 kB", "model name : X".
[[nodiscard]] std::optional<std::string_view> field_of(std::string_view text,
                                                       std::string_view name);
// How many numbers a list such as "0-3,8" has; nothing where it is none.
[[nodiscard]] std::optional<uint64_t> count_in(std::string_view list);
// Parts between blanks, tabs and line ends.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

}  // namespace bitnet::host::doctor
