// SPDX-License-Identifier: Apache-2.0
//! The contract, bitnet/abi/*.h of ABI 0.2, as Rust sees it. layout.rs prints the places of all
//! members, to be compared with those of the C headers.
#![allow(non_camel_case_types, dead_code)]

/// Defines structs as C lays them out, each with a function that prints its layout.
macro_rules! contract {
    ($($header:literal $name:ident { $($field:ident: $kind:ty,)* })*) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $kind,)* }
        )*
        pub fn print_layout() {
            use std::mem::{align_of, size_of, MaybeUninit};
            fn size_at<T>(_: *const T) -> usize { size_of::<T>() }
            $(
                println!("bitnet/abi/{} {} size {} align {}", $header, stringify!($name),
                         size_of::<$name>(), align_of::<$name>());
                let whole = MaybeUninit::<$name>::uninit();
                let base = whole.as_ptr();
                $(
                    // No reference, and nothing is read: only addresses are computed.
                    let member = unsafe { std::ptr::addr_of!((*base).$field) };
                    println!("  {:<24} offset {:>4} size {:>4}",
                             match stringify!($field) { "this" => "self", name => name.trim_start_matches("r#") },
                             member as usize - base as usize, size_at(member));
                )*
            )*
        }
    };
}

pub type bitnet_status = i32;
pub const OK: bitnet_status = 0;
pub const INVALID_ARGUMENT: bitnet_status = 1;
pub const UNSUPPORTED: bitnet_status = 2;
pub const INCOMPATIBLE: bitnet_status = 4;
pub const OUT_OF_MEMORY: bitnet_status = 5;
pub const CANCELLED: bitnet_status = 10;
pub const TIMEOUT: bitnet_status = 11;
pub const INTERNAL: bitnet_status = 15;

pub const ABI_MINOR_OLDEST: u32 = 1; // 0.0 had other slots
pub const ABI_MINOR: u32 = 2;
pub const NONE: u32 = 0xffff_ffff;
pub const PRIVATE: u32 = 0x8000_0000;
pub const FLAGS_MUST_UNDERSTAND: u32 = 0xffff_0000;
// Bytes that hosts of 0.1 know at least: up to `precisions`, `reserved_0`, `n_sequences` and
// `top_logits`.
pub const LEAST_OF_OPTIONS: usize = 28;
pub const LEAST_OF_KV_CONFIG: usize = 36;
pub const LEAST_OF_PREPARE: usize = 24;
pub const LEAST_OF_STEP: usize = 40;
pub const PROGRAM_DETERMINISTIC: u32 = 0x10000;
pub const LIFE_THREAD_FREE: u32 = 1;
pub const DEVICE_CPU: u32 = 1;
pub const LEVEL_NONE: u32 = 0;
pub const LEVEL_REFERENCE: u32 = 1;
pub const EXACT_BATCH_AND_RUN: u32 = 2 | 4;
pub const DTYPE_F32: u32 = 1;
pub const DTYPE_F16: u32 = 2;
pub const FORMAT_NONE: u32 = 0;
pub const FORMAT_F32: u32 = 1;
pub const OP_EMBED_GATHER: u32 = 1;
pub const OP_RELU2: u32 = 11;
pub const OP_GATHER_ROWS: u32 = 13;
pub const OP_FIRST_COMPOSITE: u32 = 256;
pub const PORT_TOKENS: u32 = 1;
pub const PORT_BLOCK_TABLES: u32 = 5;
pub const PORT_OUTPUT_ROWS: u32 = 6;
pub const PORT_VALUE_IN: u32 = 7;
pub const PORT_LOGITS: u32 = 9;
pub const DIM_TOKENS: i64 = -1;
pub const DIM_OUTPUTS: i64 = -2;

// Handles; what they point to is this backend's own.
use crate::handles::*;
pub type task = Option<unsafe extern "C" fn(*mut u8, u32, u32)>;
type Error = *mut bitnet_error;

