// SPDX-License-Identifier: Apache-2.0
//! The edge between Rust and the contract: no panic gets past it, and every failure is said.
use crate::abi::*;
use std::panic::{catch_unwind, AssertUnwindSafe};

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
                if !err.is_null()
                    && (*err).struct_size as usize >= std::mem::size_of::<bitnet_error>()
                {
                    *err = bitnet_error {
                        struct_size: std::mem::size_of::<bitnet_error>() as u32,
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

/// Copies a struct to a caller who may know a shorter form of it, and keeps the caller's size.
///
/// # Safety
/// `out` starts with its struct_size and has as many bytes.
pub unsafe fn hand_over<T>(value: &T, out: *mut T) {
    let room = *(out as *const u32);
    let n = (room as usize).min(std::mem::size_of::<T>());
    std::ptr::copy_nonoverlapping(value as *const T as *const u8, out as *mut u8, n);
    *(out as *mut u32) = room;
}

/// Element `i` of an array whose elements are `stride` bytes apart, as the sender sized them.
///
/// # Safety
/// The array has more than `i` elements.
pub unsafe fn element<T: Copy>(array: *const T, stride: u32, i: u32) -> Result<T, Failure> {
    if (stride as usize) < std::mem::size_of::<T>() {
        return failure(
            INVALID_ARGUMENT,
            "the elements of an array are shorter than those of ABI 0.0",
        );
    }
    Ok(std::ptr::read_unaligned(
        (array as *const u8).add(i as usize * stride as usize) as *const T,
    ))
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
