//! Names and numbers of system calls.

mod table;

use crate::arch::{ARM_PRIVATE_BASE, Arch};

/// How many names there are.
pub(crate) const COUNT: usize = table::TABLE.len();
const COLUMNS: usize = table::TABLE[0].1.len();

/// The table's numbers. The table itself is a constant, so that of it only what is taken out here gets into the program.
static NUMBERS: [[u16; COLUMNS]; COUNT] = {
    let mut numbers = [[0; COLUMNS]; COUNT];
    let mut i = 0;
    while i < COUNT {
        numbers[i] = table::TABLE[i].1;
        i += 1;
    }
    numbers
};

const NAMES_LEN: usize = {
    let (mut len, mut i) = (0, 0);
    while i < COUNT {
        len += table::TABLE[i].0.len();
        i += 1;
    }
    len
};

/// All names on end: an array of `&str` would be four times the size, and relocated at each start.
static NAMES: [u8; NAMES_LEN] = {
    let mut names = [0; NAMES_LEN];
    let (mut at, mut i) = (0, 0);
    while i < COUNT {
        let name = table::TABLE[i].0.as_bytes();
        let mut j = 0;
        while j < name.len() {
            names[at] = name[j];
            at += 1;
            j += 1;
        }
        i += 1;
    }
    names
};

/// Where each name begins in `NAMES`, and where the last ends.
#[allow(clippy::cast_possible_truncation, reason = "the sum is checked")]
static STARTS: [u16; COUNT + 1] = {
    assert!(NAMES_LEN <= u16::MAX as usize);
    let mut starts = [0; COUNT + 1];
    let mut i = 0;
    while i < COUNT {
        starts[i + 1] = starts[i] + table::TABLE[i].0.len() as u16;
        i += 1;
    }
    starts
};

/// Numbers of the table from here on are ARM's private calls.
const ARM_PRIVATE: u16 = 0xf000;

/// For each column the names' indices by number, ARM's private calls last; `NO` where there is none.
#[allow(clippy::cast_possible_truncation, reason = "COUNT fits")]
static BY_NUMBER: [[u16; ALL_NUMBERS]; COLUMNS] = {
    let mut by_number = [[table::NO; ALL_NUMBERS]; COLUMNS];
    let mut i = 0;
    while i < COUNT {
        let mut column = 0;
        while column < COLUMNS {
            let number = table::TABLE[i].1[column];
            if number != table::NO {
                let place = match number {
                    ARM_PRIVATE.. => USUAL_NUMBERS + (number - ARM_PRIVATE) as usize,
                    _ => number as usize,
                };
                assert!(by_number[column][place] == table::NO, "a number has two names");
                by_number[column][place] = i as u16;
            }
            column += 1;
        }
        i += 1;
    }
    by_number
};

/// One more than the highest number, x32's `pwritev2`.
const USUAL_NUMBERS: usize = 548;
/// And ARM's private calls.
const ALL_NUMBERS: usize = USUAL_NUMBERS + 7;

/// A name that at least one architecture has a system call of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Syscall(u16);

/// One of the two calls that stand for many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplexer {
    /// socketcall(2).
    Socketcall,
    /// ipc(2).
    Ipc,
}

impl Multiplexer {
    /// Its number, without the architecture's base; the same wherever it exists.
    const fn number(self) -> u32 {
        match self {
            Self::Socketcall => 102,
            Self::Ipc => 117,
        }
    }
}

/// What socketcall(2) and ipc(2) stand for: name and first argument (linux/net.h, linux/ipc.h).
const MULTIPLEXED: [(&str, Multiplexer, u8); 32] = {
    use Multiplexer::{Ipc, Socketcall};
    [
        ("accept", Socketcall, 5),
        ("accept4", Socketcall, 18),
        ("bind", Socketcall, 2),
        ("connect", Socketcall, 3),
        ("getpeername", Socketcall, 7),
        ("getsockname", Socketcall, 6),
        ("getsockopt", Socketcall, 15),
        ("listen", Socketcall, 4),
        ("msgctl", Ipc, 14),
        ("msgget", Ipc, 13),
        ("msgrcv", Ipc, 12),
        ("msgsnd", Ipc, 11),
        ("recv", Socketcall, 10),
        ("recvfrom", Socketcall, 12),
        ("recvmmsg", Socketcall, 19),
        ("recvmsg", Socketcall, 17),
        ("semctl", Ipc, 3),
        ("semget", Ipc, 2),
        ("semop", Ipc, 1),
        ("semtimedop", Ipc, 4),
        ("send", Socketcall, 9),
        ("sendmmsg", Socketcall, 20),
        ("sendmsg", Socketcall, 16),
        ("sendto", Socketcall, 11),
        ("setsockopt", Socketcall, 14),
        ("shmat", Ipc, 21),
        ("shmctl", Ipc, 24),
        ("shmdt", Ipc, 22),
        ("shmget", Ipc, 23),
        ("shutdown", Socketcall, 13),
        ("socket", Socketcall, 1),
        ("socketpair", Socketcall, 8),
    ]
};

