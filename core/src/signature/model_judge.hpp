#pragma once
// Holds the files of a model against its signature: nothing of a file is read as a model's before
// its digest is that of the signature.
//
// Files    those that are loaded must be in the signature; those in the signature must be there,
//          and are hashed too. Others in the folder are left alone. Each file is hashed through the
//          descriptor that its mapping is of, so that no other file can take its place.
// Never    from remembered sums: docs/adr/0080.
// Errors   BITNET_REJECTED, beginning with the signature's file and the field that is wrong;
//          BITNET_INVALID_ARGUMENT for keys that cannot be used; BITNET_CANCELLED.

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
  std::filesystem::path signature;  // "": where it usually lies, see usual_places
  std::filesystem::path key;        // PEM of a public key, or
  std::filesystem::path ca;         // PEM of certificates; one of the two is not ""
  // Between pieces of files; false cancels. `total` bytes are hashed at least.
  std::function<bool(uint64_t total)> goes_on = nullptr;
};

// What a signature vouched for.
struct verified {
  signer by;
  std::string digest;  // of the model, as the signature has it
  std::size_t files = 0;
};

// FILE.sig, then model.sig in its folder; of a folder model.sig in it, then FOLDER.sig.
[[nodiscard]] std::vector<std::filesystem::path> usual_places(const std::filesystem::path& model);

class model_judge final : public gguf::file_judge {
 public:
  // Verifies the signature, and that the files that it lists are there.
  static result<std::unique_ptr<model_judge>> make(const request& asked);

  result<void> admit(const gguf::mapping& file) override;
  result<void> conclude() override;

  // Of a model that is open: conclude() agreed.
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
  std::filesystem::path model_, root_;  // absolute; root_ is the folder that names are below
  manifest listed_;
  uint64_t total_ = 0;            // bytes of all listed files
  std::set<std::string> agreed_;  // names of files that were hashed
  verified outcome_;
};

}  // namespace bitnet::signature
