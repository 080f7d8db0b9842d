// SPDX-License-Identifier: Apache-2.0
//! What the host holds: memory, weights, blocks of keys and values.
#![allow(non_camel_case_types)]
use crate::abi::*;
use crate::edge::*;
use crate::kernels::N_KERNELS;
pub use crate::run::{binding, program, queue};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::mem::size_of;

/// The backend, and its only device too.
pub struct backend {
    pub host: *const bitnet_host_v0,
    pub disabled: [bool; N_KERNELS],
}

pub const ALIGNMENT: usize = 64;

/// Zeroed; the host writes to it, so that only its address is kept.
pub struct buffer {
    pub bytes: u64,
    pub address: *mut u8,
    layout: Layout,
}

impl buffer {
    pub fn new(bytes: u64) -> Result<Self, Failure> {
        if bytes == 0 {
            return failure(INVALID_ARGUMENT, "memory of 0 bytes");
        }
        let layout = Layout::from_size_align(bytes as usize, ALIGNMENT);
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
    pub format: u32, // FORMAT_*; of others than f32 nothing else is known
    pub k: u64,
    pub m: u64,
    pub data: Vec<f32>, // empty where it is only planned
    written: u64,
    pub sealed: bool,
}

pub struct weights {
    pub tensors: Vec<tensor>,
}

impl tensor {
    /// Without memory. Whether one of an unknown format matters, only the caller knows.
    pub fn described(d: &bitnet_tensor_desc) -> Result<Self, Failure> {
        if d.reserved_0 != 0 {
            return failure(UNSUPPORTED, "reserved_0 of a tensor is not 0");
        }
        if d.rank > 2 {
            return failure(UNSUPPORTED, format!("a weight of {} dimensions", d.rank));
        }
        let mut out = Self {
            format: d.format,
            k: 0,
            m: 0,
            data: Vec::new(),
            written: 0,
            sealed: true,
        };
        if d.format != FORMAT_F32 {
            return Ok(out);
        }
        out.k = d.ne[0].max(0) as u64;
        out.m = d.ne[1].max(0) as u64;
        let elements = out.k.checked_mul(out.m).unwrap_or(0);
        let is_shape = d.ne[2..] == [1, 1] && (d.rank == 2 || (d.rank == 1 && d.ne[1] == 1));
        if elements == 0 || !is_shape || elements.checked_mul(4) != Some(d.data_bytes) {
            return failure(
                INVALID_ARGUMENT,
                format!(
                    "{} x {} f32 elements in {} dimensions do not take {} bytes",
                    d.ne[0], d.ne[1], d.rank, d.data_bytes
                ),
            );
        }
        Ok(out)
    }

    pub fn bytes(&self) -> u64 {
        4 * self.k * self.m
    }

    pub fn check_format(&self) -> Result<(), Failure> {
        match self.format {
            FORMAT_F32 => Ok(()),
            other => failure(
                UNSUPPORTED,
                format!("weights of format {other}: only f32 is known"),
            ),
        }
    }
}

impl weights {
    /// Without memory, as graph_query needs them.
    ///
    /// # Safety
    /// There are as many descriptions, if any.
    pub unsafe fn described(
        descs: *const bitnet_tensor_desc,
        desc_size: u32,
        n: u32,
    ) -> Result<Self, Failure> {
        let mut tensors = Vec::new();
        if n != 0 && (descs.is_null() || (desc_size as usize) < size_of::<bitnet_tensor_desc>()) {
            return failure(
                INVALID_ARGUMENT,
                format!("{n} descriptions of {desc_size} bytes: missing or too short"),
            );
        }
        for i in 0..n as usize {
            let at = (descs as *const u8).add(i * desc_size as usize) as *const bitnet_tensor_desc;
            if (*at).struct_size > desc_size {
                return failure(INVALID_ARGUMENT, "a description is longer than its place");
            }
            tensors.push(tensor::described(&receive(
                at,
                size_of::<bitnet_tensor_desc>(),
            )?)?);
        }
        Ok(Self { tensors })
    }

    pub fn allocate(&mut self) -> Result<(), Failure> {
        for t in &mut self.tensors {
            t.check_format()?;
            t.data = zeros(Some(t.k * t.m))?;
            t.sealed = false;
        }
        Ok(())
    }

