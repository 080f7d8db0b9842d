#include "convert/convert.hpp"

#include "api/edge.hpp"
#include "api/model_signature.hpp"
#include "api/objects.hpp"

using bitnet::api::guarded;
using bitnet::api::missing;

void bitnet_convert_defaults(bitnet_convert_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_convert(const char* in, const char* out, const bitnet_convert_options* options,
                             void (*report)(void* user, bitnet_str text), void* report_user,
                             bitnet_error* err) {
  return guarded(err, "bitnet_convert", [&]() -> bitnet::result<void> {
    if (in == nullptr || out == nullptr) return missing("in or out");
    const auto taken = bitnet::api::take_options(options, bitnet_convert_defaults);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_convert_options& o = *taken;
    const auto reading =
        bitnet::api::take_options(o.model, bitnet_model_defaults, "the options of reading");
    if (!reading) return std::unexpected(reading.error());
    bitnet::convert::options how;
    if (o.type != nullptr) how.type = o.type;
    if (o.embedding_type != nullptr) how.embedding_type = o.embedding_type;
    if (o.output_type != nullptr) how.output_type = o.output_type;
    how.overwrite = o.overwrite != 0;
    how.verify = o.verify != 0;
    how.lossy = o.lossy != 0;
    how.n_threads = o.n_threads;
    auto load = bitnet::api::load_options_of(*reading);
    if (!load) return std::unexpected(load.error());
    how.load = *load;
    how.load.vocabulary_only = false;
    const auto judge = bitnet::api::judge_of(*reading, in);
    if (!judge) return std::unexpected(judge.error());
    how.load.judge = judge->get();
    if (o.progress != nullptr)
      how.progress = [&o](uint64_t done, uint64_t total) {
        return o.progress(o.progress_user, done, total) == 0;
      };
    const auto text = bitnet::convert::convert(in, out, how);
    if (!text) return std::unexpected(text.error());
    if (report != nullptr) report(report_user, {text->data(), text->size()});
    return {};
  });
}