contract! {
    "base.h" bitnet_str {
        data: *const u8,
        size: u64,
    }
    "base.h" bitnet_error {
        struct_size: u32,
        code: bitnet_status,
        flags: u32,
        reserved_0: u32,
        native_code: i64,
        domain: [u8; 16],
        r#where: [u8; 64],
        message: [u8; 408],
    }
    "host.h" bitnet_host_v0 {
        struct_size: u32,
        reserved_0: u32,
        this: *mut u8,
        log: unsafe extern "C" fn(*mut u8, u32, bitnet_str, bitnet_str),
        parallel_width: unsafe extern "C" fn(*mut u8) -> u32,
        parallel_run: unsafe extern "C" fn(*mut u8, u32, task, *mut u8) -> bitnet_status,
        cancelled: unsafe extern "C" fn(*mut u8, u64) -> u32,
        now_ns: unsafe extern "C" fn(*mut u8) -> u64,
    }
    "info.h" bitnet_backend_info {
        struct_size: u32,
        life_flags: u32,
        name: bitnet_str,
        version: bitnet_str,
        vendor: bitnet_str,
        license: bitnet_str,
        driver: bitnet_str,
    }
    "info.h" bitnet_device_info {
        struct_size: u32,
        device_class: u32,
        name: [u8; 64],
        uuid: [u8; 64],
        pci_address: [u8; 32],
        arch: [u8; 64],
        driver_version: [u8; 32],
        memory_total_bytes: u64,
        compute_units: u32,
        buffer_alignment_bytes: u32,
        max_allocation_bytes: u64,
        kv_dtypes: u32,
        attention_flags: u32,
        logits_flags: u32,
        reserved_0: u32,
    }
    "info.h" bitnet_kernel_info {
        struct_size: u32,
        op: u32,
        format: u32,
        level: u32,
        exact: u32,
        precision: u32,
        id: [u8; 64],
    }
    "tensor.h" bitnet_tensor_desc {
        struct_size: u32,
        format: u32,
        rank: u32,
        reserved_0: u32,
        ne: [i64; 4],
        data_bytes: u64,
        scale_group: u64,
        n_scales: u64,
        scales: *const f32,
        name: bitnet_str,
    }
    "tensor.h" bitnet_weight_plan {
        struct_size: u32,
        accepts_alias: u32,
        packed_bytes: u64,
        alignment_bytes: u64,
        layout_id: [u8; 64],
    }
    "program.h" bitnet_value {
        dtype: u32,
        reserved_0: u32,
        dims: [i64; 2],
    }
    "program.h" bitnet_op {
        op: u32,
        body_count: u32,
        inputs: [u32; 4],
        outputs: [u32; 4],
        weights: [u32; 4],
        ints: [i32; 8],
        floats: [f32; 4],
    }
    "program.h" bitnet_port {
        role: u32,
        value: u32,
    }
    "program.h" bitnet_graph {
        struct_size: u32,
        value_size: u32,
        op_size: u32,
        port_size: u32,
        n_values: u32,
        n_ops: u32,
        n_ports: u32,
        reserved_0: u32,
        values: *const bitnet_value,
        ops: *const bitnet_op,
        ports: *const bitnet_port,
    }
    "program.h" bitnet_program_options {
        struct_size: u32,
        flags: u32,
        max_tokens: u32,
        max_sequences: u32,
        max_outputs: u32,
        max_blocks: u32,
        block_tokens: u32,
        precisions: u32,
        n_buckets: u32,
        reserved_0: u32,
        buckets: *const u32,
    }
    "program.h" bitnet_kv_config {
        struct_size: u32,
        dtype_k: u32,
        dtype_v: u32,
        n_layers: u32,
        n_kv_heads: u32,
        head_dim_k: u32,
        head_dim_v: u32,
        block_tokens: u32,
        n_blocks: u32,
        reserved_0: u32,
        n_states: u32,
        state_elements: u32,
    }
    "program.h" bitnet_build_request {
        struct_size: u32,
        n_weights: u32,
        graph: *const bitnet_graph,
        weights: *const *mut weights,
        options: *const bitnet_program_options,
        cancel_token: u64,
    }
    "program.h" bitnet_query_request {
        struct_size: u32,
        desc_size: u32,
        graph: *const bitnet_graph,
        descs: *const bitnet_tensor_desc,
        options: *const bitnet_program_options,
        kv: *const bitnet_kv_config,
        n_descs: u32,
        reserved_0: u32,
    }
    "program.h" bitnet_graph_estimate {
        struct_size: u32,
        reserved_0: u32,
        weight_bytes: u64,
        scratch_bytes: u64,
        binding_bytes: u64,
        kv_block_bytes: u64,
        state_bytes: u64,
    }
    "program.h" bitnet_bound {
        buffer: *mut buffer,
        offset: u64,
        bytes: u64,
    }
    "program.h" bitnet_bind_request {
        struct_size: u32,
        bound_size: u32,
        n_bound: u32,
        reserved_0: u32,
        bound: *const bitnet_bound,
        kv_pool: *mut kv_pool,
    }
    "program.h" bitnet_prepare_request {
        struct_size: u32,
        n_tokens: u32,
        n_outputs: u32,
        reserved_0: u32,
        cancel_token: u64,
        n_sequences: u32,
        reserved_1: u32,
    }
    "program.h" bitnet_step {
        struct_size: u32,
        n_tokens: u32,
        n_sequences: u32,
        n_outputs: u32,
        binding: *mut binding,
        cancel_token: u64,
        signal_value: u64,
        top_logits: u32,
        window: u32,
        window_keep: u32,
        reserved_0: u32,
    }
    "program.h" bitnet_kernel_stat {
        struct_size: u32,
        op: u32,
        calls: u64,
        time_ns: u64,
        bytes: u64,
        id: [u8; 64],
    }
    "backend.h" bitnet_param {
        key: bitnet_str,
        value: bitnet_str,
    }
    "backend.h" bitnet_open_request {
        struct_size: u32,
        purpose: u32,
        abi_minor_min: u32,
        abi_minor_max: u32,
        host_features: [u64; 4],
        generation: u32,
        n_params: u32,
        params: *const bitnet_param,
    }
    "backend.h" bitnet_device_request {
        struct_size: u32,
        index: u32,
        memory_bytes: u64,
        cancel_token: u64,
    }
    "backend.h" bitnet_buffer_request {
        struct_size: u32,
        usage: u32,
        bytes: u64,
        alignment_bytes: u64,
    }
    "backend.h" bitnet_weights_request {
        struct_size: u32,
        desc_size: u32,
        n: u32,
        reserved_0: u32,
        descs: *const bitnet_tensor_desc,
        cancel_token: u64,
    }
    "backend.h" bitnet_queue_request {
        struct_size: u32,
        priority: i32,
    }
    "backend.h" bitnet_backend_v0 {
        struct_size: u32,
        filled_size: u32,
        abi_minor: u32,
        need_minor_min: u32,
        need_minor_max: u32,
        reserved_0: u32,
        features_used: [u64; 4],
        this: *mut backend,
        info: unsafe extern "C" fn(*mut backend, *mut bitnet_backend_info, Error) -> bitnet_status,
        close: unsafe extern "C" fn(*mut backend),
        device_count: unsafe extern "C" fn(*mut backend, *mut u32, Error) -> bitnet_status,
        device_info: unsafe extern "C" fn(*mut backend, u32, *mut bitnet_device_info, Error) -> bitnet_status,
        kernels: unsafe extern "C" fn(*mut backend, u32, *mut bitnet_kernel_info, u32, *mut u32, Error) -> bitnet_status,
        device_open: unsafe extern "C" fn(*mut backend, *const bitnet_device_request, *mut *mut backend, Error) -> bitnet_status,
        device_close: unsafe extern "C" fn(*mut backend),
        buffer_create: unsafe extern "C" fn(*mut backend, *const bitnet_buffer_request, *mut *mut buffer, Error) -> bitnet_status,
        buffer_map: unsafe extern "C" fn(*mut buffer, *mut *mut u8, Error) -> bitnet_status,
        buffer_destroy: unsafe extern "C" fn(*mut buffer),
        weight_plan: unsafe extern "C" fn(*mut backend, *const bitnet_tensor_desc, *mut bitnet_weight_plan, Error) -> bitnet_status,
        weights_create: unsafe extern "C" fn(*mut backend, *const bitnet_weights_request, *mut *mut weights, Error) -> bitnet_status,
        weight_write: unsafe extern "C" fn(*mut weights, u32, u64, *const u8, u64, Error) -> bitnet_status,
        weight_alias: unsafe extern "C" fn(*mut weights, u32, *const u8, u64, Error) -> bitnet_status,
        weight_seal: unsafe extern "C" fn(*mut weights, u32, Error) -> bitnet_status,
        weights_destroy: unsafe extern "C" fn(*mut weights),
        graph_query: unsafe extern "C" fn(*mut backend, *const bitnet_query_request, *mut u32, *mut bitnet_graph_estimate, Error) -> bitnet_status,
        program_build: unsafe extern "C" fn(*mut backend, *const bitnet_build_request, *mut *mut program, Error) -> bitnet_status,
        program_bind: unsafe extern "C" fn(*mut program, *const bitnet_bind_request, *mut *mut binding, Error) -> bitnet_status,
        binding_prepare: unsafe extern "C" fn(*mut binding, *const bitnet_prepare_request, Error) -> bitnet_status,
        binding_destroy: unsafe extern "C" fn(*mut binding),
        program_stats: unsafe extern "C" fn(*mut program, *mut bitnet_kernel_stat, u32, *mut u32, Error) -> bitnet_status,
        program_destroy: unsafe extern "C" fn(*mut program),
        kv_pool_create: unsafe extern "C" fn(*mut backend, *const bitnet_kv_config, *mut *mut kv_pool, Error) -> bitnet_status,
        kv_copy: unsafe extern "C" fn(*mut queue, *mut kv_pool, *const u32, *const u32, u32, u64, Error) -> bitnet_status,
        kv_export: unsafe extern "C" fn(*mut queue, *mut kv_pool, *const u32, u32, *mut u8, u64, u64, Error) -> bitnet_status,
        kv_import: unsafe extern "C" fn(*mut queue, *mut kv_pool, *const u32, u32, *const u8, u64, u64, Error) -> bitnet_status,
        kv_pool_destroy: unsafe extern "C" fn(*mut kv_pool),
        queue_create: unsafe extern "C" fn(*mut backend, *const bitnet_queue_request, *mut *mut queue, Error) -> bitnet_status,
        queue_submit: unsafe extern "C" fn(*mut queue, *const bitnet_step, Error) -> bitnet_status,
        queue_wait: unsafe extern "C" fn(*mut queue, u64, u64, Error) -> bitnet_status,
        queue_poll: unsafe extern "C" fn(*mut queue, *mut u64, Error) -> bitnet_status,
        queue_destroy: unsafe extern "C" fn(*mut queue),
        quiesce: unsafe extern "C" fn(*mut backend, u64, Error) -> bitnet_status,
        query_interface: Option<unsafe extern "C" fn(*mut backend, bitnet_str, u32) -> *const u8>,
        device_status: Option<unsafe extern "C" fn(*mut backend, *mut u8, Error) -> bitnet_status>,
    }
}
