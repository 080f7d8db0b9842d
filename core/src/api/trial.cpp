#include "trial/trial.hpp"

#include "api/edge.hpp"
#include "api/objects.hpp"

using bitnet::api::guarded;
using bitnet::api::missing;

void bitnet_trial_defaults(bitnet_trial_options* options, uint32_t size) {
  bitnet::api::give_defaults({}, options, size);
}

bitnet_status bitnet_trial_open(bitnet_runtime* runtime, const bitnet_trial_options* options,
                                bitnet_trial** out, bitnet_error* err) {
  return guarded(err, "bitnet_trial_open", [&]() -> bitnet::result<void> {
    if (runtime == nullptr || options == nullptr || out == nullptr)
      return missing("runtime, options or out");
    const auto taken = bitnet::api::take_options(options, bitnet_trial_defaults);
    if (!taken) return std::unexpected(taken.error());
    const bitnet_trial_options& o = *taken;
    bitnet::trial::trial_options wanted;
    wanted.op = o.op;
    wanted.format = o.format;
    wanted.rows = o.n_rows;
    wanted.inputs = o.n_inputs;
    wanted.scale_group = o.scale_group;
    wanted.n_tokens = o.n_tokens == 0 ? 1 : o.n_tokens;
    wanted.n_matrices = o.n_matrices == 0 ? 1 : o.n_matrices;
    auto choice = runtime->choose();
    if (!choice) return std::unexpected(choice.error());
    auto trial = bitnet::trial::trial::open(*choice, wanted);
    if (!trial) return std::unexpected(trial.error());
    *out = new bitnet_trial(runtime->services.parallel_width(), std::move(*trial));
    return {};
  });
}

void bitnet_trial_close(bitnet_trial* trial) {
  if (trial != nullptr && trial->calls.close()) delete trial;
}

bitnet_status bitnet_trial_run(bitnet_trial* trial, bitnet_trial_result* out, bitnet_error* err) {
  return guarded(err, "bitnet_trial_run", [&]() -> bitnet::result<void> {
    if (trial == nullptr || out == nullptr) return missing("trial or out");
    const auto guard = bitnet::api::call_guard<bitnet_trial>::take(*trial, "trial");
    if (!guard) return std::unexpected(guard.error());
    auto ran = trial->trial->run();
    if (!ran) return std::unexpected(ran.error());
    const bitnet_kernel_stat& kernel = ran->kernel;
    bitnet_trial_result r{};
    r.n_threads = trial->n_threads;
    r.calls = kernel.calls;
    r.time_ns = kernel.time_ns;
    r.bytes = kernel.bytes;
    r.step_ns = ran->step_ns;
    bitnet::api::copy_text(r.kernel, {kernel.id, strnlen(kernel.id, sizeof kernel.id)});
    return bitnet::api::give_result(r, out);
  });
}
