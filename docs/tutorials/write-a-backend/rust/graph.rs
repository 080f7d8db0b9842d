// SPDX-License-Identifier: Apache-2.0
//! A graph is a host's text: all of it is checked here, once, so that a step need not look at it
//! again. What is not known is UNSUPPORTED, what cannot be is INVALID_ARGUMENT.
#![allow(non_camel_case_types)]
use crate::abi::*;
use crate::edge::*;
use crate::handles::*;
use crate::kernels::*;
use std::mem::size_of;

pub struct value {
    pub rows: i64, // so many, or DIM_TOKENS or DIM_OUTPUTS
    pub width: u64,
    pub elements: u64, // of the largest step
    pub written: bool,
    has_port: bool,
    pub data: Vec<f32>,
}

pub enum source {
    Weight(*const tensor), // lives longer than the program
    Value(usize),
}

pub struct op {
    pub kernel: usize,
    pub from: source,
    pub to: usize,
}

pub struct graph {
    pub values: Vec<value>,
    pub ops: Vec<op>,
    pub ports: Vec<bitnet_port>,
    pub max: bitnet_program_options,
    pub vocabulary: u64, // rows of the smallest weight that tokens choose from
    pub gathers: bool,   // an op reads the output rows
    roles: u32,          // 1 << PORT_* for each that there is
}

pub fn find_kernel(b: &backend, op: u32, format: u32) -> Option<usize> {
    (0..N_KERNELS).find(|i| !b.disabled[*i] && KERNELS[*i].op == op && KERNELS[*i].format == format)
}

pub fn rows_of(rows: i64, tokens: u32, outputs: u32) -> u64 {
    match rows {
        DIM_TOKENS => u64::from(tokens),
        DIM_OUTPUTS => u64::from(outputs),
        _ => rows as u64,
    }
}

fn invalid<T>(message: String) -> Result<T, Failure> {
    failure(INVALID_ARGUMENT, message)
}

/// # Safety
/// Null, or options of the host's.
unsafe fn read_options(
    given: *const bitnet_program_options,
) -> Result<bitnet_program_options, Failure> {
    let o = receive(given, LEAST_OF_OPTIONS)?;
    // Everything here runs in one fixed order, so that flag asks for nothing more.
    if o.flags & FLAGS_MUST_UNDERSTAND & !PROGRAM_DETERMINISTIC != 0 || o.reserved_0 != 0 {
        return failure(UNSUPPORTED, format!("flags {:#x} of a program", o.flags));
    }
    let bounds = [
        o.max_tokens,
        o.max_sequences,
        o.max_outputs,
        o.max_blocks,
        o.block_tokens,
    ];
    if bounds.contains(&0) {
        return invalid(format!("a bound of the program is 0: {bounds:?}"));
    }
    Ok(o)
}

/// True if the first n are below `end`, and the others are unused.
fn are_indices(index: &[u32; 4], n: usize, end: u32) -> bool {
    index[..n].iter().all(|i| *i < end) && index[n..].iter().all(|i| *i == NONE)
}

/// None of the ops of this backend has an attribute.
fn has_attributes(o: &bitnet_op) -> bool {
    o.ints.iter().any(|i| *i != 0) || o.floats.iter().any(|f| *f != 0.0)
}

/// An author's own op without a body is a primitive.
fn is_composite(o: &bitnet_op) -> bool {
    o.op >= OP_FIRST_COMPOSITE && (o.op < PRIVATE || o.body_count != 0)
}

fn has_value(role: u32) -> bool {
    role >= PORT_VALUE_IN
}

