//! The container's seccomp filter: compiled once, kept beside the record, loaded by every process of the container.

use std::os::fd::BorrowedFd;

use brig_seccomp::{Arch, Filter, Insn, Profile, Syscall};
use brig_sys::Context;

use crate::error::{Error, Result};

/// First bytes of the file.
const MAGIC: u32 = 0x6270_6601;
const HEADER: usize = 16;
const NOTIFIES: u32 = 1;
const ALLOWS_FORK: u32 = 2;

/// A filter as the init program needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFilter {
    /// `struct sock_filter`, eight bytes each.
    pub program: Vec<u8>,
    /// SECCOMP_FILTER_FLAG_*.
    pub flags: u32,
    /// Loading it gives a listener.
    pub notifies: bool,
    /// What the init program does to enter a pid namespace passes it.
    pub allows_fork: bool,
}

impl LoadedFilter {
    /// Compiles `linux.seccomp`; `None` for a profile that filters nothing.
    ///
    /// # Errors
    ///
    /// A profile that contradicts itself, or that is too long for the kernel.
    pub fn compile(spec: &brig_spec::Seccomp) -> Result<Option<Self>> {
        if spec.default_action.is_empty() && spec.syscalls.is_empty() {
            return Ok(None);
        }
        let config = |e: brig_seccomp::Error| Error::config(e.to_string());
        let native = Arch::NATIVE
            .ok_or_else(|| Error::host("seccomp filters are not supported on this architecture"))?;
        let filter =
            brig_seccomp::compile(&Profile::from_spec(spec).map_err(config)?, native).map_err(config)?;
        Ok(Some(Self {
            program: filter.to_bytes(),
            flags: u32::try_from(filter.flags).unwrap_or(0),
            notifies: filter.needs_listener,
            allows_fork: allows_fork(&filter, native),
        }))
    }

    /// One that came compiled; it is not looked into.
    pub fn compiled(program: &[u8]) -> Self {
        Self { program: program.to_vec(), flags: 0, notifies: false, allows_fork: false }
    }

    /// Leaves it in a file.
    ///
    /// # Errors
    ///
    /// Those of write(2).
    pub fn write(&self, file: BorrowedFd<'_>) -> Result<()> {
        let bits = if self.notifies { NOTIFIES } else { 0 } | if self.allows_fork { ALLOWS_FORK } else { 0 };
        let length = u32::try_from(self.program.len()).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(HEADER + self.program.len());
        for word in [MAGIC, self.flags, bits, length] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.program);
        Ok(brig_sys::write_all(file, &bytes).on("write", "the compiled seccomp filter")?)
    }

    /// Reads it back; `None` when the file is empty, which stands for no filter.
    ///
    /// # Errors
    ///
    /// The file is damaged: a container is not to run without the filter that it has.
    pub fn read(file: BorrowedFd<'_>) -> Result<Option<Self>> {
        let size = rustix::fs::fstat(file).on("fstat", "the compiled seccomp filter")?.st_size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        let n = rustix::io::pread(file, bytes.as_mut_slice(), 0).on("read", "the compiled seccomp filter")?;
        bytes.truncate(n);
        if bytes.is_empty() {
            return Ok(None);
        }
        Self::parse(&bytes).map(Some).ok_or_else(|| Error::state("the compiled seccomp filter is damaged"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |n: usize| Some(u32::from_ne_bytes(bytes.get(4 * n..4 * n + 4)?.try_into().ok()?));
        let program = bytes.get(HEADER..)?;
        if word(0)? != MAGIC || usize::try_from(word(3)?).ok()? != program.len() || program.len() % 8 != 0 {
            return None;
        }
        Some(Self {
            program: program.to_vec(),
            flags: word(1)?,
            notifies: word(2)? & NOTIFIES != 0,
            allows_fork: word(2)? & ALLOWS_FORK != 0,
        })
    }
}

/// Whether the init program could still clone itself under the filter, and start a session there: then it loads the filter first
/// and is never seen in a pid namespace without it.
fn allows_fork(filter: &Filter, native: Arch) -> bool {
    const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
    // As the init program calls them: with CLONE_PARENT | CLONE_PIDFD | SIGCHLD, with nothing, with descriptor 0.
    [("clone", 0x8000 | 0x1000 | 17), ("setsid", 0), ("ioctl", 0)].into_iter().all(|(name, first_arg)| {
        let call = Syscall::from_name(name).and_then(|call| call.number(native));
        call.is_some_and(|nr| {
            let arch = native.audit();
            verdict(&filter.insns, &SeccompData { nr, arch, first_arg }) == Some(SECCOMP_RET_ALLOW)
        })
    })
}

/// What a filter sees of a call. All other words are zero.
struct SeccompData {
    nr: u32,
    arch: u32,
    first_arg: u32,
}

/// Runs a filter.
fn verdict(insns: &[Insn], data: &SeccompData) -> Option<u32> {
    let mut at = 0_usize;
    let mut loaded = 0_u32;
    // Jumps only go forward.
    while let Some(insn) = insns.get(at) {
        at += 1;
        let branch = |yes: bool| usize::from(if yes { insn.jt } else { insn.jf });
        match insn.code {
            Insn::LOAD => {
                loaded = match insn.k {
                    0 => data.nr,
                    4 => data.arch,
                    16 => data.first_arg,
                    _ => 0,
                }
            }
            Insn::AND => loaded &= insn.k,
            Insn::JUMP => at += usize::try_from(insn.k).ok()?,
            Insn::JUMP_EQ => at += branch(loaded == insn.k),
            Insn::JUMP_GT => at += branch(loaded > insn.k),
            Insn::JUMP_GE => at += branch(loaded >= insn.k),
            Insn::RETURN => return Some(insn.k),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn profile(default: &str, names: &[&str], action: &str) -> brig_spec::Seccomp {
        brig_spec::Seccomp {
            default_action: default.to_owned(),
            syscalls: vec![brig_spec::SeccompSyscall {
                names: names.iter().map(|s| (*s).to_owned()).collect(),
                action: action.to_owned(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn a_filter_is_read_back_as_it_was_written() {
        let filter =
            LoadedFilter::compile(&profile("SCMP_ACT_ALLOW", &["mkdir"], "SCMP_ACT_ERRNO")).unwrap().unwrap();
        let file = tempfile::tempfile().unwrap();
        assert_eq!(LoadedFilter::read(file.as_fd()).unwrap(), None);
        filter.write(file.as_fd()).unwrap();
        assert_eq!(LoadedFilter::read(file.as_fd()).unwrap(), Some(filter));
        assert!(LoadedFilter::parse(b"too short").is_none());
    }

    #[test]
    fn it_is_known_whether_a_fork_passes() {
        let fork = |p| LoadedFilter::compile(&p).unwrap().unwrap().allows_fork;
        assert!(fork(profile("SCMP_ACT_ALLOW", &["mkdir"], "SCMP_ACT_ERRNO")));
        let all = ["clone", "setsid", "ioctl"];
        assert!(fork(profile("SCMP_ACT_ERRNO", &all, "SCMP_ACT_ALLOW")));
        assert!(!fork(profile("SCMP_ACT_ERRNO", &["clone"], "SCMP_ACT_ALLOW")));
        assert!(!fork(profile("SCMP_ACT_ERRNO", &["execve"], "SCMP_ACT_ALLOW")));
        assert!(!fork(profile("SCMP_ACT_ALLOW", &["clone"], "SCMP_ACT_KILL")));
    }
}
