//! Words for what the init program reports: it sends numbers, and the phrases are the ones that clients look for.

use brig_sys::errno_text;
use brig_sys::init::abi::Step;
use brig_sys::process::ExitStatus;
use rustix::io::Errno;

use crate::channel::InitFault;
use crate::error::{Error, Kind};
use crate::executable;
use crate::hooks::{self, HookKind};

/// Why no process could be made.
pub(crate) const PROCESS_LIMIT: &str =
    "the limit of processes is reached: linux.resources.pids.limit, RLIMIT_NPROC, or kernel.pid_max";

/// A failed step of the init program as an error; `program` is argv[0].
pub fn init_fault(fault: &InitFault, program: &str) -> Error {
    let errno = Errno::from_raw_os_error(fault.errno.clamp(1, 4095));
    let text = errno_text(errno);
    let host = |doing: &str| Error::host(format!("{doing}: {text}")).with_errno(errno);
    match fault.step {
        Step::Lookup => lookup(program, errno),
        Step::Exec => exec(program, errno, Some(fault.text.as_slice()).filter(|head| !head.is_empty())),
        Step::CwdOutside => crate::child::cwd_outside(),
        Step::Chdir => host("chdir to cwd set in config.json failed")
            .hint("process.cwd is closed to the container's user"),
        Step::SetUid => host("setuid").hint("process.user.uid must be mapped in the user namespace"),
        Step::SetGid => host("setgid").hint("process.user.gid must be mapped in the user namespace"),
        Step::SetGroups => host("setgroups").hint("a user namespace without privilege has setgroups denied"),
        Step::CapSet => {
            host("unable to apply caps").hint("process.capabilities asks for more than the caller has")
        }
        Step::DropBounding => host(&format!("dropping capability {} from the bounding set", fault.value)),
        Step::CloseOnExec => host("fcntl(F_SETFD)"),
        Step::KeepCaps => host("prctl(PR_SET_KEEPCAPS)"),
        Step::NoNewPrivs => host("prctl(PR_SET_NO_NEW_PRIVS)"),
        Step::LoadFilter => host("loading seccomp filter into kernel: error loading seccomp filter").hint(
            match errno {
                Errno::NOSYS | Errno::INVAL => "this kernel does not have the filters, or a flag, that linux.seccomp asks for: see brig doctor",
                _ => "a filter that is around the caller forbids it; without process.noNewPrivileges it takes CAP_SYS_ADMIN, too",
            },
        ),
        Step::Label => host("unable to apply the LSM label: write to /proc/self/attr/exec")
            .hint("process.apparmorProfile or process.selinuxLabel names what the host has not loaded"),
        Step::Clone if errno == Errno::AGAIN => host("clone").hint(PROCESS_LIMIT),
        Step::Clone => host("clone"),
        Step::ProcContext => host("fsopen proc"),
        Step::Session => host("setsid, or ioctl(TIOCSCTTY) on the terminal"),
        Step::HookSpawn | Step::HookFailed | Step::HookTimeout => hook(fault),
        Step::ParentDied | Step::Ready | Step::Params => {
            Error::new(Kind::Internal, format!("the init program gave up at {:?}", fault.step))
        }
    }
}

/// The program was not found at create.
pub(crate) fn lookup(program: &str, errno: Errno) -> Error {
    let cause = match errno {
        Errno::NOENT if !program.contains('/') => "executable file not found in $PATH".to_owned(),
        Errno::NOENT | Errno::NOTDIR => format!("stat {program}: {}", errno_text(errno)),
        _ => errno_text(errno),
    };
    let e = Error::config(format!("exec: \"{program}\": {cause}")).with_errno(errno);
    match errno {
        Errno::ACCESS => e.hint(
            "the file has no execute permission for the container's user (chmod +x), or its mount is noexec",
        ),
        Errno::NOENT if !program.contains('/') => {
            e.hint("no directory in the PATH of process.env has a program of this name")
        }
        Errno::NOENT | Errno::NOTDIR => {
            e.hint("the root file system has no such file, or a mount of the configuration hides it")
        }
        Errno::ISDIR => e.hint("process.args[0] must name a program"),
        _ => e,
    }
}

