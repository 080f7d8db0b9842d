#pragma once
// Verifies signatures of models if options ask for it.

#include <memory>

#include "base/result.hpp"
#include "bitnet/bitnet.h"
#include "signature/model_judge.hpp"

namespace bitnet::api {

// Makes the judge of the files of the model at `path`, called while they are opened; nullptr: no
// key was given. `options` outlive it. BITNET_REJECTED for a bad signature.
result<std::unique_ptr<signature::model_judge>> judge_of(const bitnet_model_options& options,
                                                         const char* path);

// A text that differs if the options differ, for give_changing_text().
std::string signature_words(const bitnet_model_options& options);

}  // namespace bitnet::api
