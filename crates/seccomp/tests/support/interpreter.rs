//! Runs classic BPF as the kernel does for seccomp.

use brig_seccomp::Insn;

/// `struct seccomp_data` without the instruction pointer, which no filter of ours looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    pub number: u32,
    pub arch: u32,
    pub args: [u64; 6],
}

impl Data {
    /// The word at an offset. On a 64-bit value the byte order decides which half comes first.
    fn word(&self, offset: u32, little_endian: bool) -> u32 {
        let half = |value: u64, first: bool| {
            let low = first == little_endian;
            u32::try_from(if low { value & 0xffff_ffff } else { value >> 32 }).unwrap()
        };
        match offset {
            0 => self.number,
            4 => self.arch,
            16..=60 => {
                let value = self.args[usize::try_from((offset - 16) / 8).unwrap()];
                half(value, offset.is_multiple_of(8))
            }
            _ => panic!("load from offset {offset}"),
        }
    }
}

/// The verdict, and how many instructions it took.
pub fn run(program: &[Insn], data: &Data, little_endian: bool) -> (u32, usize) {
    let (mut at, mut executed, mut accumulator) = (0, 0, 0);
    loop {
        let insn = program[at];
        executed += 1;
        at += 1;
        let mut jump = |condition: bool| at += usize::from(if condition { insn.jt } else { insn.jf });
        match insn.code {
            Insn::LOAD => accumulator = data.word(insn.k, little_endian),
            Insn::AND => accumulator &= insn.k,
            Insn::JUMP => at += usize::try_from(insn.k).unwrap(),
            Insn::JUMP_EQ => jump(accumulator == insn.k),
            Insn::JUMP_GT => jump(accumulator > insn.k),
            Insn::JUMP_GE => jump(accumulator >= insn.k),
            Insn::RETURN => return (insn.k, executed),
            code => panic!("operation {code:#x}"),
        }
    }
}

/// What the kernel checks before it takes a program (`bpf_check_classic`, `seccomp_check_filter`), and that every
/// instruction can be reached.
pub fn verify(program: &[Insn]) {
    assert!((1..=brig_seccomp::MAX_INSNS).contains(&program.len()));
    let mut reached = vec![false; program.len()];
    reached[0] = true;
    for (at, insn) in program.iter().enumerate() {
        assert!(reached[at], "instruction {at} is dead");
        let mut leads_to = |distance: u32| {
            let target = at + 1 + usize::try_from(distance).unwrap();
            assert!(target < program.len(), "instruction {at} jumps out of the program");
            reached[target] = true;
        };
        match insn.code {
            Insn::LOAD => {
                assert!(insn.k.is_multiple_of(4) && insn.k < 64, "instruction {at} loads from {}", insn.k);
                leads_to(0);
            }
            Insn::AND => leads_to(0),
            Insn::JUMP => leads_to(insn.k),
            Insn::JUMP_EQ | Insn::JUMP_GT | Insn::JUMP_GE => {
                leads_to(insn.jt.into());
                leads_to(insn.jf.into());
            }
            Insn::RETURN => {}
            code => panic!("instruction {at} has operation {code:#x}"),
        }
    }
}
