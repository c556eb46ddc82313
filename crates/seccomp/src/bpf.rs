//! Classic BPF as far as a seccomp filter needs it: linux/filter.h, linux/bpf_common.h, linux/seccomp.h.

/// One instruction, laid out as `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Operation, one of the constants beside.
    pub code: u16,
    /// Instructions to skip when the condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

impl Insn {
    /// Load the word at offset `k` of `struct seccomp_data`.
    pub const LOAD: u16 = 0x20;
    /// Mask what was loaded with `k`.
    pub const AND: u16 = 0x54;
    /// Skip `k` instructions.
    pub const JUMP: u16 = 0x05;
    /// Jump if equal to `k`.
    pub const JUMP_EQ: u16 = 0x15;
    /// Jump if greater than `k`, unsigned.
    pub const JUMP_GT: u16 = 0x25;
    /// Jump if at least `k`, unsigned.
    pub const JUMP_GE: u16 = 0x35;
    /// End with the verdict `k`.
    pub const RETURN: u16 = 0x06;

    /// An instruction that does not branch.
    pub(crate) const fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }

    /// The bytes of `struct sock_filter` in this machine's byte order.
    pub const fn to_ne_bytes(self) -> [u8; 8] {
        let [c0, c1] = self.code.to_ne_bytes();
        let [k0, k1, k2, k3] = self.k.to_ne_bytes();
        [c0, c1, self.jt, self.jf, k0, k1, k2, k3]
    }

    /// The reverse of [`Self::to_ne_bytes`].
    pub const fn from_ne_bytes(bytes: [u8; 8]) -> Self {
        let [c0, c1, jt, jf, k0, k1, k2, k3] = bytes;
        Self { code: u16::from_ne_bytes([c0, c1]), jt, jf, k: u32::from_ne_bytes([k0, k1, k2, k3]) }
    }
}

/// The kernel takes no longer program (`BPF_MAXINSNS`).
pub const MAX_INSNS: usize = 4096;

/// Offset of the system call's number in `struct seccomp_data`.
pub(crate) const NUMBER: u32 = 0;
/// Offset of the architecture.
pub(crate) const ARCH: u32 = 4;

/// Offsets of an argument's low and high word.
pub(crate) const fn arg_words(arg: u8, little_endian: bool) -> (u32, u32) {
    let start = 16 + 8 * arg as u32;
    if little_endian { (start, start + 4) } else { (start + 4, start) }
}