/// The program was found, but the kernel would not execute it; `head` is how its file begins, if that is known.
pub(crate) fn exec(program: &str, errno: Errno, head: Option<&[u8]>) -> Error {
    let e = Error::config(format!("exec {program}: {}", errno_text(errno))).with_errno(errno);
    if let Some(advice) = head.and_then(|head| executable::advice(program, &executable::inspect(head), errno))
    {
        return e.hint(advice);
    }
    match errno {
        Errno::NOENT => e.hint("the file is there, but the interpreter that it names is not: see its first line, or its ELF interpreter"),
        Errno::NOEXEC => e.hint("not a program for this machine: another architecture, or a script without a #! line"),
        Errno::ACCESS => e.hint("the file or its interpreter has no execute permission, or its mount is noexec"),
        Errno::TXTBSY => e.hint("the file is open for writing"),
        _ => e,
    }
}

/// A `startContainer` hook failed; its output comes along.
fn hook(fault: &InitFault) -> Error {
    let index = usize::try_from(fault.value >> 32).unwrap_or(0);
    let status = ExitStatus::from_wait_status(i32::try_from(fault.value & 0xffff).unwrap_or(0xff));
    let kind = HookKind::StartContainer;
    match fault.step {
        Step::HookSpawn => {
            let errno = Errno::from_raw_os_error(fault.errno.clamp(1, 4095));
            hooks::failed(kind, index, &format!("fork/exec: {}", errno_text(errno)))
        }
        Step::HookTimeout => {
            let seconds = u64::try_from(fault.value & 0xffff_ffff).unwrap_or(0);
            hooks::failed(kind, index, &hooks::timed_out(seconds))
        }
        _ => {
            let (stdout, stderr) = split_output(&fault.text);
            hooks::failed(kind, index, &hooks::describe_end(status, stdout, stderr))
        }
    }
}

/// Two bytes of length, standard output, standard error.
fn split_output(text: &[u8]) -> (&[u8], &[u8]) {
    match text {
        [a, b, rest @ ..] => rest.split_at(usize::from(u16::from_ne_bytes([*a, *b])).min(rest.len())),
        _ => (&[], &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(step: Step, errno: Errno) -> InitFault {
        InitFault { step, errno: errno.raw_os_error(), value: 0, text: Vec::new() }
    }

    #[test]
    fn the_phrases_are_those_that_clients_look_for() {
        for (step, program, errno, text) in [
            (Step::Lookup, "x", Errno::NOENT, "exec: \"x\": executable file not found in $PATH"),
            (Step::Lookup, "/x", Errno::NOENT, "exec: \"/x\": stat /x: no such file or directory"),
            (Step::Lookup, "/x", Errno::ACCESS, "exec: \"/x\": permission denied"),
            (Step::Lookup, "/etc", Errno::ISDIR, "exec: \"/etc\": is a directory"),
            (Step::Exec, "/x", Errno::NOEXEC, "exec /x: exec format error"),
        ] {
            assert_eq!(init_fault(&fault(step, errno), program).message(), text);
        }
    }

    #[test]
    fn a_hooks_output_is_in_the_message() {
        let mut f = fault(Step::HookFailed, Errno::from_raw_os_error(1));
        f.value = (2 << 32) | (3 << 8);
        f.text = [2_u16.to_ne_bytes().as_slice(), b"ab", b"cd\n"].concat();
        let text = "error running startContainer hook #2: exit status 3, stdout: ab, stderr: cd";
        assert_eq!(init_fault(&f, "x").message(), text);
        f.text = vec![0xff];
        assert!(init_fault(&f, "x").message().ends_with("stdout: , stderr: "));
    }
}
