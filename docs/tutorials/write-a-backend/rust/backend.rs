// SPDX-License-Identifier: Apache-2.0
//! This backend's identity, the slots of its table, and its one exported symbol.
mod abi;
mod edge;
mod graph;
mod handles;
mod kernels;
mod run;

use abi::*;
use edge::*;
use handles::*;
use kernels::*;
use run::*;
use std::mem::size_of;
use std::sync::atomic::Ordering;
use std::sync::Once;

const NAME: &str = "rusty";
const VERSION: &str = "0.1.0";
const VENDOR: &str = "org.example";
const LICENSE: &str = "Apache-2.0";

// Readable before a byte of the library runs; what BITNET_BACKEND_NOTE of note.h makes in C.
std::arch::global_asm!(
    ".pushsection .note.bitnet,\"a\",%note",
    ".balign 4",
    ".long 7",
    ".long 3f - 2f",
    ".long 1",
    ".asciz \"BitNet\"",
    ".balign 4",
    "2:",
    ".asciz \"schema=1\"",
    ".asciz \"abi=0.1-2\"",
    ".asciz \"name=rusty\"",
    ".asciz \"version=0.1.0\"",
    ".asciz \"vendor=org.example\"",
    ".asciz \"license=Apache-2.0\"",
    ".asciz \"class=cpu\"",
    "3:",
    ".balign 4",
    ".popsection",
);

fn str_of(s: &'static str) -> bitnet_str {
    bitnet_str {
        data: s.as_ptr(),
        size: s.len() as u64,
    }
}

fn only_device_0(index: u32) -> Result<(), Failure> {
    if index == 0 {
        return Ok(());
    }
    failure(
        INVALID_ARGUMENT,
        format!("there is only device 0, not {index}"),
    )
}

type Error = *mut bitnet_error;

unsafe extern "C" fn info(
    _: *mut backend,
    out: *mut bitnet_backend_info,
    err: Error,
) -> bitnet_status {
    guarded(err, "info", || {
        let value = bitnet_backend_info {
            struct_size: 0,
            life_flags: LIFE_THREAD_FREE, // std keeps things for a thread's end: not UNLOADABLE
            name: str_of(NAME),
            version: str_of(VERSION),
            vendor: str_of(VENDOR),
            license: str_of(LICENSE),
            driver: str_of(""),
        };
        hand_over(&value, out)
    })
}

unsafe extern "C" fn close(this: *mut backend) {
    take_back(this);
}

unsafe extern "C" fn device_count(_: *mut backend, out: *mut u32, err: Error) -> bitnet_status {
    guarded(err, "device_count", || {
        *place(out)? = 1;
        Ok(())
    })
}

unsafe extern "C" fn device_info(
    _: *mut backend,
    index: u32,
    out: *mut bitnet_device_info,
    err: Error,
) -> bitnet_status {
    guarded(err, "device_info", || {
        only_device_0(index)?;
        let value = bitnet_device_info {
            struct_size: 0,
            device_class: DEVICE_CPU,
            name: text("plain Rust"),
            uuid: text(""),
            pci_address: text(""),
            arch: text(""),
            driver_version: text(""),
            memory_total_bytes: 0,
            compute_units: 1,
            buffer_alignment_bytes: ALIGNMENT as u32,
            max_allocation_bytes: 0,
            kv_dtypes: 0,
            attention_flags: 0,
            logits_flags: 0,
            reserved_0: 0,
        };
        hand_over(&value, out)
    })
}

unsafe extern "C" fn kernels(
    this: *mut backend,
    index: u32,
    out: *mut bitnet_kernel_info,
    out_size: u32,
    count: *mut u32,
    err: Error,
) -> bitnet_status {
    guarded(err, "kernels", || {
        only_device_0(index)?;
        let here = KERNELS.iter().zip((*this).disabled).filter(|(_, off)| !off);
        let all: Vec<_> = here
            .map(|(k, _)| bitnet_kernel_info {
                struct_size: 0,
                op: k.op,
                format: k.format,
                level: LEVEL_REFERENCE,
                exact: EXACT_BATCH_AND_RUN,
                precision: 0, // f32
                id: text(k.id),
            })
            .collect();
        hand_over_all(&all, out, out_size, count)
    })
}

unsafe extern "C" fn device_open(
    this: *mut backend,
    request: *const bitnet_device_request,
    out: *mut *mut backend,
    err: Error,
) -> bitnet_status {
    guarded(err, "device_open", || {
        let r: bitnet_device_request = receive(request, size_of::<bitnet_device_request>())?;
        only_device_0(r.index)?;
        if r.memory_bytes != 0 {
            return failure(UNSUPPORTED, "this device does not count what it holds");
        }
        *place(out)? = this;
        Ok(())
    })
}

