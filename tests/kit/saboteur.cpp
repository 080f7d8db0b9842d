// tests/parity's backend with one defect, which the setting "defect" names: what computes rightly
// and breaks one promise of the contract. Or with the setting "fault", OP:DIMENSION:N: an op that
// is right until it meets something larger than N. faults.hpp has the dimensions. Or with the
// setting "structure": an op that confuses sequences; sequence_faults.hpp names them.

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>

#include "bitnet/abi/backend.h"

#undef BITNET_BACKEND_ENTRY
#define BITNET_BACKEND_ENTRY sound_entry
#define TIER0_NAME "saboteur"
#include "../parity/tier0_backend.cpp"
#include "../parity/tier0_variant.cpp"
#include "faults.hpp"
#include "sequence_faults.hpp"
#undef BITNET_BACKEND_ENTRY
#define BITNET_BACKEND_ENTRY bitnet_backend_abi0

namespace {

bitnet_backend_v0 sound{};
// What the backend sees of the host: the same, unless a defect changes it.
const bitnet_host_v0* true_host = nullptr;
bitnet_host_v0 deaf_host{};
std::mutex guard;
// What the defects on results need to know of each program and binding; those of long ago are
// forgotten. No container: nothing may be thrown here, and memory may be refused.
struct known_object {
  const void* handle = nullptr;
  uint32_t logits_port = BITNET_NONE, largest_port = BITNET_NONE;
  bitnet_buffer *logits = nullptr, *largest = nullptr;  // of a binding
  int32_t* tokens = nullptr;                            // of a binding, where ports stand in order
  uint64_t logits_offset = 0;
  uint64_t vocabulary = 0;
  const void* program = nullptr;  // of a binding
  int32_t arena = 0;              // of a program: where the defect of that name keeps a token
};
known_object known[256];
uint64_t n_known = 0;

// The caller holds `guard`.
known_object& facts_of(const void* handle) {
  for (known_object& k : known)
    if (k.handle == handle) return k;
  known_object& fresh = known[n_known++ % std::size(known)];
  fresh = {};
  fresh.handle = handle;
  return fresh;
}

float* logits(bitnet_binding* binding) {
  const std::scoped_lock lock(guard);
  void* data = nullptr;
  const known_object& k = facts_of(binding);
  sound.buffer_map(k.logits, &data, nullptr);
  return reinterpret_cast<float*>(static_cast<char*>(data) + k.logits_offset);
}
// nullptr: a binding without facts.
int32_t* tokens_of(bitnet_binding* binding) {
  const std::scoped_lock lock(guard);
  return facts_of(binding).tokens;
}
std::atomic_ref<int32_t> arena_of(bitnet_binding* binding) {
  const std::scoped_lock lock(guard);
  return std::atomic_ref(facts_of(facts_of(binding).program).arena);
}
// nullptr: the graph has no such port.
bitnet_largest* largest(bitnet_binding* binding) {
  const std::scoped_lock lock(guard);
  void* data = nullptr;
  if (facts_of(binding).largest) sound.buffer_map(facts_of(binding).largest, &data, nullptr);
  return static_cast<bitnet_largest*>(data);
}
uint64_t vocabulary(bitnet_binding* binding) {
  const std::scoped_lock lock(guard);
  return facts_of(binding).vocabulary;
}

bitnet_status remembering_bind(bitnet_program* p, const bitnet_bind_request* r,
                               bitnet_binding** out, bitnet_error* e) {
  const bitnet_status s = sound.program_bind(p, r, out, e);
  const std::scoped_lock lock(guard);
  if (s != BITNET_OK) return s;
  const known_object of = facts_of(p);
  known_object& fresh = facts_of(*out);
  fresh.program = p;
  fresh.vocabulary = of.vocabulary;
  if (of.logits_port < r->n_bound) fresh.logits = r->bound[of.logits_port].buffer;
  if (of.largest_port < r->n_bound) fresh.largest = r->bound[of.largest_port].buffer;
  if (of.logits_port < r->n_bound) fresh.logits_offset = r->bound[of.logits_port].offset;
  void* tokens = nullptr;
  if (r->n_bound > 6 && sound.buffer_map(r->bound[0].buffer, &tokens, nullptr) == BITNET_OK)
    fresh.tokens = reinterpret_cast<int32_t*>(static_cast<char*>(tokens) + r->bound[0].offset);
  return s;
}
bitnet_status remembering_build(bitnet_device* d, const bitnet_build_request* r,
                                bitnet_program** out, bitnet_error* e) {
  const bitnet_status s = sound.program_build(d, r, out, e);
  const std::scoped_lock lock(guard);
  if (s != BITNET_OK) return s;
  known_object& fresh = facts_of(*out);
  fresh.logits_port = fresh.largest_port = BITNET_NONE;
  for (uint32_t i = 0; i < r->graph->n_ports; ++i) {
    if (r->graph->ports[i].role == BITNET_PORT_LARGEST) fresh.largest_port = i;
    if (r->graph->ports[i].role != BITNET_PORT_LOGITS) continue;
    fresh.logits_port = i;
    fresh.vocabulary = static_cast<uint64_t>(r->graph->values[r->graph->ports[i].value].dims[1]);
  }
  return s;
}

bool has_states = false;             // the pool that was made last
int32_t* of_last_binding = nullptr;  // its positions, where the kit's ports stand in order

// Builds the graph with each op as Change makes it.
template <void (*Change)(bitnet_op&)>
bitnet_status build_changed(bitnet_device* d, const bitnet_build_request* r, bitnet_program** out,
                            bitnet_error* e) {
  if (r->graph->op_size != sizeof(bitnet_op)) return remembering_build(d, r, out, e);
  std::vector<bitnet_op> ops(r->graph->ops, r->graph->ops + r->graph->n_ops);
  for (bitnet_op& op : ops) Change(op);
  bitnet_graph graph = *r->graph;
  graph.ops = ops.data();
  bitnet_build_request changed = *r;
  changed.graph = &graph;
  return remembering_build(d, &changed, out, e);
}

void one_more(bitnet_op& op) {
  if (op.op == BITNET_OP_ATTN_PAGED && op.ints[4] != 0) ++op.ints[4];
}

void another_curve(bitnet_op& op) {
  if (op.op == BITNET_OP_GELU) op.op = BITNET_OP_SILU;
}

void next_factor(bitnet_op& op) {
  if (op.op == BITNET_OP_SCALE) op.floats[0] = std::nextafter(op.floats[0], 1e9f);
}

void no_gate(bitnet_op& op) {
  if (op.op == BITNET_OP_SIGMOID) op.op = BITNET_OP_SILU;
}

void loops_swapped(bitnet_op& op) {
  if (op.op != BITNET_OP_COLUMNS) return;
  std::swap(op.ints[2], op.ints[4]);
  std::swap(op.ints[3], op.ints[5]);
}

void another_part(bitnet_op& op) {
  if (op.op == BITNET_OP_SHORT_CONV && op.ints[0] != 0) --op.ints[0];
}

void gates_swapped(bitnet_op& op) {
  if (op.op == BITNET_OP_DELTA_GATES) std::swap(op.inputs[0], op.inputs[1]);
}

void another_order(bitnet_op& op) {
  if (op.op == BITNET_OP_DELTA_RULE) op.ints[5] = 1 - op.ints[5];
}

bitnet::sdk::primitive_kernel stores_rightly = nullptr;
bool halves_swapped = false;  // in blocks of 4 bits that are stored from now on

void stores_halves_swapped(const call& c, const share& s) noexcept {
  stores_rightly(c, s);
  if (!halves_swapped) return;
  const auto& kv = c.step->kv;
  const auto layer = static_cast<uint64_t>(c.ints[0]);
  const auto swap = [&](uint8_t* row, uint32_t dtype) {
    for (uint64_t i = 0; dtype == BITNET_DTYPE_Q4_0 && i < kv.head_dim / 32 * 18; ++i)
      if (i % 18 >= 2) row[i] = static_cast<uint8_t>(row[i] << 4 | row[i] >> 4);
  };
  for (uint64_t t = s.first; t < s.last; ++t)
    for (uint64_t head = 0; head < kv.n_kv_heads; ++head) {
      const auto slot = static_cast<uint64_t>(c.step->slots[t]);
      swap(kv.k(layer, slot, head), kv.dtype_k);
      swap(kv.v(layer, slot, head), kv.dtype_v);
    }
}

void describe_with_defect(const bitnet_open_request& request, bitnet::sdk::definition& d) {
  describe_with_fault(request, d);
  describe_with_structure(d);
  for (bitnet::sdk::primitive& p : d.primitives)
    if (p.op == BITNET_OP_KV_WRITE) {
      stores_rightly = p.run;
      p.run = stores_halves_swapped;
    }
}

// Runs the step as `change` makes it.
template <class Change>
bitnet_status submit_changed(bitnet_queue* q, const bitnet_step* s, bitnet_error* e,
                             Change change) {
  bitnet_step other = *s;
  change(other);
  return sound.queue_submit(q, &other, e);
}

// Answers that the host gave since the step was submitted.
std::atomic<int64_t> answers{0};
void count_answers() {
  deaf_host.cancelled = [](void* self, uint64_t token) {
    ++answers;
    return true_host->cancelled(self, token);
  };
}

// Runs a cancelled step again, this time to its end.
bitnet_status to_its_end(bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
  return submit_changed(q, s, e, [](bitnet_step& o) { o.cancel_token = 0; });
}

// A queue whose timeline is said to be at `late_value`, though it has moved on.
bitnet_queue* late_queue = nullptr;
uint64_t late_value = 0;

bitnet_status is_cancelled(bitnet_error* e) {
  e->code = BITNET_CANCELLED;
  std::snprintf(e->message, sizeof e->message, "cancelled");
  return BITNET_CANCELLED;
}

bitnet::sdk::kv_pool* pool_of(bitnet_kv_pool* p) {
  return reinterpret_cast<bitnet::sdk::kv_pool*>(p);
}
bitnet::sdk::kv_pool* last_pool = nullptr;  // that was bound last
int32_t* last_slots = nullptr;              // of that binding, where the kit's ports stand in order

// Remembers where the slots of steps are, and the pool.
bitnet_status bind_with_slots(bitnet_program* p, const bitnet_bind_request* r, bitnet_binding** out,
                              bitnet_error* e) {
  void* slots = nullptr;
  const bitnet_status s = remembering_bind(p, r, out, e);
  if (s == BITNET_OK && r->n_bound > 3 &&
      sound.buffer_map(r->bound[3].buffer, &slots, e) == BITNET_OK)
    last_slots = reinterpret_cast<int32_t*>(static_cast<char*>(slots) + r->bound[3].offset);
  last_pool = r->kv_pool != nullptr ? pool_of(r->kv_pool) : nullptr;
  return s;
}

using table = bitnet_backend_v0;

struct defect {
  const char* name;
  void (*apply)(table& t);
};

const defect defects[] = {
    {"batch",  // another last bit where there are several tokens
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status == BITNET_OK && s->n_tokens > 4 && s->n_outputs != 0) {
           float* y = logits(s->binding);
           *y = std::nextafter(*y, 1e9f);
         }
         return status;
       };
     }},
    {"window",
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         return submit_changed(q, s, e, [](bitnet_step& o) { o.window = 0; });
       };
     }},
    {"layer-window",  // one token too many
     [](table& t) { t.program_build = build_changed<one_more>; }},
    {"gelu",  // another curve that begins and ends like it
     [](table& t) { t.program_build = build_changed<another_curve>; }},
    {"scale",  // by the next larger factor
     [](table& t) { t.program_build = build_changed<next_factor>; }},
    {"sigmoid",  // times its argument
     [](table& t) { t.program_build = build_changed<no_gate>; }},
    {"columns",  // the inner parts outside
     [](table& t) { t.program_build = build_changed<loops_swapped>; }},
    {"conv-state",  // one element before its part of the state
     [](table& t) { t.program_build = build_changed<another_part>; }},
    {"gates",  // each from the other's input
     [](table& t) { t.program_build = build_changed<gates_swapped>; }},
    {"delta-heads",  // keys of another head
     [](table& t) { t.program_build = build_changed<another_order>; }},
    {"fresh",  // a sequence that begins goes on from what was there
     [](table& t) {
       t.kv_pool_create = [](bitnet_device* d, const bitnet_kv_config* c, bitnet_kv_pool** out,
                             bitnet_error* e) {
         has_states = c->struct_size >= sizeof *c && c->n_states != 0;
         return sound.kv_pool_create(d, c, out, e);
       };
       t.program_bind = [](bitnet_program* p, const bitnet_bind_request* r, bitnet_binding** out,
                           bitnet_error* e) {
         void* positions = nullptr;
         const bitnet_status s = remembering_bind(p, r, out, e);
         if (s == BITNET_OK && r->n_bound > 1) sound.buffer_map(r->bound[1].buffer, &positions, e);
         of_last_binding = static_cast<int32_t*>(positions);
         return s;
       };
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         if (has_states && of_last_binding != nullptr)
           for (uint32_t i = 0; i < s->n_tokens; ++i) ++of_last_binding[i];
         return sound.queue_submit(q, s, e);
       };
     }},
    {"kept",
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         return submit_changed(q, s, e, [](bitnet_step& o) { o.window_keep = 0; });
       };
     }},
    {"rows",  // one row more than was asked for
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status == BITNET_OK && s->n_outputs < 16 && s->n_tokens > 8)
           logits(s->binding)[s->n_outputs * vocabulary(s->binding)] = 1;
         return status;
       };
     }},
    {"top",  // leaves out the largest
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_OK || s->top_logits == 0 || s->n_outputs == 0) return status;
         float* y = logits(s->binding);
         *std::max_element(y, y + vocabulary(s->binding)) = -std::numeric_limits<float>::infinity();
         return status;
       };
     }},
    {"list",  // says that it lists logits, and leaves out the largest
     [](table& t) {
       t.device_info = [](bitnet_backend* b, uint32_t i, bitnet_device_info* out, bitnet_error* e) {
         const bitnet_status s = sound.device_info(b, i, out, e);
         if (s == BITNET_OK) out->logits_flags |= BITNET_LOGITS_LARGEST;
         return s;
       };
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         const bitnet_status status = sound.queue_submit(q, s, e);
         bitnet_largest* row = largest(s->binding);
         if (status != BITNET_OK || row == nullptr || s->top_logits == 0) return status;
         const float* y = logits(s->binding);
         const uint64_t n = vocabulary(s->binding);
         const auto best = static_cast<uint64_t>(std::max_element(y, y + n) - y);
         row->count = 0;
         for (uint64_t id = 0; id < n && row->count < BITNET_MOST_LARGEST; ++id) {
           if (id == best) continue;
           row->ids[row->count] = static_cast<int32_t>(id);
           row->logits[row->count++] = y[id];
         }
         return status;
       };
     }},
    {"copy",
     [](table& t) {
       t.kv_copy = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* from, const uint32_t* to,
                      uint32_t n, uint64_t signal, bitnet_error* e) {
         return sound.kv_copy(q, p, from, to, std::min(n, 1u), signal, e);
       };
     }},
    {"state-copy",  // only what a block of keys takes
     [](table& t) {
       t.kv_copy = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* from, const uint32_t* to,
                      uint32_t n, uint64_t signal, bitnet_error* e) {
         return sound.kv_copy(q, p, from, to, n == 1 ? 0 : n, signal, e);
       };
     }},
    {"import",
     [](table& t) {
       t.kv_import = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t,
                        const void* data, uint64_t, uint64_t signal, bitnet_error* e) {
         return sound.kv_import(q, p, blocks, 0, data, 0, signal, e);
       };
     }},
    {"export",  // bytes in an order of its own
     [](table& t) {
       t.kv_export = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        void* out, uint64_t bytes, uint64_t signal, bitnet_error* e) {
         const bitnet_status s = sound.kv_export(q, p, blocks, n, out, bytes, signal, e);
         if (s == BITNET_OK)
           std::reverse(static_cast<uint8_t*>(out), static_cast<uint8_t*>(out) + bytes);
         return s;
       };
       t.kv_import = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        const void* data, uint64_t size, uint64_t signal, bitnet_error* e) {
         std::vector<uint8_t> bytes(static_cast<const uint8_t*>(data),
                                    static_cast<const uint8_t*>(data) + size);
         std::reverse(bytes.begin(), bytes.end());
         return sound.kv_import(q, p, blocks, n, bytes.data(), size, signal, e);
       };
     }},
    {"nibbles",  // the halves of each block of 4 bits change places
     [](table&) { halves_swapped = true; }},
    {"import-before",  // and the last bytes of the block before each that it names
     [](table& t) {
       t.kv_import = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        const void* data, uint64_t bytes, uint64_t signal, bitnet_error* e) {
         for (uint32_t i = 0; i < n; ++i)
           if (blocks[i] != 0 && blocks[i] < pool_of(p)->storage().n_blocks)
             pool_of(p)->block(blocks[i])[-1] ^= 1;
         const bitnet_status s = sound.kv_import(q, p, blocks, n, data, bytes, signal, e);
         if (s == BITNET_OK && blocks[0] != 0 && blocks[0] < pool_of(p)->storage().n_blocks)
           pool_of(p)->block(blocks[0])[-1] ^= 1;
         return s;
       };
     }},
    {"import-overlaps",  // and the same of all of a list, so that importing a whole pool shows it
     [](table& t) {
       t.kv_import = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        const void* data, uint64_t bytes, uint64_t signal, bitnet_error* e) {
         const bitnet_status s = sound.kv_import(q, p, blocks, n, data, bytes, signal, e);
         for (uint32_t i = 0; s == BITNET_OK && i < n; ++i)
           if (blocks[i] != 0 && blocks[i] < pool_of(p)->storage().n_blocks)
             pool_of(p)->block(blocks[i])[-1] ^= 1;
         return s;
       };
     }},
    {"export-overlaps",  // the last byte of a block, where another follows it
     [](table& t) {
       t.kv_export = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        void* out, uint64_t bytes, uint64_t signal, bitnet_error* e) {
         const bitnet_status s = sound.kv_export(q, p, blocks, n, out, bytes, signal, e);
         const bitnet::sdk::kv_storage& kv = pool_of(p)->storage();
         if (s == BITNET_OK && n > 1 && blocks[0] < kv.n_blocks)
           static_cast<uint8_t*>(out)[kv.block_bytes - 1] ^= 1;
         return s;
       };
     }},
    {"export-before",  // and the byte before the caller's
     [](table& t) {
       t.kv_export = [](bitnet_queue* q, bitnet_kv_pool* p, const uint32_t* blocks, uint32_t n,
                        void* out, uint64_t bytes, uint64_t signal, bitnet_error* e) {
         const bitnet_status s = sound.kv_export(q, p, blocks, n, out, bytes, signal, e);
         if (s == BITNET_OK && n > 1) static_cast<uint8_t*>(out)[-1] ^= 1;
         return s;
       };
     }},
    {"arena",  // the bindings of a program share where a step's tokens are kept while it runs
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         int32_t* own = tokens_of(s->binding);
         if (own == nullptr) return sound.queue_submit(q, s, e);
         const std::atomic_ref<int32_t> arena = arena_of(s->binding);
         const int32_t first = *own;
         arena = first;
         for (int i = 0; i < 50; ++i) std::this_thread::yield();
         *own = arena;
         const bitnet_status status = sound.queue_submit(q, s, e);
         *own = first;
         return status;
       };
     }},
    {"midway",  // a step that is cancelled after it began answers OK, with garbage
     [](table& t) {
       count_answers();
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         answers = 0;
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_CANCELLED || answers < 2) return status;
         const bitnet_status again = to_its_end(q, s, e);
         if (again == BITNET_OK && s->n_outputs != 0) *logits(s->binding) += 1;
         return again;
       };
     }},
    {"stale",  // a step that is cancelled after it began answers OK, with results from before
     [](table& t) {
       count_answers();
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         answers = 0;
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_CANCELLED || answers < 2 || s->n_outputs == 0) return status;
         const float before = *logits(s->binding);
         const bitnet_status again = to_its_end(q, s, e);
         *logits(s->binding) = before;
         return again;
       };
     }},
    {"moves",  // a step that is cancelled after it began moves the timeline all the same
     [](table& t) {
       count_answers();
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         answers = 0;
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_CANCELLED || answers < 2) return status;
         to_its_end(q, s, e);
         return is_cancelled(e);
       };
     }},
    {"moves-later",  // the same, but a while after the call: here, at the next wait
     [](table& t) {
       count_answers();
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         answers = 0;
         late_queue = nullptr;
         if (sound.queue_poll(q, &late_value, e) != BITNET_OK) return e->code;
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_CANCELLED || answers < 2) return status;
         to_its_end(q, s, e);
         late_queue = q;
         return is_cancelled(e);
       };
       t.queue_poll = [](bitnet_queue* q, uint64_t* out, bitnet_error* e) {
         const bitnet_status status = sound.queue_poll(q, out, e);
         if (status == BITNET_OK && q == late_queue) *out = late_value;
         return status;
       };
       t.queue_wait = [](bitnet_queue* q, uint64_t v, uint64_t ns, bitnet_error* e) {
         late_queue = nullptr;
         return sound.queue_wait(q, v, ns, e);
       };
       t.quiesce = [](bitnet_backend* b, uint64_t ns, bitnet_error* e) {
         late_queue = nullptr;
         return sound.quiesce(b, ns, e);
       };
     }},
    {"wipes",  // a step that is cancelled after it began loses what its block held before
     [](table& t) {
       count_answers();
       t.program_bind = bind_with_slots;
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         answers = 0;
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status != BITNET_CANCELLED || answers < 2 || last_pool == nullptr) return status;
         const bitnet::sdk::kv_storage& kv = last_pool->storage();
         for (uint32_t i = 0; i < s->n_tokens; ++i)
           std::memset(last_pool->block(static_cast<uint64_t>(last_slots[i]) / kv.block_tokens), 0,
                       kv.block_bytes);
         return status;
       };
     }},
    {"facts",  // writes to the facts of a step, which the host may use again
     [](table& t) {
       t.program_bind = bind_with_slots;
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         const bitnet_status status = sound.queue_submit(q, s, e);
         if (status == BITNET_OK && last_slots != nullptr) last_slots[s->n_tokens - 1] ^= 1;
         return status;
       };
     }},
    {"ignores",  // serves a step of which it does not understand all
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         return submit_changed(q, s, e, [](bitnet_step& o) {
           o.struct_size = sizeof o;
           o.reserved_0 = 0;
         });
       };
     }},
    {"one-binding",  // all bindings are the first one of their program
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         static bitnet_binding* first = nullptr;
         if (first == nullptr || s->signal_value == 1) first = s->binding;
         return submit_changed(q, s, e, [](bitnet_step& o) { o.binding = first; });
       };
     }},
    {"malformed",  // calls what is new to it malformed
     [](table& t) {
       t.graph_query = [](bitnet_device* d, const bitnet_query_request* r, uint32_t* levels,
                          bitnet_graph_estimate* out, bitnet_error* e) {
         const bitnet_status s = sound.graph_query(d, r, levels, out, e);
         if (s == BITNET_UNSUPPORTED) return e->code = BITNET_INVALID_ARGUMENT;
         return s;
       };
     }},
    {"statistics",
     [](table& t) {
       t.program_stats = [](bitnet_program* p, bitnet_kernel_stat* out, uint32_t size, uint32_t* n,
                            bitnet_error* e) {
         const uint32_t room = *n;
         const bitnet_status s = sound.program_stats(p, out, size, n, e);
         if (s == BITNET_OK && room != 0) out[0].calls += 1;
         return s;
       };
     }},
    {"prepare",
     [](table& t) {
       t.binding_prepare = [](bitnet_binding*, const bitnet_prepare_request*,
                              bitnet_error*) -> bitnet_status { return BITNET_OK; };
     }},
    {"prepares-any",  // whatever the number of sequences
     [](table& t) {
       t.binding_prepare = [](bitnet_binding* b, const bitnet_prepare_request* r, bitnet_error* e) {
         bitnet_prepare_request fewer = *r;
         fewer.n_sequences = 0;
         return sound.binding_prepare(b, &fewer, e);
       };
     }},
    {"prepares-whole",  // rejects the struct of minor 1, which is shorter
     [](table& t) {
       t.binding_prepare = [](bitnet_binding* b, const bitnet_prepare_request* r, bitnet_error* e) {
         if (r->struct_size >= sizeof *r) return sound.binding_prepare(b, r, e);
         e->code = BITNET_INVALID_ARGUMENT;
         std::snprintf(e->message, sizeof e->message, "the prepare request is too short");
         return bitnet_status{BITNET_INVALID_ARGUMENT};
       };
     }},
    {"wait",
     [](table& t) {
       t.queue_wait = [](bitnet_queue*, uint64_t, uint64_t, bitnet_error*) -> bitnet_status {
         return BITNET_OK;
       };
     }},
    {"timeline",
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         if (s->n_tokens <= 16) return sound.queue_submit(q, s, e);
         submit_changed(q, s, e, [](bitnet_step& o) { o.n_tokens = o.n_outputs = 1; });
         e->code = BITNET_INVALID_ARGUMENT;
         std::snprintf(e->message, sizeof e->message, "too many tokens");
         return bitnet_status{BITNET_INVALID_ARGUMENT};
       };
     }},
    {"silence",  // fails without a word
     [](table& t) {
       t.queue_wait = [](bitnet_queue* q, uint64_t v, uint64_t ns, bitnet_error* e) {
         const bitnet_status s = sound.queue_wait(q, v, ns, e);
         if (s != BITNET_OK) e->message[0] = 0;
         return s;
       };
     }},
    {"out",  // writes an out parameter when it fails
     [](table& t) {
       t.device_open = [](bitnet_backend* b, const bitnet_device_request* r, bitnet_device** out,
                          bitnet_error* e) {
         const bitnet_status s = sound.device_open(b, r, out, e);
         if (s != BITNET_OK) *out = nullptr;
         return s;
       };
     }},
    {"dirty",  // buffers that are not zeroed
     [](table& t) {
       t.buffer_create = [](bitnet_device* d, const bitnet_buffer_request* r, bitnet_buffer** out,
                            bitnet_error* e) {
         const bitnet_status s = sound.buffer_create(d, r, out, e);
         void* data = nullptr;
         if (s == BITNET_OK && sound.buffer_map(*out, &data, e) == BITNET_OK)
           *static_cast<char*>(data) = 1;
         return s;
       };
     }},
    {"huge",
     [](table& t) {
       t.buffer_create = [](bitnet_device* d, const bitnet_buffer_request* r, bitnet_buffer** out,
                            bitnet_error* e) {
         bitnet_buffer_request less = *r;
         less.bytes = std::min<uint64_t>(r->bytes, 1u << 24);
         return sound.buffer_create(d, &less, out, e);
       };
     }},
    {"endless",  // a buffer that is too large is looked for until the process is ended
     [](table& t) {
       t.buffer_create = [](bitnet_device* d, const bitnet_buffer_request* r, bitnet_buffer** out,
                            bitnet_error* e) {
         while (r->bytes >= uint64_t{1} << 60) pause();
         return sound.buffer_create(d, r, out, e);
       };
     }},
    {"seal",  // seals a tensor of which half was written
     [](table& t) {
       t.weight_seal = [](bitnet_weights* w, uint32_t i, bitnet_error* e) -> bitnet_status {
         const bitnet_status s = sound.weight_seal(w, i, e);
         return i == 0 ? BITNET_OK : s;
       };
     }},
    {"cancel",  // stops without a cancellation
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         return submit_changed(q, s, e, [](bitnet_step& o) { o.cancel_token = 0; });
       };
       t.queue_wait = [](bitnet_queue* q, uint64_t v, uint64_t ns, bitnet_error* e) {
         const bitnet_status s = sound.queue_wait(q, v, ns, e);
         if (s != BITNET_OK || v != 1 || ns == 0) return s;
         e->code = BITNET_CANCELLED;
         std::snprintf(e->message, sizeof e->message, "cancelled");
         return bitnet_status{BITNET_CANCELLED};
       };
     }},
    {"deaf",  // never asks whether to stop
     [](table& t) {
       t.queue_submit = [](bitnet_queue* q, const bitnet_step* s, bitnet_error* e) {
         return submit_changed(q, s, e, [](bitnet_step& o) { o.cancel_token = 0; });
       };
     }},
    {"stubborn",  // asks, and goes on whatever the answer is
     [](table&) {
       deaf_host.cancelled = [](void* self, uint64_t token) {
         true_host->cancelled(self, token);
         return uint32_t{0};
       };
     }},
    {"spendthrift",  // knows no bounds
     [](table& t) {
       t.device_open = [](bitnet_backend* b, const bitnet_device_request* r, bitnet_device** out,
                          bitnet_error* e) {
         bitnet_device_request more = *r;
         more.memory_bytes = 0;
         return sound.device_open(b, &more, out, e);
       };
     }},
    {"askew",
     [](table& t) {
       t.buffer_create = [](bitnet_device* d, const bitnet_buffer_request* r, bitnet_buffer** out,
                            bitnet_error* e) {
         bitnet_buffer_request less = *r;
         less.alignment_bytes = 0;
         return sound.buffer_create(d, &less, out, e);
       };
     }},
    {"excuse",  // says that it is its own fault that there is no memory
     [](table& t) {
       t.program_build = [](bitnet_device* d, const bitnet_build_request* r, bitnet_program** out,
                            bitnet_error* e) {
         const bitnet_status s = remembering_build(d, r, out, e);
         if (s != BITNET_OUT_OF_MEMORY) return s;
         e->code = BITNET_INTERNAL;
         return bitnet_status{BITNET_INTERNAL};
       };
     }},
    {"pin",  // declares that it may be unloaded, and cannot be
     [](table& t) {
       t.info = [](bitnet_backend* b, bitnet_backend_info* out, bitnet_error* e) {
         Dl_info self{};
         dladdr(reinterpret_cast<void*>(&vocabulary), &self);
         dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE);
         return sound.info(b, out, e);
       };
     }},
    {"status",  // reports more free memory than there is, from the second call on
     [](table& t) {
       t.device_status = [](bitnet_device*, bitnet_device_status* out, bitnet_error*) {
         static int asked = 0;
         out->known = BITNET_STATUS_MEMORY;
         out->memory_total_bytes = 1000;
         out->memory_free_bytes = ++asked % 2 == 0 ? 2000 : 500;
         return bitnet_status{BITNET_OK};
       };
     }},
    {"totals",  // has another total each time
     [](table& t) {
       t.device_status = [](bitnet_device*, bitnet_device_status* out, bitnet_error*) {
         static uint64_t total = 1000;
         out->known = BITNET_STATUS_MEMORY;
         out->memory_total_bytes = ++total;
         return bitnet_status{BITNET_OK};
       };
     }},
    {"longer",  // writes behind what the host has room for
     [](table& t) {
       t.device_status = [](bitnet_device*, bitnet_device_status* out, bitnet_error*) {
         const uint32_t size = out->struct_size;
         *out = {};
         out->struct_size = size;
         out->known = BITNET_STATUS_UTILISATION;
         out->reserved_0 = size < sizeof *out ? 1 : 0;
         return bitnet_status{BITNET_OK};
       };
     }},
    {"handles",  // keeps a descriptor for each device
     [](table& t) {
       t.device_open = [](bitnet_backend* b, const bitnet_device_request* r, bitnet_device** out,
                          bitnet_error* e) {
         [[maybe_unused]] const std::FILE* kept = std::fopen("/dev/null", "r");
         return sound.device_open(b, r, out, e);
       };
     }},
    {"leave",  // ends the process otherwise than its host meant to
     [](table& t) {
       t.queue_create = [](bitnet_device* d, const bitnet_queue_request* r, bitnet_queue** out,
                           bitnet_error* e) {
         std::atexit([] { syscall(SYS_exit_group, 1); });
         return sound.queue_create(d, r, out, e);
       };
     }},
};

}  // namespace

