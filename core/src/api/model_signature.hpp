#pragma once
// Signatures of models, as options ask for them.

#include <memory>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "signature/model_judge.hpp"

namespace bitnet::api {

// What judges the files of the model at `path` while they are opened; nullptr: no key was given.
// `options` outlive it. BITNET_REJECTED where the signature is no good, whatever the files are.
result<std::unique_ptr<signature::model_judge>> judge_of(const bitnet_model_options& options,
                                                         const char* path);

// The options by which two calls differ, for give_changing_text().
std::string signature_words(const bitnet_model_options& options);

}  // namespace bitnet::api
