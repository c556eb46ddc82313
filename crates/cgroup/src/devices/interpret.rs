//! Runs what [`super::compile`] makes, to test it.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a program that is wrong fails its test"
)]

use brig_sys::bpf::Insn;

use super::compile::{AND_K, EXIT, JEQ_K, JGE_K, JNE_K, JSET_K, JUMP, LOAD, MOV_K, MOV_X, SHR_K, SHR_X};
use super::rule::{Access, Kind};

/// One use of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) kind: Kind,
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) access: Access,
}

/// What the program says to `request`. Panics if it does what the kernel's verifier would not let pass.
pub(super) fn run(program: &[Insn], request: Request) -> bool {
    let context =
        [u32::from(request.access.bits()) << 16 | request.kind as u32, request.major, request.minor];
    let mut registers: [Option<u32>; 11] = [None; 11];
    let mut next = 0;
    loop {
        let insn = program[next];
        next += 1;
        let dst = usize::from(insn.dst());
        let imm = insn.imm.cast_unsigned();
        let value = |register: usize| registers[register].expect("read of a register that was never set");
        let jump = |condition: bool| {
            if condition { usize::try_from(insn.off).expect("only forward jumps") } else { 0 }
        };
        match insn.code {
            LOAD => {
                assert_eq!(insn.src(), 1, "only the context can be read");
                registers[dst] = Some(context[usize::try_from(insn.off).unwrap() / 4]);
            }
            MOV_K => registers[dst] = Some(imm),
            MOV_X => registers[dst] = Some(value(usize::from(insn.src()))),
            AND_K => registers[dst] = Some(value(dst) & imm),
            SHR_K => registers[dst] = Some(value(dst) >> imm),
            SHR_X => {
                let by = value(usize::from(insn.src()));
                assert!(by < 32, "a shift by {by}");
                registers[dst] = Some(value(dst) >> by);
            }
            JUMP => next += jump(true),
            JGE_K => next += jump(value(dst) >= imm),
            JEQ_K => next += jump(value(dst) == imm),
            JNE_K => next += jump(value(dst) != imm),
            JSET_K => next += jump(value(dst) & imm != 0),
            EXIT => {
                let result = value(0);
                assert!(result < 2);
                return result == 1;
            }
            other => panic!("unknown operation {other:#x}"),
        }
    }
}

/// Whether each instruction can be reached: the verifier takes no others.
pub(super) fn all_reachable(program: &[Insn]) -> bool {
    let mut reached = vec![false; program.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        let insn = program[at];
        let target = at + 1 + usize::try_from(insn.off).unwrap_or(0);
        match insn.code {
            EXIT => {}
            JUMP => open.push(target),
            JEQ_K | JNE_K | JGE_K | JSET_K => open.extend([at + 1, target]),
            _ => open.push(at + 1),
        }
    }
    reached.into_iter().all(|reached| reached)
}
