/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* bitnet/bitnet.h - libbitnet for programs: load a ternary model, make text, know what ran.
 *
 * Errors     every call that can fail returns a bitnet_status and fills `err` (NULL is allowed). A
 *            comment names the statuses that a call has for reasons of its own. Each call can also
 *            give BITNET_INVALID_ARGUMENT (a NULL that it does not allow, a wrong struct_size, a
 *            call from a log callback), BITNET_UNSUPPORTED (something that only a newer library
 *            knows is set), BITNET_OUT_OF_MEMORY and BITNET_INTERNAL; a call that computes also
 *            what the backend failed with, such as BITNET_DEVICE_LOST.
 * Ownership  handles belong to the caller and go back through their _close call; a model needs its
 *            runtime, a session its model. Strings are UTF-8; `const char*` ones are NUL
 *            terminated and borrowed for the call.
 * Growth     structs start with struct_size, their size as the program was compiled, so that older
 *            and newer programs and libraries go together. Options: filled by the _defaults call,
 *            which takes that size; what the library does not know of them and is not 0 is
 *            BITNET_UNSUPPORTED, as is a member reserved_N that is not 0. Results: the program sets
 *            struct_size, the library writes no more than that, and 0 where it knows nothing.
 *            Arrays have the size of an element beside them, 0 being that of the first version;
 *            bitnet_str never grows. JSON texts only gain members.
 * Text out   calls with (out, capacity, needed) write at most capacity bytes, no terminator, and
 *            set *needed to the full size; capacity 0 with out NULL asks for the size, and the
 *            same thread's next call with just that capacity gets the text that was measured.
 *            When the text does not fit they return BITNET_INVALID_ARGUMENT.
 * Threads    each function has one of these tags:
 *            [any thread] several threads may make such calls at once, on one handle, too, and
 *            while a call of the next kind works on it;
 *            [any thread, signal handlers too] the same, and it is async-signal-safe;
 *            [one thread at a time for its X] one call of this kind at a time on one X, which is
 *            a session, a trial, a request or an answer. On a session or a trial a second one is
 *            BITNET_BUSY. A call that closes its X has this tag where no call at all, of another
 *            thread or of the one that closes, may work on X meanwhile.
 *            A handle is valid until its _close call, which no other call may follow. A thread that
 *            calls needs 128 KB of stack, and so do those that the library starts: they have the
 *            process's default.
 * Callbacks  a log or trace callback may not call the library. A progress callback may not reload
 *            a backend or close its runtime. In the text callback of bitnet_generate its own
 *            session may be asked for its length, report and program, be given a preference and a
 *            shadow, be cancelled and be closed: then it ends with the call.
 */
#ifndef BITNET_H
#define BITNET_H

#include "bitnet/abi/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BITNET_API __attribute__((visibility("default")))

typedef struct bitnet_runtime bitnet_runtime; /* the backends that were found, and the choice */
typedef struct bitnet_model bitnet_model;     /* one model file, read-only                    */
typedef struct bitnet_session bitnet_session; /* one conversation: tokens, KV cache, sampler  */

typedef int32_t bitnet_token;

/* The library's version as in "0.1.0". The text is the library's and always valid. [any thread] */
BITNET_API const char* bitnet_version(void);
/* Gives a JSON object {version, abi_major, abi_minor, compiler, build_type, commit?}.
 * [any thread] */
BITNET_API bitnet_status bitnet_build_info(char* out, uint64_t capacity, uint64_t* needed,
                                           bitnet_error* err);

/* ---- words --------------------------------------------------------------------------------- */

/* What messages, hints and log lines of this process call an option or a call of this header, so
 * that a program's users read its own options in them: ("n_context", "--ctx-size") makes "use a
 * larger --ctx-size" of "use a larger n_context". docs/reference/wording.md lists the ids. `words`
 * is at most 100 bytes on one line and is copied; NULL is the library's own again. For the whole
 * process, so that only a program calls it, no library in between, and before its other calls: what
 * was put together before stays as it was. BITNET_NOT_FOUND for an id that this library has no
 * words for, which a program may ignore. [any thread] */
BITNET_API bitnet_status bitnet_wording_set(const char* id, const char* words, bitnet_error* err);

/* ---- runtime ------------------------------------------------------------------------------- */

typedef void (*bitnet_log_callback)(void* user, uint32_t level, const char* message);

/* What a session or scheduler of the runtime does, for a program that draws it. A span is what the
 * host measured, from begin_ns to end_ns in nanoseconds of CLOCK_MONOTONIC. */
#define BITNET_TRACE_STEP 1u   /* a step, until its rows are there; status says how it ended  */
#define BITNET_TRACE_SUBMIT 2u /* of it: the call that hands it to a device, and may compute   */
#define BITNET_TRACE_WAIT 3u   /* of it: from then on, until that device is done               */
#define BITNET_TRACE_DEVICE 4u /* both: while the device had the step, as the host saw it      */
#define BITNET_TRACE_SAMPLE 5u /* tokens are sampled of the rows of the step before            */
/* What one kernel did in the step on that device: differences of the backend's own counters, which
 * were read at begin_ns = end_ns. They are sums: when a call began, none of them says. */
#define BITNET_TRACE_KERNEL 6u

/* Borrowed for the call, with its texts. Members that a kind does not name are 0. */
typedef struct bitnet_trace_event {
  uint32_t struct_size;
  uint32_t kind;   /* BITNET_TRACE_*; newer libraries may have others */
  uint64_t runner; /* which session or scheduler, from 1 on in this process; where one goes to
                      another device it has another number */
  uint64_t step;   /* of that runner, from 1 on */
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t n_sequences; /* of the step */
  uint32_t n_tokens;
  uint32_t n_outputs;   /* rows that it gives */
  bitnet_status status; /* of all but SAMPLE and KERNEL */
  bitnet_str device;    /* of all but STEP and SAMPLE: "cpu:0" */
  bitnet_str kernel;    /* of KERNEL: its id */
  bitnet_str op;
  uint64_t calls;
  uint64_t time_ns; /* of the calls, as the backend measured it; 0: it did not */
  uint64_t bytes;   /* of weights that they read; 0: none, or not counted */
} bitnet_trace_event;

typedef void (*bitnet_trace_callback)(void* user, const bitnet_trace_event* event);

typedef struct bitnet_runtime_options {
  uint32_t struct_size;
  uint32_t n_threads;       /* 0 = a physical core each, as CPU affinity and cgroup quota allow, and
                               fewer where the system makes no more; a number that it does not make
                               is BITNET_OUT_OF_MEMORY                                            */
  const char* device;       /* request: auto, cpu, gpu, name, name:index, or a comma list; NULL: the
                               environment's BITNET_DEVICE, else auto                             */
  const char* requested_by; /* where the request came from, for the report; NULL: "program"     */
  uint32_t require_first;   /* non-zero: only the first name of the request will do               */
  uint32_t allow_fallback;  /* non-zero: when nothing requested works, choose as auto would      */
  const char* const* manifest_dirs; /* replaces the search path of manifests                    */
  uint32_t n_manifest_dirs;         /* 0 = the built-in search path                             */
  uint32_t log_level;               /* BITNET_LOG_*; messages above it are dropped; default WARN */
  bitnet_log_callback log;          /* NULL: silent. From any thread, one at a time. It must not
                                       call the library: calls from within it are refused        */
  void* log_user;
  uint32_t poll; /* how long an idle worker looks for work before it sleeps: 0 not at all, to 100,
                    without a unit; default 50. Workers without a CPU each do not look at all */
  uint32_t reserved_0;
  const char* cpu_mask; /* hexadecimal, bit i is CPU i: workers run there, and so does a thread from
                           its first computing call on. NULL: where the system puts them */
  const char* const* backend_params; /* "cpu.isa=avx2": settings of one backend; "*.head=fast": of
                                        all. Before the environment's; a backend ignores what it
                                        does not know */
  uint32_t n_backend_params;
  uint32_t reserved_1;
  /* Comma list of NAME, or of NAME@ID for one file only: 64 hexadecimal digits are its SHA-256,
   * others its build id. NULL or "": all. */
  const char* allowed_backends;
  const char* trusted_keys;   /* folder of public keys; NULL: /etc/bitnet/trusted.d             */
  uint32_t require_signature; /* non-zero: only backends that one of those keys has signed      */
  uint32_t user_backends;  /* non-zero: also as root, look into the user's folder of manifests and
                              those of BITNET_BACKEND_PATH; with raised privileges never */
  const char* probe_cache; /* folder that remembers what backends answered; "": none; NULL: the
                              user's own ~/.cache/bitnet/probe, root's /var/cache/bitnet/probe */
  uint32_t probe_wait_ms;  /* that a choice waits for slow backends when others would do; default
                              3000 */
  uint32_t probe_fresh;    /* non-zero: ask every backend again, whatever is remembered */
  uint32_t allow_fake;  /* non-zero: BITNET_GPU_FAKE counts                                     */
  uint32_t strict_mode; /* non-zero, or BITNET_STRICT_MODE=1: no fakes, no fallback, and every
                           doubt about what the request could mean is an error               */
  uint32_t cpu_strict;  /* non-zero: each worker has one CPU, of cpu_mask or of those that are
                           allowed: cores before their second hardware threads, neighbours behind
                           one cache. A thread that computes is kept to its CPU for the call. 0: the
                           system moves workers, on machines with several NUMA nodes each within
                           one */
  uint32_t reserved_2;
  bitnet_trace_callback trace; /* NULL: none, at the cost of a branch for each step. By the thread
                                  that computes, several at a time. It may not call the library */
  void* trace_user;
  uint32_t trace_times; /* non-zero: kernels are measured, too, which takes time; some backends
                           then compute within SUBMIT */
  uint32_t reserved_3;
} bitnet_runtime_options;

/* Fills the first `size` bytes of *options with defaults: log_level is BITNET_LOG_WARN, poll 50,
 * probe_wait_ms 3000, and the rest 0. [any thread] */
BITNET_API void bitnet_runtime_defaults(bitnet_runtime_options* options, uint32_t size);

/* Finds backends by their manifests; opens, inspects and loads only those that the request may
 * mean, when a model is opened or bitnet_runtime_select is called. Succeeds with no backend.
 * BITNET_INVALID_ARGUMENT: an option has no meaning. BITNET_FORBIDDEN: the environment forbids what
 * was asked for. BITNET_OUT_OF_MEMORY: the system does not make so many threads. [any thread] */
BITNET_API bitnet_status bitnet_runtime_open(const bitnet_runtime_options* options,
                                             bitnet_runtime** out, bitnet_error* err);
/* Frees the runtime. Its models, and other objects that were opened on it, are closed before it.
 * NULL is allowed. [one thread at a time for its runtime] */
BITNET_API void bitnet_runtime_close(bitnet_runtime* runtime);

