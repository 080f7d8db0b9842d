// SPDX-License-Identifier: Apache-2.0
//! One op, RELU2, and the two that bring numbers to it and take them away.
use crate::abi::*;

/// Rows of f32; every index is in range.
pub struct Work<'a> {
    pub rows: usize,
    pub width: usize,
    pub input: &'a [f32], // what is read: a value, or a weight
    pub index: &'a [i32], // token ids, or the rows that are gathered
    pub out: &'a mut [f32],
}

pub struct Kernel {
    pub op: u32,
    pub format: u32, // of its weight
    pub id: &'static str,
    pub run: fn(Work),
}

pub const N_KERNELS: usize = 3;
pub const KERNELS: [Kernel; N_KERNELS] = [
    Kernel {
        op: OP_RELU2,
        format: FORMAT_NONE,
        id: "relu2.rust",
        run: relu2,
    },
    Kernel {
        op: OP_EMBED_GATHER,
        format: FORMAT_F32,
        id: "embed_gather.f32.rust",
        run: copy_rows,
    },
    Kernel {
        op: OP_GATHER_ROWS,
        format: FORMAT_NONE,
        id: "gather_rows.rust",
        run: copy_rows,
    },
];

fn relu2(w: Work) {
    for (y, x) in w.out.iter_mut().zip(w.input).take(w.rows * w.width) {
        let positive = if *x > 0.0 { *x } else { 0.0 };
        *y = positive * positive;
    }
}

fn copy_rows(w: Work) {
    for (row, index) in w.out.chunks_exact_mut(w.width).zip(w.index).take(w.rows) {
        let at = *index as usize * w.width;
        row.copy_from_slice(&w.input[at..at + w.width]);
    }
}
