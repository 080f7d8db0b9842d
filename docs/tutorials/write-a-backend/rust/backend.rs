// SPDX-License-Identifier: Apache-2.0
//! Who this backend is, the slots of its table, and its one exported symbol.
mod abi;
mod edge;
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
    ".asciz \"abi=0.0-0\"",
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
        hand_over(&value, out);
        Ok(())
    })
}

unsafe extern "C" fn close(this: *mut backend) {
    drop(Box::from_raw(this));
}

unsafe extern "C" fn device_count(_: *mut backend, out: *mut u32, _: Error) -> bitnet_status {
    *out = 1;
    OK
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
            buffer_alignment_bytes: 64,
            max_allocation_bytes: 0,
            kv_dtypes: 0,
            attention_flags: 0,
        };
        hand_over(&value, out);
        Ok(())
    })
}

/// Writes value `n` of a list whose elements are `size` bytes apart, if there is room for it.
unsafe fn put<T>(value: &T, out: *mut T, size: u32, n: u32, room: u32) {
    if n >= room {
        return;
    }
    let to = (out as *mut u8).add(n as usize * size as usize);
    let known = (size as usize).min(size_of::<T>());
    std::ptr::copy_nonoverlapping(value as *const T as *const u8, to, known);
    (to as *mut u32).write_unaligned(known as u32);
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
        let (room, mut n) = (*count, 0);
        for (k, disabled) in KERNELS.iter().zip((*this).disabled) {
            if disabled {
                continue;
            }
            let value = bitnet_kernel_info {
                struct_size: 0,
                op: k.op,
                format: k.format,
                level: LEVEL_REFERENCE,
                exact: EXACT_BATCH_AND_RUN,
                reserved_0: 0,
                id: text(k.id),
            };
            put(&value, out, out_size, n, room);
            n += 1;
        }
        *count = n;
        Ok(())
    })
}

unsafe extern "C" fn device_open(
    this: *mut backend,
    index: u32,
    out: *mut *mut backend,
    err: Error,
) -> bitnet_status {
    guarded(err, "device_open", || {
        only_device_0(index)?;
        *out = this;
        Ok(())
    })
}

unsafe extern "C" fn device_close(_: *mut backend) {}

unsafe extern "C" fn buffer_create(
    _: *mut backend,
    bytes: u64,
    out: *mut *mut buffer,
    err: Error,
) -> bitnet_status {
    guarded(err, "buffer_create", || {
        *out = Box::into_raw(Box::new(buffer::new(bytes)?));
        Ok(())
    })
}

unsafe extern "C" fn buffer_map(b: *mut buffer, out: *mut *mut u8, _: Error) -> bitnet_status {
    *out = (*b).address;
    OK
}

unsafe extern "C" fn buffer_destroy(b: *mut buffer) {
    drop(Box::from_raw(b));
}

unsafe extern "C" fn weight_plan(
    _: *mut backend,
    desc: *const bitnet_tensor_desc,
    out: *mut bitnet_weight_plan,
    err: Error,
) -> bitnet_status {
    guarded(err, "weight_plan", || {
        let value = bitnet_weight_plan {
            struct_size: 0,
            accepts_alias: 0,
            packed_bytes: 4 * elements_of(&*desc)?,
            alignment_bytes: 4,
            layout_id: text("rusty/f32-rows/1"),
        };
        hand_over(&value, out);
        Ok(())
    })
}