unsafe extern "C" fn device_close(_: *mut backend) {}

unsafe extern "C" fn buffer_create(
    _: *mut backend,
    request: *const bitnet_buffer_request,
    out: *mut *mut buffer,
    err: Error,
) -> bitnet_status {
    guarded(err, "buffer_create", || {
        let r: bitnet_buffer_request = receive(request, size_of::<bitnet_buffer_request>())?;
        if r.usage & FLAGS_MUST_UNDERSTAND != 0 {
            return failure(UNSUPPORTED, format!("usage {:#x} is not known", r.usage));
        }
        if r.alignment_bytes & r.alignment_bytes.wrapping_sub(1) != 0 {
            return failure(INVALID_ARGUMENT, "the alignment is no power of two");
        }
        if r.alignment_bytes > ALIGNMENT as u64 {
            return failure(UNSUPPORTED, format!("alignment {} is too much", r.alignment_bytes));
        }
        give(out, || buffer::new(r.bytes))
    })
}

unsafe extern "C" fn buffer_map(b: *mut buffer, out: *mut *mut u8, err: Error) -> bitnet_status {
    guarded(err, "buffer_map", || {
        *place(out)? = given(b)?.address;
        Ok(())
    })
}

unsafe extern "C" fn buffer_destroy(b: *mut buffer) {
    take_back(b);
}

unsafe extern "C" fn weight_plan(
    _: *mut backend,
    desc: *const bitnet_tensor_desc,
    out: *mut bitnet_weight_plan,
    err: Error,
) -> bitnet_status {
    guarded(err, "weight_plan", || {
        let t = tensor::described(&receive(desc, size_of::<bitnet_tensor_desc>())?)?;
        t.check_format()?;
        let value = bitnet_weight_plan {
            struct_size: 0,
            accepts_alias: 0,
            packed_bytes: t.bytes(),
            alignment_bytes: 4,
            layout_id: text("rusty/f32-rows/1"),
        };
        hand_over(&value, out)
    })
}

unsafe extern "C" fn weights_create(
    _: *mut backend,
    request: *const bitnet_weights_request,
    out: *mut *mut weights,
    err: Error,
) -> bitnet_status {
    guarded(err, "weights_create", || {
        let r: bitnet_weights_request = receive(request, size_of::<bitnet_weights_request>())?;
        if r.reserved_0 != 0 {
            return failure(UNSUPPORTED, "reserved_0 of the request is not 0");
        }
        give(out, || {
            let mut made = weights::described(r.descs, r.desc_size, r.n)?;
            made.allocate()?;
            Ok(made)
        })
    })
}

unsafe extern "C" fn weight_write(
    w: *mut weights,
    index: u32,
    offset: u64,
    data: *const u8,
    bytes: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "weight_write", || {
        place(w)?.write(index, offset, list(data, bytes)?)
    })
}

unsafe extern "C" fn weight_alias(
    _: *mut weights,
    _: u32,
    _: *const u8,
    _: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "weight_alias", || {
        failure(UNSUPPORTED, "no plan accepts it")
    })
}

unsafe extern "C" fn weight_seal(w: *mut weights, index: u32, err: Error) -> bitnet_status {
    guarded(err, "weight_seal", || place(w)?.seal(index))
}

unsafe extern "C" fn weights_destroy(w: *mut weights) {
    take_back(w);
}

unsafe extern "C" fn graph_query(
    device: *mut backend,
    request: *const bitnet_query_request,
    levels: *mut u32,
    out: *mut bitnet_graph_estimate,
    err: Error,
) -> bitnet_status {
    guarded(err, "graph_query", || {
        let q = receive(request, size_of::<bitnet_query_request>())?;
        let (all, needs) = graph::query(given(device)?, &q)?;
        place(levels)?;
        place(out)?;
        levels.copy_from(all.as_ptr(), all.len());
        needs.map_or(Ok(()), |needs| hand_over(&needs, out))
    })
}

unsafe extern "C" fn program_build(
    device: *mut backend,
    request: *const bitnet_build_request,
    out: *mut *mut program,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_build", || {
        let r: bitnet_build_request = receive(request, size_of::<bitnet_build_request>())?;
        let handles = list(r.weights, u64::from(r.n_weights))?;
        let all = handles.iter().map(|w| given(*w));
        let all = all.collect::<Result<Vec<&weights>, _>>()?;
        let device = given(device)?;
        give(out, || {
            program::new(
                device,
                graph::graph::read(device, r.graph, r.options, &all)?,
            )
        })
    })
}

