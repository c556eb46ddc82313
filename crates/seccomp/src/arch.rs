//! Architectures, as seccomp tells them apart.

/// An architecture that a filter can be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are libseccomp's")]
pub enum Arch {
    Aarch64,
    Arm,
    Loongarch64,
    Mips,
    Mips64,
    Mips64n32,
    Mipsel,
    Mipsel64,
    Mipsel64n32,
    Ppc,
    Ppc64,
    Ppc64le,
    Riscv64,
    S390,
    S390x,
    X32,
    X86,
    X86_64,
}

const EM_386: u32 = 3;
const EM_MIPS: u32 = 8;
const EM_PPC: u32 = 20;
const EM_PPC64: u32 = 21;
const EM_S390: u32 = 22;
const EM_ARM: u32 = 40;
const EM_X86_64: u32 = 62;
const EM_AARCH64: u32 = 183;
const EM_RISCV: u32 = 243;
const EM_LOONGARCH: u32 = 258;
const AUDIT_64BIT: u32 = 0x8000_0000;
const AUDIT_LE: u32 = 0x4000_0000;
const AUDIT_MIPS_N32: u32 = 0x2000_0000;

/// The bit that tells an x32 system call from one of x86_64: the two share their audit number.
pub(crate) const X32_BIT: u32 = 0x4000_0000;

/// Where ARM's private calls begin (`__ARM_NR_BASE`).
pub(crate) const ARM_PRIVATE_BASE: u32 = 0x000f_0000;

impl Arch {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 18] = [
        Self::Aarch64,
        Self::Arm,
        Self::Loongarch64,
        Self::Mips,
        Self::Mips64,
        Self::Mips64n32,
        Self::Mipsel,
        Self::Mipsel64,
        Self::Mipsel64n32,
        Self::Ppc,
        Self::Ppc64,
        Self::Ppc64le,
        Self::Riscv64,
        Self::S390,
        Self::S390x,
        Self::X32,
        Self::X86,
        Self::X86_64,
    ];

    /// The architecture that this program was built for, `None` where seccomp knows none.
    pub const NATIVE: Option<Self> = native();

    /// The name in a profile, such as `SCMP_ARCH_X86_64`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aarch64 => "SCMP_ARCH_AARCH64",
            Self::Arm => "SCMP_ARCH_ARM",
            Self::Loongarch64 => "SCMP_ARCH_LOONGARCH64",
            Self::Mips => "SCMP_ARCH_MIPS",
            Self::Mips64 => "SCMP_ARCH_MIPS64",
            Self::Mips64n32 => "SCMP_ARCH_MIPS64N32",
            Self::Mipsel => "SCMP_ARCH_MIPSEL",
            Self::Mipsel64 => "SCMP_ARCH_MIPSEL64",
            Self::Mipsel64n32 => "SCMP_ARCH_MIPSEL64N32",
            Self::Ppc => "SCMP_ARCH_PPC",
            Self::Ppc64 => "SCMP_ARCH_PPC64",
            Self::Ppc64le => "SCMP_ARCH_PPC64LE",
            Self::Riscv64 => "SCMP_ARCH_RISCV64",
            Self::S390 => "SCMP_ARCH_S390",
            Self::S390x => "SCMP_ARCH_S390X",
            Self::X32 => "SCMP_ARCH_X32",
            Self::X86 => "SCMP_ARCH_X86",
            Self::X86_64 => "SCMP_ARCH_X86_64",
        }
    }

    /// The architecture of this name in a profile.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arch| arch.name() == name)
    }

    /// `AUDIT_ARCH_*` of linux/audit.h: what the kernel puts into `seccomp_data.arch`.
    pub const fn audit(self) -> u32 {
        match self {
            Self::Aarch64 => EM_AARCH64 | AUDIT_64BIT | AUDIT_LE,
            Self::Arm => EM_ARM | AUDIT_LE,
            Self::Loongarch64 => EM_LOONGARCH | AUDIT_64BIT | AUDIT_LE,
            Self::Mips => EM_MIPS,
            Self::Mips64 => EM_MIPS | AUDIT_64BIT,
            Self::Mips64n32 => EM_MIPS | AUDIT_64BIT | AUDIT_MIPS_N32,
            Self::Mipsel => EM_MIPS | AUDIT_LE,
            Self::Mipsel64 => EM_MIPS | AUDIT_64BIT | AUDIT_LE,
            Self::Mipsel64n32 => EM_MIPS | AUDIT_64BIT | AUDIT_LE | AUDIT_MIPS_N32,
            Self::Ppc => EM_PPC,
            Self::Ppc64 => EM_PPC64 | AUDIT_64BIT,
            Self::Ppc64le => EM_PPC64 | AUDIT_64BIT | AUDIT_LE,
            Self::Riscv64 => EM_RISCV | AUDIT_64BIT | AUDIT_LE,
            Self::S390 => EM_S390,
            Self::S390x => EM_S390 | AUDIT_64BIT,
            Self::X86 => EM_386 | AUDIT_LE,
            Self::X32 | Self::X86_64 => EM_X86_64 | AUDIT_64BIT | AUDIT_LE,
        }
    }

    /// Byte order. All architectures that one kernel serves have the same.
    pub const fn is_little_endian(self) -> bool {
        self.audit() & AUDIT_LE != 0
    }

    /// Whether the arguments of system calls are 64 bits wide. Of narrower ones only the low word counts: the kernel
    /// leaves what it likes in the other.
    pub const fn has_wide_args(self) -> bool {
        self.audit() & AUDIT_64BIT != 0 && !matches!(self, Self::X32 | Self::Mips64n32 | Self::Mipsel64n32)
    }

    /// Whether there is socketcall(2) and ipc(2): one call for many, told apart by the first argument.
    pub const fn has_multiplexers(self) -> bool {
        matches!(
            self,
            Self::X86
                | Self::Mips
                | Self::Mipsel
                | Self::Ppc
                | Self::Ppc64
                | Self::Ppc64le
                | Self::S390
                | Self::S390x
        )
    }

    /// What the numbers in the table count from.
    pub(crate) const fn number_base(self) -> u32 {
        match self {
            Self::Mips | Self::Mipsel => 4000,
            Self::Mips64 | Self::Mipsel64 => 5000,
            Self::Mips64n32 | Self::Mipsel64n32 => 6000,
            Self::X32 => X32_BIT,
            _ => 0,
        }
    }

    /// The column of the table with its numbers.
    pub(crate) const fn column(self) -> usize {
        match self {
            Self::X86 => 0,
            Self::X86_64 => 1,
            Self::X32 => 2,
            Self::Arm => 3,
            Self::Aarch64 => 4,
            Self::Loongarch64 => 5,
            Self::Riscv64 => 6,
            Self::Mips | Self::Mipsel => 7,
            Self::Mips64 | Self::Mipsel64 => 8,
            Self::Mips64n32 | Self::Mipsel64n32 => 9,
            Self::Ppc => 10,
            Self::Ppc64 | Self::Ppc64le => 11,
            Self::S390 => 12,
            Self::S390x => 13,
        }
    }
}

