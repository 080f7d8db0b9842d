#pragma once
// The interface that a driver of a GPU API implements in plugins/<api>. gpu-common makes a whole
// backend of it, and needs nothing else.
//
// Errors   every call that can fail returns a status and says why through the reporter.
// Owner    the holder of the unique_ptr; objects die before the device that made them.
// Threads  a device's and its queues' calls come one at a time; gpu-common sees to it. But wait(),
//          poll() and status() come at any time, from any thread.
// Bytes    all sizes and offsets, unless the name says otherwise. Memory is made of 32-bit words.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bitnet/abi/info.h"
#include "bitnet/sdk/guard.hpp"
#include "kernels.hpp"
#include "ranges.hpp"

namespace bitnet::gpu {

// `level` is BITNET_LOG_*.
using log_function = std::function<void(uint32_t level, const std::string& message)>;

// A kernel's name for messages.
constexpr const char* kernel_label(kernel_id id) noexcept {
  return id < kernel_id::count ? row_of(id).name : "?";
}

// What a device has room for, and which optional kernels its driver has. Numbers that are no limits
// are 0 if unknown.
struct capabilities {
  uint64_t max_allocation_bytes = 0;  // of one buffer
  uint64_t max_binding_bytes = 0;     // that a kernel can see of one buffer
  // The API's names of these two limits, for messages; empty if they have none.
  std::string max_allocation_name, max_binding_name;
  uint32_t binding_alignment = 4;    // of a binding's offset; a power of two
  uint32_t max_group_size = 0;       // threads of a work group
  uint32_t max_groups = 65535;       // work groups in x, and in y
  uint32_t shared_memory_bytes = 0;  // of a work group
  uint32_t group_size = 64;          // threads of a work group that suit the device; a power of two
  uint32_t max_bindings = 0;         // of a kernel
  uint32_t max_kept = 16;            // most elements of a head that a thread of attn_paged keeps
  // Most rows of a tile of attn_tiles, a power of two. 0: the driver has attn_paged instead.
  uint32_t attention_rows = 0;
  bool attention_of_token = false;  // attn_token, which needs tiles
  bool has_top_head = false;        // kernels of the two-stage head
  bool fuses_groups = false;        // norm_quant_groups and glu_quant_groups
  // 1 << BITNET_PRECISION_* for each format that activations can be rounded to.
  uint32_t precisions = 0;
  // Bits of rounded_heads_bit(): heads whose attention can be computed with factors of f16.
  uint32_t rounded_heads = 0;
};

// How a driver treats commands, where drivers differ: plans and recordings take account of it, and
// results are the same.
struct quirks {
  // Most bytes of a host buffer or a table of rotations that a recording copies to the device. Each
  // recording copies the host memory that its kernels read, to memory that it allocates itself. 0:
  // it copies none.
  uint64_t most_gathered = 0, most_gathered_rotations = 0;
  // Most loop passes of a thread in one kernel, all loops together: the driver silently skips
  // further passes. 0: no limit.
  uint32_t max_passes = 0;
  // In steps of one row each group of bit_linear quantises its own copy of the row. If all groups
  // together quantise more elements than this, a separate command costs less. 0: groups run side by
  // side, so the elements of one group count.
  uint32_t max_repeated = 0;
  // act_quant_groups takes a thread for each four elements of a row; else one for each group.
  bool quantises_by_words = false;
};

// Facts about a device that is not yet open. Numbers are 0 if unknown.
struct facts {
  std::string name, uuid, pci_address, arch, driver_version;
  uint32_t device_class = 0;  // BITNET_DEVICE_*
  uint64_t memory_total_bytes = 0;
  uint32_t compute_units = 0;
  gpu::capabilities capabilities;
  gpu::quirks quirks;
};

// Bytes that a gathered part takes: multiples of the alignment of an allocation of its own.
constexpr uint64_t gathered_bytes_of(uint64_t bytes) noexcept {
  return (bytes + 255) / 256 * 256;
}

// A limit as messages give it: "134217728 (maxStorageBufferBindingSize)".
inline std::string limit_text(uint64_t bytes, const std::string& name) {
  return std::to_string(bytes) + (name.empty() ? "" : " (" + name + ")");
}

struct limit {
  uint64_t bytes = 0;
  std::string name;  // of the API; empty if it has none
  std::string text() const { return limit_text(bytes, name); }
};

// Of what a kernel can see of one buffer, which is no larger than an allocation.
inline limit binding_limit(const capabilities& can) {
  limit out{uint64_t{1} << 32, ""};  // kernels count words in 32 bits
  if (can.max_allocation_bytes < out.bytes)
    out = {can.max_allocation_bytes, can.max_allocation_name};
  if (can.max_binding_bytes <= out.bytes) out = {can.max_binding_bytes, can.max_binding_name};
  return out;
}

// Memory of the device. Contents start as zeros.
class buffer {
 public:
  virtual ~buffer() = default;
  virtual uint64_t size() const noexcept = 0;
  // The host's view, the same as long as the buffer lives; nullptr unless it was made for the host.
  // A submission sees the host's writes before submit(); the host sees the device's writes after
  // wait(). The view may be a copy of the device's memory: then the driver copies the bytes that a
  // submission uses to the device before it, and the bytes that it writes (binding::written) back
  // when it is done.
  virtual void* mapped() const noexcept = 0;
};

enum class memory_place : uint8_t {
  device,  // fast for the device
  host,    // seen by both
};

class kernel {
 public:
  virtual ~kernel() = default;
};

// A part of a buffer as a kernel sees it: offset is a multiple of capabilities::binding_alignment,
// bytes of 4.
struct binding {
  const buffer* memory = nullptr;
  uint64_t offset = 0, bytes = 0;
  bool written = false;  // by the command; a copy writes its ranges of the second binding
};

struct copy_range {
  uint64_t from = 0, to = 0, bytes = 0;  // all multiples of 4
};

// One dispatch: `groups_x` * `groups_y` work groups, each capabilities::group_size threads or as
// many as the kernel's specialisation says. Or, without a kernel, copies from the memory of the
// first binding to that of the second; the ranges are of whole buffers and do not touch each other.
struct command {
  const kernel* run = nullptr;
  std::vector<copy_range> copies;
  std::vector<binding> bindings;  // in the order of kernels.hpp
  std::vector<uint32_t> params;   // words of the kernel's parameter struct, at most max_params
  uint32_t groups_x = 1, groups_y = 1;
  bool after = false;  // waits for all commands before it, and sees what they wrote
};

// A list of commands that is submitted many times; never twice at the same time.
class recording {
 public:
  virtual ~recording() = default;
  // Writes the nanoseconds that each command took in the last run. Call it after wait(). Returns
  // false if the device cannot measure; the recording must have been made with `timed`.
  virtual bool times(std::span<uint64_t> out) const noexcept = 0;
};

// Runs recordings in order. Its timeline starts at 0.
class queue {
 public:
  virtual ~queue() = default;  // waits for submitted work
  // Returns at once. `value` is greater than any before.
  virtual bitnet_status submit(recording& work, uint64_t value, const sdk::reporter& report) = 0;
  // BITNET_TIMEOUT if the timeline has not reached `value` in time, BITNET_DEVICE_LOST if it never
  // will.
  virtual bitnet_status wait(uint64_t value, uint64_t timeout_ns, const sdk::reporter& report) = 0;
  virtual bitnet_status poll(uint64_t& value, const sdk::reporter& report) = 0;
};

// Fails a wait for `value`, which the timeline has not reached. `comes`: a submitted recording
// reaches it.
inline bitnet_status report_timeline(uint64_t reached, uint64_t value, bool comes,
                                     const sdk::reporter& report) {
  return report.fail(
      BITNET_TIMEOUT, "the timeline is at %llu and not at %llu%s",
      static_cast<unsigned long long>(reached), static_cast<unsigned long long>(value),
      comes ? " in time; wait longer" : ", which no submitted step reaches; submit one first");
}

class device {
 public:
  virtual ~device() = default;
  virtual const facts& describe() const noexcept = 0;
  // capabilities::precisions, without those whose rounding, or all of whose products of dense
  // matrices, are left out: the user disabled the kernels, or they were found wrong.
  virtual uint32_t rounded_products() const noexcept { return describe().capabilities.precisions; }
  // capabilities::rounded_heads, without those whose kernel is left out in the same way.
  virtual uint32_t rounded_heads() const noexcept { return describe().capabilities.rounded_heads; }
  // The profiler that is attached, the same as long as the device lives; nullptr: none.
  virtual gpu::watcher* watcher() const noexcept { return nullptr; }
  // Fills the members that the driver can report and sets their bits in `known`. gpu-common reports
  // the pool itself.
  virtual bitnet_status status(bitnet_device_status&, const sdk::reporter&) const {
    return BITNET_OK;
  }

