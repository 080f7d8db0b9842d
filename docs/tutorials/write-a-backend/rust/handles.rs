// SPDX-License-Identifier: Apache-2.0
//! What the host holds: memory, weights, blocks of keys and values.
#![allow(non_camel_case_types)]
use crate::abi::*;
use crate::edge::*;
use crate::kernels::N_KERNELS;
pub use crate::run::{program, queue};
use std::alloc::{alloc_zeroed, dealloc, Layout};

/// The backend, and its only device too.
pub struct backend {
    pub host: *const bitnet_host_v0,
    pub disabled: [bool; N_KERNELS],
}

/// Zeroed; the host writes to it, so that only its address is kept.
pub struct buffer {
    pub bytes: u64,
    pub address: *mut u8,
    layout: Layout,
}

impl buffer {
    pub fn new(bytes: u64) -> Result<Self, Failure> {
        let layout = Layout::from_size_align(bytes.max(1) as usize, 64);
        let address = layout
            .as_ref()
            .map_or(std::ptr::null_mut(), |l| unsafe { alloc_zeroed(*l) });
        match layout {
            Ok(layout) if !address.is_null() => Ok(Self {
                bytes,
                address,
                layout,
            }),
            _ => failure(OUT_OF_MEMORY, format!("no memory for {bytes} bytes")),
        }
    }
}

impl Drop for buffer {
    fn drop(&mut self) {
        unsafe { dealloc(self.address, self.layout) }
    }
}

pub struct tensor {
    pub k: u64,
    pub m: u64,
    pub data: Vec<f32>,
    written: u64,
    pub sealed: bool,
}

pub struct weights {
    pub tensors: Vec<tensor>,
}

/// Elements of a tensor, if this backend can have it.
pub fn elements_of(d: &bitnet_tensor_desc) -> Result<u64, Failure> {
    if d.format != FORMAT_F32 {
        return failure(
            UNSUPPORTED,
            format!("weights of format {}: only f32 is known", d.format),
        );
    }
    let n = (d.ne[0].max(0) as u64)
        .checked_mul(d.ne[1].max(0) as u64)
        .unwrap_or(0);
    if n == 0 || n.checked_mul(4) != Some(d.data_bytes) {
        return failure(
            INVALID_ARGUMENT,
            format!(
                "{} x {} f32 elements do not take {} bytes",
                d.ne[0], d.ne[1], d.data_bytes
            ),
        );
    }
    Ok(n)
}

impl weights {
    pub fn add(&mut self, d: &bitnet_tensor_desc) -> Result<(), Failure> {
        let data = zeros(Some(elements_of(d)?))?;
        self.tensors.push(tensor {
            k: d.ne[0] as u64,
            m: d.ne[1] as u64,
            data,
            written: 0,
            sealed: false,
        });
        Ok(())
    }

    pub fn write(
        &mut self,
        index: u32,
        offset: u64,
        data: *const u8,
        bytes: u64,
    ) -> Result<(), Failure> {
        match self.tensors.get_mut(index as usize) {
            Some(t)
                if !t.sealed
                    && offset == t.written
                    && bytes <= 4 * t.data.len() as u64 - offset =>
            {
                if bytes != 0 {
                    // `data` has that many bytes, and the room was checked.
                    unsafe {
                        let to = (t.data.as_mut_ptr() as *mut u8).add(offset as usize);
                        std::ptr::copy_nonoverlapping(data, to, bytes as usize);
                    }
                }
                t.written += bytes;
                Ok(())
            }
            _ => failure(
                INVALID_ARGUMENT,
                format!("tensor {index} does not expect {bytes} bytes at {offset}"),
            ),
        }
    }

    pub fn seal(&mut self, index: u32) -> Result<(), Failure> {
        match self.tensors.get_mut(index as usize) {
            Some(t) if t.written == 4 * t.data.len() as u64 => {
                t.sealed = true;
                Ok(())
            }
            _ => failure(
                INVALID_ARGUMENT,
                format!("tensor {index} is unknown, or bytes of it are missing"),
            ),
        }
    }
}

/// Blocks in the canonical layout, which nothing here reads but the host.
pub struct kv_pool {
    n_blocks: u32,
    block_bytes: u64,
    data: Vec<u8>,
}

impl kv_pool {
    pub fn new(c: &bitnet_kv_config) -> Result<Self, Failure> {
        let size = |dtype| match dtype {
            DTYPE_F32 => Ok(4),
            DTYPE_F16 => Ok(2),
            _ => failure(UNSUPPORTED, "keys and values are f32 or f16 here"),
        };
        let each: u64 = size(c.dtype_k)? + size(c.dtype_v)?;
        let block = [c.n_layers, c.n_kv_heads, c.head_dim, c.block_tokens]
            .iter()
            .try_fold(each, |bytes, n| bytes.checked_mul(u64::from(*n)));
        let all = block.and_then(|b| b.checked_mul(u64::from(c.n_blocks)));
        if all == Some(0) {
            return failure(INVALID_ARGUMENT, "a pool needs blocks, layers, heads and tokens");
        }
        let data = zeros(all)?;
        Ok(Self {
            n_blocks: c.n_blocks,
            block_bytes: block.unwrap_or(0),
            data,
        })
    }

    pub fn block(&mut self, index: u32, bytes: u64) -> Result<&mut [u8], Failure> {
        if index >= self.n_blocks || bytes != self.block_bytes {
            return failure(
                INVALID_ARGUMENT,
                format!(
                    "block {index} of {} with {bytes} bytes, not {}",
                    self.n_blocks, self.block_bytes
                ),
            );
        }
        let at = u64::from(index) * self.block_bytes;
        Ok(&mut self.data[at as usize..(at + bytes) as usize])
    }

    pub fn copy(&mut self, from: u32, to: u32) -> Result<(), Failure> {
        let bytes = self.block_bytes;
        self.block(to, bytes)?;
        let source = self.block(from, bytes)?.as_ptr() as usize - self.data.as_ptr() as usize;
        self.data.copy_within(
            source..source + bytes as usize,
            (u64::from(to) * bytes) as usize,
        );
        Ok(())
    }
}
