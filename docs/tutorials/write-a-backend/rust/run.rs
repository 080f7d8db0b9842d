// SPDX-License-Identifier: Apache-2.0
//! A program is the list of ops with everything checked once; a step runs them in order.
#![allow(non_camel_case_types)]
use crate::abi::*;
use crate::edge::*;
use crate::handles::*;
use crate::kernels::*;
use std::sync::atomic::AtomicU64;
use std::sync::Mutex;

#[derive(Default)]
pub struct queue {
    pub timeline: AtomicU64,
}

struct value {
    per_token: bool, // else per output
    width: u64,
    data: Vec<f32>, // empty until an op writes it
}

enum source {
    Weight(*const tensor), // lives longer than the program
    Value(usize),
}

struct op {
    kernel: usize,
    from: source,
    to: usize,
}

pub struct state {
    device: *const backend,
    values: Vec<value>,
    ops: Vec<op>,
    logits: usize,
    max: bitnet_program_options,
    bound: Option<bitnet_step_buffers>,
    vocabulary: u64, // rows of the smallest weight that tokens choose from
    pub calls: [u64; N_KERNELS],
}

/// Steps of several queues wait for each other.
pub struct program(pub Mutex<state>);

pub fn find_kernel(b: &backend, op: u32, format: u32) -> Option<usize> {
    (0..N_KERNELS).find(|i| !b.disabled[*i] && KERNELS[*i].op == op && KERNELS[*i].format == format)
}

impl state {
    pub fn new(device: &backend, logits: u32, max: bitnet_program_options) -> Self {
        Self {
            device,
            values: Vec::new(),
            ops: Vec::new(),
            logits: logits as usize,
            max,
            bound: None,
            vocabulary: u64::MAX,
            calls: [0; N_KERNELS],
        }
    }

    pub fn add_value(&mut self, v: &bitnet_value) -> Result<(), Failure> {
        if v.dtype != DTYPE_F32 {
            return failure(UNSUPPORTED, "values are f32 here");
        }
        if (v.dims[0] != DIM_TOKENS && v.dims[0] != DIM_OUTPUTS) || v.dims[1] <= 0 {
            return failure(INVALID_ARGUMENT, "a value has no rows of tokens or outputs");
        }
        self.values.push(value {
            per_token: v.dims[0] == DIM_TOKENS,
            width: v.dims[1] as u64,
            data: Vec::new(),
        });
        Ok(())
    }

    /// Ops come in order, so a value that has no memory yet was not written yet.
    pub fn add_op(
        &mut self,
        device: &backend,
        o: &bitnet_op,
        weights: &weights,
    ) -> Result<(), Failure> {
        let embeds = o.op == OP_EMBED_GATHER;
        let format = if embeds { FORMAT_F32 } else { FORMAT_NONE };
        let kernel = match find_kernel(device, o.op, format) {
            Some(kernel) => kernel,
            None => return failure(UNSUPPORTED, format!("op {} is not known here", o.op)),
        };
        let to = o.outputs[0] as usize;
        let (per_token, width) = match self.values.get(to) {
            Some(out) if out.data.is_empty() => (out.per_token, out.width),
            _ => {
                return failure(
                    INVALID_ARGUMENT,
                    "an op writes no value, or one that is written already",
                )
            }
        };
        let from = if embeds {
            match weights.tensors.get(o.weights[0] as usize) {
                Some(w) if w.sealed && w.k == width && per_token => {
                    self.vocabulary = self.vocabulary.min(w.m);
                    source::Weight(w)
                }
                _ => {
                    return failure(
                        INVALID_ARGUMENT,
                        "embed_gather has no sealed weight of its width",
                    )
                }
            }
        } else {
            let gathers = o.op == OP_GATHER_ROWS;
            let at = o.inputs[0] as usize;
            match self.values.get(at) {
                Some(i)
                    if !i.data.is_empty()
                        && i.width == width
                        && (if gathers {
                            i.per_token && !per_token
                        } else {
                            i.per_token == per_token
                        }) =>
                {
                    source::Value(at)
                }
                _ => {
                    return failure(
                        INVALID_ARGUMENT,
                        "the values of an op do not fit, or are not written yet",
                    )
                }
            }
        };
        let rows = if per_token {
            self.max.max_tokens
        } else {
            self.max.max_outputs
        };
        self.values[to].data = zeros(u64::from(rows.max(1)).checked_mul(width))?;
        self.ops.push(op { kernel, from, to });
        Ok(())
    }

