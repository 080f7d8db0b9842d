#pragma once
// The key that signs the receipts of a user, made on first use.

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "plugin/codes/codes.hpp"

namespace bitnet::receipt {

// The files of a key: the private half with mode 0600, the public one beside it.
struct key_files {
  std::filesystem::path secret, open;
};
// The user's files in `folder`: receipt-key.pem and receipt-key.pub.pem.
[[nodiscard]] key_files keys_in(const std::filesystem::path& folder);

// Returns the private key in PEM. If both files are missing it makes them, and the folder with mode
// 0700. Two processes that do so at the same time get the same key. BITNET_REJECTED for a key that
// others can read, BITNET_IO if none can be made.
[[nodiscard]] result<std::string> own_key(const std::filesystem::path& folder);

// The failure for a key's file: BITNET_NOT_FOUND if it is missing, else BITNET_REJECTED.
[[nodiscard]] failure of_key(plugin::defect d);

// The public key from a file of a public or private key; hexadecimal.
[[nodiscard]] result<std::string> public_key_in(const std::filesystem::path& file);

}  // namespace bitnet::receipt