unsafe extern "C" fn program_bind(
    p: *mut program,
    request: *const bitnet_bind_request,
    out: *mut *mut binding,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_bind", || {
        let r = receive(request, size_of::<bitnet_bind_request>())?;
        let of = given(p)?;
        give(out, || binding::new(of, &r))
    })
}

/// Everything is ready since program_build.
unsafe extern "C" fn binding_prepare(
    on: *mut binding,
    request: *const bitnet_prepare_request,
    err: Error,
) -> bitnet_status {
    guarded(err, "binding_prepare", || {
        let r: bitnet_prepare_request = receive(request, LEAST_OF_PREPARE)?;
        if r.reserved_0 != 0 || r.reserved_1 != 0 {
            return failure(UNSUPPORTED, "a reserved member is not 0");
        }
        let of = given(given(on)?.of)?;
        of.locked(|s| s.check_counts(r.n_tokens, r.n_outputs, r.n_sequences))
    })
}

/// Every step has ended when queue_submit returns.
unsafe extern "C" fn binding_destroy(on: *mut binding) {
    take_back(on);
}

unsafe extern "C" fn program_stats(
    p: *mut program,
    out: *mut bitnet_kernel_stat,
    out_size: u32,
    count: *mut u32,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_stats", || {
        let calls = given(p)?.locked(|s| Ok(s.calls))?;
        let ran = KERNELS.iter().zip(calls).filter(|(_, calls)| *calls != 0);
        let all: Vec<_> = ran
            .map(|(k, calls)| bitnet_kernel_stat {
                struct_size: 0,
                op: k.op,
                calls,
                time_ns: 0,
                bytes: 0,
                id: text(k.id),
            })
            .collect();
        hand_over_all(&all, out, out_size, count)
    })
}

unsafe extern "C" fn program_destroy(p: *mut program) {
    take_back(p);
}

unsafe extern "C" fn kv_pool_create(
    _: *mut backend,
    config: *const bitnet_kv_config,
    out: *mut *mut kv_pool,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_pool_create", || {
        let c = receive(config, LEAST_OF_KV_CONFIG)?;
        give(out, || kv_pool::new(&c))
    })
}

unsafe extern "C" fn kv_copy(
    q: *mut queue,
    p: *mut kv_pool,
    from: *const u32,
    to: *const u32,
    n: u32,
    signal: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_copy", || {
        let (from, to) = (list(from, n.into())?, list(to, n.into())?);
        let pool = given(p)?;
        given(q)?.in_turn(signal, || pool.copy(from, to))
    })
}

unsafe extern "C" fn kv_export(
    q: *mut queue,
    p: *mut kv_pool,
    blocks: *const u32,
    n: u32,
    out: *mut u8,
    bytes: u64,
    signal: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_export", || {
        let blocks = list(blocks, n.into())?;
        list(out, bytes)?;
        let pool = given(p)?;
        given(q)?.in_turn(signal, || pool.export(blocks, out, bytes))
    })
}

unsafe extern "C" fn kv_import(
    q: *mut queue,
    p: *mut kv_pool,
    blocks: *const u32,
    n: u32,
    data: *const u8,
    bytes: u64,
    signal: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_import", || {
        let (blocks, data) = (list(blocks, n.into())?, list(data, bytes)?);
        let pool = given(p)?;
        given(q)?.in_turn(signal, || pool.import(blocks, data))
    })
}

unsafe extern "C" fn kv_pool_destroy(p: *mut kv_pool) {
    take_back(p);
}

/// Steps end where they are submitted, so that priorities would change nothing.
unsafe extern "C" fn queue_create(
    _: *mut backend,
    request: *const bitnet_queue_request,
    out: *mut *mut queue,
    err: Error,
) -> bitnet_status {
    guarded(err, "queue_create", || {
        receive(request, size_of::<bitnet_queue_request>())?;
        give(out, || Ok(queue::default()))
    })
}

unsafe extern "C" fn queue_submit(
    q: *mut queue,
    step: *const bitnet_step,
    err: Error,
) -> bitnet_status {
    guarded(err, "queue_submit", || {
        let s: bitnet_step = receive(step, LEAST_OF_STEP)?;
        let on = given(s.binding)?;
        given(q)?.in_turn(s.signal_value, || {
            given(on.of)?.locked(|state| state.run(on, &s))
        })
    })
}