impl graph {
    /// With everything checked and no value in memory. `weights` are counted through, and may be
    /// without memory.
    ///
    /// # Safety
    /// The pointers are null or the host's.
    pub unsafe fn read(
        device: &backend,
        given: *const bitnet_graph,
        options: *const bitnet_program_options,
        weights: &[&weights],
    ) -> Result<Self, Failure> {
        let max = read_options(options)?;
        let g: bitnet_graph = receive(given, size_of::<bitnet_graph>())?;
        if g.reserved_0 != 0 {
            return failure(UNSUPPORTED, "reserved_0 of the graph is not 0");
        }
        let mut out = Self {
            values: Vec::new(),
            ops: Vec::new(),
            ports: Vec::new(),
            max,
            vocabulary: u64::MAX,
            gathers: false,
            roles: 0,
        };
        let tensors: Vec<&tensor> = weights.iter().flat_map(|w| &w.tensors).collect();
        for v in receive_array(g.values, g.value_size, g.n_values)? {
            out.add_value(&v)?;
        }
        for port in receive_array(g.ports, g.port_size, g.n_ports)? {
            out.add_port(port)?;
        }
        let ops: Vec<bitnet_op> = receive_array(g.ops, g.op_size, g.n_ops)?;
        for (i, o) in ops.iter().enumerate() {
            if !is_composite(o) {
                out.add_op(device, o, &tensors)?;
            } else if has_attributes(o) {
                return failure(UNSUPPORTED, format!("an attribute of composite {}", o.op));
            } else if o.body_count == 0 || o.body_count as usize > ops.len() - i - 1 {
                return invalid(format!("composite {} has no body or too much of it", o.op));
            } // else its body follows
        }
        out.check_ports()?;
        Ok(out)
    }

    fn add_value(&mut self, v: &bitnet_value) -> Result<(), Failure> {
        let i = self.values.len();
        if v.dtype != DTYPE_F32 || v.reserved_0 != 0 || v.dims[0] < DIM_OUTPUTS {
            return failure(UNSUPPORTED, format!("value {i}: only f32 is known"));
        }
        if v.dims[0] == 0 || v.dims[1] <= 0 {
            return invalid(format!("value {i} is empty"));
        }
        let width = v.dims[1] as u64;
        let rows = rows_of(v.dims[0], self.max.max_tokens, self.max.max_outputs);
        let elements = match rows.checked_mul(width) {
            Some(n) if n <= i64::MAX as u64 / 4 / u64::from(MOST) => n,
            _ => return failure(OUT_OF_MEMORY, format!("value {i} is out of reach")),
        };
        self.values.push(value {
            rows: v.dims[0],
            width,
            elements,
            written: false,
            has_port: false,
            data: Vec::new(),
        });
        Ok(())
    }

    fn has_port(&self, role: u32) -> bool {
        self.roles >> role & 1 != 0
    }

    fn add_port(&mut self, port: bitnet_port) -> Result<(), Failure> {
        let bitnet_port { role, value } = port;
        if !(PORT_TOKENS..=PORT_LOGITS).contains(&role) {
            return failure(UNSUPPORTED, format!("ports of role {role} are not known"));
        }
        let once = !has_value(role) || role == PORT_LOGITS;
        let at = self.values.get_mut(value as usize);
        let fits = match at {
            Some(v) if has_value(role) && !v.has_port => {
                v.has_port = true;
                v.written = role == PORT_VALUE_IN;
                true
            }
            _ => !has_value(role) && value == NONE,
        };
        if !fits || (once && self.has_port(role)) {
            return invalid(format!(
                "a port of role {role} and value {value}: no such value, or a port too many"
            ));
        }
        self.roles |= 1 << role;
        self.ports.push(port);
        Ok(())
    }

    fn add_op(
        &mut self,
        device: &backend,
        o: &bitnet_op,
        tensors: &[&tensor],
    ) -> Result<(), Failure> {
        let (embeds, gathers) = (o.op == OP_EMBED_GATHER, o.op == OP_GATHER_ROWS);
        let weight = tensors.get(o.weights[0] as usize).copied();
        if weight.is_none() && o.weights[0] != NONE {
            return invalid(format!("op {}: there is no weight {}", o.op, o.weights[0]));
        }
        let kernel = match find_kernel(device, o.op, weight.map_or(FORMAT_NONE, |w| w.format)) {
            Some(kernel) if !has_attributes(o) => kernel,
            _ => {
                return failure(
                    UNSUPPORTED,
                    format!("op {}, or an attribute of it, is not known", o.op),
                )
            }
        };
        let (n_in, n_values) = (usize::from(!embeds), self.values.len() as u32);
        if !are_indices(&o.inputs, n_in, n_values)
            || !are_indices(&o.outputs, 1, n_values)
            || !are_indices(&o.weights, usize::from(embeds), NONE)
            || o.body_count != 0
        {
            return invalid(format!(
                "op {}: an index is missing, out of range or too many",
                o.op
            ));
        }
        let to = o.outputs[0] as usize;
        let (from, there, rows, width) = match weight {
            Some(w) => (source::Weight(w), w.sealed, DIM_TOKENS, w.k),
            None => {
                let at = o.inputs[0] as usize;
                let v = &self.values[at];
                let fits = v.written && (!gathers || v.rows == DIM_TOKENS);
                let rows = if gathers { DIM_OUTPUTS } else { v.rows };
                (source::Value(at), fits, rows, v.width)
            }
        };
        let out = &mut self.values[to];
        if !there || out.written || out.rows != rows || out.width != width {
            return invalid(format!(
                "op {}: what it reads is not there or does not fit, or what it writes is there",
                o.op
            ));
        }
        out.written = true;
        if (embeds && !self.has_port(PORT_TOKENS)) || (gathers && !self.has_port(PORT_OUTPUT_ROWS))
        {
            return invalid(format!("op {} reads a port that is not there", o.op));
        }
        self.vocabulary = self.vocabulary.min(weight.map_or(u64::MAX, |w| w.m));
        self.gathers |= gathers;
        self.ops.push(op { kernel, from, to });
        Ok(())
    }