    pub fn finish(self) -> Result<program, Failure> {
        match self.values.get(self.logits) {
            Some(v) if !v.per_token && !v.data.is_empty() => Ok(program(Mutex::new(self))),
            _ => failure(INVALID_ARGUMENT, "no op writes the logits"),
        }
    }

    pub fn scratch_bytes(&self) -> u64 {
        self.values.iter().map(|v| 4 * v.data.len() as u64).sum()
    }

    pub fn check_tokens(&self, n: u32) -> Result<(), Failure> {
        if n <= self.max.max_tokens {
            return Ok(());
        }
        failure(
            INVALID_ARGUMENT,
            format!("{n} tokens, {} were announced", self.max.max_tokens),
        )
    }

    pub fn bind(&mut self, b: &bitnet_step_buffers) -> Result<(), Failure> {
        let has = |buffer: *mut buffer, rows: u32, width: u64| unsafe {
            !buffer.is_null() && Some((*buffer).bytes) >= u64::from(rows).checked_mul(4 * width)
        };
        if !has(b.tokens, self.max.max_tokens, 1)
            || !has(b.output_rows, self.max.max_outputs, 1)
            || !has(
                b.logits,
                self.max.max_outputs,
                self.values[self.logits].width,
            )
        {
            return failure(INVALID_ARGUMENT, "a step buffer is missing or too small");
        }
        self.bound = Some(*b);
        Ok(())
    }

    pub fn run(&mut self, s: &bitnet_step) -> Result<(), Failure> {
        let bound = match &self.bound {
            Some(b)
                if s.n_tokens <= self.max.max_tokens
                    && s.n_sequences <= self.max.max_sequences
                    && s.n_outputs <= self.max.max_outputs =>
            {
                b
            }
            _ => {
                return failure(
                    INVALID_ARGUMENT,
                    "the program is not bound, or the step is larger than announced",
                )
            }
        };
        // The host leaves the step buffers alone while a step runs.
        let ints = |b: *mut buffer, n: u32| unsafe {
            std::slice::from_raw_parts((*b).address as *const i32, n as usize)
        };
        let tokens = ints(bound.tokens, s.n_tokens);
        let rows = ints(bound.output_rows, s.n_outputs);
        if let Some(t) = tokens
            .iter()
            .find(|t| **t < 0 || **t as u64 >= self.vocabulary)
        {
            return failure(
                INVALID_ARGUMENT,
                format!("token {t} is not in the vocabulary"),
            );
        }
        if let Some(r) = rows.iter().find(|r| **r < 0 || **r as u32 >= s.n_tokens) {
            return failure(
                INVALID_ARGUMENT,
                format!("output row {r} of {} tokens", s.n_tokens),
            );
        }
        for op in &self.ops {
            let cancelled = unsafe {
                let host = &*(*self.device).host;
                s.cancel_token != 0 && (host.cancelled)(host.this, s.cancel_token) != 0
            };
            if cancelled {
                return failure(CANCELLED, "cancelled");
            }
            // Out of the list while it is written, as no op reads what it writes.
            let mut out = std::mem::take(&mut self.values[op.to].data);
            let to = &self.values[op.to];
            let (input, index): (&[f32], _) = match op.from {
                source::Weight(w) => (unsafe { &(*w).data }, tokens),
                source::Value(v) => (&self.values[v].data, rows),
            };
            (KERNELS[op.kernel].run)(Work {
                rows: if to.per_token {
                    tokens.len()
                } else {
                    rows.len()
                },
                width: to.width as usize,
                input,
                index,
                out: &mut out,
            });
            self.values[op.to].data = out;
            self.calls[op.kernel] += 1;
        }
        let logits = &self.values[self.logits];
        unsafe {
            let to = (*bound.logits).address as *mut f32;
            std::ptr::copy_nonoverlapping(
                logits.data.as_ptr(),
                to,
                rows.len() * logits.width as usize,
            );
        }
        Ok(())
    }
}
