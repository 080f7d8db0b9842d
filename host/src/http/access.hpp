#pragma once
// Decides which clients may use the server: by API keys, and by the origin of a web page.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "basic/result.hpp"
#include "http/request.hpp"

namespace bitnet::host::http {

// API keys as digests. A check compares with all of them, in the same time for any text.
class api_keys {
 public:
  // Exit code 2 for a key that is empty, longer than 512 bytes, or has other than visible ASCII.
  [[nodiscard]] result<void> add(std::string_view key);
  // Adds the keys of a file, one per line; empty lines and lines that begin with # are skipped.
  // Exit code 2 for a file that cannot be read, is larger than 1 MiB or has no key.
  [[nodiscard]] result<void> add_file(const std::string& path);

  [[nodiscard]] bool empty() const { return digests_.empty(); }
  [[nodiscard]] std::size_t size() const { return digests_.size(); }
  [[nodiscard]] bool has(std::string_view key) const;
  // Reads the key from `Authorization: Bearer KEY` or `x-api-key: KEY`.
  [[nodiscard]] bool admits(const request& asked) const;

 private:
  using digest = std::array<unsigned char, 32>;
  std::vector<digest> digests_;
};

// Origins of web pages that may read answers. If the list is empty, requests of all pages but the
// server's own (own_names.hpp) are rejected: a page must not use a server on the user's own
// machine.
class origin_list {
 public:
  // "https://example.org", or "*" for all origins. Exit code 2 for another form.
  [[nodiscard]] result<void> add(std::string_view origin);
  // Returns the value of Access-Control-Allow-Origin; "": the origin is not on the list.
  [[nodiscard]] std::string allowed(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
  bool all_ = false;
};

}  // namespace bitnet::host::http
