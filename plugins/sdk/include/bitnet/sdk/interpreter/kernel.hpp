// SPDX-License-Identifier: Apache-2.0 OR MIT
#pragma once
// The author's input to the interpreter: kernels over plain host pointers and counts.
//
// A primitive kernel computes units [first, last) of one op. The interpreter cuts the units into
// one range per worker, or several for products, so a kernel must return the same bits for any cut.
// A call is checked in full: indices, shapes, token ids, positions, slots and blocks are in range.
//
//   op                    unit               in                    out
//   EMBED_GATHER          token              -                     f32 (rows, k)
//   RMS_NORM              row                f32 (rows, k)         f32 (rows, k)
//   ACT_QUANT_I8          row                f32 (rows, k)         i8 (rows, k), f32 (rows)
//   LINEAR_TERNARY        output column      i8 (rows, k), f32 (rows)  f32 (rows, m)
//   LINEAR_TERNARY_GROUPED  output column    i8 (rows, k), f32 (rows, k1)  f32 (rows, m)
//   ACT_QUANT_I8_GROUPED  row                f32 (rows, k)         i8 (rows, k), f32 (rows, groups)
//   RMS_NORM_HEADS        row                f32 (rows, k)         f32 (rows, k)
//   HADAMARD              row                f32 (rows, k)         f32 (rows, k)
//   LINEAR_DENSE          output column      f32 (rows, k)         f32 (rows, m)
//   ROPE                  token              f32 (rows, k)         f32 (rows, k)
//   KV_WRITE              token              f32 (rows, k) twice   -
//   ATTN_PAGED            token * n_kv_heads + kv head   f32 (rows, k)   f32 (rows, k)
//   ADD, MUL              row                f32 (rows, k) twice   f32 (rows, k)
//   RELU2, SILU, GELU     row                f32 (rows, k)         f32 (rows, k)
//   SCALE, SIGMOID        row                f32 (rows, k)         f32 (rows, k)
//   COLUMNS               row                f32 (rows, k)         f32 (rows, m)
//   SHORT_CONV            column             f32 (rows, k)         f32 (rows, k)
//   DELTA_GATES           row                f32 (rows, k) twice   f32 (rows, m)
//   DELTA_RULE            value head         f32 (rows, k), f32 (rows, k1)  f32 (rows, m)
//   GATHER_ROWS           output row         f32 (tokens, k)       f32 (rows, k)

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "bitnet/abi/info.h"
#include "bitnet/abi/ops.h"
#include "bitnet/abi/program.h"
#include "bitnet/sdk/compute/step_view.hpp"
#include "bitnet/sdk/compute/weight.hpp"
#include "bitnet/sdk/formats.hpp"
#include "bitnet/sdk/handle.hpp"
#include "bitnet/sdk/host.hpp"
#include "bitnet/sdk/interpreter/awaited.hpp"
#include "bitnet/sdk/interpreter/row_copies.hpp"

namespace bitnet::sdk {

struct packing;

// A matrix in a form of the author's own (see packing below), made when a kernel wants it.
struct packed_form {
  const packing* how = nullptr;  // of the definition
  uint64_t bytes = 0;
  std::mutex making;
  std::atomic<const uint8_t*> data{nullptr};  // written once
  memory own;                                 // empty if the host gave the bytes
  std::unique_ptr<row_copy> copy;             // of rows that the host provided; nullptr: not wanted
};

// One op of one step.
struct call {
  uint32_t op;    // BITNET_OP_*
  uint64_t rows;  // of this step
  uint64_t k, m;  // widths as in the table above
  uint64_t k1;    // width of in[1]; 0 if there is none
  const void* in[2];
  void* out[2];
  const weight* w;  // nullptr if there is none
  int32_t ints[8];
  float floats[4];
  const step_view* step;
  const void* author_data;  // definition::author_data
  void* prepared;           // what top_form::prepare kept, or nullptr; in its run w->packed exists

