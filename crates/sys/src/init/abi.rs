//! What brig tells the init program, and what the init program answers.
//!
//! Shared by both sides: this file is compiled into brig and, without the standard library, into the init program.
//! All pointers are addresses in the init program's own data segment, which brig lays out (see `image`).

/// Version of the layout below; the two sides are always built together, so a mismatch is a bug.
pub const MAGIC: u32 = 0x6272_0001;

/// Address of the data segment, whose first bytes are a [`Params`].
pub const DATA_BASE: u64 = 0x0080_0000;

/// A list in the data segment.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Slice {
    /// Address of the first element.
    pub ptr: u64,
    /// Number of elements.
    pub len: u64,
}

/// A `startContainer` hook.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Hook {
    /// Path, NUL-terminated.
    pub path: u64,
    /// argv, ended by a null pointer.
    pub argv: u64,
    /// envp, ended by a null pointer.
    pub envp: u64,
    /// Milliseconds until it is killed; 0 is for ever.
    pub timeout_ms: u64,
}

/// Everything that the init program needs to become the container's process.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Params {
    /// [`MAGIC`].
    pub magic: u32,
    /// `FLAG_*`.
    pub flags: u32,
    /// SOCK_SEQPACKET socket to brig; closed before the payload runs.
    pub sync_fd: i32,
    /// The container's `exec.fifo`, open for reading and writing; -1: do not wait for `start`.
    pub fifo_fd: i32,
    /// The record as it was while the container was being made (O_PATH); -1: none. Its link count says whether the record was replaced.
    pub record_fd: i32,
    /// `/proc/self/attr` or a directory in it (O_PATH), whose file `exec` takes the label; -1: no label.
    pub label_fd: i32,
    /// Credentials.
    pub uid: u32,
    /// See `uid`.
    pub gid: u32,
    /// SECCOMP_FILTER_FLAG_*.
    pub filter_flags: u32,
    /// Keeps the layout free of padding.
    pub unused: u32,
    /// Supplementary groups, `u32` each.
    pub groups: Slice,
    /// Capability sets, bit N is capability N.
    pub cap_bounding: u64,
    /// See `cap_bounding`.
    pub cap_effective: u64,
    /// See `cap_bounding`.
    pub cap_permitted: u64,
    /// See `cap_bounding`.
    pub cap_inheritable: u64,
    /// See `cap_bounding`.
    pub cap_ambient: u64,
    /// Highest capability that this kernel knows.
    pub cap_last: u64,
    /// The compiled seccomp filter, `struct sock_filter` each.
    pub filter: Slice,
    /// LSM label for the file in `label_fd`.
    pub label: Slice,
    /// Directory to change to after the credentials were taken on, NUL-terminated, or 0.
    pub late_cwd: u64,
    /// Paths to try for the program, in order: addresses of NUL-terminated strings.
    pub candidates: Slice,
    /// argv for the program, ended by a null pointer.
    pub argv: u64,
    /// envp for the program, ended by a null pointer.
    pub envp: u64,
    /// `startContainer` hooks.
    pub hooks: Slice,
    /// State JSON for the hooks: what stands before the pid.
    pub state_before_pid: Slice,
    /// State JSON for the hooks: what stands after the pid.
    pub state_after_pid: Slice,
    /// Name of the process while it waits, NUL-terminated, at most 15 bytes.
    pub comm: u64,
}

/// Become a member of the pid namespace for children by cloning once; the pidfd goes to brig with [`Tag::Cloned`].
pub const FLAG_CLONE: u32 = 1 << 0;
/// Clone before the seccomp filter is in force, since the filter would refuse it.
pub const FLAG_CLONE_EARLY: u32 = 1 << 1;
/// PR_SET_NO_NEW_PRIVS; the filter is loaded as late as possible.
pub const FLAG_NO_NEW_PRIVS: u32 = 1 << 2;
/// setgroups(2) is to be called (not allowed in some user namespaces).
pub const FLAG_SET_GROUPS: u32 = 1 << 3;
/// Fetch the seccomp listener: [`Tag::Listener`] is sent and an answer awaited.
pub const FLAG_LISTENER: u32 = 1 << 4;
/// Credentials are taken on (set for every container process; clear for helpers).
pub const FLAG_CREDENTIALS: u32 = 1 << 5;

/// The program is searched for in PATH: a candidate that cannot be run is passed over.
pub const FLAG_SEARCH: u32 = 1 << 6;