unsafe extern "C" fn weights_create(
    _: *mut backend,
    descs: *const bitnet_tensor_desc,
    desc_size: u32,
    n: u32,
    out: *mut *mut weights,
    err: Error,
) -> bitnet_status {
    guarded(err, "weights_create", || {
        let mut made = weights {
            tensors: Vec::new(),
        };
        for i in 0..n {
            made.add(&element(descs, desc_size, i)?)?;
        }
        *out = Box::into_raw(Box::new(made));
        Ok(())
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
        (*w).write(index, offset, data, bytes)
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
    guarded(err, "weight_seal", || (*w).seal(index))
}

unsafe extern "C" fn weights_destroy(w: *mut weights) {
    drop(Box::from_raw(w));
}

/// No composite is known, so their bodies are run, and of most of those nothing either.
unsafe extern "C" fn op_query(
    device: *mut backend,
    ops: *const bitnet_op,
    op_size: u32,
    formats: *const u32,
    n: u32,
    levels: *mut u32,
    err: Error,
) -> bitnet_status {
    guarded(err, "op_query", || {
        for i in 0..n {
            let op = element(ops, op_size, i)?;
            let found = find_kernel(&*device, op.op, *formats.add(i as usize));
            *levels.add(i as usize) = found.map_or(LEVEL_NONE, |_| LEVEL_REFERENCE);
        }
        Ok(())
    })
}

unsafe extern "C" fn program_build(
    device: *mut backend,
    graph: *const bitnet_graph,
    w: *mut weights,
    options: *const bitnet_program_options,
    out: *mut *mut program,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_build", || {
        let g = &*graph;
        let mut made = state::new(&*device, g.logits, *options);
        for i in 0..g.n_values {
            made.add_value(&element(g.values, g.value_size, i)?)?;
        }
        for i in 0..g.n_ops {
            let op = element(g.ops, g.op_size, i)?;
            if op.op < OP_FIRST_COMPOSITE {
                made.add_op(&*device, &op, &*w)?; // the body of a composite follows it
            }
        }
        *out = Box::into_raw(Box::new(made.finish()?));
        Ok(())
    })
}

fn locked<T>(
    p: &program,
    body: impl FnOnce(&mut state) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match p.0.lock() {
        Ok(mut state) => body(&mut state),
        Err(_) => failure(INTERNAL, "an earlier step of this program panicked"),
    }
}

unsafe extern "C" fn program_estimate(
    p: *mut program,
    n_tokens: u32,
    out: *mut bitnet_program_estimate,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_estimate", || {
        let scratch_bytes = locked(&*p, |s| s.check_tokens(n_tokens).map(|_| s.scratch_bytes()))?;
        hand_over(
            &bitnet_program_estimate {
                struct_size: 0,
                reserved_0: 0,
                scratch_bytes,
            },
            out,
        );
        Ok(())
    })
}

unsafe extern "C" fn program_prepare(p: *mut program, n_tokens: u32, err: Error) -> bitnet_status {
    guarded(err, "program_prepare", || {
        locked(&*p, |s| s.check_tokens(n_tokens))
    })
}

unsafe extern "C" fn program_bind(
    p: *mut program,
    buffers: *const bitnet_step_buffers,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_bind", || locked(&*p, |s| s.bind(&*buffers)))
}

unsafe extern "C" fn program_stats(
    p: *mut program,
    out: *mut bitnet_kernel_stat,
    out_size: u32,
    count: *mut u32,
    err: Error,
) -> bitnet_status {
    guarded(err, "program_stats", || {
        let calls = locked(&*p, |s| Ok(s.calls))?;
        let (room, mut n) = (*count, 0);
        for (k, calls) in KERNELS.iter().zip(calls).filter(|(_, calls)| *calls != 0) {
            let value = bitnet_kernel_stat {
                struct_size: 0,
                op: k.op,
                calls,
                time_ns: 0,
                bytes: 0,
                id: text(k.id),
            };
            put(&value, out, out_size, n, room);
            n += 1;
        }
        *count = n;
        Ok(())
    })
}

unsafe extern "C" fn program_destroy(p: *mut program) {
    drop(Box::from_raw(p));
}

unsafe extern "C" fn kv_pool_create(
    _: *mut backend,
    config: *const bitnet_kv_config,
    out: *mut *mut kv_pool,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_pool_create", || {
        *out = Box::into_raw(Box::new(kv_pool::new(&*config)?));
        Ok(())
    })
}

unsafe extern "C" fn kv_copy_blocks(
    p: *mut kv_pool,
    from: *const u32,
    to: *const u32,
    n: u32,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_copy_blocks", || {
        (0..n as usize).try_for_each(|i| (*p).copy(*from.add(i), *to.add(i)))
    })
}

unsafe extern "C" fn kv_export(
    p: *mut kv_pool,
    block: u32,
    out: *mut u8,
    bytes: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_export", || {
        let from = (*p).block(block, bytes)?;
        std::ptr::copy_nonoverlapping(from.as_ptr(), out, from.len());
        Ok(())
    })
}