  virtual bitnet_status allocate(uint64_t bytes, memory_place where, std::unique_ptr<buffer>& out,
                                 const sdk::reporter& report) = 0;
  // upload and download are complete when they return. Offsets and sizes are multiples of 4; no
  // running submission uses the same bytes.
  virtual bitnet_status upload(buffer& to, uint64_t offset, const void* data, uint64_t bytes,
                               const sdk::reporter& report) = 0;
  virtual bitnet_status download(const buffer& from, uint64_t offset, void* data, uint64_t bytes,
                                 const sdk::reporter& report) = 0;

  virtual bitnet_status make_kernel(const kernel_spec& spec, std::unique_ptr<kernel>& out,
                                    const sdk::reporter& report) = 0;
  // Buffers and kernels outlive the recording.
  virtual bitnet_status record(std::span<const command> commands, bool timed,
                               std::unique_ptr<recording>& out, const sdk::reporter& report) = 0;
  virtual bitnet_status make_queue(std::unique_ptr<queue>& out, const sdk::reporter& report) = 0;
};

// A kernel with the same bits as another kernel, which replaces it where it is left out. If its
// precision is not F32, the bits are the same where nothing is rounded, or no kernel replaces it,
// and plans do not use the precision. The driver chooses it by the size of a step, so plans do not
// contain it.
struct kernel_alternative {
  std::string name;                        // of its id: "<name>.<api>"
  uint32_t op = 0, format = 0, exact = 0;  // as bitnet_kernel_info
  uint32_t precision = BITNET_PRECISION_F32;
};

// An API's driver in this process, made when the first call needs it.
class platform {
 public:
  virtual ~platform() = default;
  virtual const std::vector<facts>& devices() const noexcept = 0;
  // The index of each call below is one of devices(): the backend checks it.
  //
  // Listed behind a device's other kernels. Those that open() found wrong are no longer among them.
  // [any]
  virtual std::vector<kernel_alternative> alternatives(uint32_t /*index*/) const { return {}; }
  // capabilities::precisions, without those whose products of dense matrices open() found wrong.
  // [any]
  virtual uint32_t rounded_products(uint32_t index) const {
    return devices()[index].capabilities.precisions;
  }
  // capabilities::rounded_heads, without those whose kernel open() found wrong. [any]
  virtual uint32_t rounded_heads(uint32_t index) const {
    return devices()[index].capabilities.rounded_heads;
  }
  virtual bitnet_status open(uint32_t index, std::unique_ptr<device>& out,
                             const sdk::reporter& report) = 0;
};

}  // namespace bitnet::gpu