unsafe extern "C" fn queue_wait(q: *mut queue, value: u64, _: u64, err: Error) -> bitnet_status {
    guarded(err, "queue_wait", || {
        if given(q)?.timeline.load(Ordering::SeqCst) >= value {
            return Ok(());
        }
        failure(
            TIMEOUT,
            format!("no step that was submitted reaches {value}"),
        )
    })
}

unsafe extern "C" fn queue_poll(q: *mut queue, out: *mut u64, err: Error) -> bitnet_status {
    guarded(err, "queue_poll", || {
        *place(out)? = given(q)?.timeline.load(Ordering::SeqCst);
        Ok(())
    })
}

unsafe extern "C" fn queue_destroy(q: *mut queue) {
    take_back(q);
}

/// No thread, and every step has ended when queue_submit returns.
unsafe extern "C" fn quiesce(_: *mut backend, _: u64, _: Error) -> bitnet_status {
    OK
}

/// Which kernels the host's setting "disable" names, ids parted by commas.
unsafe fn disabled_by(request: &bitnet_open_request) -> Result<[bool; N_KERNELS], Failure> {
    let mut out = [false; N_KERNELS];
    for param in list(request.params, u64::from(request.n_params))? {
        if list(param.key.data, param.key.size)? != b"disable" {
            continue;
        }
        for id in list(param.value.data, param.value.size)?.split(|c| *c == b',') {
            for (k, off) in KERNELS.iter().zip(&mut out) {
                *off |= k.id.as_bytes() == id;
            }
        }
    }
    Ok(out)
}

/// Agrees on a minor, and fills as much of the host's table as the host says that it understands.
///
/// # Safety
/// The arguments are what bitnet/abi/backend.h says.
#[no_mangle]
pub unsafe extern "C" fn bitnet_backend_abi0(
    host: *const bitnet_host_v0,
    request: *const bitnet_open_request,
    out: *mut bitnet_backend_v0,
    err: *mut bitnet_error,
) -> bitnet_status {
    // A panic would be printed otherwise. This hook is of our copy of std, not of the process.
    static QUIET: Once = Once::new();
    guarded(err, "entry", || {
        QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
        let room = *given(out as *const u32)?;
        // Where `close` ends: a host that cannot call it could not end what this call opens.
        if room < 80 {
            return failure(
                INVALID_ARGUMENT,
                "the host's table is too short: it has no `close`; update the host",
            );
        }
        (*out).need_minor_min = ABI_MINOR_OLDEST;
        (*out).need_minor_max = ABI_MINOR;
        let services = *given(host as *const u32)? as usize;
        let sent = *given(request as *const u32)? as usize;
        if services < size_of::<bitnet_host_v0>() || sent < size_of::<bitnet_open_request>() {
            return failure(
                INVALID_ARGUMENT,
                "the host's services or its request are too short",
            );
        }
        let asked = &*request;
        let (oldest, newest) = (asked.abi_minor_min, asked.abi_minor_max);
        if oldest > ABI_MINOR || newest < ABI_MINOR_OLDEST {
            return failure(
                INCOMPATIBLE,
                format!("this backend speaks ABI 0.{ABI_MINOR_OLDEST} to 0.{ABI_MINOR}, the host 0.{oldest} to 0.{newest}: update the older of the two"),
            );
        }
        let this = Box::into_raw(Box::new(backend {
            host,
            disabled: disabled_by(asked)?,
        }));
        let filled = room.min(size_of::<bitnet_backend_v0>() as u32);
        let table = bitnet_backend_v0 {
            struct_size: room,
            filled_size: filled,
            abi_minor: newest.min(ABI_MINOR),
            need_minor_min: ABI_MINOR_OLDEST,
            need_minor_max: ABI_MINOR,
            reserved_0: 0,
            features_used: [0; 4],
            this,
            info,
            close,
            device_count,
            device_info,
            kernels,
            device_open,
            device_close,
            buffer_create,
            buffer_map,
            buffer_destroy,
            weight_plan,
            weights_create,
            weight_write,
            weight_alias,
            weight_seal,
            weights_destroy,
            graph_query,
            program_build,
            program_bind,
            binding_prepare,
            binding_destroy,
            program_stats,
            program_destroy,
            kv_pool_create,
            kv_copy,
            kv_export,
            kv_import,
            kv_pool_destroy,
            queue_create,
            queue_submit,
            queue_wait,
            queue_poll,
            queue_destroy,
            quiesce,
            query_interface: None,
            device_status: None,
        };
        std::ptr::copy_nonoverlapping(
            &table as *const _ as *const u8,
            out as *mut u8,
            filled as usize,
        );
        Ok(())
    })
}
