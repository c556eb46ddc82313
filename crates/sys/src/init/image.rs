//! Makes the executable that becomes the container's process: the init program plus one container's parameters.
//!
//! It is composed in memory, written into a sealed memfd and executed from there. So it shows nothing of the host: what
//! the container can read of it through /proc is its own arguments, environment and filter.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::abi::{DATA_BASE, Hook, MAGIC, Params, Slice};
use crate::error::{Context, Result, SysError};
use crate::io::write_all;

include!(concat!(env!("OUT_DIR"), "/init.rs"));

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init.bin"));

/// Segments are aligned to the largest page that a kernel for this machine may use.
#[cfg(target_arch = "x86_64")]
const PAGE: usize = 4096;
#[cfg(target_arch = "aarch64")]
const PAGE: usize = 65536;

/// A `startContainer` hook.
#[derive(Debug, Clone)]
pub struct HookSpec {
    /// Path in the container.
    pub path: CString,
    /// argv.
    pub args: Vec<CString>,
    /// Environment.
    pub env: Vec<CString>,
    /// Milliseconds, 0 for ever.
    pub timeout_ms: u64,
}

/// What the init program is to do; descriptors and numbers are set in `params`, lists and strings here.
#[derive(Debug, Clone, Default)]
pub struct InitSpec {
    /// Numbers, flags and descriptors; addresses in it are filled in by [`InitSpec::compose`].
    pub params: Params,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// The compiled seccomp filter, eight bytes an instruction.
    pub filter: Vec<u8>,
    /// LSM label.
    pub label: Vec<u8>,
    /// Directory to change to once the credentials are taken on.
    pub late_cwd: Option<CString>,
    /// Paths to try for the program.
    pub candidates: Vec<CString>,
    /// argv.
    pub args: Vec<CString>,
    /// Environment.
    pub env: Vec<CString>,
    /// `startContainer` hooks.
    pub hooks: Vec<HookSpec>,
    /// State JSON for them, split where the pid belongs.
    pub hook_state: (Vec<u8>, Vec<u8>),
    /// Name of the process, at most 15 bytes.
    pub comm: CString,
}

/// The data segment while it is laid out.
struct Data {
    bytes: Vec<u8>,
}

impl Data {
    fn address(&self) -> u64 {
        DATA_BASE + self.bytes.len() as u64
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    fn put(&mut self, bytes: &[u8]) -> Slice {
        let slice = Slice { ptr: self.address(), len: bytes.len() as u64 };
        self.bytes.extend_from_slice(bytes);
        slice
    }

    fn string(&mut self, s: &CStr) -> u64 {
        self.put(s.to_bytes_with_nul()).ptr
    }

    /// A list of addresses of strings, ended by a null pointer that its length does not count.
    fn strings(&mut self, list: &[CString]) -> Slice {
        let mut addresses: Vec<u64> = list.iter().map(|s| self.string(s)).collect();
        addresses.push(0);
        self.align();
        let at = self.address();
        for address in addresses {
            self.put(&address.to_ne_bytes());
        }
        Slice { ptr: at, len: list.len() as u64 }
    }
}

impl InitSpec {
    /// Lays out the executable.
    pub fn compose(&self) -> Vec<u8> {
        let data = self.data_segment();
        let text_len = PROGRAM.len().next_multiple_of(PAGE);
        let mut file = Vec::with_capacity(text_len + data.len());
        file.extend_from_slice(PROGRAM);
        let header = elf_header(PROGRAM.len() as u64, text_len as u64, data.len() as u64);
        for (to, from) in file.iter_mut().zip(header) {
            *to = from;
        }
        file.resize(text_len, 0);
        file.extend_from_slice(&data);
        file
    }

    fn data_segment(&self) -> Vec<u8> {
        let mut data = Data { bytes: vec![0; size_of::<Params>()] };
        let groups: Vec<u8> = self.groups.iter().flat_map(|g| g.to_ne_bytes()).collect();
        let mut p = Params { magic: MAGIC, ..self.params };
        data.align();
        p.filter = data.put(&self.filter);
        p.filter.len /= 8;
        data.align();
        p.groups = data.put(&groups);
        p.groups.len = self.groups.len() as u64;
        p.label = data.put(&self.label);
        p.late_cwd = self.late_cwd.as_deref().map_or(0, |s| data.string(s));
        p.comm = data.string(&self.comm);
        p.candidates = data.strings(&self.candidates);
        p.argv = data.strings(&self.args).ptr;
        p.envp = data.strings(&self.env).ptr;
        p.hooks = self.hooks(&mut data);
        p.state_before_pid = data.put(&self.hook_state.0);
        p.state_after_pid = data.put(&self.hook_state.1);
        let head = params_bytes(&p);
        for (to, from) in data.bytes.iter_mut().zip(head) {
            *to = from;
        }
        data.bytes
    }

    fn hooks(&self, data: &mut Data) -> Slice {
        let hooks: Vec<Hook> = self
            .hooks
            .iter()
            .map(|h| Hook {
                path: data.string(&h.path),
                argv: data.strings(&h.args).ptr,
                envp: data.strings(&h.env).ptr,
                timeout_ms: h.timeout_ms,
            })
            .collect();
        data.align();
        let at = data.address();
        for h in &hooks {
            for word in [h.path, h.argv, h.envp, h.timeout_ms] {
                data.put(&word.to_ne_bytes());
            }
        }
        Slice { ptr: at, len: hooks.len() as u64 }
    }

