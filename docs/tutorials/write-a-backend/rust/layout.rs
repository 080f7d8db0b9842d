// SPDX-License-Identifier: Apache-2.0
//! Prints where abi.rs puts each member, in the form of abi/layout/x86-64.golden.
mod abi;

mod handles {
    #![allow(non_camel_case_types)]
    pub enum backend {}
    pub enum buffer {}
    pub enum weights {}
    pub enum program {}
    pub enum binding {}
    pub enum kv_pool {}
    pub enum queue {}
}

fn main() {
    abi::print_layout();
}
