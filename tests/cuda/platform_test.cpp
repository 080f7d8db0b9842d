// Where there is no driver, an old one, no device or none that can be used, the answer says what to
// do. And how bytes come to a device.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda_platform.hpp"
#include "form_trials.hpp"
#include "gpu-common/streams/staging.hpp"
#include "host_memory.hpp"
#include "kernel_table.hpp"
#include "stand_in.hpp"
#include "stand_ins/forms_left_out.hpp"
#include "stand_ins/in_a_process.hpp"

namespace bitnet::cuda::test {
namespace {

using bitnet::test::said_in_a_process;

// The platform that the driver `driver` opens, for a process in which the stand-in has settings.
bitnet::test::formed_backend backend_of(const char* driver = usual_driver) {
  bitnet::test::formed_backend out;
  out.open_platform = [driver](const gpu::form_use& use, const log_function& log,
                               std::string& why) {
    return open_platform(driver, log, why, {.use = use});
  };
  out.device = "Stand-in (no GPU)";
  out.api = "cuda";
  out.version = "the driver's version";
  out.all = out.listed = optional_forms();
  out.alone = {"round_rows_f16", "round_rows_bf16"};
  out.by_host = out.alone;
  for (const char* form : {"linear_dense_rounded_f16_few", "linear_dense_rounded_bf16_few",
                           "linear_dense_rounded_f16_many", "linear_dense_rounded_bf16_many"})
    out.by_host.emplace_back(form);
  out.function_of = [](const std::string& form) {
    return form.starts_with("round_rows_") ? "round_rows" : form;
  };
  return out;
}
// "opened", or why there is no platform or its first device does not open, behind what is logged.
std::string said(const char* settings, const char* driver = usual_driver) {
  return backend_of(driver).opened(settings).words;
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(cuda_platform, a_device_that_can_be_used) {
  EXPECT_EQ(said(""), "opened");
  EXPECT_EQ(said("arch=91"), "opened");   // runs code of an older minor
  EXPECT_EQ(said("arch=130"), "opened");  // newer than any that is built: from PTX
}
TEST(cuda_platform, forms_with_other_bits_are_done_without) {
  bitnet::test::expect_wrong_forms_left_out(backend_of());
  // Plain kernels judge, and are the core's to test.
  EXPECT_NE(said("wrong=linear_ternary_1").find("linear_ternary_few.cuda has"), std::string::npos);
}
// A form that waits for what never comes gives up.
TEST(cuda_platform, forms_that_hang_are_done_without) {
  const std::string out = said("lost_boxes=1");
  for (const std::string& form : forms_by_warp_groups())
    EXPECT_NE(out.find(form + ".cuda has other bits"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("opened")) << out;
}
TEST(cuda_platform, a_form_that_never_ends_is_left_out) {
  bitnet::test::expect_hanging_forms_left_out(backend_of());
}
TEST(cuda_platform, a_form_that_loses_the_device_is_left_out) {
  bitnet::test::expect_losing_forms_left_out(backend_of());
}
TEST(cuda_platform, nothing_is_compared_behind_a_probe) {
  bitnet::test::expect_nothing_compared_behind_a_probe(backend_of());
}
TEST(cuda_platform, forms_that_are_off_do_not_run) {
  gpu::facts about;
  about.capabilities.precisions = ~0u;
  bitnet::test::expect_forms_off_do_not_run(backend_of(), form_trials(about));
}
TEST(cuda_platform, forms_that_a_device_has_not_are_not_listed) {
  forms older = backend_of().without("linear_ternary_wide");
  std::erase(older, "linear_ternary_narrow");
  std::erase(older, "linear_ternary_factored_wide");
  const auto listed = [](const char* setting) {
    return backend_of().opened(setting, {.checks = false}).listed;
  };
  EXPECT_EQ(listed("arch=80"), older);
  std::erase(older, "head_state_one");
  EXPECT_EQ(listed("arch=86"), older);
  for (const char* form :
       {"round_rows_bf16", "linear_dense_rounded_bf16_few", "linear_dense_rounded_bf16_many"})
    std::erase(older, form);
  std::erase(older, "attn_prompt_f16_256");
  EXPECT_EQ(listed("arch=75"), older);
}
// Plans and the list of kernels have attention with rounded factors for the heads whose form is
// right.
TEST(cuda_platform, heads_whose_rounding_form_is_wrong_are_left_out) {
  const auto heads = [](const char* setting, const gpu::form_use& use) {
    return said_in_a_process(setting, [&] {
      std::string why;
      const auto platform =
          open_platform(usual_driver, [](uint32_t, const std::string&) {}, why, {.use = use});
      const std::string before = std::to_string(platform->rounded_heads(0));
      bitnet_error error{};
      error.struct_size = sizeof error;
      std::unique_ptr<gpu::device> device;
      if (platform->open(0, device, {&error, "test"}) != BITNET_OK)
        return std::string(error.message);
      return before + " " + std::to_string(platform->rounded_heads(0)) + " " +
             std::to_string(device->rounded_heads());
    });
  };
  EXPECT_EQ(heads("", {}), "7 7 7");
  EXPECT_EQ(heads("wrong=attn_prompt_f16_128", {}), "7 5 5");
  EXPECT_EQ(heads("arch=75", {.checks = false}), "3 3 3");
  EXPECT_EQ(heads("arch=75", {.checks = false, .off = {"attn_prompt_f16_64"}}), "2 2 2");
}
// The same with products of rounded activations: either form does the other's work.
TEST(cuda_platform, precisions_whose_products_are_wrong_are_left_out) {
  const auto products = [](const char* setting, const gpu::form_use& use = {}) {
    return said_in_a_process(setting, [&] {
      std::string why;
      const auto platform =
          open_platform(usual_driver, [](uint32_t, const std::string&) {}, why, {.use = use});
      const std::string before = std::to_string(platform->rounded_products(0));
      bitnet_error error{};
      error.struct_size = sizeof error;
      std::unique_ptr<gpu::device> device;
      if (platform->open(0, device, {&error, "test"}) != BITNET_OK)
        return std::string(error.message);
      return before + " " + std::to_string(platform->rounded_products(0)) + " " +
             std::to_string(device->rounded_products());
    });
  };
  constexpr uint32_t f16 = 1u << BITNET_PRECISION_F16, bf16 = 1u << BITNET_PRECISION_BF16;
  const auto thrice = [](uint32_t before, uint32_t after) {
    const std::string then = " " + std::to_string(after);
    return std::to_string(before) + then + then;
  };
  EXPECT_EQ(products(""), thrice(f16 | bf16, f16 | bf16));
  EXPECT_EQ(products("wrong=round_rows"), thrice(f16 | bf16, 0)) << "no kernel stands in for it";
  EXPECT_EQ(products("wrong=linear_dense_rounded_f16_few"), thrice(f16 | bf16, f16 | bf16))
      << "that for many tokens takes few";
  EXPECT_EQ(
      products("wrong=linear_dense_rounded_bf16_few", {.off = {"linear_dense_rounded_bf16_many"}}),
      thrice(f16 | bf16, f16))
      << "neither is left";
  EXPECT_EQ(products("", {.checks = false, .off = {"round_rows_f16"}}), thrice(bf16, bf16))
      << "the user disabled it";
}
// Of what the table chooses by the size of a step, all is compared but the kernel that remains
// without any form. Products with rounded activations have none.
TEST(cuda_platform, every_form_of_the_table_is_compared) {
  forms found;
  const auto collect_of = [&](const gpu::kernel_spec& spec) {
    kernel_form form;
    ASSERT_TRUE(find_form(spec, {}, form));
    if (spec.id == gpu::kernel_id::delta_rule) found.push_back(form.function);
    for (uint32_t i = 0; i < form.tiled_count; ++i) found.push_back(form.tiled[i].function);
    kernel_form plain;
    const bool rounds_rows = spec.id == gpu::kernel_id::round_rows;
    if (rounds_rows)
      found.push_back(spec.constants[3] == BITNET_FORMAT_F16 ? "round_rows_f16"
                                                             : "round_rows_bf16");
    ASSERT_EQ(find_form(spec, optional_forms(), plain),
              !rounds_rows && spec.id != gpu::kernel_id::linear_dense_rounded);
    EXPECT_EQ(plain.usable, 0u) << plain.function;
  };
  const auto collect = [&](gpu::kernel_id id, uint32_t rows, uint32_t format, uint32_t group) {
    collect_of({id, {group_threads, rows, 4, format, group}});
  };
  collect(gpu::kernel_id::linear_ternary, 32, 4, 0);
  collect(gpu::kernel_id::linear_ternary, 1, 4, 32);
  for (const auto id : {gpu::kernel_id::round_rows, gpu::kernel_id::linear_dense_rounded})
    for (const uint32_t format : {BITNET_FORMAT_F16, BITNET_FORMAT_BF16})
      collect(id, 32, format, 0);
  collect(gpu::kernel_id::delta_rule, 64, 0, 0);
  collect(gpu::kernel_id::delta_rule, 128, 0, 0);
  for (const auto id :
       {gpu::kernel_id::rms_norm, gpu::kernel_id::act_quant, gpu::kernel_id::norm_quant,
        gpu::kernel_id::norm_quant_groups, gpu::kernel_id::glu_quant, gpu::kernel_id::head_state,
        gpu::kernel_id::bit_linear})
    collect(id, 0, 0, 0);
  for (const uint32_t head_dim : {64u, 128u, 256u})
    for (const auto id : {gpu::kernel_id::attn_tiles, gpu::kernel_id::attn_rounded})
      collect_of(
          {id, {group_threads, BITNET_DTYPE_F16, BITNET_DTYPE_F16, most_attention_rows, head_dim}});
  forms compared = optional_forms();
  std::sort(found.begin(), found.end());
  std::sort(compared.begin(), compared.end());
  EXPECT_EQ(found, compared);
}
TEST(cuda_platform, a_driver_that_is_absent_is_reported) {
  expect_words(said("", "libcuda-absent.so.1"),
               {"libcuda-absent.so.1 is not installed", "install"});
}
TEST(cuda_platform, a_driver_that_is_absent_in_wsl_is_reported) {
  expect_words(not_installed("libcuda.so.1", true),
               {"libcuda.so.1 is not installed", "that of Windows", "/usr/lib/wsl/lib"});
}
TEST(cuda_platform, a_library_that_is_no_driver) {
  expect_words(said("", "libc.so.6"), {"speaks CUDA 0.0", "update the driver"});
}
TEST(cuda_platform, an_old_driver_is_reported_with_both_versions) {
  expect_words(said("version=11080"), {"speaks CUDA 11.8", "need CUDA", "update the driver"});
}
TEST(cuda_platform, a_driver_that_does_not_start) {
  expect_words(said("init=100"), {"shows no device", "CUDA_VISIBLE_DEVICES", "nvidia-smi"});
  expect_words(said("init=34"), {"stub", "LD_LIBRARY_PATH"});
  expect_words(said("init=802"), {"nvidia-fabricmanager"});
  expect_words(said("init=803"), {"different versions", "restart"});
  expect_words(said("init=999"), {"cuInit failed", "(999)", "nvidia-uvm"});
}
TEST(cuda_platform, a_machine_without_a_device_is_reported) {
  expect_words(said("devices=0"), {"shows no device", "CUDA_VISIBLE_DEVICES"});
}
TEST(cuda_platform, an_architecture_that_was_not_built) {
  expect_words(said("arch=61"), {"sm_61", "this build has", "BITNET_CUDA_ARCHS=61"});
}
TEST(cuda_platform, a_prohibited_compute_mode_is_reported) {
  expect_words(said("mode=2"), {"prohibited", "nvidia-smi -c DEFAULT"});
  EXPECT_EQ(said("mode=3"), "opened");
  expect_words(said("mode=3,retain=46"), {std::to_string(BITNET_UNAVAILABLE).c_str(), "one process",
                                          "nvidia-smi -c DEFAULT"});
}
// Where the device's memory is the host's, files that the system can drop are not taken memory.
TEST(cuda_platform, reclaimable_memory_is_free) {
  const std::string file = testing::TempDir() + "meminfo-" + std::to_string(getpid());
  const auto with = [&](const char* text) {
    std::ofstream(file) << text;
    return available_bytes(file.c_str());
  };
  EXPECT_EQ(with("MemTotal:       64 kB\nMemFree:  8 kB\nMemAvailable:    48 kB\nBuffers: 1 kB\n"),
            48u << 10);
  EXPECT_EQ(free_bytes(true, 10 << 10, 64 << 10, file.c_str()), 48u << 10);
  EXPECT_EQ(free_bytes(true, 50 << 10, 64 << 10, file.c_str()), 50u << 10);
  EXPECT_EQ(free_bytes(true, 10 << 10, 40 << 10, file.c_str()), 40u << 10);
  EXPECT_EQ(free_bytes(false, 10 << 10, 64 << 10, file.c_str()), 10u << 10);
  for (const char* text : {"", "MemFree: 8 kB\n", "MemAvailable:\n", "MemAvailable: x kB\n",
                           "MemAvailable: 18446744073709551615 kB\n"})
    EXPECT_EQ(with(text), 0u) << text;
  std::remove(file.c_str());
  EXPECT_EQ(available_bytes(file.c_str()), 0u);
  EXPECT_EQ(free_bytes(true, 10 << 10, 64 << 10, file.c_str()), 10u << 10);
}
std::string free_mib(const char* settings) {
  return said_in_a_process(settings, [&] {
    std::string why;
    const auto platform = open_platform(usual_driver, [](uint32_t, const std::string&) {}, why,
                                        {.use = {.checks = false}});
    bitnet_error error{};
    error.struct_size = sizeof error;
    std::unique_ptr<gpu::device> device;
    bitnet_device_status status{};
    if (platform->open(0, device, {&error, "test"}) != BITNET_OK ||
        device->status(status, {&error, "test"}) != BITNET_OK)
      return std::string(error.message);
    return std::to_string(status.memory_free_bytes >> 20);
  });
}
// Every machine that runs this has 16 MiB to give.
TEST(cuda_platform, free_memory_of_a_device_that_has_the_hosts) {
  const std::string taken = free_mib("memory=16,cached=12"),
                    reclaimed = free_mib("memory=16,cached=12,integrated=1");
  EXPECT_LE(std::stoi(taken), 4);
  EXPECT_EQ(reclaimed, "16");
}
TEST(cuda_platform, a_context_that_is_not_to_be_had) {
  expect_words(said("retain=2"), {std::to_string(BITNET_OUT_OF_DEVICE_MEMORY).c_str(), "failed"});
  expect_words(said("retain=214"), {std::to_string(BITNET_DEVICE_LOST).c_str()});
}

// How many calls of the driver each upload of these sizes takes, in a process with these settings,
// "(size)" where other bytes arrive, and what is logged. Words stand behind each other, so that
// those of another piece are others.
std::string uploads(const char* settings, const std::vector<uint64_t>& sizes) {
  return said_in_a_process(settings, [&] {
    std::string out, log;
    const auto platform = open_platform(
        usual_driver, [&](uint32_t, const std::string& line) { log += "[" + line + "]"; }, out,
        {.use = {.checks = false}});
    const auto calls = reinterpret_cast<decltype(&bitnet_stand_in_calls)>(
        dlsym(dlopen(usual_driver, RTLD_NOW | RTLD_NOLOAD), "bitnet_stand_in_calls"));
    bitnet_error error{};
    error.struct_size = sizeof error;
    const sdk::reporter report(&error, "test");
    const auto must = [&](bitnet_status s) {
      if (s != BITNET_OK) throw std::runtime_error(error.message);
    };
    std::unique_ptr<gpu::device> device;
    must(platform->open(0, device, report));
    for (const uint64_t bytes : sizes) {
      std::vector<uint32_t> words(bytes / 4 + 2), arrived(words.size());
      std::iota(words.begin() + 1, words.end() - 1, static_cast<uint32_t>(bytes));
      std::unique_ptr<gpu::buffer> memory;
      must(device->allocate(bytes + 8, gpu::memory_place::device, memory, report));
      const uint64_t before = calls();
      must(device->upload(*memory, 4, words.data() + 1, bytes, report));
      out += std::to_string(calls() - before) + " ";
      must(device->download(*memory, 0, arrived.data(), bytes + 8, report));
      if (arrived != words) out += "(" + std::to_string(bytes) + ") ";
    }
    return out + log;
  });
}

constexpr uint64_t small = gpu::small_upload, piece = gpu::staging_piece;

// The context is pushed and popped, and a piece is sent and waited for.
TEST(cuda_platform, uploads_by_pieces) {
  EXPECT_EQ(uploads("", {4, small, piece - 4, piece, piece + 4}), "4 4 5 4 6 ");
  EXPECT_EQ(uploads("", {small + 4, 2 * piece - 4, 2 * piece, 2 * piece + 4}), "5 6 6 8 ");
  EXPECT_EQ(uploads("", {7 * piece + 8, 3 * piece, 7 * piece + 8}), "19 8 18 ");
}
// Or as they are, which is reported once.
TEST(cuda_platform, uploads_without_memory_that_stays_in_place) {
  for (const char* settings : {"pinned=2", "pinned=801"}) {
    const std::string out = uploads(settings, {small, 2 * piece, 7 * piece + 8});
    EXPECT_TRUE(
        out.starts_with("4 5 4 [Stand-in (no GPU): the system has no pinned memory for uploads"))
        << out;
    EXPECT_EQ(std::count(out.begin(), out.end(), '['), 1) << out;
  }
}
// Such as does not come from a device that is lost.
TEST(cuda_platform, uploads_to_a_lost_device) {
  expect_words(uploads("pinned=214", {2 * piece}), {"cuMemHostAlloc failed"});
}

}  // namespace
}  // namespace bitnet::cuda::test
