#pragma once
// The key that signs the receipts of a user, made on first use.

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "plugin/codes/codes.hpp"

namespace bitnet::receipt {

// Files of one key: the private half with mode 0600, the public one beside it.
struct key_files {
  std::filesystem::path secret, open;
};
// Those of the user in `folder`: receipt-key.pem and receipt-key.pub.pem.
[[nodiscard]] key_files keys_in(const std::filesystem::path& folder);

// The private key in PEM. Where neither file is there, both are made, and the folder with mode
// 0700. Two processes that make one at the same time end with the same one. BITNET_REJECTED for a
// key that others may read, BITNET_IO where none can be made.
[[nodiscard]] result<std::string> own_key(const std::filesystem::path& folder);

// What went wrong with a file of a key: BITNET_NOT_FOUND where it is missing, else BITNET_REJECTED.
[[nodiscard]] failure of_key(plugin::defect d);

// The public key of a file that has it, or that has the private one; hexadecimal.
[[nodiscard]] result<std::string> public_key_in(const std::filesystem::path& file);

}  // namespace bitnet::receipt