extern "C" BITNET_BACKEND_EXPORT bitnet_status
BITNET_BACKEND_ENTRY(const bitnet_host_v0* host, const bitnet_open_request* request,
                     bitnet_backend_v0* out, bitnet_error* err) {
  true_host = host;
  deaf_host = *host;
  for (uint32_t i = 0; i < request->n_params; ++i)
    if (bitnet::sdk::to_view(request->params[i].key) == "fault" &&
        !planted.read(std::string(bitnet::sdk::to_view(request->params[i].value)))) {
      err->code = BITNET_INVALID_ARGUMENT;
      std::snprintf(err->message, sizeof err->message, "a fault is OP:DIMENSION:N of faults.hpp");
      return BITNET_INVALID_ARGUMENT;
    } else if (bitnet::sdk::to_view(request->params[i].key) == "structure" &&
               !read_structure(std::string(bitnet::sdk::to_view(request->params[i].value)))) {
      err->code = BITNET_INVALID_ARGUMENT;
      std::snprintf(err->message, sizeof err->message,
                    "a structure is NAME:N of sequence_faults.hpp");
      return BITNET_INVALID_ARGUMENT;
    }
  const bitnet_status opened =
      bitnet::sdk::open_interpreter(&deaf_host, request, out, err, describe_with_defect);
  if (opened != BITNET_OK || out->filled_size != sizeof *out) return opened;
  sound = *out;
  out->program_bind = remembering_bind;
  out->program_build = remembering_build;
  for (uint32_t i = 0; i < request->n_params; ++i)
    if (bitnet::sdk::to_view(request->params[i].key) == "defect")
      for (const defect& d : defects)
        if (bitnet::sdk::to_view(request->params[i].value) == d.name) d.apply(*out);
  return opened;
}