unsafe extern "C" fn kv_import(
    p: *mut kv_pool,
    block: u32,
    data: *const u8,
    bytes: u64,
    err: Error,
) -> bitnet_status {
    guarded(err, "kv_import", || {
        let to = (*p).block(block, bytes)?;
        std::ptr::copy_nonoverlapping(data, to.as_mut_ptr(), to.len());
        Ok(())
    })
}

unsafe extern "C" fn kv_pool_destroy(p: *mut kv_pool) {
    drop(Box::from_raw(p));
}

unsafe extern "C" fn queue_create(
    _: *mut backend,
    out: *mut *mut queue,
    err: Error,
) -> bitnet_status {
    guarded(err, "queue_create", || {
        *out = Box::into_raw(Box::new(queue::default()));
        Ok(())
    })
}

unsafe extern "C" fn queue_submit(
    q: *mut queue,
    step: *const bitnet_step,
    err: Error,
) -> bitnet_status {
    guarded(err, "queue_submit", || {
        let s = &*step;
        if s.program.is_null() || s.signal_value <= (*q).timeline.load(Ordering::SeqCst) {
            return failure(
                INVALID_ARGUMENT,
                "no program, or a signal that the timeline has passed",
            );
        }
        locked(&*s.program, |state| state.run(s))?;
        (*q).timeline.store(s.signal_value, Ordering::SeqCst);
        Ok(())
    })
}

unsafe extern "C" fn queue_wait(q: *mut queue, value: u64, _: u64, err: Error) -> bitnet_status {
    guarded(err, "queue_wait", || {
        if (*q).timeline.load(Ordering::SeqCst) >= value {
            return Ok(());
        }
        failure(
            TIMEOUT,
            format!("no step that was submitted reaches {value}"),
        )
    })
}

unsafe extern "C" fn queue_poll(q: *mut queue, out: *mut u64, _: Error) -> bitnet_status {
    *out = (*q).timeline.load(Ordering::SeqCst);
    OK
}

unsafe extern "C" fn queue_destroy(q: *mut queue) {
    drop(Box::from_raw(q));
}

/// No thread, and every step has ended when queue_submit returns.
unsafe extern "C" fn quiesce(_: *mut backend, _: u64, _: Error) -> bitnet_status {
    OK
}

/// Which kernels the host's setting "disable" names, ids parted by commas.
unsafe fn disabled_by(request: &bitnet_open_request) -> [bool; N_KERNELS] {
    let bytes = |s: bitnet_str| match s.size {
        0 => &[][..],
        n => std::slice::from_raw_parts(s.data, n as usize),
    };
    let mut out = [false; N_KERNELS];
    for i in 0..request.n_params as usize {
        let param = &*request.params.add(i);
        if bytes(param.key) != b"disable" {
            continue;
        }
        for id in bytes(param.value).split(|c| *c == b',') {
            for (k, off) in KERNELS.iter().zip(&mut out) {
                *off |= k.id.as_bytes() == id;
            }
        }
    }
    out
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
        let room = (*out).struct_size;
        // Where `close` ends: whoever cannot call it could not end what this call opens.
        if room < 80 {
            return failure(
                INVALID_ARGUMENT,
                "the host's table is too short: it has no `close`; update the host",
            );
        }
        (*out).need_minor_min = 0;
        (*out).need_minor_max = ABI_MINOR;
        let asked = &*request;
        if asked.abi_minor_min > ABI_MINOR {
            let needed = asked.abi_minor_min;
            return failure(
                INCOMPATIBLE,
                format!("this backend speaks ABI 0.0 to 0.{ABI_MINOR}, the host needs 0.{needed}: update the backend"),
            );
        }
        let this = Box::into_raw(Box::new(backend {
            host,
            disabled: disabled_by(asked),
        }));
        let filled = room.min(size_of::<bitnet_backend_v0>() as u32);
        let table = bitnet_backend_v0 {
            struct_size: room,
            filled_size: filled,
            abi_minor: asked.abi_minor_max.min(ABI_MINOR),
            need_minor_min: 0,
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
            op_query,
            program_build,
            program_estimate,
            program_prepare,
            program_bind,
            program_stats,
            program_destroy,
            kv_pool_create,
            kv_copy_blocks,
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
        };
        std::ptr::copy_nonoverlapping(
            &table as *const _ as *const u8,
            out as *mut u8,
            filled as usize,
        );
        Ok(())
    })
}