/* Probes the requested backends and chooses one; the choice then stays. BITNET_UNAVAILABLE when no
 * request can be met, BITNET_REJECTED when the only candidate is a plugin that broke a rule.
 * [any thread] */
BITNET_API bitnet_status bitnet_runtime_select(bitnet_runtime* runtime, bitnet_error* err);

/* Asks every backend that was found, each in a process of its own, for listings: the report then
 * knows them all. A backend that fails is no error: the report has its reason. [any thread] */
BITNET_API bitnet_status bitnet_runtime_probe(bitnet_runtime* runtime, bitnet_error* err);

/* Waits until all backends that were asked have answered: one that is slower than probe_wait_ms
 * joins later, and until then the report says "probing" and BN-P-PENDING. Never changes the choice.
 * BITNET_TIMEOUT when some have not answered after timeout_ms. [any thread] */
BITNET_API bitnet_status bitnet_runtime_wait_probes(bitnet_runtime* runtime, uint32_t timeout_ms,
                                                    bitnet_error* err);

/* Gives the line "requested=auto detected=[cpu] selected=cpu"; before a choice or when it failed
 * selected=none. [any thread] */
BITNET_API bitnet_status bitnet_runtime_selection_line(bitnet_runtime* runtime, char* out,
                                                       uint64_t capacity, uint64_t* needed,
                                                       bitnet_error* err);
/* JSON: {requested, requested_by, detected[], selected, device?, backends[{name, stage, code,
 * reason, hint, manifest?, library?, library_named?, version?, vendor?, license?, build_id?, abi?,
 * environment[]?, probe{stage, time_ms, cached, age_s?, retry_in_s?, quarantined?, sandbox?,
 * self_test?, disabled_kernels[]?, output?, ...}?, devices[{..., status?}], kernels[{id, op,
 * format, level}]?, generations[{number, state, build_id?, reason?}]?}], searched[{directory,
 * result}], threads{count, wanted?, reason?, cpus, strict, places[{cpus, node}]?}}.
 * `threads.wanted` and `reason` are there where the system made fewer than that. `threads.places`
 * says where each may run, as the system has it now; it is there where they are kept to CPUs or
 * nodes. `code` is stable, "BN-OK" when nothing is wrong. Says what is known; nothing is opened for
 * it. `status` is what a device was doing: {asked: "now" | "probe", age_s?, refused?,
 * memory_total_bytes?, memory_free_bytes?, pool_bytes?, pool_used_bytes?, pool_peak_bytes?,
 * pool_hits?, pool_misses?, utilisation_percent?, temperature_millicelsius?, power_milliwatts?,
 * clock_khz?, memory_clock_khz?, throttled[]?, ecc_corrected?, ecc_uncorrected?, health?}, of
 * devices that models are open on asked now. [any thread] */