  template <class T>
  const T* input(int i) const noexcept {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i) const noexcept {
    return static_cast<T*>(out[i]);
  }
};

struct share {
  uint64_t first, last;  // units
  float* scratch;        // of this worker: (n_heads / n_kv_heads, context) for attention scores
  void* keep;            // of this worker: definition::worker_keep_bytes that outlive the call
  uint64_t scratch_floats = 0;  // size of scratch; larger if definition::most_scores asks for it
};

// Columns of a product that workers share are cut at multiples of this: a cache line of outputs.
constexpr uint64_t column_grain = 16;
static_assert(column_grain % row_copy::run == 0, "what a worker reads would end within a run");

// True for products of a matrix with activations.
inline bool is_product(uint32_t op) noexcept {
  return op == BITNET_OP_LINEAR_TERNARY || op == BITNET_OP_LINEAR_TERNARY_GROUPED ||
         op == BITNET_OP_LINEAR_DENSE;
}

using primitive_kernel = void (*)(const call&, const share&) noexcept;

// True if a step of `tokens` streams its weights. With few tokens weights come from memory, so
// their placement affects the time. With more tokens the products take most of the time.
constexpr uint64_t most_streaming_tokens = 32;
constexpr bool streams_weights(uint64_t tokens) noexcept {
  return tokens <= most_streaming_tokens;
}

// Rounds of one `pause` that a worker spins before it sleeps: 40 for each step of the host's
// setting "poll", 0 to 100.
constexpr uint32_t spins_of(uint32_t poll) noexcept {
  return 40 * (poll < 100 ? poll : 100);
}

// Workers of a step wait for each other here. They spin for a moment, then sleep, so that they do
// not burn their cores while a worker that lost its core is stopped.
class barrier {
 public:
  // Workers spin only if each has a core.
  barrier(uint32_t size, uint32_t cores, uint32_t spins) noexcept
      : size_(size), spins_(size <= cores ? spins : 0) {}
  void wait() noexcept {
    wait([] {});
  }
  // The last worker to arrive calls `rest` while the others still wait.
  template <class F>
  void wait(F rest) noexcept {
    if (size_ == 1) return rest();
    const uint32_t phase = phase_.load();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      rest();
      arrived_.store(0, std::memory_order_relaxed);
      phase_.add(1);
      return;
    }
    phase_.await_change(phase, spins_);
  }
  // Number of waits that outlasted the spinning.
  uint64_t sleeps() const noexcept { return spins_ != 0 ? phase_.sleeps() : 0; }

 private:
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) awaited phase_;
  const uint32_t size_;
  const uint32_t spins_;
};

// Counts the pieces of one worker's range that any worker has taken. Results of pieces are read
// only after a barrier, so this counter orders no memory.
class pieces {
 public:
  void forget() noexcept { taken_.store(0, std::memory_order_relaxed); }
  // Takes the next of n pieces of this deal; returns n if none is left. Deals count from 1.
  uint64_t take(uint64_t deal, uint64_t n) noexcept {
    uint64_t seen = taken_.load(std::memory_order_relaxed);
    for (;;) {
      // Workers are at a later deal, so this one is finished.
      if (seen >> 32 > deal) return n;
      const uint64_t at = seen >> 32 == deal ? seen & UINT32_MAX : 0;
      if (at >= n) return n;
      if (taken_.compare_exchange_weak(seen, deal << 32 | (at + 1), std::memory_order_relaxed))
        return at;
    }
  }

 private:
  alignas(64) std::atomic<uint64_t> taken_{0};  // the deal, and the pieces taken of it
};

struct roles;
class team;
// Runs a whole composite. `body` are its ops; every value of the body has its own memory.
using composite_kernel = void (*)(const call* body, const roles& parts, team& workers) noexcept;

// One worker's view of the team that runs a composite. Every worker runs the whole composite kernel
// and must call sync(), deal() and leave_to_last() equally often.
class team {
 public:
  // `dealt` has one counter for each of `size` workers; nullptr for a team of one.
  team(uint32_t worker, uint32_t size, barrier& meeting, pieces* dealt, float* scratch, void* keep,
       uint64_t scratch_floats = 0) noexcept
      : worker_(worker),
        size_(size),
        meeting_(meeting),
        dealt_(dealt),
        scratch_(scratch),
        keep_(keep),
        scratch_floats_(scratch_floats) {}

  // This worker's range of `units`, cut at multiples of `grain`.
  share split(uint64_t units, uint64_t grain = 1) const noexcept {
    return range_of(worker_, units, grain);
  }
  // Calls f(share) for pieces of `units`, cut at multiples of `grain`: first those of split(), then
  // pieces that other workers have not begun, since cores differ in speed and load. Pieces have at
  // least `fewest` units, unless the worker's whole range is smaller.
  template <class F>
  void deal(uint64_t units, uint64_t grain, F f, uint64_t fewest = 0) noexcept {
    if (size_ == 1) return f(split(units, grain));
    ++deals_;
    for (uint32_t i = 0; i < size_; ++i) {
      const uint32_t of = (worker_ + i) % size_;
      const share all = range_of(of, units, grain);
      for (uint64_t at = dealt_[of].take(deals_, pieces_each); at < pieces_each;
           at = dealt_[of].take(deals_, pieces_each)) {
        const share piece{cut_at(all, at, grain, fewest), cut_at(all, at + 1, grain, fewest),
                          scratch_, keep_, scratch_floats_};
        if (piece.first < piece.last) f(piece);
      }
    }
  }
  void sync() noexcept { meeting_.wait(); }
  // Registers small work that needs the results of all workers. The last worker to finish the item
  // does it before any worker begins the next item. Call it at the end of the item.
  void leave_to_last(composite_kernel rest) noexcept { rest_ = rest; }
  // The barrier after an item.
  void end(const call* body, const roles& parts) noexcept {
    const composite_kernel rest = rest_;
    rest_ = nullptr;
    meeting_.wait([&] {
      if (rest) rest(body, parts, *this);
    });
  }
  uint32_t worker() const noexcept { return worker_; }
  uint32_t size() const noexcept { return size_; }

