// SPDX-License-Identifier: Apache-2.0
//! The edge between Rust and the contract: no panic gets past it, and every failure is said.
use crate::abi::*;
use std::mem::{size_of, MaybeUninit};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Values, ops and ports: more is no graph.
pub const MOST: u32 = 1 << 20;

pub struct Failure {
    pub code: bitnet_status,
    pub message: String,
}

pub fn failure<T>(code: bitnet_status, message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        code,
        message: message.into(),
    })
}

/// A text as the contract's char arrays have it: NUL terminated, cut where it is too long.
pub fn text<const N: usize>(s: &str) -> [u8; N] {
    let mut out = [0; N];
    let n = s.len().min(N - 1);
    out[..n].copy_from_slice(&s.as_bytes()[..n]);
    out
}

pub fn guarded(
    err: *mut bitnet_error,
    place: &str,
    body: impl FnOnce() -> Result<(), Failure>,
) -> bitnet_status {
    let end =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| failure(INTERNAL, "it panicked"));
    match end {
        Ok(()) => OK,
        Err(f) => {
            // The caller owns *err, and says how much of it there is.
            unsafe {
                if !err.is_null() && (*err).struct_size as usize >= size_of::<bitnet_error>() {
                    *err = bitnet_error {
                        struct_size: size_of::<bitnet_error>() as u32,
                        code: f.code,
                        flags: 0,
                        reserved_0: 0,
                        native_code: 0,
                        domain: text(""),
                        r#where: text(place),
                        message: text(&f.message),
                    };
                }
            }
            f.code
        }
    }
}

fn name_of<T>() -> &'static str {
    let path = std::any::type_name::<T>();
    path.rsplit("::").next().unwrap_or(path)
}

/// What a pointer of the host's means.
///
/// # Safety
/// It is null, or there is such a thing and no other thread changes it meanwhile.
pub unsafe fn given<'a, T>(p: *const T) -> Result<&'a T, Failure> {
    match p.as_ref() {
        Some(thing) => Ok(thing),
        None => failure(
            INVALID_ARGUMENT,
            format!("nothing is given where {} is needed", name_of::<T>()),
        ),
    }
}

/// The same where it is written.
///
/// # Safety
/// And no other thread reads it meanwhile.
pub unsafe fn place<'a, T>(p: *mut T) -> Result<&'a mut T, Failure> {
    given(p)?;
    Ok(&mut *p)
}

/// `n` numbers or bytes of the host's, fewer than it can have.
///
/// # Safety
/// There are as many, unless the pointer is null.
pub unsafe fn list<'a, T>(p: *const T, n: u64) -> Result<&'a [T], Failure> {
    match n {
        0 => Ok(&[]),
        _ if p.is_null() || n > isize::MAX as u64 / size_of::<T>() as u64 => {
            failure(INVALID_ARGUMENT, format!("{n} are announced, none given"))
        }
        _ => Ok(std::slice::from_raw_parts(p, n as usize)),
    }
}

const MOST_BYTES: u32 = 4096; // of a struct of the contract

unsafe fn is_zero<T>(p: *const T, until: u32) -> bool {
    (size_of::<T>()..until as usize).all(|i| *(p as *const u8).add(i) == 0)
}

fn unknown<T>() -> Result<T, Failure> {
    failure(
        UNSUPPORTED,
        "the host says more than this backend knows: update the backend",
    )
}

/// Copies a struct of which the host must know the first `least` bytes. What it says behind those
/// that are known here would have a meaning, and so is not passed over.
///
/// # Safety
/// Null, or a struct of integers and pointers that starts with its struct_size and has as many bytes.
pub unsafe fn receive<T: Copy>(from: *const T, least: usize) -> Result<T, Failure> {
    let sent = if from.is_null() {
        0
    } else {
        *(from as *const u32)
    };
    if (sent as usize) < least || sent > MOST_BYTES {
        return failure(
            INVALID_ARGUMENT,
            format!("{} is missing, or has {sent} bytes", name_of::<T>()),
        );
    }
    if !is_zero(from, sent) {
        return unknown();
    }
    let mut out = MaybeUninit::<T>::zeroed();
    let n = (sent as usize).min(size_of::<T>());
    std::ptr::copy_nonoverlapping(from as *const u8, out.as_mut_ptr() as *mut u8, n);
    Ok(out.assume_init())
}

/// The same for an array of structs that are `stride` bytes apart.
///
/// # Safety
/// Null, or as many structs of integers and pointers.
pub unsafe fn receive_array<T: Copy>(
    from: *const T,
    stride: u32,
    n: u32,
) -> Result<Vec<T>, Failure> {
    let fits = size_of::<T>() as u32..=MOST_BYTES;
    if n > MOST || (n != 0 && (from.is_null() || !fits.contains(&stride))) {
        return failure(
            INVALID_ARGUMENT,
            format!("{n} structs of {stride} bytes each: missing, too many or too short"),
        );
    }
    let mut out = Vec::new();
    for i in 0..n as usize {
        let at = (from as *const u8).add(i * stride as usize) as *const T;
        if !is_zero(at, stride) {
            return unknown();
        }
        out.push(at.read_unaligned());
    }
    Ok(out)
}

/// Copies a struct to a caller that may know a shorter form of it, and keeps the caller's size.
///
/// # Safety
/// `out` is null, or starts with its struct_size and has as many bytes.
pub unsafe fn hand_over<T>(value: &T, out: *mut T) -> Result<(), Failure> {
    let room = *given(out as *const u32)?;
    let n = (room as usize).min(size_of::<T>());
    std::ptr::copy_nonoverlapping(value as *const T as *const u8, out as *mut u8, n);
    *(out as *mut u32) = room;
    Ok(())
}

/// The same for a list, as much of it as the caller has room for, and how many there are.
///
/// # Safety
/// There is room for *count elements of `stride` bytes.
pub unsafe fn hand_over_all<T>(
    all: &[T],
    out: *mut T,
    stride: u32,
    count: *mut u32,
) -> Result<(), Failure> {
    let count = place(count)?;
    if *count != 0 && (out.is_null() || stride < 4) {
        return failure(INVALID_ARGUMENT, format!("no room for {count} elements"));
    }
    for (i, value) in all.iter().enumerate().take(*count as usize) {
        let to = (out as *mut u8).add(i * stride as usize);
        std::ptr::write_bytes(to, 0, stride as usize);
        let known = (stride as usize).min(size_of::<T>());
        std::ptr::copy_nonoverlapping(value as *const T as *const u8, to, known);
        (to as *mut u32).write_unaligned(stride);
    }
    *count = all.len() as u32;
    Ok(())
}

/// Makes what the caller gets a handle of.
///
/// # Safety
/// `out` is null or the caller's.
pub unsafe fn give<T>(
    out: *mut *mut T,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<(), Failure> {
    let out = place(out)?;
    *out = Box::into_raw(Box::new(make()?));
    Ok(())
}

/// Ends what `give` made.
///
/// # Safety
/// The handle is null or not used any more.
pub unsafe fn take_back<T>(handle: *mut T) {
    if !handle.is_null() {
        drop(Box::from_raw(handle));
    }
}

/// n zeros. Without try_reserve a lack of memory would end the process.
pub fn zeros<T: Clone + Default>(n: Option<u64>) -> Result<Vec<T>, Failure> {
    let mut out = Vec::new();
    match n {
        Some(n) if n <= isize::MAX as u64 && out.try_reserve_exact(n as usize).is_ok() => {
            out.resize(n as usize, T::default());
            Ok(out)
        }
        _ => failure(OUT_OF_MEMORY, "out of memory"),
    }
}