/// For each name its place behind a multiplexer: 0 for none, a socketcall(2) number, or an ipc(2) number with `IPC` set.
static PLACES: [u8; COUNT] = {
    let mut places = [0; COUNT];
    let mut i = 0;
    while i < MULTIPLEXED.len() {
        let (name, multiplexer, call) = MULTIPLEXED[i];
        let mut j = 0;
        while !equal(name.as_bytes(), table::TABLE[j].0.as_bytes()) {
            j += 1;
        }
        places[j] = match multiplexer {
            Multiplexer::Socketcall => call,
            Multiplexer::Ipc => call | IPC,
        };
        i += 1;
    }
    places
};

const IPC: u8 = 0x80;

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// A hash table of the names' indices; free slots hold `u16::MAX`. A profile has hundreds of names, and looking them up
/// by bisection would take longer than all else.
#[allow(clippy::cast_possible_truncation, reason = "COUNT is less than SLOTS")]
static INDEX: [u16; SLOTS] = {
    assert!(COUNT < SLOTS * 3 / 4);
    let mut index = [u16::MAX; SLOTS];
    let mut i = 0;
    while i < COUNT {
        let mut slot = hash(table::TABLE[i].0.as_bytes());
        while index[slot] != u16::MAX {
            slot = (slot + 1) % SLOTS;
        }
        index[slot] = i as u16;
        i += 1;
    }
    index
};

const SLOTS: usize = 1024;

/// FNV-1a, folded to a slot.
const fn hash(name: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    (hash ^ (hash >> 16)) as usize % SLOTS
}

impl Syscall {
    /// The system call of this name, `None` when no architecture has it.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut slot = hash(name.as_bytes());
        loop {
            let index = *INDEX.get(slot).filter(|index| **index != u16::MAX)?;
            if name_bytes(index.into()) == name.as_bytes() {
                return Some(Self(index));
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// The system call that has this number on `arch`.
    pub fn from_number(number: u32, arch: Arch) -> Option<Self> {
        Self::by_number(arch).find(|&(other, _)| other == number).map(|(_, call)| call)
    }

    /// Those that `arch` has, with their numbers, which ascend.
    pub fn by_number(arch: Arch) -> impl Iterator<Item = (u32, Self)> {
        let column = BY_NUMBER.get(arch.column()).map(|column| column.split_at(USUAL_NUMBERS));
        let (usual, private) = column.unwrap_or_default();
        let usual = (arch.number_base()..).zip(usual);
        usual
            .chain((ARM_PRIVATE_BASE..).zip(private))
            .filter(|&(_, &index)| index != table::NO)
            .map(|(number, &index)| (number, Self(index)))
    }

    /// All of them, in the order of their names.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u16::MAX).take(COUNT).map(Self)
    }

    /// Its place among all, from 0 on.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        std::str::from_utf8(name_bytes(self.index())).unwrap_or_default()
    }

    /// Its number on `arch`, where a process of that architecture can call it directly.
    pub fn number(self, arch: Arch) -> Option<u32> {
        let number = *NUMBERS.get(self.index())?.get(arch.column())?;
        match number {
            table::NO => None,
            ARM_PRIVATE.. => Some(ARM_PRIVATE_BASE + u32::from(number & !ARM_PRIVATE)),
            _ => Some(arch.number_base() + u32::from(number)),
        }
    }