    pub fn write(&mut self, index: u32, offset: u64, data: &[u8]) -> Result<(), Failure> {
        let bytes = data.len() as u64;
        match self.tensors.get_mut(index as usize) {
            Some(t) if !t.sealed && offset == t.written && bytes <= t.bytes() - offset => {
                // The room was checked, and every byte is a part of some f32.
                unsafe {
                    let to = (t.data.as_mut_ptr() as *mut u8).add(offset as usize);
                    std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
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
            Some(t) if !t.sealed && t.written == t.bytes() => {
                t.sealed = true;
                Ok(())
            }
            _ => failure(
                INVALID_ARGUMENT,
                format!("tensor {index} is unknown, sealed, or bytes of it are missing"),
            ),
        }
    }
}

/// Blocks in the canonical layout, which nothing here reads but the host. Several queues may use it
/// at a time, each its own blocks.
pub struct kv_pool {
    n_blocks: u32,
    block_bytes: u64,
    memory: buffer,
}

/// What a block takes, however many there are to be.
pub fn block_bytes(c: &bitnet_kv_config) -> Result<u64, Failure> {
    let size = |dtype| match dtype {
        DTYPE_F32 => Ok(4),
        DTYPE_F16 => Ok(2),
        _ => failure(UNSUPPORTED, "keys and values are f32 or f16 here"),
    };
    if c.reserved_0 != 0 {
        return failure(UNSUPPORTED, "reserved_0 of a pool is not 0");
    }
    if c.n_states != 0 || c.state_elements != 0 {
        return failure(UNSUPPORTED, "pools have no states here");
    }
    let of_head: u64 =
        size(c.dtype_k)? * u64::from(c.head_dim_k) + size(c.dtype_v)? * u64::from(c.head_dim_v);
    let block = [c.n_layers, c.n_kv_heads, c.block_tokens]
        .iter()
        .try_fold(of_head, |bytes, n| bytes.checked_mul(u64::from(*n)));
    match block {
        Some(bytes) if bytes != 0 && c.head_dim_k != 0 && c.head_dim_v != 0 => Ok(bytes),
        _ => failure(INVALID_ARGUMENT, "blocks of that size cannot be"),
    }
}

impl kv_pool {
    pub fn new(c: &bitnet_kv_config) -> Result<Self, Failure> {
        let block_bytes = block_bytes(c)?;
        let bytes = block_bytes.checked_mul(u64::from(c.n_blocks));
        Ok(Self {
            n_blocks: c.n_blocks,
            block_bytes,
            memory: buffer::new(bytes.unwrap_or(u64::MAX))?,
        })
    }

    fn at(&self, block: u32) -> *mut u8 {
        unsafe { (self.memory.address).add((u64::from(block) * self.block_bytes) as usize) }
    }

    /// The pool has all of them, and none that is written is read too or written twice.
    fn check(&self, read: &[u32], written: &[u32]) -> Result<(), Failure> {
        let mut marked = zeros::<bool>(Some(u64::from(self.n_blocks)))?;
        let mut mark = |b: &u32| match marked.get_mut(*b as usize) {
            Some(mark) => !std::mem::replace(mark, true),
            None => false,
        };
        let fresh = written.iter().all(&mut mark);
        if fresh && read.iter().all(|b| marked.get(*b as usize) == Some(&false)) {
            return Ok(());
        }
        failure(
            INVALID_ARGUMENT,
            format!(
                "a block is not among the {} of the pool, or is named twice",
                self.n_blocks
            ),
        )
    }

    fn check_bytes(&self, n: u64, bytes: u64) -> Result<(), Failure> {
        if n.checked_mul(self.block_bytes) == Some(bytes) {
            return Ok(());
        }
        failure(
            INVALID_ARGUMENT,
            format!(
                "{n} blocks take {} bytes each, not {bytes}",
                self.block_bytes
            ),
        )
    }

    pub fn copy(&self, from: &[u32], to: &[u32]) -> Result<(), Failure> {
        self.check(from, to)?;
        for (from, to) in from.iter().zip(to) {
            unsafe {
                self.at(*from)
                    .copy_to(self.at(*to), self.block_bytes as usize)
            };
        }
        Ok(())
    }

    /// # Safety
    /// `out` has so many bytes.
    pub unsafe fn export(&self, blocks: &[u32], out: *mut u8, bytes: u64) -> Result<(), Failure> {
        self.check(blocks, &[])?;
        self.check_bytes(blocks.len() as u64, bytes)?;
        let size = self.block_bytes as usize;
        for (i, block) in blocks.iter().enumerate() {
            self.at(*block).copy_to(out.add(i * size), size);
        }
        Ok(())
    }

    pub fn import(&self, blocks: &[u32], data: &[u8]) -> Result<(), Failure> {
        self.check(&[], blocks)?;
        self.check_bytes(blocks.len() as u64, data.len() as u64)?;
        for (block, from) in blocks.iter().zip(data.chunks(self.block_bytes as usize)) {
            unsafe { self.at(*block).copy_from(from.as_ptr(), from.len()) };
        }
        Ok(())
    }
}
