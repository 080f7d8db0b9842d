#pragma once
// Verifies a model's files against its signature: no content of a file is used before its digest
// matches the signature.
//
// Files    Loaded files must be in the signature. Files in the signature must exist, and are hashed
//          too. Other files in the folder are ignored. Each file is hashed through the descriptor
//          of its mapping, so that it cannot be replaced.
// Never    uses cached sums: docs/adr/0080.
// Errors   BITNET_REJECTED, beginning with the signature's file and the wrong field;
//          BITNET_INVALID_ARGUMENT for unusable keys; BITNET_UNSUPPORTED if OpenSSL lacks the hash
//          of the signature; BITNET_CANCELLED.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "gguf/file_judge.hpp"
#include "signature/keys.hpp"
#include "signature/manifest.hpp"

namespace bitnet::signature {

struct request {
  std::filesystem::path model;      // a GGUF file, the first of a split one, or a folder
  std::filesystem::path signature;  // "": search usual_places
  std::filesystem::path key;        // PEM of a public key; or set `ca`
  std::filesystem::path ca;         // PEM of certificates; exactly one of both is set
  // Called between pieces of files; false cancels. `total`: bytes to hash, at least.
  std::function<bool(uint64_t total)> goes_on = nullptr;
};

// The result of a verification.
struct verified {
  signer by;
  std::string digest;  // the model's, from the signature
  std::size_t files = 0;
};

// For a file FILE.sig, then model.sig in its folder; for a folder model.sig in it, then FOLDER.sig.
[[nodiscard]] std::vector<std::filesystem::path> usual_places(const std::filesystem::path& model);

class model_judge final : public gguf::file_judge {
 public:
  // Verifies the signature, and that the listed files exist.
  static result<std::unique_ptr<model_judge>> make(const request& asked);

  result<void> admit(const gguf::mapping& file) override;
  result<void> conclude() override;

  // Valid after conclude() succeeded.
  [[nodiscard]] const verified& outcome() const { return outcome_; }

 private:
  model_judge() = default;
  [[nodiscard]] result<void> find_root();
  [[nodiscard]] result<void> check_presence();
  [[nodiscard]] result<void> check_file(const std::string& name, int descriptor, uint64_t size);
  [[nodiscard]] result<void> check_piece(const std::string& name, const piece& one, int descriptor,
                                         uint64_t size) const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const;
  [[nodiscard]] std::string name_of(const std::filesystem::path& file) const;
  [[nodiscard]] std::unexpected<failure> within_signature(failure why) const;

  request asked_;
  std::filesystem::path model_, root_;  // absolute; names are relative to root_
  manifest listed_;
  uint64_t total_ = 0;            // bytes of all listed files
  std::set<std::string> agreed_;  // files with a matching hash
  verified outcome_;
};

}  // namespace bitnet::signature
