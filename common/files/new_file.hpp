#pragma once
// Writes a file. All code of this tree that writes files uses it.
//
// Regular  a new file beside the old one takes its name in finish(), with the old one's mode and,
//          where that is allowed, its owner; without finish(), and after a kill, the old one stays
//          and nothing else is left (on file systems without O_TMPFILE a ".part" file).
// Others   a device, a pipe, or an open file such as /dev/stdout is written in place.
// Links    see files/place.hpp. A link that may be followed stays, and its target is replaced.
// Threads  one at a time.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "files/descriptor.hpp"
#include "files/place.hpp"

namespace bitnet::files {

struct write_options {
  bool overwrite = true;  // else EEXIST if anything has that name
  mode_t mode = 0666;     // of a new file, less the umask
  // For caches: a pipe or device of that name is an error. Opening it would block until a reader
  // comes, or write to a device.
  bool regular_only = false;
};

class new_file {
 public:
  using outcome = std::expected<void, problem>;

  // Blocks on a named pipe until it has a reader.
  static std::expected<new_file, problem> create(const std::filesystem::path& path,
                                                 write_options how = {});
  // `name` in the open folder `folder`, which the caller has checked.
  static std::expected<new_file, problem> create_in(int folder, const std::string& name,
                                                    write_options how = {});
  new_file(new_file&& other) noexcept;
  new_file& operator=(new_file&&) = delete;
  ~new_file();

  outcome write(std::span<const std::byte> bytes);
  outcome write(std::string_view text);
  enum class flush : uint8_t { yes, no };  // no: a system crash may damage the file
  outcome finish(flush to_disk = flush::yes);

  // Whether a new file takes the name in finish(); false for a pipe, a device or an open file.
  [[nodiscard]] bool is_regular() const { return !in_place_; }
  // Opens what was written so far for reading, before finish(). Regular files only.
  [[nodiscard]] std::filesystem::path readable_path() const;

 private:
  new_file() = default;
  static std::expected<new_file, problem> open(place at, write_options how);
  outcome open_in_place();
  outcome open_beside(mode_t mode);
  outcome take_over_owner_and_mode() const;
  outcome give_name();
  [[nodiscard]] std::string name_beside() const;
  void discard();

  place at_;
  descriptor file_;
  std::string part_;  // name of the temporary file; "" if it has none
  bool overwrite_ = true;
  bool in_place_ = false;
};

// Writes a file whose whole content is `text`.
[[nodiscard]] new_file::outcome write_file(const std::filesystem::path& path, std::string_view text,
                                           write_options how = {});

}  // namespace bitnet::files