/// Not a container's process but a helper in its pid namespace: open a procfs context there, send it with
/// [`Tag::ProcContext`], and end.
pub const FLAG_PROC_CONTEXT: u32 = 1 << 7;

/// Standard input is a terminal, which the clone of [`FLAG_CLONE`] takes for its controlling one.
pub const FLAG_TERMINAL: u32 = 1 << 8;

/// Kind of a message from the init program.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// A step failed.
    Failed = 1,
    /// Everything is done; the init program waits for [`GO`].
    Ready = 2,
    /// The process was cloned; a pidfd is attached, `value` is its pid in the init program's pid namespace.
    Cloned = 3,
    /// The seccomp listener is descriptor `value` of the sender.
    Listener = 4,
    /// A procfs context, see [`FLAG_PROC_CONTEXT`], is attached.
    ProcContext = 5,
}

/// The one message to the init program.
pub const GO: u8 = b'G';

/// The byte that `start` writes to the fifo.
pub const START: u8 = b'0';

/// What was being done when a step failed. Numbers are stable within a build only.
#[repr(u16)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the calls'")]
pub enum Step {
    ParentDied = 1,
    Label = 2,
    LoadFilter = 3,
    DropBounding = 4,
    KeepCaps = 5,
    SetGroups = 6,
    SetGid = 7,
    SetUid = 8,
    CapSet = 9,
    Chdir = 10,
    CwdOutside = 11,
    Clone = 12,
    Lookup = 13,
    NoNewPrivs = 14,
    Ready = 15,
    HookSpawn = 16,
    HookFailed = 17,
    HookTimeout = 18,
    Exec = 19,
    Params = 20,
    ProcContext = 21,
    Session = 22,
    CloseOnExec = 23,
}

impl Step {
    /// The step with this number.
    pub fn from_number(n: u16) -> Option<Self> {
        const ALL: [Step; 23] = [
            Step::ParentDied,
            Step::Label,
            Step::LoadFilter,
            Step::DropBounding,
            Step::KeepCaps,
            Step::SetGroups,
            Step::SetGid,
            Step::SetUid,
            Step::CapSet,
            Step::Chdir,
            Step::CwdOutside,
            Step::Clone,
            Step::Lookup,
            Step::NoNewPrivs,
            Step::Ready,
            Step::HookSpawn,
            Step::HookFailed,
            Step::HookTimeout,
            Step::Exec,
            Step::Params,
            Step::ProcContext,
            Step::Session,
            Step::CloseOnExec,
        ];
        ALL.into_iter().find(|s| *s as u16 == n)
    }
}

/// A message from the init program: this head, then at most [`TEXT_MAX`] bytes of text (a hook's output).
///
/// A failed execve is told twice: at once, without a text, and then with the first [`PROGRAM_HEAD`] bytes of the program,
/// unless a seccomp filter ended the process that tried to read them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// [`Tag`].
    pub tag: u16,
    /// [`Step`], with [`Tag::Failed`].
    pub step: u16,
    /// errno of the failed call.
    pub errno: i32,
    /// Depends on the tag and step: a descriptor, a pid, a wait status, the index of a hook or of a capability.
    pub value: i64,
}

/// Bytes of a [`Head`].
pub const HEAD_LEN: usize = 16;

/// How much of a program that cannot be executed is told.
pub const PROGRAM_HEAD: usize = 1024;

/// Longest text behind a [`Head`].
pub const TEXT_MAX: usize = 2048;

impl Head {
    /// Reads a head; `None` when there are too few bytes.
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let raw: &[u8; HEAD_LEN] = raw.get(..HEAD_LEN)?.try_into().ok()?;
        let [t0, t1, s0, s1, e0, e1, e2, e3, v @ ..] = *raw;
        Some(Self {
            tag: u16::from_ne_bytes([t0, t1]),
            step: u16::from_ne_bytes([s0, s1]),
            errno: i32::from_ne_bytes([e0, e1, e2, e3]),
            value: i64::from_ne_bytes(v),
        })
    }

    /// The bytes of a head.
    pub fn encode(&self) -> [u8; HEAD_LEN] {
        let [t0, t1] = self.tag.to_ne_bytes();
        let [s0, s1] = self.step.to_ne_bytes();
        let [e0, e1, e2, e3] = self.errno.to_ne_bytes();
        let [v0, v1, v2, v3, v4, v5, v6, v7] = self.value.to_ne_bytes();
        [t0, t1, s0, s1, e0, e1, e2, e3, v0, v1, v2, v3, v4, v5, v6, v7]
    }
}