 private:
  // Each piece is half of the remaining range; the last one is all of it. So the work that every
  // piece repeats, such as sums of activations, is done only a few times, and the final wait is
  // short.
  static constexpr uint64_t pieces_each = 4;
  static uint64_t cut_at(const share& all, uint64_t piece, uint64_t grain,
                         uint64_t fewest) noexcept {
    const uint64_t n = all.last - all.first, left = n >> piece;
    if (piece == pieces_each || (left < fewest && fewest <= n)) return all.last;
    return all.first + (n - left) / grain * grain;
  }

  share range_of(uint32_t worker, uint64_t units, uint64_t grain) const noexcept {
    const uint64_t grains = (units + grain - 1) / grain;
    const auto cut = [&](uint64_t w) {
      const uint64_t at = grains * w / size_ * grain;
      return at < units ? at : units;
    };
    return {cut(worker), cut(worker + uint64_t{1}), scratch_, keep_, scratch_floats_};
  }

  uint32_t worker_, size_;
  barrier& meeting_;
  pieces* dealt_;
  uint64_t deals_ = 0;
  composite_kernel rest_ = nullptr;
  float* scratch_;
  void* keep_;
  uint64_t scratch_floats_;
};

// The role of each op of a composite's body; see composites.hpp. absent: the body has no such op.
struct roles {
  static constexpr uint8_t absent = 0xff;
  uint8_t norm = absent, quant = absent;
  uint8_t q = absent, k = absent, v = absent, rope_q = absent, rope_k = absent, kv_write = absent;
  uint8_t attention = absent;
  uint8_t gate = absent, up = absent, activation = absent, mul = absent;
  uint8_t sub_norm = absent, sub_quant = absent;
  uint8_t linear = absent, add = absent;
  uint8_t gather = absent;
};

// A form of matrices that the author defines.
//
// A kernel's packing (primitive::packing, composite::packing) is read in place of rows. The first
// kernel that wants a matrix packed, primitives before composites, packs it; all kernels with the
// same layout_id read that form.
//   If it drops the rows, `pack` runs when the weight is sealed, the plan reports layout_id and
//   bytes, and kernels without this packing do not get the weight. So a primitive of LINEAR_TERNARY
//   or LINEAR_DENSE must have this packing, or the matrix could not be multiplied.
//   If not, `pack` runs when a program is built, the rows stay for all kernels, and the host may
//   keep the form and bring it the next time (bitnet/abi/packed.h).
// A definition's packing is a second form for the top forms, made when a step first needs it.
//
// `bytes` and a kernel's `fits` see only format, shape and scale group, because they are called
// before data and scales exist. `pack` sees all, and may be called by several workers at once.
struct packing {
  std::string layout_id;                       // the same id, the same bytes
  uint64_t (*bytes)(const weight&) = nullptr;  // 0: not this weight
  // Packs rows [first, last) into the whole form, which is zero before. `first` is a multiple of
  // row_grain, and so is `last` except at the end.
  void (*pack)(const weight&, const void* author_data, uint64_t first, uint64_t last,
               uint8_t* out) noexcept = nullptr;
  bool drops_rows = false;  // kernels only: the rows are freed once they are packed
  uint64_t row_grain = 1;
  // The form contains the scales of groups, which are freed with the rows.
  bool holds_scales = false;
  // Bytes of a row if the form begins with its rows, so that they can be copied (row_copies.hpp).
  uint64_t (*row_bytes)(const weight&) = nullptr;
};

inline const uint8_t* weight::packed_data() const noexcept {
  return packed->data.load(std::memory_order_acquire);
}
inline bool weight::rows_dropped() const noexcept {
  return packed && packed->how->drops_rows;
}