BITNET_API bitnet_status bitnet_runtime_report(bitnet_runtime* runtime, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- plugin files --------------------------------------------------------------------------- */

/* Checks a plugin file as the loader would, without running it, and reports all that it finds.
 * `manifest`, if not NULL, has the hash and the packages of missing libraries. `report` receives a
 * JSON text once: {file, bytes, name?, version?, vendor?, license?, abi?, build_id?, errors,
 * warnings, findings[{check, level: ok|warning|error, code, text, hint?}]}. BITNET_OK also with
 * errors; BITNET_NOT_FOUND when the file cannot be read. The calling thread calls `report`.
 * [any thread] */
BITNET_API bitnet_status bitnet_backend_lint(const char* file, const char* manifest,
                                             void (*report)(void* user, bitnet_str text),
                                             void* report_user, bitnet_error* err);

/* Writes the detached ed25519 signature FILE.sig beside a plugin. `key_file` is a private key in
 * PEM without a password, readable by its owner only. BITNET_REJECTED: the plugin may not be
 * trusted, others can read the key, or FILE.sig cannot be written. [any thread] */
BITNET_API bitnet_status bitnet_backend_sign(const char* file, const char* key_file,
                                             bitnet_error* err);
/* Checks that FILE.sig is a signature of the file by a key of the folder `trusted_keys` (NULL:
 * /etc/bitnet/trusted.d). `report` receives {file, key, key_file} as JSON once, or nothing with
 * BITNET_REJECTED. The calling thread calls `report`. [any thread] */
BITNET_API bitnet_status bitnet_backend_verify(const char* file, const char* trusted_keys,
                                               void (*report)(void* user, bitnet_str text),
                                               void* report_user, bitnet_error* err);

/* Says what a shared object is, of any kind and for any machine; nothing of it is executed. Names
 * of its symbols, defined or needed, are counted in four groups: "bitnet" (begins with bitnet_),
 * "llama" (llama_), "cuda" (contains cuda or __global__) and "quantization" (quants or i2_s), each
 * in the first that it fits. At most `n_names` of each group are listed. JSON: {file, bytes,
 * format{bits, byte_order, machine, for_this_machine, soname?, build_id?, stripped, symbols,
 * exported}, groups{bitnet{count, defined, names[]}, llama, cuda, quantization}, inference,
 * formats[], accelerators[], backend?{name, version, vendor, license, class?, compiler?, abi,
 * abi_spoken, entry?, manifest?, manifest_license?}, needed[], present?[{name, needed_by?, file?,
 * fault?}], missing?[{name, needed_by?}], versions{GLIBC?, ...}, min_glibc?, cpu_baseline?,
 * loadable, problems[{code, text, hint}]}. `backend` is there for a plugin with an identity note;
 * `present` and `missing` for a file for this machine; problems say why it cannot be loaded here.
 * BITNET_OK also with problems; BITNET_BAD_DATA for what is no shared object, BITNET_NOT_FOUND when
 * the file cannot be read. [any thread] */
BITNET_API bitnet_status bitnet_analyze_library(const char* path, uint64_t n_names, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

/* ---- model --------------------------------------------------------------------------------- */

#define BITNET_I2S_LAYOUT_A 0u
#define BITNET_I2S_LAYOUT_B 1u
#define BITNET_I2S_LAYOUT_C 2u
#define BITNET_I2S_LAYOUT_QK256 3u /* of BitNet-rs: no zeros, no scale */

/* Two sets of tile sizes were published for TL1 files of Llama3-8B's shapes. */
#define BITNET_TL1_TILES_GENERATED 0u
#define BITNET_TL1_TILES_PRETUNED 1u

#define BITNET_ACTIVATION_AUTO 0u
#define BITNET_ACTIVATION_RELU2 1u
#define BITNET_ACTIVATION_SILU 2u

/* How many activations share a scale where ternary weights read them. AUTO: all of a row, as models
 * of BitNet are trained; groups of 32 (of 128 where weights are rotated) where scales of groups of
 * weights show that a model computed with floats. Where a group does not fit a matrix a smaller one
 * is used, or a row. FLOAT: none does, and nothing is rounded; ternary weights become dense ones of
 * the same values, which are four times as large or more. */
#define BITNET_ACTIVATIONS_AUTO 0u
#define BITNET_ACTIVATIONS_ROW 1u
#define BITNET_ACTIVATIONS_GROUP_32 2u
#define BITNET_ACTIVATIONS_GROUP_64 3u
#define BITNET_ACTIVATIONS_GROUP_128 4u
#define BITNET_ACTIVATIONS_FLOAT 5u

#define BITNET_EVICT_LRU 0u  /* the session that was used the longest ago */
#define BITNET_EVICT_FIFO 1u /* the one that has held blocks the longest  */
#define BITNET_EVICT_LFU 2u  /* the one that was used least often since   */

/* `done` of `total` bytes of weights are in place. Non-zero return stops with BITNET_CANCELLED. */
typedef int32_t (*bitnet_progress_callback)(void* user, uint64_t done, uint64_t total);

/* Where ternary weights lie that a backend on the host can use as the file has them: in the file's
 * own pages, which cost no memory and no time to load, or copied into the backend's memory, whose
 * pages are large where the system has such: some machines, virtual ones above all, read these
 * faster. */
#define BITNET_LOAD_AUTO 0u /* as MAPPED */
#define BITNET_LOAD_MAPPED 1u
#define BITNET_LOAD_COPIED 2u

/* Which layers lie on the devices that were asked for. They count from the last one on, and the
 * output head goes with them; the others, with the embedding, lie on the best CPU. AUTO: all, or as
 * many as fit. COUNT: n_gpu_layers; as many as the model has are all but the embedding, more are
 * all of it. What a device has no room for is BITNET_OUT_OF_DEVICE_MEMORY before a weight is read,
 * with the bytes that are missing; memory that a device does not report is not counted. */
#define BITNET_GPU_LAYERS_AUTO 0u
#define BITNET_GPU_LAYERS_ALL 1u
#define BITNET_GPU_LAYERS_COUNT 2u

#define BITNET_SPLIT_LAYER 0u /* a model may be cut between layers      */
#define BITNET_SPLIT_NONE 1u  /* all of it on one device, or an error */

typedef struct bitnet_model_options {
  uint32_t struct_size;
  uint32_t vocabulary_only; /* non-zero: tokenizer and metadata, no weights and no backend */
  uint32_t i2s_layout;      /* BITNET_I2S_LAYOUT_*: no file says which one it is            */
  uint32_t activation;      /* BITNET_ACTIVATION_*: AUTO follows the architecture's rule    */
  uint32_t tl1_tiles;       /* BITNET_TL1_TILES_*: no file says which they are              */
  uint32_t reserved_0;
  const char* pack_cache;        /* folder that keeps what backends make of weights; NULL: none */
  uint64_t pack_cache_max_bytes; /* of all its files; 0 = 8 GiB                                 */
  bitnet_progress_callback progress;
  void* progress_user;
  /* 0: each session has room for its own context. n: the sessions of this model share n bytes for
   * keys and values, in blocks of 64 tokens. When they are spent, a session that is not evaluating
   * loses its blocks by kv_eviction (BITNET_EVICT_*) and evaluates its tokens again at its next
   * call, with the same results. A call waits while all others are evaluating. */
  uint64_t kv_budget_bytes;
  uint32_t kv_eviction;
  uint32_t reserved_1;
  uint32_t tune; /* non-zero: settings of the backend that only measuring finds are measured now,
                    whatever is kept of them; bitnet_session_report has what was measured */
  uint32_t activations; /* BITNET_ACTIVATIONS_* */
  uint32_t load_mode;   /* BITNET_LOAD_* */
  uint32_t reserved_2;
  uint32_t gpu_layers;   /* BITNET_GPU_LAYERS_* */
  uint32_t n_gpu_layers; /* with COUNT          */
  uint32_t split_mode;   /* BITNET_SPLIT_*      */
  uint32_t n_tensor_split;
  /* Shares of those layers for each device of the selected backend, as the report numbers them; 0
   * leaves one out. NULL: the selected device has them all. With it the request has no index. */
  const float* tensor_split;
  /* The session that room is left for; NULL: one of the defaults. */
  const struct bitnet_session_options* planned;
  /* PEM file of an ECDSA public key, or of the certificates that one of the signer's leads to. With
   * one of them the model must have a signature by OpenSSF Model Signing 1.0: its files are hashed
   * before they are read, and BITNET_REJECTED names the signature's field that is wrong. While that
   * lasts `progress` has 0 bytes done, and can stop it. */
  const char* signature_key;
  const char* signature_ca;
  /* The signature's file; NULL: FILE.sig, or model.sig in its folder; of a checkpoint model.sig in
   * it, or FOLDER.sig beside it. */
  const char* signature;
} bitnet_model_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_model_defaults(bitnet_model_options* options, uint32_t size);

/* Reads and checks a GGUF file (or the first shard of a split one), or the folder of a Hugging Face
 * checkpoint, and gives its weights to the selected backend. `runtime` may be NULL with
 * vocabulary_only. BITNET_BAD_DATA, BITNET_UNSUPPORTED or BITNET_NOT_FOUND when the file is at
 * fault. BITNET_OUT_OF_DEVICE_MEMORY, BITNET_OUT_OF_MEMORY: there is no room for the weights.
 * BITNET_REJECTED: the signature is wrong. BITNET_CANCELLED: `progress` stopped it. Also fails as
 * bitnet_runtime_select. [any thread] */
BITNET_API bitnet_status bitnet_model_open(bitnet_runtime* runtime, const char* path,
                                           const bitnet_model_options* options, bitnet_model** out,
                                           bitnet_error* err);
/* Frees the model. Its sessions, schedulers and shadows are closed before it. NULL is allowed.
 * [one thread at a time for its model] */
BITNET_API void bitnet_model_close(bitnet_model* model);

/* Reads metadata and tensor table of any GGUF file or checkpoint folder, no backend. The JSON names
 * what the file holds, what its bytes were taken for and why, and in `problems` why it would not
 * run, if so: docs/reference/formats.md lists its members. BITNET_NOT_FOUND, BITNET_BAD_DATA: the
 * file cannot be read, or is none of these. [any thread] */
BITNET_API bitnet_status bitnet_inspect(const char* path, const bitnet_model_options* options,
                                        char* out, uint64_t capacity, uint64_t* needed,
                                        bitnet_error* err);

/* Reads the norms and linear layers of such a file and says which look wrong. `rules` says how
 * large they may be: NULL or "auto" for those of the model's kind, "none", "f16", "i2_s" (of
 * bitnet-b1.58 models) or "generic". I2_S weights are checked in any case: no code 3, a finite
 * positive scale, a plausible share of zeros. JSON: {file, rules, checked, suspicious,
 * tensors[{name, kind: norm|projection|ternary, type, rms?, lowest?, highest?, scale?,
 * zero_fraction?, code_3?, status: ok|suspicious, why[]?}]}. BITNET_OK whatever it finds; otherwise
 * fails as bitnet_inspect, and with BITNET_INVALID_ARGUMENT for other rules. [any thread] */
BITNET_API bitnet_status bitnet_inspect_weights(const char* path,
                                                const bitnet_model_options* options,
                                                const char* rules, char* out, uint64_t capacity,
                                                uint64_t* needed, bitnet_error* err);

typedef struct bitnet_convert_options {
  uint32_t struct_size;
  uint32_t overwrite; /* non-zero: `out` may replace a file                           */
  uint32_t verify;    /* non-zero: read the result back and compare                   */
  uint32_t reserved_0;
  const char* type;           /* of linear layers: "i2_s", "tl1", "tl2", "tq1_0", "tq2_0", "iq2_bn",
                                 "q1_0", "q2_0", "pq2_0", "ptq1_0", or "f32", "f16", "bf16",
                                 "q8_0", "q4_0", "q6_k"; NULL = "i2_s", or "pq2_0" or "q2_0"
                                 where groups of 128 or 64 weights have scales */
  const char* embedding_type; /* one of the latter, or "q1_0", "q2_0", "pq2_0", "ptq1_0";
                                 NULL = as it is, other floats as "f16" */
  const char* output_type;    /* the same for the output head; a tied one is the embedding    */
  const bitnet_model_options* model; /* how `in` is read; NULL = defaults                     */
  bitnet_progress_callback progress; /* bytes of weights                                      */
  void* progress_user;
  uint32_t n_threads; /* 0: as many as are of use on this machine                     */
  uint32_t reserved_1;
  uint32_t lossy; /* non-zero: floats that are ternary in groups may become a type that has fewer
                     scales, by their mean size; else they are refused                  */
  uint32_t reserved_2;
} bitnet_convert_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_convert_defaults(bitnet_convert_options* options, uint32_t size);

/* Writes a model, a GGUF file or a Hugging Face checkpoint folder, as a GGUF file. `out` appears
 * whole or not at all. `report` receives a JSON text once: {file, bytes, tensors[{type, count,
 * bytes}], readings[{as, tensors}], kept?[{tensor, type, why}], left_out?[name],
 * left_out_members?[{file, member?, why}], verified?, dense_error?}; may be NULL. kept are an
 * embedding or a head that "f16" would not hold, in their own type. left_out are tensors that
 * predict further tokens or see images, which bitnet does not, then the members of a folder's files
 * that are not used. BITNET_BAD_DATA for a weight that is no finite number, BITNET_UNSUPPORTED for
 * one that the type asked for does not hold, both by tensor and element. BITNET_IO: `out` cannot be
 * written. BITNET_CANCELLED: `progress` stopped it. The calling thread calls `report`.
 * [any thread] */
BITNET_API bitnet_status bitnet_convert(const char* in, const char* out,
                                        const bitnet_convert_options* options,
                                        void (*report)(void* user, bitnet_str text),
                                        void* report_user, bitnet_error* err);

/* 0 and BITNET_NONE where the model has none. */
typedef struct bitnet_model_info {
  uint32_t struct_size;
  uint32_t n_vocab;
  uint32_t n_context; /* that the model was trained for */
  uint32_t n_layers;
  uint32_t n_embedding;
  uint32_t n_heads;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t n_feed_forward;
  uint32_t add_bos;
  uint32_t bos, eos, eot, unknown, padding; /* token ids */
  uint32_t reserved_0;
  uint64_t n_parameters;
  uint64_t weight_bytes;
  char architecture[64];
  char name[128];
  /* Of infilling: before what stands before the gap, before what stands behind it, before what
   * fills it; padding; what begins a repository, and each of its files. */
  uint32_t fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep; /* token ids */
} bitnet_model_info;

/* Says what the model is: its sizes, its token ids, its name. [any thread] */
BITNET_API bitnet_status bitnet_model_describe(const bitnet_model* model, bitnet_model_info* out,
                                               bitnet_error* err);

/* ---- text ---------------------------------------------------------------------------------- */

#define BITNET_TOKENIZE_ADD_BOS 1u       /* prefix bos whatever the model says      */
#define BITNET_TOKENIZE_MODEL_BOS 2u     /* prefix bos if the model asks for it     */
#define BITNET_TOKENIZE_PARSE_SPECIAL 4u /* "<|eot_id|>" in the text becomes its id */
#define BITNET_TOKENIZE_MODEL_EOS 8u     /* append eos if the model asks for it     */

/* Writes at most capacity ids; *count is how many there are. `flags` are BITNET_TOKENIZE_*. Bytes
 * that are not UTF-8 become byte tokens with SPM vocabularies, and are an error with others.
 * BITNET_INVALID_ARGUMENT: such bytes, more than 256 MiB of text, or ADD_BOS where the vocabulary
 * has no bos. [any thread] */
BITNET_API bitnet_status bitnet_tokenize(const bitnet_model* model, bitnet_str text, uint32_t flags,
                                         bitnet_token* out, uint64_t capacity, uint64_t* count,
                                         bitnet_error* err);

#define BITNET_DETOKENIZE_SPECIAL 1u /* render control tokens as their text */

/* Gives the text of n ids, which may begin or end within a UTF-8 character. `flags` are
 * BITNET_DETOKENIZE_*. BITNET_INVALID_ARGUMENT: an id is not in the vocabulary, or the text does
 * not fit. [any thread] */
BITNET_API bitnet_status bitnet_detokenize(const bitnet_model* model, const bitnet_token* ids,
                                           uint64_t n, uint32_t flags, char* out, uint64_t capacity,
                                           uint64_t* needed, bitnet_error* err);
/* Returns 1 if generation ends with this token, else 0. [any thread] */
BITNET_API int32_t bitnet_token_ends_generation(const bitnet_model* model, bitnet_token id);

typedef struct bitnet_message {
  bitnet_str role; /* "system", "user" or "assistant" */
  bitnet_str content;
} bitnet_message;

/* Renders messages in the model's chat form, ending where the assistant's answer begins.
 * `template_name`: "bitnet", "llama3", "chatml", "falcon3", "instruct", "raw"; "model" for the
 * Jinja template that the file brings; NULL or "auto" for that one if it renders and fits the
 * vocabulary, else for the built-in one that seems to; the log says which, and why. This is for
 * people to read: what the tokens are only bitnet_chat_tokenize knows, as a message can write the
 * text of a control token. `message_size` is sizeof(bitnet_message). BITNET_INVALID_ARGUMENT: there
 * is no template of that name, or it does not know a role. BITNET_UNSUPPORTED: the template cannot
 * do what is asked. [any thread] */
BITNET_API bitnet_status bitnet_chat_format(const bitnet_model* model, const char* template_name,
                                            const bitnet_message* messages, uint32_t message_size,
                                            uint64_t n, char* out, uint64_t capacity,
                                            uint64_t* needed, bitnet_error* err);

typedef struct bitnet_chat_options {
  uint32_t struct_size;
  uint32_t parse_special;    /* non-zero: "<|eot_id|>" in a message becomes its id, as it did before
                                there was this call; then messages can end and begin turns      */
  const char* template_name; /* as in bitnet_chat_format                                        */
  /* 0: no bound. Else tokens that the prompt shares with its answer: 64 of them, or an eighth where
   * that is less, stay free, and the oldest turns are left out until that is so. The system prompt,
   * where it comes first, and the last message stay: BITNET_CONTEXT_FULL if they are long. */
  uint64_t n_context;
} bitnet_chat_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_chat_defaults(bitnet_chat_options* options, uint32_t size);

/* Gives the tokens of bitnet_chat_format's text, with the form's own bos. Control tokens are those
 * of the template: what looks like one in a message is text, so messages cannot begin or end turns.
 * `options` NULL: defaults. Writes at most capacity ids; *count is how many there are; *left_out,
 * which may be NULL, how many messages n_context left out. Otherwise fails as bitnet_chat_format.
 * [any thread] */
BITNET_API bitnet_status bitnet_chat_tokenize(const bitnet_model* model,
                                              const bitnet_chat_options* options,
                                              const bitnet_message* messages, uint32_t message_size,
                                              uint64_t n, bitnet_token* out, uint64_t capacity,
                                              uint64_t* count, uint64_t* left_out,
                                              bitnet_error* err);

/* ---- chats in JSON --------------------------------------------------------------------------
 *
 * docs/reference/chat-json.md. Messages, tools and answers have OpenAI's form. */

typedef struct bitnet_chat bitnet_chat;     /* a prompt, and how its answer is written */
typedef struct bitnet_answer bitnet_answer; /* an answer, while it comes               */

typedef struct bitnet_chat_request {
  uint32_t struct_size;
  uint32_t parse_special; /* as in bitnet_chat_options */
  /* JSON: a list of at least one message. Roles are system, developer, user, assistant and tool;
   * content a text or a list of parts of the type text; name, tool_calls, tool_call_id and
   * reasoning_content as they apply. Members that are not known are left alone. */
  bitnet_str messages;
  bitnet_str tools; /* JSON: a list of tools of the type function. Without size: none */
  /* JSON: "auto", "none", "required" or {"type": "function", "function": {"name"}}. Without size:
   * "auto". */
  bitnet_str tool_choice;
  bitnet_str template_arguments; /* JSON: an object, whose members the template gets as variables,
                                    such as enable_thinking. Without size: none */
  const char* template_name;     /* as in bitnet_chat_format */
  const char* dialect;           /* how calls are written: hermes, tagged, llama3, minicpm, gemma,
                                    none, none_minicpm; NULL or "auto": as the template does,
                                    and, without tools, the one of the last two whose marks
                                    around thinking are the model's */
  uint64_t n_context;            /* as in bitnet_chat_options */
  uint32_t no_answer;     /* non-zero: ends behind the last message, not where an answer begins */
  uint32_t continue_last; /* non-zero: the last message is the assistant's, and the answer goes on
                             with it */
  uint32_t one_call;      /* non-zero: what tool_choice demands is one call; 0: at least one */
  uint32_t reserved_0;
} bitnet_chat_request;

typedef struct bitnet_chat_info {
  uint32_t struct_size;
  uint32_t in_reasoning; /* non-zero: the prompt has opened the thinking, and the answer goes on
                            with it */
  const bitnet_token* tokens;
  uint64_t n_tokens;
  uint64_t n_left_out; /* oldest messages that n_context left out */
  bitnet_str text;     /* of the prompt, for people to read */
  bitnet_str dialect;
  bitnet_str grammar; /* GBNF, for bitnet_generation: binds the answer to a call where tool_choice
                         demands one, behind thinking if the model may think. The arguments are
                         valid by the schema of the tool, but for `unbound`. Without size: none */
  bitnet_str reasoning_ends; /* what ends the thinking, "</think>"; reasoning_budget of
                                bitnet_generation ends it early */
  bitnet_str unbound; /* tools with a schema that `grammar` does not follow, whose arguments may be
                         anything: a line for each, "NAME: PATH: why". Without size: none */
  bitnet_str reasoning_begins; /* what begins the thinking, "<think>" */
} bitnet_chat_info;

/* Fills the first `size` bytes of *request with defaults: everything is 0, NULL or without size.
 * [any thread] */
BITNET_API void bitnet_chat_request_defaults(bitnet_chat_request* request, uint32_t size);
/* Makes the prompt of a chat. Control tokens are those of the template, as in bitnet_chat_tokenize.
 * Tools that the model's template does not know are described in the system prompt. The template is
 * parsed once for each model. BITNET_INVALID_ARGUMENT: a text is no JSON of this form; the message
 * names what is wrong: "messages[2].content: expected ..., found ...". BITNET_UNSUPPORTED: a call
 * is demanded and the dialect has none, or the template cannot do what is asked, or the schema of a
 * tool with "strict": true cannot be followed: "tools[1].function.parameters#/properties/a: ...".
 * BITNET_CONTEXT_FULL as bitnet_chat_tokenize. [any thread] */
BITNET_API bitnet_status bitnet_chat_open(const bitnet_model* model,
                                          const bitnet_chat_request* request, bitnet_chat** out,
                                          bitnet_error* err);
/* Frees the chat; its answers stay valid. NULL is allowed. [one thread at a time for its chat] */
BITNET_API void bitnet_chat_close(bitnet_chat* chat);
/* Says what the chat consists of. Texts and tokens are the chat's, and valid until it is closed.
 * [any thread] */
BITNET_API bitnet_status bitnet_chat_describe(const bitnet_chat* chat, bitnet_chat_info* out,
                                              bitnet_error* err);

typedef struct bitnet_answer_options {
  uint32_t struct_size;
  uint32_t in_reasoning; /* as in bitnet_chat_info */
  /* JSON, as in bitnet_chat_request: values have the types of parameters, and values without a name
   * the names. Without size: none. */
  bitnet_str tools;
  const char* dialect;  /* as in bitnet_chat_request; NULL: hermes */
  const char* call_ids; /* the id of a call is this and its index; NULL: "call_", a random text */
} bitnet_answer_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0, NULL or without size.
 * [any thread] */
BITNET_API void bitnet_answer_defaults(bitnet_answer_options* options, uint32_t size);
/* Begins an answer without a chat. BITNET_INVALID_ARGUMENT: there is no dialect of that name, or
 * `tools` are no JSON of tools; the message names what is wrong. [any thread] */
BITNET_API bitnet_status bitnet_answer_open(const bitnet_answer_options* options,
                                            bitnet_answer** out, bitnet_error* err);
/* Begins the answer to this prompt, by its dialect and tools. `call_ids` as in
 * bitnet_answer_options. [any thread] */
BITNET_API bitnet_status bitnet_chat_answer(const bitnet_chat* chat, const char* call_ids,
                                            bitnet_answer** out, bitnet_error* err);
/* Frees the answer. NULL is allowed. [one thread at a time for its answer] */
BITNET_API void bitnet_answer_close(bitnet_answer* answer);

#define BITNET_ANSWER_REASONING_BEGIN 1u
#define BITNET_ANSWER_REASONING 2u /* text */
#define BITNET_ANSWER_REASONING_END 3u
#define BITNET_ANSWER_CONTENT 4u        /* text */
#define BITNET_ANSWER_CALL_BEGIN 5u     /* call, id, name */
#define BITNET_ANSWER_CALL_ARGUMENTS 6u /* call, text: a piece of a JSON text of an object */
/* call; text: as the model wrote it, at the last call of a block, else "". */
#define BITNET_ANSWER_CALL_END 7u
/* text: as the model wrote it, what began as a call and is none. message: why. It
 * counts as content. */
#define BITNET_ANSWER_MALFORMED 8u

typedef struct bitnet_answer_event {
  uint32_t struct_size;
  uint32_t kind; /* BITNET_ANSWER_* */
  uint32_t call; /* 0, 1, ... in the order of the calls */
  uint32_t reserved_0;
  bitnet_str text; /* these are valid until the next call on the answer */
  bitnet_str id;
  bitnet_str name;
  bitnet_str message;
} bitnet_answer_event;

/* Takes a piece of the answer, cut anywhere. Events are the same however the text is cut, but for
 * how reasoning and content are. Nothing that a model writes is an error. BITNET_INVALID_ARGUMENT:
 * the answer was finished. [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_push(bitnet_answer* answer, bitnet_str text,
                                            bitnet_error* err);
/* Takes the end of the answer: what is not ended ends there. A second call does nothing.
 * [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_finish(bitnet_answer* answer, bitnet_error* err);
/* Gives the next event, in order. BITNET_NOT_FOUND: there are no more until the next push, or none
 * after finish. [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_next(bitnet_answer* answer, bitnet_answer_event* out,
                                            bitnet_error* err);
/* Returns 1 while what comes next would be thinking, else 0, so that a program can count the tokens
 * of thinking. [one thread at a time for its answer] */
BITNET_API int32_t bitnet_answer_in_reasoning(const bitnet_answer* answer);
/* Gives the message so far as JSON, {role, content, reasoning_content?, tool_calls[{id, type,
 * function{name, arguments}}]?}, whose texts are those of the events joined; content is null where
 * there are calls alone. It can be a message of the next request.
 * [one thread at a time for its answer] */
BITNET_API bitnet_status bitnet_answer_message(const bitnet_answer* answer, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- session ------------------------------------------------------------------------------- */

#define BITNET_KV_F16 0u
#define BITNET_KV_F32 1u
/* int8 with a scale for every 32 elements: 17/32 of the bytes of f16. Needs a head size that is a
 * multiple of 32 and a backend that has it; else BITNET_UNSUPPORTED. */
#define BITNET_KV_Q8_0 2u
/* 4 bits with a scale for every 32 elements: 9/32 of the bytes of f16. As above, and it costs the
 * model more: docs/reference/models.md. */
#define BITNET_KV_Q4_0 3u

/* To what a backend may round the factors of float products, in steps of several tokens, where it
 * has kernels for that; sums stay f32. F16: to f16. BF16: to f16, or to bf16 where weights are. By
 * how much that moves a product: bitnet/abi/ops.h. Others stay f32; a session's report says which
 * kernels rounded. Deterministic sessions round nothing: what a step rounds depends on its size. */
#define BITNET_PRODUCTS_F32 0u
#define BITNET_PRODUCTS_F16 1u
#define BITNET_PRODUCTS_BF16 2u

/* What becomes of a text's hidden states. MODEL: what the file says under
 * <architecture>.pooling_type, and LAST where it says nothing. CLS is the state of the first token,
 * which sees no other. */
#define BITNET_POOLING_MODEL 0u
#define BITNET_POOLING_MEAN 1u
#define BITNET_POOLING_CLS 2u
#define BITNET_POOLING_LAST 3u

typedef struct bitnet_session_options {
  uint32_t struct_size;
  /* In tokens; 0 = as many as the model was trained for, and then at most 4096. */
  uint32_t n_context;
  uint32_t n_batch;       /* tokens of one step; 0 = 512                             */
  uint32_t kv_k;          /* BITNET_KV_*                                             */
  uint32_t kv_v;          /* BITNET_KV_*                                             */
  uint32_t deterministic; /* non-zero: same logits whatever the batch            */
  uint32_t profile;       /* non-zero: bitnet_session_report carries times       */
  uint32_t low_memory;    /* non-zero: less memory, slower: no second form of the output head */
  /* 0: every token sees all before it. n: the last n, itself included, and the first window_keep of
   * the session. Then KV takes no more than the window and one step need, n_context is what the
   * model was trained for unless given, and truncating to before what the window has left evaluates
   * everything again at the next call. BITNET_UNSUPPORTED where the backend cannot. */
  uint32_t window;
  uint32_t window_keep;
  uint32_t embeddings; /* non-zero: for bitnet_embed, and for no logits: the output head has no part
                          in it. The same bits whatever n_batch is                            */
  uint32_t pooling;    /* BITNET_POOLING_*, with embeddings                                   */
  uint32_t precision;  /* BITNET_PRODUCTS_*                                                   */
} bitnet_session_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0. [any thread] */
BITNET_API void bitnet_session_defaults(bitnet_session_options* options, uint32_t size);
/* Opens a conversation that is empty. BITNET_INVALID_ARGUMENT: an option has no meaning, or the
 * model was opened with vocabulary_only. BITNET_UNSUPPORTED: the backend cannot do what an option
 * asks for. BITNET_OUT_OF_MEMORY, BITNET_OUT_OF_DEVICE_MEMORY: there is no room for keys and
 * values. [any thread] */
BITNET_API bitnet_status bitnet_session_open(bitnet_model* model,
                                             const bitnet_session_options* options,
                                             bitnet_session** out, bitnet_error* err);
/* Frees the session. During a call of another thread it cancels that call, and the session ends
 * with it. NULL is allowed. [any thread] */
BITNET_API void bitnet_session_close(bitnet_session* session);

/* Appends n tokens. `logits` receives float32 rows of n_vocab: the last position's row, also where
 * n is 0 and the session is not empty, or one row per token with all_rows; NULL = none. `capacity`
 * is in floats. BITNET_CONTEXT_FULL leaves the session as it was. BITNET_CANCELLED:
 * bitnet_session_cancel was called. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_eval(bitnet_session* session, const bitnet_token* ids,
                                             uint64_t n, uint32_t all_rows, float* logits,
                                             uint64_t capacity, bitnet_error* err);
/* Gives the embedding of n tokens: their hidden states behind the last norm, pooled, at length 1.
 * `out` receives n_embedding floats of bitnet_model_info; *needed, which may be NULL, is how many.
 * capacity 0 with out NULL asks for that and computes nothing; else capacity is at least that many.
 * It depends on these tokens alone: the session holds none before and none after.
 * BITNET_INVALID_ARGUMENT for no tokens, and for a session that was not opened for embeddings;
 * BITNET_CONTEXT_FULL for more than the context has; BITNET_BAD_DATA where weights make it no
 * number. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_embed(bitnet_session* session, const bitnet_token* ids, uint64_t n,
                                      float* out, uint64_t capacity, uint64_t* needed,
                                      bitnet_error* err);
/* Returns how many tokens the session holds; 0 for NULL. [any thread] */
BITNET_API uint64_t bitnet_session_length(const bitnet_session* session);
/* Returns how many tokens the session has room for; 0 for NULL. [any thread] */
BITNET_API uint64_t bitnet_session_capacity(const bitnet_session* session);
/* Forgets all but the first n tokens. BITNET_INVALID_ARGUMENT: the session has fewer.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_truncate(bitnet_session* session, uint64_t n,
                                                 bitnet_error* err);
/* Cancels the bitnet_generate, bitnet_session_eval or bitnet_embed that runs, or the next one, soon
 * after its begin, if none runs. It affects exactly one call. [any thread, signal handlers too] */
BITNET_API void bitnet_session_cancel(bitnet_session* session);
/* Takes back a cancel that has not stopped a call yet. [any thread] */
BITNET_API void bitnet_session_clear_cancel(bitnet_session* session);

typedef struct bitnet_logit_bias {
  bitnet_token token;
  float bias;
} bitnet_logit_bias;

/* The stages run in this order: what a grammar does not allow is left out, logit bias, penalties,
 * DRY, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature, draw
 * (docs/reference/sampling.md). Stages from top_n_sigma on were added behind the first version, and
 * are off by default: then a seed gives the text that it gave without them. */
typedef struct bitnet_sampling {
  uint32_t struct_size;
  uint32_t seed;           /* same seed, same text on every platform; default 0              */
  float temperature;       /* default 0.8; 0 = greedy                                        */
  int32_t top_k;           /* default 40; 0 = off                                            */
  float top_p;             /* default 0.95; 1 = off                                          */
  float min_p;             /* default 0.05; 0 = off                                          */
  float repeat_penalty;    /* default 1 = off                                                */
  float presence_penalty;  /* default 0 = off                                                */
  float frequency_penalty; /* default 0 = off                                                */
  int32_t repeat_last_n;   /* tokens that the penalties look at; default 64; -1 = all        */
  uint32_t ignore_eos;     /* non-zero: tokens that end a generation never come               */
  uint32_t n_logit_bias;
  const bitnet_logit_bias* logit_bias;
  uint32_t logit_bias_size; /* sizeof(bitnet_logit_bias)                                      */
  uint32_t reserved_0;
  float top_n_sigma;       /* standard deviations of the logits; default -1; 0 or less = off */
  float typical_p;         /* default 1 = off                                                */
  float xtc_probability;   /* default 0 = off                                                */
  float xtc_threshold;     /* default 0.1; above 0.5 = off                                   */
  float dynatemp_range;    /* of the temperature, down and up; default 0 = off               */
  float dynatemp_exponent; /* of the entropy; default 1                                      */
  /* 1 or 2: in place of top-n-sigma to XTC, and without dynatemp; default 0 = off. */
  int32_t mirostat;
  float mirostat_tau;             /* the surprise that it keeps, in bits; default 5             */
  float mirostat_eta;             /* how fast it learns; default 0.1                            */
  float dry_multiplier;           /* default 0 = off                                            */
  float dry_base;                 /* 1 or more; default 1.75                                    */
  int32_t dry_allowed_length;     /* tokens that may be repeated; 1 or more; default 2          */
  int32_t dry_penalty_last_n;     /* tokens that DRY looks at; default 64; -1 = all             */
  uint32_t n_dry_breakers;        /* at most 32; 0 = none; default 4                            */
  const bitnet_str* dry_breakers; /* texts of 1 to 40 bytes that end a repetition; default
                                     "\n", ":", "\"" and "*", which are the library's           */
} bitnet_sampling;

/* Fills the first `size` bytes of *sampling with llama.cpp's defaults, which stand beside the
 * members. [any thread] */
BITNET_API void bitnet_sampling_defaults(bitnet_sampling* sampling, uint32_t size);

#define BITNET_STOP_LENGTH 1u    /* max_tokens reached          */
#define BITNET_STOP_EOS 2u       /* an end-of-generation token  */
#define BITNET_STOP_STRING 3u    /* a stop string               */
#define BITNET_STOP_TOKEN 4u     /* a stop id                   */
#define BITNET_STOP_CONTEXT 5u   /* the context is full         */
#define BITNET_STOP_CANCELLED 6u /* cancel or the callback     */
#define BITNET_STOP_GRAMMAR 7u   /* the text is whole by the grammar, and no token may follow */

/* A piece of finished text: whole UTF-8 characters, never part of a stop string. Non-zero return
 * stops the generation. */
typedef int32_t (*bitnet_text_callback)(void* user, bitnet_str text);

/* Speculation: a step computes the last token and a draft of what may follow it, and keeps what the
 * model itself would have given. The text, its tokens and log probabilities are those without it,
 * bit by bit, on backends whose sums do not depend on what else a step computes, as those of cpu.
 * It pauses where it costs time, by what steps take, and tries again now and then. */
#define BITNET_SPECULATION_NONE 0u
#define BITNET_SPECULATION_NGRAM 1u /* drafts what followed when the last tokens came before */
#define BITNET_SPECULATION_DRAFT 2u /* a smaller model drafts */
#define BITNET_SPECULATION_AUTO 3u  /* DRAFT where there is a draft model, else NGRAM */

typedef struct bitnet_speculation {
  uint32_t struct_size;
  uint32_t type;          /* BITNET_SPECULATION_* */
  uint32_t n_max;         /* tokens of a draft, at most 256; 0 = 16 */
  uint32_t n_min;         /* shorter drafts are not computed; 0 = 1 */
  uint32_t ngram_size;    /* last tokens that must have come before, at most 64; 0 = 3 */
  uint32_t draft_context; /* of the draft model, in tokens; 0 = as the session or scheduler has */
  /* Of the same vocabulary, token by token, else BITNET_INVALID_ARGUMENT. The session, or the
   * scheduler, computes on it from now on and is closed before it. Its failures end the drafts and
   * never the text; the report says why. */
  bitnet_model* draft;
} bitnet_speculation;

/* Fills the first `size` bytes of *options with defaults: type is BITNET_SPECULATION_NONE, and the
 * rest 0 or NULL. [any thread] */
BITNET_API void bitnet_speculation_defaults(bitnet_speculation* options, uint32_t size);

typedef struct bitnet_generation {
  uint32_t struct_size;
  int32_t max_tokens;              /* -1 = until the model ends or the context is full; default */
  const bitnet_sampling* sampling; /* NULL = defaults */
  const bitnet_str* stop_strings;
  uint32_t n_stop_strings;
  uint32_t n_stop_tokens;
  const bitnet_token* stop_tokens;
  bitnet_text_callback text;
  void* text_user;
  bitnet_token* out_tokens; /* receives new ids, including the one that ended it; may be NULL */
  uint64_t out_capacity;    /* in ids */
  /* GBNF (docs/reference/grammars.md): each new text is the begin of one that its rule "root" has,
   * control tokens never come, and those that end a generation only where it is whole. Without
   * size: none. Checked before anything is evaluated: BITNET_INVALID_ARGUMENT with line and column,
   * BITNET_UNSUPPORTED past a bound or where the vocabulary cannot go on. A session keeps what it
   * learnt of the last one. */
  bitnet_str grammar;
  const bitnet_speculation* speculation; /* NULL: none */
  /* A JSON Schema (docs/reference/json-schema.md) in place of a grammar: each new text is the
   * begin of a JSON text that is valid by it. Without size: none; with a grammar:
   * BITNET_INVALID_ARGUMENT. A message names the place in the schema by a JSON pointer; otherwise
   * as `grammar`. */
  bitnet_str json_schema;
  /* The thinking of the answer. The last three are as in bitnet_chat_info: it begins with the text
   * where in_reasoning is not 0, else where the first word of the text is reasoning_begins, and
   * ends at reasoning_ends. Behind reasoning_budget of its tokens come those of reasoning_ends,
   * whatever the model would have given, at once or where a grammar or schema allows them; they are
   * tokens of the text as all others are. -1, or reasoning_ends without size: no bound. At most 64
   * bytes each; BITNET_UNSUPPORTED where the vocabulary cannot write reasoning_ends. */
  int32_t reasoning_budget;
  uint32_t in_reasoning;
  bitnet_str reasoning_begins;
  bitnet_str reasoning_ends;
} bitnet_generation;

typedef struct bitnet_generation_result {
  uint32_t struct_size;
  uint32_t stop_reason; /* BITNET_STOP_* */
  uint64_t n_prompt;    /* tokens evaluated before the first new one */
  uint64_t n_generated;
  uint64_t prompt_ns;
  uint64_t generate_ns;
  uint32_t stop_index; /* which stop string or token, else BITNET_NONE */
  uint32_t reserved_0;
  uint64_t n_drafted;  /* tokens of drafts that were computed */
  uint64_t n_accepted; /* of these: that are in the text */
} bitnet_generation_result;

/* Fills the first `size` bytes of *options with defaults: max_tokens and reasoning_budget are -1,
 * and the rest 0, NULL or without size. [any thread] */
BITNET_API void bitnet_generation_defaults(bitnet_generation* options, uint32_t size);

/* Checks that bitnet_generate takes this grammar; fails as bitnet_generate would. [any thread] */
BITNET_API bitnet_status bitnet_grammar_check(bitnet_str grammar, bitnet_error* err);

/* Checks the same of a JSON Schema: BITNET_UNSUPPORTED for a keyword that cannot be followed
 * exactly, or past a bound. [any thread] */
BITNET_API bitnet_status bitnet_json_schema_check(bitnet_str json_schema, bitnet_error* err);

/* Appends the prompt (it may be empty if the session is not), then samples. The generated tokens
 * stay in the session; the last one may still wait to be evaluated. A cancel is no failure:
 * stop_reason has it. `text` is called on this thread. BITNET_INVALID_ARGUMENT: an option has no
 * meaning, an id is not in the vocabulary, or prompt and session are empty. BITNET_CONTEXT_FULL:
 * the prompt does not fit. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_generate(bitnet_session* session, const bitnet_token* prompt,
                                         uint64_t n_prompt, const bitnet_generation* options,
                                         bitnet_generation_result* out, bitnet_error* err);

/* JSON: {backend, device, device_status?, threads, kernels[{id, op, backend, device, format?,
 * level?, precision?, calls, time_ns?, bytes?}], steps, tokens, pooling?, kv{blocks, dtype_k,
 * dtype_v, bytes, max_context?, window?, keep?, budget?, evictions?}, parts[{device, embedding,
 * head, layers{first, count}, layer_bytes[], embedding_bytes?, head_bytes?, weight_bytes,
 * mapped_bytes}], moves[{from, to, why, pause_ms, method, copy_ms?}]?, moves_before?,
 * speculation?{type, drafted, accepted, steps, tokens_per_step, step_ratio, pauses, why?}}: what
 * ran in this session, counted where it ran, and the last 64 times that it changed its device or
 * the copy of its backend. kernels: each has a row for each device that ran it, and for each copy
 * of a backend; what the device did not list of it is left out. parts: what each device has of the
 * weights, counted when it was there, in the order in which a token goes through them; mapped_bytes
 * of it lie in the model's file. `device` is the one that was asked for. max_context: tokens whose
 * keys and values free memory had room for when the session was opened. speculation: of all calls
 * of bitnet_generate; step_ratio is what a step with a draft took, in steps without, and why the
 * last failure of a draft model. The text callback may call it.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_report(bitnet_session* session, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* JSON: {parts[{backend, version, build_id, device, embedding, head, layers{first, count}, ops[{op,
 * body?, layer?, level: none|reference|optimised|fused, formats[]?, weights[]?, weight_bytes?}]}]}:
 * the ops of the session's program on each device, in their order, before any of them runs. `body`
 * ops behind a composite are its definition, which runs where its level is none. level is what the
 * device answered for this program. weights are the model's, of a composite those of its body;
 * weight_bytes as the model has them. Kernels are counted where they run: see
 * bitnet_session_report. The text callback may call it. [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_program(bitnet_session* session, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

/* ---- receipts -------------------------------------------------------------------------------
 *
 * What made an answer, as a file that can be checked: docs/reference/receipts.md. An in-toto
 * Statement v1 in a DSSE envelope, signed with ed25519. Its counters are those that backends keep
 * while their kernels run, and everything that follows from them is computed, not stated. */

typedef struct bitnet_receipt_options {
  uint32_t struct_size;
  uint32_t with_tokens; /* non-zero: the ids of prompt and answer, too; else their salted sums */
  /* A private key in PEM without a password, readable by its owner only. NULL: the user's own,
   * which is made at its first use. "": not signed. */
  const char* key_file;
  /* JSON: an object whose members are added to the facts, such as gates[{name, limit, measured,
   * passed}] and program. Without size: none. */
  bitnet_str facts;
  uint32_t statement_only; /* non-zero: the statement, without envelope and signature */
  uint32_t reserved_0;
} bitnet_receipt_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0, NULL or without size.
 * [any thread] */
BITNET_API void bitnet_receipt_defaults(bitnet_receipt_options* options, uint32_t size);
/* Gives the receipt of the last answer of bitnet_generate, also of one that failed; counters are
 * the session's. Reads the model's files, once until they change, and those of the backends that
 * computed. BITNET_INVALID_ARGUMENT: the session has generated nothing, or `facts` is no object, or
 * has a member that the library writes. BITNET_REJECTED, BITNET_NOT_FOUND, BITNET_IO: for its key.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_receipt(bitnet_session* session,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);
/* Gives the receipt of a run that failed with this status and message before there was a session.
 * BITNET_INVALID_ARGUMENT: `status` is BITNET_OK. Otherwise fails as bitnet_session_receipt.
 * [any thread] */
BITNET_API bitnet_status bitnet_runtime_receipt(bitnet_runtime* runtime, bitnet_status status,
                                                const char* message,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);

typedef struct bitnet_receipt_check {
  uint32_t struct_size;
  uint32_t allow_unsigned; /* non-zero: it needs no signature                                     */
  const char* key_file; /* a key in PEM, public or private, that may sign; NULL: the user's own */
  const char* trusted_keys; /* folder of public keys that may sign, too; NULL: none             */
  const char* model;        /* that it must be about: a file, or the folder of one; NULL: any   */
  uint32_t skip_plugins;    /* non-zero: the backends that it names are not looked at           */
  uint32_t require_gpu_kernels; /* non-zero: some kernel ran on a device of class gpu           */
  float require_fused; /* of calls of kernels, in per cent, that were of fused ones; 0 = any     */
  uint32_t reserved_0;
} bitnet_receipt_check;

/* Fills the first `size` bytes of *check with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_receipt_check_defaults(bitnet_receipt_check* check, uint32_t size);
/* Judges a receipt, offline. JSON: {valid, gates_passed, signed_by?, findings[{level: error|gate|
 * note, rule, field, text}], statement?}. BITNET_OK whatever it finds; BITNET_BAD_DATA for what is
 * no envelope, or too large. BITNET_INVALID_ARGUMENT: an option has no meaning. [any thread] */
BITNET_API bitnet_status bitnet_receipt_verify(bitnet_str receipt,
                                               const bitnet_receipt_check* check, char* out,
                                               uint64_t capacity, uint64_t* needed,
                                               bitnet_error* err);

/* ---- reload and change of device ------------------------------------------------------------ */

#define BITNET_RELOAD_FINISH 0u    /* open sessions stay on the old copy until they are closed */
#define BITNET_RELOAD_MIGRATE 1u   /* they take their keys and values to the new copy          */
#define BITNET_RELOAD_RECOMPUTE 2u /* they evaluate their tokens again on the new copy         */

typedef struct bitnet_reload_options {
  uint32_t struct_size;
  uint32_t policy;          /* BITNET_RELOAD_*, for sessions that are open                        */
  uint32_t force;           /* non-zero: also when it is the file that is loaded                  */
  uint32_t accept_stale;    /* non-zero: also when libraries that it needs were replaced on disk,
                               of which the process has the old ones                              */
  uint32_t most_old_copies; /* replaced copies that may still be in memory; 0 = 4                 */
  uint32_t prompt_tokens;   /* whose logits are compared, old copy against new one; 0 = 16        */
  float tolerance;          /* how far they may differ, as a part of the largest; 0 = 1/1024      */
  uint32_t reserved_0;
  void (*report)(void* user, bitnet_str text); /* JSON, see below; may be NULL                    */
  void* report_user;
  /* Rows of live texts that the new copy must have computed as the old one did, by `tolerance`,
   * before it serves; 0 = none. See bitnet_backend_reload. */
  uint32_t canary_rows;
  uint32_t canary_wait_ms; /* that may pass until then; 0 = 60 000                                */
} bitnet_reload_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_reload_defaults(bitnet_reload_options* options, uint32_t size);

/* Loads a backend's file as it is now, beside the copy that serves: inspects and probes it, gives
 * it the weights of every open model, compares its logits with the old copy's, and only then lets
 * new sessions take it. `backend` is its name or, with a '/' in it, the path of its manifest or of
 * the library that a manifest names. Open sessions follow by `policy` before their next token. On
 * failure nothing has changed: BITNET_REJECTED or BITNET_UNAVAILABLE with code, reason and advice,
 * or what kept the new copy from taking the weights. Needs room for a second set of weights, except
 * for those that the backend uses as they lie in the model file. It may run while sessions
 * generate, but not in a log or progress callback; opening and closing of models waits for it.
 * `report` gets {backend, changed, reason?, build_id?, former_build_id?, version?, former_version?,
 * generation?, models?, sessions{moving, staying}?, compared{tokens, difference}?, canary{rows,
 * same_bytes, same_top, max_kl, difference}?, stale_libraries[]?}; changed is false, with the
 * reason, when the file is the one that is loaded or has its build id. BITNET_TIMEOUT when its
 * probe has not answered after 60 seconds: it goes on, and reloading later finds its answer. With
 * canary_rows the new copy first is the shadow (see below) of the sessions and schedulers that are
 * on the old one and have no shadow: BITNET_REJECTED as soon as a row differs by more, or is no
 * number, BITNET_TIMEOUT when too few rows were compared in canary_wait_ms, BITNET_UNAVAILABLE when
 * there is nothing to be the shadow of. Until it has ended, all that waits for a reload waits, and
 * a text whose device is lost. A text callback that reloads generates no row meanwhile.
 * [any thread] */
BITNET_API bitnet_status bitnet_backend_reload(bitnet_runtime* runtime, const char* backend,
                                               const bitnet_reload_options* options,
                                               bitnet_error* err);

/* Moves the session to the first device of the request that can be used, as in
 * bitnet_runtime_options.device, with its keys and values where both sides can, else by evaluating
 * its tokens again. On failure it stays where it is. When its device is lost later it goes to the
 * next of the list by itself and the call goes on; a session that never was given a list follows
 * the runtime's request. Waits for backends that have not answered no longer than a choice does
 * (probe_wait_ms) where another of the list can be used, and 60 seconds where none can.
 * BITNET_TIMEOUT: one that comes before has not answered, and the session is where it was; the log
 * says so where it went to a later one of the list. The text callback may call it.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_set_preference(bitnet_session* session,
                                                       const char* preference, bitnet_error* err);

/* ---- shadow runs ----------------------------------------------------------------------------
 *
 * A shadow computes some rows of logits a second time, on a device of its own choice with the same
 * model, and counts how they differ from those that texts are sampled from. It changes no text:
 * what fails in it ends the shadow alone.
 *
 * Cost       For each row that is offered, the thread that generates copies 4 bytes for each logit
 *            and each token of the sequence, and the device gives the whole row where a list of the
 *            largest logits would do. That thread waits for nothing: a row for which there is no
 *            place is dropped and counted. The report has the time that was spent. The shadow
 *            computes with threads of its own, as many as the runtime has, of the lowest priority
 *            (nice 19); on the same CPU it still shares caches and memory bandwidth, which `share`
 *            bounds. Its memory: `waiting` rows, one sequence, and the weights where its device has
 *            not got them.
 * Compares   the row behind a prompt and those of decoding: one for each step of a sequence. */

typedef struct bitnet_shadow bitnet_shadow;

typedef struct bitnet_shadow_options {
  uint32_t struct_size;
  uint32_t waiting;   /* rows that wait to be compared, at most 4096; 0 = 16 */
  const char* device; /* as bitnet_runtime_options.device; NULL is an error */
  /* As those that the sessions, or sequences of a scheduler, were opened with. Bytes of rows are
   * equal only with `deterministic`. NULL = defaults. */
  const bitnet_session_options* sequences;
  float share; /* of the rows, evenly, at most 1; 0.1 is each tenth; 0 = 0.1 */
  /* For bitnet_shadow_find_op: how far elements of an op's output may be apart; 0 = not at all. */
  float op_tolerance;
} bitnet_shadow_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_shadow_defaults(bitnet_shadow_options* options, uint32_t size);
/* A model needs its shadows to be closed before it. BITNET_TIMEOUT: a backend that comes first in
 * `device` has not answered yet. BITNET_UNAVAILABLE: no device of the list can be used. A reload
 * leaves a shadow on the copy of the backend that it has. [any thread] */
BITNET_API bitnet_status bitnet_shadow_open(bitnet_model* model,
                                            const bitnet_shadow_options* options,
                                            bitnet_shadow** out, bitnet_error* err);
/* Ends the step that it computes, and waits for its thread. Sessions and schedulers that have it go
 * on without. NULL is allowed. [one thread at a time for its shadow] */
BITNET_API void bitnet_shadow_close(bitnet_shadow* shadow);
/* JSON: {state: running|failed, error?, device{requested, selected, backend, version, build_id},
 * share, rows{seen, offered, compared, dropped, waiting}, same_bytes, same_top, kl{mean, max,
 * undefined}, max_abs, worst?{source, request?, choice?, position, kl?, max_abs, live_token,
 * shadow_token}, first_op?{found, tokens, op?, index?, of?, at?, max_abs?}, offering_ns{sum,
 * longest}}. Of the rows that were seen, a share is offered; these were compared, dropped, or wait,
 * and one may be at work. same_bytes, same_top: rows whose bytes, or whose most probable token, are
 * the same. kl: KL(live || shadow) in nats; undefined: rows where it is not finite, which mean and
 * max leave out. max_abs: of logits. worst: the row that differs most, behind the token at
 * `position`; source: its session or scheduler, from 1, as they were given the shadow. offering_ns:
 * of all threads that generate together. [any thread] */
BITNET_API bitnet_status bitnet_shadow_report(bitnet_shadow* shadow, char* out, uint64_t capacity,
                                              uint64_t* needed, bitnet_error* err);
/* Looks for the first op whose output differs by more than op_tolerance, by bisection of the
 * model's list, over the tokens of the worst row, at most 512: `first_op` of the report then has
 * it. It computes on the device of new sessions too, and compiles some ten programs on each, so
 * that texts are slower meanwhile; with f16 keys and no window, whatever `sequences` says.
 * BITNET_NOT_FOUND: no row differs so far. BITNET_INVALID_ARGUMENT: one of the two has the model on
 * several devices, or their lists of ops are not the same. [any thread] */
BITNET_API bitnet_status bitnet_shadow_find_op(bitnet_shadow* shadow, bitnet_error* err);
/* From its next evaluation on the session offers rows to the shadow, also those that
 * bitnet_session_eval gives; NULL: to none. Several sessions and schedulers may have one shadow.
 * BITNET_INVALID_ARGUMENT: it is of another model, or its `sequences` differ in n_context, KV
 * types, precision, window or window_keep. The text callback may call it.
 * [one thread at a time for its session] */
BITNET_API bitnet_status bitnet_session_set_shadow(bitnet_session* session, bitnet_shadow* shadow,
                                                   bitnet_error* err);

/* ---- one op alone -------------------------------------------------------------------------- */

typedef struct bitnet_trial bitnet_trial; /* one op with random weights, to be measured */

/* `op` and `format` are numbers, as in the kernels of bitnet_runtime_report. LINEAR_TERNARY and
 * LINEAR_DENSE can be tried. */
typedef struct bitnet_trial_options {
  uint32_t struct_size;
  uint32_t op;         /* BITNET_OP_* of bitnet/abi/ops.h                                      */
  uint32_t format;     /* of the weights, BITNET_FORMAT_* of bitnet/abi/tensor.h               */
  uint32_t n_tokens;   /* that are multiplied in one run; 0 = 1                                */
  uint64_t n_rows;     /* M: a matrix is (n_rows, n_inputs)                                    */
  uint64_t n_inputs;   /* K                                                                    */
  uint32_t n_matrices; /* multiplied one after the other, so that none waits in a cache; 0 = 1 */
  uint32_t reserved_0;
  uint64_t scale_group; /* inputs that share a scale of ternary weights; 0 = all of a matrix  */
} bitnet_trial_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0. [any thread] */
BITNET_API void bitnet_trial_defaults(bitnet_trial_options* options, uint32_t size);

typedef struct bitnet_trial_result {
  uint32_t struct_size;
  uint32_t n_threads; /* of the runtime, lent to the backend                                */
  uint64_t calls;     /* of the kernel, as the backend counted them                         */
  uint64_t time_ns;   /* of those calls, as the backend measured it; 0: it does not measure */
  uint64_t bytes;     /* of weights that they read; 0: it does not count                    */
  uint64_t step_ns;   /* of the whole run, measured outside of the backend                  */
  char kernel[64];    /* the id of the kernel that ran                                      */
} bitnet_trial_result;

/* Selects a backend if none is selected, and gives it a program of that op. The runtime must
 * outlive the trial. BITNET_UNSUPPORTED if the op cannot be tried or the backend cannot run it,
 * BITNET_INVALID_ARGUMENT if format and shape do not fit the op. [any thread] */
BITNET_API bitnet_status bitnet_trial_open(bitnet_runtime* runtime,
                                           const bitnet_trial_options* options, bitnet_trial** out,
                                           bitnet_error* err);
/* Frees the trial. During a call of another thread the trial ends with it. NULL is allowed.
 * [any thread] */
BITNET_API void bitnet_trial_close(bitnet_trial* trial);
/* Multiplies the tokens with every matrix once. Fails as the backend's step does.
 * [one thread at a time for its trial] */
BITNET_API bitnet_status bitnet_trial_run(bitnet_trial* trial, bitnet_trial_result* out,
                                          bitnet_error* err);

/* ---- many requests at once ------------------------------------------------------------------
 *
 * A scheduler computes the requests of many clients together: each step reads the weights once for
 * all of them. A request is one prompt with one or several answers (choices). Its tokens do not
 * depend on the other requests. A scheduler whose sequences have `embeddings` set generates no
 * text: the END of a request has the embedding of its prompt, with the bits of bitnet_embed. Close
 * a scheduler before its model; a request may be closed later. */

typedef struct bitnet_scheduler bitnet_scheduler;
typedef struct bitnet_request bitnet_request;

typedef struct bitnet_scheduler_options {
  uint32_t struct_size;
  uint32_t max_sequences; /* that a step computes; 0 = 32 */
  /* Of each sequence: n_context, kv_k, kv_v, window and so on; n_batch is the tokens of a step of
   * all of them. Without profile. NULL = defaults. */
  const bitnet_session_options* sequences;
  /* Of keys and values, and states, of all sequences; 0 = as much as max_sequences contexts need,
   * at most half of the memory that is free. */
  uint64_t kv_bytes;
  uint64_t max_waiting_tokens; /* of prompts that wait; 0 = 4 194 304  */
  uint32_t max_waiting;        /* requests that wait; 0 = 1024         */
  uint32_t event_capacity;     /* events that a request keeps for its reader; 0 = 256. A request
                                  whose reader does not take them stands still */
  uint32_t reader_timeout_ms;  /* it fails with BITNET_TIMEOUT when it stood still for so long;
                                  0 = 60 000 */
  uint32_t reserved_0;
} bitnet_scheduler_options;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_scheduler_defaults(bitnet_scheduler_options* options, uint32_t size);
/* Opens a scheduler with keys, values and a thread of its own. Fails as bitnet_session_open.
 * BITNET_UNSUPPORTED: `sequences` has `profile` set. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_open(bitnet_model* model,
                                               const bitnet_scheduler_options* options,
                                               bitnet_scheduler** out, bitnet_error* err);
/* Cancels what runs or waits, waits for the step that runs, and frees the scheduler. NULL is
 * allowed. [one thread at a time for its scheduler] */
BITNET_API void bitnet_scheduler_close(bitnet_scheduler* scheduler);
/* JSON, counted since it was opened: {backend, device, max_sequences, max_tokens, n_context,
 * kv{blocks, block_tokens, block_bytes, dtype_k, dtype_v, used, cached, reserved}, running, paused,
 * waiting{new, preempted, paused, tokens, reason?}, requests{accepted, refused{}}, choices{},
 * tokens{prompt, generated, recomputed}, prefix{queried, found, misses{}, evicted_blocks},
 * preemptions, steps, step_tokens{bounds[], counts[], sum}, failed_steps, cancelled_steps, step_ns,
 * devices_lost, moves, speculation?{drafted, accepted, steps, tokens_per_step, step_ratio, pauses,
 * accepted_at[], failed?, why?}, slots, sequences[]{slot?, request, choice, state, prompt, known,
 * computed, generated, remaining, speculates}, pooling?}. refused, choices and misses are numbers
 * by reason. counts: of steps, by how many tokens they computed, up to each bound and above the
 * last. accepted_at: of tokens, by their place in their draft. step_ratio is what a step with a
 * draft took, in steps without. slots: sequences that can run together. sequences: each that runs,
 * and at most 64 that wait; a choice, or a request whose choices have not begun. slot, of one that
 * runs, is below slots and stays until it waits or ends; request is the same for all choices of a
 * request. state: "waiting" for room, "prompt", "decoding", or "paused" where the request's events
 * are not taken. prompt: its tokens; known of these were found, computed others so far; generated:
 * so far; remaining: that may still come, at most. Gauges and sequences are as the step that runs
 * began, or as the last one ended. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_report(bitnet_scheduler* scheduler, char* out,
                                                 uint64_t capacity, uint64_t* needed,
                                                 bitnet_error* err);
/* Lets its requests go on with the first device of the list that can be used, as in
 * bitnet_runtime_options.device, behind the step that runs: what they have so far is computed again
 * there, and their texts go on. What it had on the former device is not known on the new one. On
 * failure nothing has changed: BITNET_UNAVAILABLE where no device of the list can be used,
 * BITNET_UNSUPPORTED where its context would be smaller. Needs a second set of blocks until the
 * step has ended; the weights on the former device stay, for a way back. When the device is lost
 * later, its requests go to the next of the list. Waits for backends as
 * bitnet_session_set_preference does. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_set_preference(bitnet_scheduler* scheduler,
                                                         const char* preference, bitnet_error* err);
/* As bitnet_session_set_shadow, behind the step that runs. A row of an embedding or of a prompt
 * whose log probabilities are asked for is not offered. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_set_shadow(bitnet_scheduler* scheduler,
                                                     bitnet_shadow* shadow, bitnet_error* err);
/* Writes to a file what the scheduler has computed of a prompt, for a later scheduler: after a
 * restart the prompt is known as if a request had just had it, and n_cached of the next one says
 * so. Its tokens have the bits that they have without. The file has what is known of the n tokens,
 * from the first on: whole blocks of 64 tokens, and the recurrent state behind them where the model
 * has one; *n_saved, which may be NULL, is how many tokens. The path is replaced whole or not at
 * all; a new file is the user's alone to read, as it holds the text. BITNET_NOT_FOUND: no whole
 * block is known. BITNET_INVALID_ARGUMENT, BITNET_IO: the path, or the disk, does not take the
 * file. BITNET_BUSY: requests have reserved all room. Waits while the scheduler goes on with
 * requests; it moves at most 8 MiB, or one block, after each step. The first call of save or
 * restore reads the model's files once, to name the model. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_save(bitnet_scheduler* scheduler, const bitnet_token* ids,
                                               uint64_t n, const char* path, uint64_t* n_saved,
                                               bitnet_error* err);
/* Makes known as many of the saved tokens as there is room for, which drives out what was used
 * longest ago; *n_restored, which may be NULL, is how many. Waits as bitnet_scheduler_save does.
 * Restore only files that no other user could write: the checksum detects damage, not forgery.
 * BITNET_NOT_FOUND: no file can be opened there. BITNET_BAD_DATA: it is damaged, or no saved
 * sequence. BITNET_INCOMPATIBLE: its form is of another version. BITNET_UNSUPPORTED: it is of
 * another model or backend, or of sequences with other options. BITNET_OUT_OF_DEVICE_MEMORY: it has
 * more blocks than the scheduler. BITNET_BUSY: requests have reserved all room. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_restore(bitnet_scheduler* scheduler, const char* path,
                                                  uint64_t* n_restored, bitnet_error* err);
/* Returns a file descriptor for event loops, which poll and epoll find readable while some request
 * has events. A loop that leaves a request's events where they are would find it so each time: with
 * EPOLLET it is reported once for the requests that got events since the last
 * bitnet_scheduler_wait. It belongs to the scheduler; do not read from it. -1: there is none.
 * [any thread] */
BITNET_API int32_t bitnet_scheduler_descriptor(const bitnet_scheduler* scheduler);
/* Gives a request with events that were not taken yet, in the order in which they became ready;
 * waits for one for at most timeout_ms. BITNET_TIMEOUT: there is none. [any thread] */
BITNET_API bitnet_status bitnet_scheduler_wait(bitnet_scheduler* scheduler, uint32_t timeout_ms,
                                               bitnet_request** out, bitnet_error* err);

typedef struct bitnet_request_options {
  uint32_t struct_size;
  uint32_t n_choices; /* answers to the prompt, which is computed once; 0 = 1. The seed of choice i
                         is that of sampling + i */
  const bitnet_token* prompt; /* at least one */
  uint64_t n_prompt;
  /* max_tokens, sampling, stop_strings, stop_tokens, grammar and speculation of each choice; text
   * and out_tokens are NULL: both come as events. NULL = defaults. Of a scheduler of embeddings it
   * is NULL, and n_choices, best_of and all logprobs are 0. */
  const bitnet_generation* generation;
  uint64_t client;         /* clients share what there is; any number */
  int32_t priority;        /* higher goes first; a wait of 2 s counts as one more */
  uint32_t deadline_ms;    /* from now; then it fails with BITNET_TIMEOUT. 0 = none */
  uint32_t logprobs;       /* non-zero: events have the log probability of their token */
  uint32_t n_top_logprobs; /* and of so many of the most probable, at most 20 */
  /* So many answers are generated, at least n_choices, and the n_choices of them with the highest
   * mean log probability of their tokens are delivered: once all have ended, and the best first.
   * The seed of each is that of sampling + its number. Where the request is cancelled, or its
   * deadline passes, before all have ended, its choices end so, without text. 0: n_choices, whose
   * events come at once. */
  uint32_t best_of;
  /* Non-zero: PROMPT events, one for each token of the prompt, come before the first new token,
   * with log probabilities. The whole prompt is computed then, whatever is known of it, some tokens
   * in each step. 0 for embeddings. */
  uint32_t prompt_logprobs;
  uint32_t n_top_prompt_logprobs; /* and of so many of the most probable, at most 20 */
  uint32_t receipt; /* non-zero: what bitnet_request_receipt needs is kept. 0 for embeddings */
} bitnet_request_options;

typedef struct bitnet_logprob {
  bitnet_token token;
  float logprob; /* natural logarithm, of the logits as the model gave them */
} bitnet_logprob;

#define BITNET_EVENT_TEXT 1u   /* a token, with the text that it let out */
#define BITNET_EVENT_END 2u    /* the choice has ended, with stop_reason */
#define BITNET_EVENT_FAILED 3u /* the choice has ended, with status and message */
/* A token of the prompt, with its text; choice is 0. The first has a logprob of 0 and no `top`:
 * nothing comes before it. */
#define BITNET_EVENT_PROMPT 4u

typedef struct bitnet_event {
  uint32_t struct_size;
  uint32_t kind; /* BITNET_EVENT_* */
  uint32_t choice;
  bitnet_token token; /* of TEXT and PROMPT; -1: none, this is text that was held back */
  bitnet_str text;    /* whole UTF-8 characters, never part of a stop string; may be empty. Valid
                         until the next call on the request, as are the two below */
  const bitnet_logprob* top;
  bitnet_str message; /* of FAILED */
  uint32_t n_top;
  float logprob;        /* of `token`, where logprobs were asked for */
  uint32_t stop_reason; /* BITNET_STOP_*, of END */
  uint32_t stop_index;  /* which stop string or token, else BITNET_NONE */
  bitnet_status status; /* of FAILED */
  uint32_t preemptions;
  /* Of END and FAILED. */
  uint64_t n_prompt;
  uint64_t n_cached; /* of the prompt: known from an earlier request, and not computed */
  uint64_t n_generated;
  uint64_t n_recomputed; /* tokens that were computed once more, after a preemption or a move */
  uint64_t queue_ns;     /* waited */
  uint64_t prompt_ns;    /* until the first token, without the wait */
  uint64_t generate_ns;  /* from then on */
  /* Of END, of a scheduler of embeddings: of length 1, valid as `text` is. NULL: it was cancelled,
   * or this is another event. stop_reason is BITNET_STOP_LENGTH, and n_prompt all of the prompt. */
  const float* embedding;
  uint64_t n_embedding; /* floats */
  float mean_logprob;   /* of its tokens, at its end; where logprobs or best_of was asked for */
  uint32_t candidate;   /* which of best_of the choice was; without best_of it is `choice` */
  /* Of END and FAILED. */
  uint64_t n_drafted;  /* tokens of drafts that were computed */
  uint64_t n_accepted; /* of these: that are in the text */
} bitnet_event;

/* Fills the first `size` bytes of *options with defaults: everything is 0 or NULL. [any thread] */
BITNET_API void bitnet_request_defaults(bitnet_request_options* options, uint32_t size);
/* Puts a request into the queue. BITNET_BUSY: too many requests or tokens wait.
 * BITNET_CONTEXT_FULL: the prompt leaves no room for an answer, or one to embed is too long.
 * BITNET_OUT_OF_DEVICE_MEMORY: it needs more KV blocks than there are. Where the device is lost and
 * there is no other: the status of that loss. BITNET_INVALID_ARGUMENT: there is no prompt, or an
 * option has no meaning. [any thread] */
BITNET_API bitnet_status bitnet_request_submit(bitnet_scheduler* scheduler,
                                               const bitnet_request_options* options,
                                               bitnet_request** out, bitnet_error* err);
/* Gives the next event; waits for it for at most timeout_ms. BITNET_TIMEOUT: there is none yet.
 * BITNET_NOT_FOUND: every choice has ended, and no event follows.
 * [one thread at a time for its request] */
BITNET_API bitnet_status bitnet_request_next(bitnet_request* request, uint32_t timeout_ms,
                                             bitnet_event* out, bitnet_error* err);
/* Ends its choices with BITNET_STOP_CANCELLED, within one step. A step that no other request needs
 * ends early, where the device can; so it does when the deadlines of all its requests pass.
 * [any thread] */
BITNET_API void bitnet_request_cancel(bitnet_request* request);
/* Gives the receipt of a choice whose END or FAILED event was taken, also of one that was
 * cancelled; the request was submitted with `receipt`. Its counters are of the steps in which the
 * request had tokens, and other requests may have had tokens in them: `batch` says how many were
 * its own. Reads files as bitnet_session_receipt does. BITNET_INVALID_ARGUMENT: `receipt` was 0,
 * the choice has not ended, its scheduler is closed, or `facts` is not as bitnet_session_receipt
 * takes them. BITNET_REJECTED, BITNET_NOT_FOUND, BITNET_IO: for its key.
 * [one thread at a time for its request] */
BITNET_API bitnet_status bitnet_request_receipt(bitnet_request* request, uint32_t choice,
                                                const bitnet_receipt_options* options, char* out,
                                                uint64_t capacity, uint64_t* needed,
                                                bitnet_error* err);
/* Cancels what has not ended, forgets its events, and frees the request. NULL is allowed.
 * [one thread at a time for its request] */
BITNET_API void bitnet_request_close(bitnet_request* request);

#ifdef __cplusplus
}
#endif

#endif /* BITNET_H */