    fn check_ports(&self) -> Result<(), Failure> {
        for port in self.ports.iter().filter(|p| has_value(p.role)) {
            let v = &self.values[port.value as usize];
            if !v.written || (port.role == PORT_LOGITS && v.rows != DIM_OUTPUTS) {
                return invalid(format!(
                    "value {} goes out and no op writes it, or cannot be the logits",
                    port.value
                ));
            }
        }
        Ok(())
    }

    pub fn scratch_bytes(&self) -> u64 {
        let written = self.values.iter().filter(|v| v.written);
        written.map(|v| 4 * v.elements).sum()
    }

    /// Of the largest step.
    pub fn port_bytes(&self, port: &bitnet_port) -> u64 {
        let max = &self.max;
        4 * match port.role {
            role if has_value(role) => self.values[port.value as usize].elements,
            PORT_BLOCK_TABLES => {
                (u64::from(max.max_sequences) * u64::from(max.max_blocks)).min(u64::MAX / 4)
            }
            PORT_OUTPUT_ROWS => u64::from(max.max_outputs),
            _ => u64::from(max.max_tokens),
        }
    }
}

/// The level of each op, and what a program would need if all of them have one. No composite is
/// known, so their bodies are run, and of most of those nothing either.
///
/// # Safety
/// The pointers are null or the host's.
pub unsafe fn query(
    device: &backend,
    q: &bitnet_query_request,
) -> Result<(Vec<u32>, Option<bitnet_graph_estimate>), Failure> {
    if q.reserved_0 != 0 {
        return failure(UNSUPPORTED, "reserved_0 of the request is not 0");
    }
    let g: bitnet_graph = receive(q.graph, size_of::<bitnet_graph>())?;
    let planned = weights::described(q.descs, q.desc_size, q.n_descs)?;
    let (mut levels, mut complete) = (Vec::new(), true);
    for o in receive_array(g.ops, g.op_size, g.n_ops)? {
        let weight = planned.tensors.get(o.weights[0] as usize);
        if weight.is_none() && o.weights[0] != NONE {
            return invalid(format!("op {}: there is no weight {}", o.op, o.weights[0]));
        }
        let found = find_kernel(device, o.op, weight.map_or(FORMAT_NONE, |w| w.format));
        levels.push(found.map_or(LEVEL_NONE, |_| LEVEL_REFERENCE));
        complete &= found.is_some() || is_composite(&o);
    }
    if !complete {
        return Ok((levels, None));
    }
    let read = graph::read(device, q.graph, q.options, &[&planned])?;
    let kv_block_bytes = match q.kv.is_null() {
        true => 0,
        false => block_bytes(&receive(q.kv, LEAST_OF_KV_CONFIG)?)?,
    };
    let needs = bitnet_graph_estimate {
        struct_size: 0,
        reserved_0: 0,
        weight_bytes: planned.tensors.iter().map(tensor::bytes).sum(),
        scratch_bytes: read.scratch_bytes(),
        binding_bytes: 0,
        kv_block_bytes,
        state_bytes: 0,
    };
    Ok((levels, Some(needs)))
}
