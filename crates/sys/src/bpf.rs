//! bpf(2), as far as device filters of cgroup v2 need it.
//!
//! The attributes are handed over as the first part of `union bpf_attr`, each command's own. The kernel takes what
//! is missing at its end as zero, so an older kernel and a newer one both understand.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// One eBPF instruction, `struct bpf_insn`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// Operation.
    pub code: u8,
    /// Destination register and source register, four bits each.
    regs: u8,
    /// Offset of a jump or a memory access.
    pub off: i16,
    /// Constant.
    pub imm: i32,
}

impl Insn {
    /// Puts an instruction together. Registers are 0 to 10.
    pub const fn new(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> Self {
        let (dst, src) = (dst & 15, src & 15);
        // C bit fields: the first is in the low half on little-endian machines.
        let regs = if cfg!(target_endian = "little") { src << 4 | dst } else { dst << 4 | src };
        Self { code, regs, off, imm }
    }

    /// Destination register.
    pub const fn dst(self) -> u8 {
        if cfg!(target_endian = "little") { self.regs & 15 } else { self.regs >> 4 }
    }

    /// Source register.
    pub const fn src(self) -> u8 {
        if cfg!(target_endian = "little") { self.regs >> 4 } else { self.regs & 15 }
    }
}

/// Commands of bpf(2).
#[derive(Clone, Copy)]
#[repr(i32)]
enum Command {
    ProgLoad = 5,
    ProgAttach = 8,
    ProgDetach = 9,
    ProgGetFdById = 13,
    ObjGetInfoByFd = 15,
    ProgQuery = 16,
}

const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const BPF_CGROUP_DEVICE: u32 = 6;
const BPF_F_ALLOW_MULTI: u32 = 1 << 1;
const BPF_F_REPLACE: u32 = 1 << 2;

/// How long the name of a program may be, with its closing zero.
const NAME_LENGTH: usize = 16;

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; NAME_LENGTH],
}

#[repr(C)]
#[derive(Default)]
struct ProgAttach {
    target_fd: u32,
    attach_bpf_fd: u32,
    attach_type: u32,
    attach_flags: u32,
    replace_bpf_fd: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgQuery {
    target_fd: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    prog_cnt: u32,
    padding: u32,
    // Not used, but Linux 6.17 to 7.1 write `revision` whatever the size given.
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct GetInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// The first part of `struct bpf_prog_info`, to the end of `name`.
#[repr(C)]
#[derive(Default)]
struct ProgInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_prog_len: u32,
    xlated_prog_len: u32,
    jited_prog_insns: u64,
    xlated_prog_insns: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; NAME_LENGTH],
}

/// Calls bpf(2).
///
/// # Safety
///
/// `Attr` must be a prefix of `union bpf_attr` as `command` uses it, in C layout and without uninitialised padding,
/// and all addresses in it must be valid for what the kernel does with them: reading, or writing as many bytes as
/// the attributes say.
unsafe fn bpf<Attr>(command: Command, attr: &mut Attr) -> Result<libc::c_int, Errno> {
    // SAFETY: `attr` is a live, exclusively borrowed object of the size passed; the caller vouches for its meaning
    // and for the addresses in it.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_int, std::ptr::from_mut(attr), size_of::<Attr>())
    };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    libc::c_int::try_from(result).map_err(|_| Errno::OVERFLOW)
}

/// Takes over a descriptor that bpf(2) has returned.
fn owned(fd: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just returned `fd` as a new descriptor (it is not negative), so nobody else owns it.
    // bpf(2) opens all its descriptors close-on-exec.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn raw(fd: BorrowedFd<'_>) -> u32 {
    // A descriptor that is held open is never negative.
    u32::try_from(fd.as_raw_fd()).unwrap_or(u32::MAX)
}

fn address<T>(slice: &[T]) -> u64 {
    u64::try_from(slice.as_ptr().expose_provenance()).unwrap_or(0)
}

fn address_mut<T>(slice: &mut [T]) -> u64 {
    u64::try_from(slice.as_mut_ptr().expose_provenance()).unwrap_or(0)
}

/// Loads a device filter (BPF_PROG_TYPE_CGROUP_DEVICE, Linux 4.15). The verifier writes its opinion to `log` if one
/// is given; if that is too short, the call fails with ENOSPC.
///
/// `name` shows in lists of programs: up to 15 letters, digits and underscores.
///
/// # Errors
///
/// EACCES or EINVAL from the verifier, EPERM without CAP_BPF (or CAP_SYS_ADMIN) or, before Linux 5.11, above
/// RLIMIT_MEMLOCK.
pub fn load_device_filter(insns: &[Insn], name: &str, log: Option<&mut [u8]>) -> Result<OwnedFd, Errno> {
    let license = c"Apache-2.0";
    let mut attr = ProgLoad {
        prog_type: BPF_PROG_TYPE_CGROUP_DEVICE,
        insn_cnt: u32::try_from(insns.len()).map_err(|_| Errno::TOOBIG)?,
        insns: address(insns),
        license: address(license.to_bytes_with_nul()),
        ..ProgLoad::default()
    };
    for (to, from) in attr.prog_name.iter_mut().take(NAME_LENGTH - 1).zip(name.bytes()) {
        *to = from;
    }
    if let Some(log) = log {
        attr.log_level = 1;
        attr.log_size = u32::try_from(log.len()).unwrap_or(u32::MAX);
        attr.log_buf = address_mut(log);
    }
    loop {
        // SAFETY: ProgLoad is the start of bpf_attr for BPF_PROG_LOAD and has no padding. `insns` and `license`
        // are live and as long as said (the license ends in a zero); `log`, borrowed exclusively for as long as
        // this function runs, is writable for `log_size` bytes.
        match unsafe { bpf(Command::ProgLoad, &mut attr) } {
            // The verifier gives up when a signal is pending.
            Err(Errno::AGAIN) => {}
            result => return result.map(owned),
        }
    }
}

