// SPDX-License-Identifier: Apache-2.0
//! A program is a checked graph with memory for its values; a step runs its ops in order.
#![allow(non_camel_case_types)]
use crate::abi::*;
use crate::edge::*;
use crate::graph::*;
use crate::handles::*;
use crate::kernels::*;
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

#[derive(Default)]
pub struct queue {
    pub timeline: AtomicU64,
}

impl queue {
    /// What is given ends before the call returns.
    pub fn in_turn(
        &self,
        signal: u64,
        work: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if signal <= self.timeline.load(Ordering::SeqCst) {
            return failure(
                INVALID_ARGUMENT,
                format!("the timeline has passed {signal}"),
            );
        }
        work()?;
        self.timeline.store(signal, Ordering::SeqCst);
        Ok(())
    }
}

pub struct state {
    device: *const backend,
    graph: graph,
    pub calls: [u64; N_KERNELS],
}

/// Steps of several queues wait for each other.
pub struct program(Mutex<state>);

impl program {
    pub fn new(device: &backend, mut graph: graph) -> Result<Self, Failure> {
        for v in graph.values.iter_mut().filter(|v| v.written) {
            v.data = zeros(Some(v.elements))?;
        }
        Ok(Self(Mutex::new(state {
            device,
            graph,
            calls: [0; N_KERNELS],
        })))
    }

    pub fn locked<T>(
        &self,
        body: impl FnOnce(&mut state) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.0.lock() {
            Ok(mut state) => body(&mut state),
            Err(_) => failure(INTERNAL, "an earlier step of this program panicked"),
        }
    }
}

/// Where the ports lie: of the program, which lives longer.
pub struct binding {
    pub of: *const program,
    places: Vec<*mut u8>,
}

impl binding {
    /// # Safety
    /// The buffers are null or this backend's.
    pub unsafe fn new(of: &program, r: &bitnet_bind_request) -> Result<Self, Failure> {
        let bound: Vec<bitnet_bound> = receive_array(r.bound, r.bound_size, r.n_bound)?;
        if r.reserved_0 != 0 {
            return failure(UNSUPPORTED, "reserved_0 of the request is not 0");
        }
        of.locked(|s| {
            let ports = &s.graph.ports;
            if bound.len() != ports.len() {
                return failure(
                    INVALID_ARGUMENT,
                    format!("{} buffers for {} ports", bound.len(), ports.len()),
                );
            }
            let mut places = Vec::new();
            for (b, port) in bound.iter().zip(ports) {
                let buffer = given(b.buffer)?;
                let end = b.offset.checked_add(b.bytes);
                if end.map_or(true, |end| end > buffer.bytes)
                    || b.offset % ALIGNMENT as u64 != 0
                    || b.bytes < s.graph.port_bytes(port)
                {
                    return failure(
                        INVALID_ARGUMENT,
                        format!(
                            "{} bytes at {} of {} for a port of role {}: too few, odd or past the end",
                            b.bytes, b.offset, buffer.bytes, port.role
                        ),
                    );
                }
                places.push(buffer.address.add(b.offset as usize));
            }
            Ok(Self { of, places })
        })
    }
}

impl state {
    pub fn check_counts(&self, tokens: u32, outputs: u32, sequences: u32) -> Result<(), Failure> {
        let max = &self.graph.max;
        if tokens <= max.max_tokens && outputs <= max.max_outputs && sequences <= max.max_sequences
        {
            return Ok(());
        }
        failure(
            INVALID_ARGUMENT,
            format!(
                "{tokens} tokens, {outputs} outputs and {sequences} sequences, of {}, {} and {}",
                max.max_tokens, max.max_outputs, max.max_sequences
            ),
        )
    }

    /// The numbers of a port, none where no op reads them: a port need not be there then.
    fn facts<'a>(&self, on: &'a binding, role: u32, n: u32, read: bool) -> &'a [i32] {
        match self.graph.ports.iter().position(|p| p.role == role) {
            // The host leaves them alone while a step runs; that there are as many was checked.
            Some(i) if read => unsafe {
                std::slice::from_raw_parts(on.places[i] as *const i32, n as usize)
            },
            _ => &[],
        }
    }

    /// Values that come in are copied before the ops, those that go out after them: so a binding
    /// may name one buffer for both.
    fn carry(&mut self, on: &binding, s: &bitnet_step, comes_in: bool) {
        for (port, place) in self.graph.ports.iter().zip(&on.places) {
            if port.role < PORT_VALUE_IN || (port.role == PORT_VALUE_IN) != comes_in {
                continue;
            }
            let v = &mut self.graph.values[port.value as usize];
            let bytes =
                (rows_of(v.rows, s.n_tokens, s.n_outputs) * v.width) as usize * size_of::<f32>();
            let data = v.data.as_mut_ptr() as *mut u8;
            unsafe {
                match comes_in {
                    true => data.copy_from(*place, bytes),
                    false => data.copy_to(*place, bytes),
                }
            }
        }
    }

    pub fn run(&mut self, on: &binding, s: &bitnet_step) -> Result<(), Failure> {
        if s.window != 0 || s.reserved_0 != 0 {
            return failure(UNSUPPORTED, "steps have no window here");
        }
        self.check_counts(s.n_tokens, s.n_outputs, s.n_sequences)?;
        let embeds = self.graph.vocabulary != u64::MAX;
        let tokens = self.facts(on, PORT_TOKENS, s.n_tokens, embeds);
        let rows = self.facts(on, PORT_OUTPUT_ROWS, s.n_outputs, self.graph.gathers);
        let out_of = |t: &&i32, end: u64| **t < 0 || **t as u64 >= end;
        if let Some(t) = tokens.iter().find(|t| out_of(t, self.graph.vocabulary)) {
            return failure(
                INVALID_ARGUMENT,
                format!("token {t} is not in the vocabulary"),
            );
        }
        if let Some(r) = rows.iter().find(|r| out_of(r, u64::from(s.n_tokens))) {
            return failure(
                INVALID_ARGUMENT,
                format!("output row {r} of {} tokens", s.n_tokens),
            );
        }
        self.carry(on, s, true);
        for op in &self.graph.ops {
            let cancelled = unsafe {
                let host = &*(*self.device).host;
                s.cancel_token != 0 && (host.cancelled)(host.this, s.cancel_token) != 0
            };
            if cancelled {
                return failure(CANCELLED, "cancelled");
            }
            // Out of the list while it is written, as no op reads what it writes.
            let mut out = std::mem::take(&mut self.graph.values[op.to].data);
            let to = &self.graph.values[op.to];
            let (input, index): (&[f32], _) = match op.from {
                source::Weight(w) => (unsafe { &(*w).data }, tokens),
                source::Value(v) => (&self.graph.values[v].data, rows),
            };
            (KERNELS[op.kernel].run)(Work {
                rows: rows_of(to.rows, s.n_tokens, s.n_outputs) as usize,
                width: to.width as usize,
                input,
                index,
                out: &mut out,
            });
            self.graph.values[op.to].data = out;
            self.calls[op.kernel] += 1;
        }
        self.carry(on, s, false);
        Ok(())
    }
}