    /// Whether it stands for others on `arch`.
    pub(crate) fn is_multiplexer(self, arch: Arch) -> bool {
        arch.has_multiplexers()
            && [Multiplexer::Socketcall, Multiplexer::Ipc]
                .iter()
                .any(|multiplexer| self.number(arch) == Some(arch.number_base() + multiplexer.number()))
    }

    /// The number of the call that stands for this one too on `arch`, and what its first argument then is.
    pub(crate) fn multiplexed(self, arch: Arch) -> Option<(u32, u8)> {
        if !arch.has_multiplexers() {
            return None;
        }
        let (multiplexer, call) = match *PLACES.get(self.index())? {
            0 => return None,
            place if place & IPC != 0 => (Multiplexer::Ipc, place & !IPC),
            place => (Multiplexer::Socketcall, place),
        };
        Some((arch.number_base() + multiplexer.number(), call))
    }
}

fn name_bytes(index: usize) -> &'static [u8] {
    match (STARTS.get(index), STARTS.get(index + 1)) {
        (Some(&start), Some(&end)) => NAMES.get(usize::from(start)..usize::from(end)).unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, arch: Arch) -> Option<u32> {
        Syscall::from_name(name).unwrap().number(arch)
    }

    #[test]
    fn names_are_sorted_and_found() {
        assert!(table::TABLE.is_sorted_by(|a, b| a.0 < b.0));
        for (name, _) in table::TABLE {
            assert_eq!(Syscall::from_name(name).map(Syscall::name), Some(name));
        }
        for name in ["", "a", "no_such_call", "zzz", "rea", "readx", "SCMP"] {
            assert_eq!(Syscall::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(number("read", Arch::X86_64), Some(0));
        assert_eq!(number("read", Arch::X86), Some(3));
        assert_eq!(number("read", Arch::Mips), Some(4003));
        assert_eq!(number("read", Arch::Mipsel64), Some(5000));
        assert_eq!(number("read", Arch::Mips64n32), Some(6000));
        assert_eq!(number("execve", Arch::X32), Some(0x4000_0000 + 520));
        assert_eq!(number("open", Arch::Aarch64), None);
        assert_eq!(number("set_tls", Arch::Arm), Some(0x000f_0005));
        assert_eq!(number("set_tls", Arch::Aarch64), None);
        assert_eq!(number("s390_runtime_instr", Arch::S390x), Some(342));
        assert_eq!(number("riscv_hwprobe", Arch::Riscv64), Some(258));
        for arch in Arch::ALL {
            let base = arch.number_base();
            assert_eq!(number("clone3", arch), Some(base + 435), "{arch:?}");
            assert_eq!(number("file_setattr", arch), Some(base + 469), "{arch:?}");
        }
    }

    #[test]
    fn a_number_leads_back_to_its_name() {
        for arch in Arch::ALL {
            for call in Syscall::all() {
                if let Some(number) = call.number(arch) {
                    assert_eq!(Syscall::from_number(number, arch), Some(call), "{} on {arch:?}", call.name());
                }
            }
            assert_eq!(Syscall::from_number(0x7fff_ffff, arch), None);
            assert!(Syscall::by_number(arch).is_sorted());
            let count = Syscall::all().filter(|call| call.number(arch).is_some()).count();
            assert_eq!(Syscall::by_number(arch).count(), count);
        }
    }

    /// Those that exist directly as well, and those that exist through a multiplexer alone.
    #[test]
    fn multiplexed_calls() {
        for (name, multiplexer, call) in MULTIPLEXED {
            let syscall = Syscall::from_name(name).unwrap();
            assert_eq!(syscall.multiplexed(Arch::Mips), Some((4000 + multiplexer.number(), call)), "{name}");
            assert_eq!(syscall.multiplexed(Arch::X86_64), None);
        }
        let read = Syscall::from_name("read").unwrap();
        assert_eq!(read.multiplexed(Arch::X86), None);
        assert_eq!(number("socket", Arch::X86), Some(359));
        assert_eq!(number("accept", Arch::X86), None);
        assert_eq!(number("recv", Arch::X86_64), None);
        for arch in Arch::ALL {
            let expected = arch.has_multiplexers().then(|| arch.number_base() + 102);
            assert_eq!(number("socketcall", arch), expected, "{arch:?}");
            let expected = arch.has_multiplexers().then(|| arch.number_base() + 117);
            assert_eq!(number("ipc", arch), expected, "{arch:?}");
        }
    }
}