/// Attaches a device filter to a cgroup, beside those that others have attached or will (BPF_F_ALLOW_MULTI): an
/// access needs the consent of all. With `replace`, it takes the place of that one at the same moment (BPF_F_REPLACE,
/// Linux 5.6).
///
/// # Errors
///
/// EPERM if a program that tolerates no others is attached, ENOENT if `replace` is not attached, E2BIG if there are
/// 64 already.
pub fn attach_device_filter(
    cgroup: BorrowedFd<'_>,
    program: BorrowedFd<'_>,
    replace: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let mut attr = ProgAttach {
        target_fd: raw(cgroup),
        attach_bpf_fd: raw(program),
        attach_type: BPF_CGROUP_DEVICE,
        attach_flags: BPF_F_ALLOW_MULTI | if replace.is_some() { BPF_F_REPLACE } else { 0 },
        replace_bpf_fd: replace.map_or(0, raw),
    };
    // SAFETY: ProgAttach is the start of bpf_attr for BPF_PROG_ATTACH, without padding and without addresses.
    unsafe { bpf(Command::ProgAttach, &mut attr) }.map(drop)
}

/// Detaches a device filter from a cgroup.
///
/// # Errors
///
/// ENOENT if it is not attached there.
pub fn detach_device_filter(cgroup: BorrowedFd<'_>, program: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut attr = ProgAttach {
        target_fd: raw(cgroup),
        attach_bpf_fd: raw(program),
        attach_type: BPF_CGROUP_DEVICE,
        ..ProgAttach::default()
    };
    // SAFETY: ProgAttach is the start of bpf_attr for BPF_PROG_DETACH, without padding and without addresses.
    unsafe { bpf(Command::ProgDetach, &mut attr) }.map(drop)
}

/// The ids of the device filters attached to a cgroup itself.
///
/// # Errors
///
/// EPERM without CAP_NET_ADMIN (or CAP_SYS_ADMIN).
pub fn device_filters(cgroup: BorrowedFd<'_>) -> Result<Vec<u32>, Errno> {
    // 64 is the most that the kernel attaches.
    let mut ids = [0_u32; 64];
    let mut attr = ProgQuery {
        target_fd: raw(cgroup),
        attach_type: BPF_CGROUP_DEVICE,
        prog_ids: address_mut(&mut ids),
        prog_cnt: 64,
        ..ProgQuery::default()
    };
    // SAFETY: ProgQuery is the start of bpf_attr for BPF_PROG_QUERY, padding spelt out. `ids` is live, borrowed by
    // nobody else and has room for the 64 numbers announced.
    unsafe { bpf(Command::ProgQuery, &mut attr) }?;
    let count = usize::try_from(attr.prog_cnt).unwrap_or(0);
    Ok(ids.get(..count).unwrap_or_default().to_vec())
}

/// Opens a program by its id.
///
/// # Errors
///
/// ENOENT if it is gone; EPERM without CAP_SYS_ADMIN.
pub fn program_by_id(id: u32) -> Result<OwnedFd, Errno> {
    let mut attr = id;
    // SAFETY: the start of bpf_attr for BPF_PROG_GET_FD_BY_ID is the id, a u32.
    unsafe { bpf(Command::ProgGetFdById, &mut attr) }.map(owned)
}

/// The name that a program was loaded with.
///
/// # Errors
///
/// `program` is no eBPF program.
pub fn program_name(program: BorrowedFd<'_>) -> Result<String, Errno> {
    let mut info = [ProgInfo::default()];
    let mut attr = GetInfo {
        bpf_fd: raw(program),
        info_len: u32::try_from(size_of::<ProgInfo>()).map_err(|_| Errno::OVERFLOW)?,
        info: address_mut(&mut info),
    };
    // SAFETY: GetInfo is the start of bpf_attr for BPF_OBJ_GET_INFO_BY_FD, without padding. `info` is live, borrowed
    // by nobody else and of the length given; the kernel reads it first (all zero: nothing further is asked for) and
    // then fills it, for which any bytes will do.
    unsafe { bpf(Command::ObjGetInfoByFd, &mut attr) }?;
    let [info] = info;
    let name = info.name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Whether this kernel charges eBPF memory to RLIMIT_MEMLOCK rather than to the memory cgroup: before Linux 5.11.
pub fn charges_memlock() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (5, 11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_has_them() {
        let insn = Insn::new(0xb7, 3, 10, -2, 7);
        assert_eq!(size_of::<Insn>(), 8);
        assert_eq!((insn.dst(), insn.src()), (3, 10));
        assert_eq!(size_of::<ProgQuery>(), 64);
        assert_eq!(size_of::<ProgLoad>(), 64);
        assert_eq!(size_of::<ProgInfo>(), 80);
    }
}