// True if a kernel with this packing can read the weight as it is kept.
inline bool reads(const packing& wanted, const weight& w) noexcept {
  if (!wanted.bytes) return !w.rows_dropped();
  return w.packed && w.packed->how->layout_id == wanted.layout_id;
}

struct primitive {
  uint32_t op;
  uint32_t format;  // of the weight; BITNET_FORMAT_NONE: any format, or no weight
  uint32_t level;   // BITNET_LEVEL_*
  uint32_t exact;   // BITNET_EXACT_*
  std::string id;
  primitive_kernel run;
  bool (*fits)(const weight&) = nullptr;  // weights of that format that it takes; nullptr: all
  sdk::packing packing{};                 // form of its matrix; without `bytes`: rows
};

// State of a top form between steps, and the bytes of weights that one call reads.
struct top_state {
  std::shared_ptr<void> kept;  // nullptr: there is no such form for these weights
  uint64_t weight_bytes = 0;
};

// Another form of a composite that ends in the logits, for steps that need only the largest ones.
struct top_form {
  std::string id;
  uint32_t max_top = 0, max_outputs = 0;  // steps with more take the plain form
  top_state (*prepare)(const call* body, const roles& parts,
                       uint32_t workers) = nullptr;  // when a program is built
  composite_kernel run = nullptr;
};

struct composite {
  uint32_t op;
  uint32_t format;  // of the last linear op's weight; BITNET_FORMAT_NONE: any
  uint32_t exact;
  std::string id;
  composite_kernel run;
  top_form top{};
  bool (*fits)(const weight&) = nullptr;  // checked for every matrix of the body; nullptr: all
  sdk::packing packing{};                 // of every matrix of the body
};

// Settings that the author measures (bitnet/abi/tuning.h). All functions may throw.
struct tunable {
  std::string (*describe)() = nullptr;  // nullptr: there are none
  // Returns why the measurement is unreliable, or "". If it is cancelled it ends early, and `adopt`
  // gets the text that `describe` returned before.
  std::string (*measure)(const void* author_data, const host& services, uint64_t budget_ns,
                         uint64_t cancel_token) = nullptr;
  bool (*adopt)(std::string_view settings) = nullptr;  // false: the text is invalid
  bool (*due)() = nullptr;  // the adopted settings should be measured again; nullptr: never
};

// The author's description of a backend with one device that computes on host memory.
// device.kv_dtypes lists the types that KV_WRITE and ATTN_PAGED handle; pools of other types are
// rejected. 0: f32 and f16. An ATTN_PAGED gets steps with a window only if the device has
// BITNET_ATTENTION_WINDOW, and its own window (ints[4]) only if the device has
// BITNET_ATTENTION_LAYER_WINDOW.
struct definition {
  std::string name, version, vendor, license;
  uint32_t abi_minor = BITNET_ABI_MINOR;  // open_interpreter sets it to the agreed minor
  uint32_t life_flags = BITNET_LIFE_THREAD_FREE | BITNET_LIFE_USES_HOST_POOL;
  bitnet_device_info device{};
  std::vector<primitive> primitives;  // the first row that fits is used
  std::vector<composite> composites;
  sdk::packing packing;  // for top forms
  sdk::tunable tuning;
  std::vector<bitnet_kernel_info> others;  // listed only: kernels that another setting would choose
  bool large_pages = true;                 // for what a device holds; see memory
  // Kernels may copy ternary matrices in the caller's memory (row_copies.hpp) if this returns true:
  // memory for so many bytes is free. nullptr: no copies.
  bool (*copies_rows)(uint64_t bytes) = nullptr;
  copy_code copies_code;  // code of these copies, and of copies of matrices in our own memory
  uint32_t poll = 50;     // open_interpreter sets it to the host's setting; see spins_of
  uint64_t worker_keep_bytes = 0;  // zeroed memory of each worker of a program; see share::keep
  // More bytes after those, for each element of the widest row that is quantised.
  uint64_t worker_row_bytes = 0;
  // Most floats of share::scratch for the scores of all tokens of a step. A value below what one
  // token needs changes nothing.
  uint64_t most_scores = 0;
  // Least bytes of share::scratch in programs that multiply by weights, for buffers that are too
  // large for the stack of a thread.
  uint64_t worker_room_bytes = 0;
  const void* author_data = nullptr;  // passed to every call; outlives the backend
  // Fills the members of bitnet_device_status that it knows and sets their bits in `known`; called
  // from any thread. It is called once when a device is opened, so that later calls can report
  // differences. Empty: the backend has no device_status.
  std::function<void(bitnet_device_status& out)> status;
  std::string why_unavailable;  // not empty: there is no device; says what the user can do
};

}  // namespace bitnet::sdk