    /// Puts the executable where nobody can change it: a sealed memfd, or where the kernel refuses executable memfds
    /// (`vm.memfd_noexec` = 2) a file on a tmpfs that is mounted nowhere.
    ///
    /// # Errors
    ///
    /// Those of memfd_create(2) and write(2).
    pub fn executable(&self) -> Result<OwnedFd> {
        let image = self.compose();
        match memfd(&image) {
            Err(e) if e.errno == Errno::ACCESS || e.errno == Errno::NOSYS => {
                on_detached_tmpfs(&image).map_err(|_| e)
            }
            done => done,
        }
    }
}

/// MFD_EXEC, Linux 6.3: says that the file is meant to be executed; rustix 1.1 has no name for it.
const MFD_EXEC: MemfdFlags = MemfdFlags::from_bits_retain(0x10);

fn memfd(image: &[u8]) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create(c"brig-init", flags | MFD_EXEC)
        .or_else(|e| if e == Errno::INVAL { rustix::fs::memfd_create(c"brig-init", flags) } else { Err(e) })
        .map_err(|e| SysError::new("memfd_create", "the init program", e))?;
    write_all(fd.as_fd(), image).on("write", "the init program")?;
    rustix::fs::fcntl_add_seals(
        &fd,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )
    .map_err(|e| SysError::new("fcntl(F_ADD_SEALS)", "the init program", e))?;
    Ok(fd)
}

fn on_detached_tmpfs(image: &[u8]) -> Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
    let wrap = |call| move |e| SysError::new(call, "a tmpfs for the init program", e);
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).map_err(wrap("fsopen"))?;
    fsconfig_create(context.as_fd()).map_err(wrap("fsconfig"))?;
    let attrs = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let mount = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attrs).map_err(wrap("fsmount"))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&mount, c"init", flags, Mode::from(0o555)).map_err(wrap("openat"))?;
    write_all(file.as_fd(), image).on("write", "the init program")?;
    // A file that is open for writing cannot be executed.
    drop(file);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let program = rustix::fs::openat(&mount, c"init", flags, Mode::empty()).map_err(wrap("openat"))?;
    rustix::fs::unlinkat(&mount, c"init", rustix::fs::AtFlags::empty()).map_err(wrap("unlinkat"))?;
    Ok(program)
}

/// The bytes of the parameters.
fn params_bytes(p: &Params) -> [u8; size_of::<Params>()] {
    // SAFETY: `Params` is `repr(C)` and consists of integers only, ordered without padding (see the test below), so that
    // every byte of it is initialised and any bytes are a valid array.
    unsafe { std::mem::transmute::<Params, [u8; size_of::<Params>()]>(*p) }
}

/// ELF header and program headers: text from the file's start at its linked address, data writable and private at
/// [`DATA_BASE`], a stack that is not executable.
fn elf_header(text: u64, data_offset: u64, data: u64) -> Vec<u8> {
    const ET_EXEC: u16 = 2;
    const PT_LOAD: u32 = 1;
    const PT_GNU_STACK: u32 = 0x6474_e551;
    const READ: u32 = 4;
    const WRITE: u32 = 2;
    const EXECUTE: u32 = 1;
    let mut h = Vec::with_capacity(64 + 3 * 56);
    h.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    h.extend_from_slice(&ET_EXEC.to_le_bytes());
    h.extend_from_slice(&MACHINE.to_le_bytes());
    h.extend_from_slice(&1_u32.to_le_bytes());
    for word in [ENTRY, 64, 0] {
        h.extend_from_slice(&word.to_le_bytes());
    }
    h.extend_from_slice(&0_u32.to_le_bytes());
    for half in [64_u16, 56, 3, 64, 0, 0] {
        h.extend_from_slice(&half.to_le_bytes());
    }
    let mut segment = |kind: u32, flags: u32, words: [u64; 6]| {
        h.extend_from_slice(&kind.to_le_bytes());
        h.extend_from_slice(&flags.to_le_bytes());
        for word in words {
            h.extend_from_slice(&word.to_le_bytes());
        }
    };
    segment(PT_LOAD, READ | EXECUTE, [0, BASE, BASE, text, text, PAGE as u64]);
    segment(PT_LOAD, READ | WRITE, [data_offset, DATA_BASE, DATA_BASE, data, data, PAGE as u64]);
    segment(PT_GNU_STACK, READ | WRITE, [0, 0, 0, 0, 0, 16]);
    h
}

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Number of bytes that the init program itself takes, without parameters.
pub const PROGRAM_LEN: usize = PROGRAM.len();

/// Longest name of a waiting process that the kernel keeps.
pub const COMM_MAX: usize = 15;

// Ten numbers, six sets, seven lists of two words, four addresses: no padding, as `params_bytes` needs it.
const _: () = assert!(size_of::<Params>() == 10 * 4 + 6 * 8 + 7 * 16 + 4 * 8);