const fn native() -> Option<Arch> {
    let little = cfg!(target_endian = "little");
    let wide = cfg!(target_pointer_width = "64");
    if cfg!(target_arch = "x86_64") {
        Some(if wide { Arch::X86_64 } else { Arch::X32 })
    } else if cfg!(target_arch = "x86") {
        Some(Arch::X86)
    } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
        Some(Arch::Aarch64)
    } else if cfg!(all(target_arch = "arm", target_endian = "little")) {
        Some(Arch::Arm)
    } else if cfg!(target_arch = "loongarch64") {
        Some(Arch::Loongarch64)
    } else if cfg!(target_arch = "riscv64") {
        Some(Arch::Riscv64)
    } else if cfg!(target_arch = "s390x") {
        Some(Arch::S390x)
    } else if cfg!(target_arch = "powerpc") {
        Some(Arch::Ppc)
    } else if cfg!(target_arch = "powerpc64") {
        Some(if little { Arch::Ppc64le } else { Arch::Ppc64 })
    } else if cfg!(target_arch = "mips") {
        Some(if little { Arch::Mipsel } else { Arch::Mips })
    } else if cfg!(target_arch = "mips64") {
        Some(match (little, wide) {
            (true, true) => Arch::Mipsel64,
            (true, false) => Arch::Mipsel64n32,
            (false, true) => Arch::Mips64,
            (false, false) => Arch::Mips64n32,
        })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(Arch::ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for arch in Arch::ALL {
            assert_eq!(Arch::from_name(arch.name()), Some(arch));
        }
        assert_eq!(Arch::from_name("SCMP_ARCH_NATIVE"), None);
    }

    /// As linux/audit.h composes them.
    #[test]
    fn audit_numbers() {
        assert_eq!(Arch::X86_64.audit(), 0xc000_003e);
        assert_eq!(Arch::X86.audit(), 0x4000_0003);
        assert_eq!(Arch::Aarch64.audit(), 0xc000_00b7);
        assert_eq!(Arch::Arm.audit(), 0x4000_0028);
        assert_eq!(Arch::Loongarch64.audit(), 0xc000_0102);
        assert_eq!(Arch::Mipsel64n32.audit(), 0xe000_0008);
        assert_eq!(Arch::S390x.audit(), 0x8000_0016);
        let shared = Arch::ALL.iter().filter(|a| a.audit() == Arch::X32.audit()).count();
        assert_eq!(shared, 2);
    }

    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    #[test]
    fn native_architecture() {
        assert_eq!(Arch::NATIVE, Some(Arch::X86_64));
    }
}
