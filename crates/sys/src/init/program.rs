//! The init program: the container's process between the moment brig has set it up and its execve.
//!
//! brig's own executable must be gone before anything of the root file system can run or look at this process
//! (CVE-2019-5736), and a created container may wait for days, so what waits is this: a few kilobytes without a libc,
//! run from a sealed memfd that holds nothing but itself and this container's [`Params`].
//!
//! The order below is the security-relevant one; each step says why it stands where it does.

use super::abi::{
    FLAG_CLONE, FLAG_CLONE_EARLY, FLAG_CREDENTIALS, FLAG_LISTENER, FLAG_NO_NEW_PRIVS, FLAG_PROC_CONTEXT,
    FLAG_SEARCH, FLAG_SET_GROUPS, FLAG_TERMINAL, GO, HEAD_LEN, Head, MAGIC, PROGRAM_HEAD, Params, START,
    Step, Tag,
};
use super::calls::{self as call, EINTR, ENOENT, Errno};
use super::hooks;

/// What the steps answer: nothing, or the step and errno that went wrong.
pub type Done = Result<(), Fault>;

/// Why the init program gives up.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// The step.
    pub step: Step,
    /// errno, 0 when it is not about a call.
    pub errno: Errno,
    /// See [`Head::value`].
    pub value: i64,
}

/// Makes a [`Fault`] out of a failed call.
pub fn fault(step: Step) -> impl Fn(Errno) -> Fault {
    move |errno| Fault { step, errno, value: 0 }
}

/// Runs the program; never returns.
pub fn run(p: &Params) -> ! {
    if p.magic != MAGIC {
        call::exit(255);
    }
    let mut channel = p.sync_fd;
    let Err(why) = become_container(p, &mut channel);
    report(channel, why);
    call::exit(255)
}

/// All steps; only an error returns.
fn become_container(p: &Params, channel: &mut i32) -> Result<core::convert::Infallible, Fault> {
    call::set_name(p.comm);
    // /proc/PID/{exe,fd,mem,root,…} of this process are not for the container's other processes.
    call::set_dumpable(false);
    die_with_brig();
    write_label(p)?;
    let early_filter = p.flags & FLAG_NO_NEW_PRIVS == 0;
    if p.flags & FLAG_CLONE_EARLY != 0 {
        enter_pid_namespace(p)?;
    }
    // Without no_new_privs the filter needs CAP_SYS_ADMIN, so it must come before the credentials change.
    if early_filter {
        load_filter(p)?;
    }
    if p.flags & FLAG_CREDENTIALS != 0 {
        take_credentials(p)?;
        // A change of uid switches the parent-death signal off.
        die_with_brig();
    }
    change_directory(p)?;
    // The clone comes this late so that whoever is in the pid namespace never sees this process with more rights than the container has.
    if p.flags & FLAG_CLONE != 0 && p.flags & FLAG_CLONE_EARLY == 0 {
        enter_pid_namespace(p)?;
    }
    if p.flags & FLAG_PROC_CONTEXT != 0 {
        send_proc_context(p)?;
    }
    let program = look_up(p)?;
    if p.flags & FLAG_NO_NEW_PRIVS != 0 {
        call::no_new_privs().map_err(fault(Step::NoNewPrivs))?;
    }
    if !early_filter {
        load_filter(p)?;
    }
    // The channel closes with a successful execve: that is how the other end learns of it.
    for fd in [p.sync_fd, p.fifo_fd] {
        if fd >= 0 {
            call::set_cloexec(fd).map_err(fault(Step::CloseOnExec))?;
        }
    }
    wait_for_brig(p)?;
    if p.fifo_fd >= 0 {
        wait_for_start(p, channel);
    }
    hooks::run_all(p, *channel)?;
    let errno = call::execve(program, p.argv, p.envp);
    let why = Fault { step: Step::Exec, errno, value: 0 };
    report(*channel, why);
    show_program(program, *channel, why);
    call::exit(255)
}

/// Why the kernel refused a program is in its first bytes: the interpreter that is missing, the machine it is for. Only here
/// they can be read as the container sees them.
fn show_program(program: u64, channel: i32, why: Fault) {
    let Ok(fd) = call::open(program) else { return };
    let mut text = [0_u8; HEAD_LEN + PROGRAM_HEAD];
    let Some((head, bytes)) = text.split_at_mut_checked(HEAD_LEN) else { return };
    let Ok(length) = call::read(fd, bytes) else { return };
    for (to, from) in head.iter_mut().zip(failed(why).encode()) {
        *to = from;
    }
    let _ = call::write_bytes(channel, text.get(..HEAD_LEN + length).unwrap_or(&[]));
}

/// Ties this process to brig until the container counts as created (promise 2).
///
/// Should brig be gone already, there is no signal; then the closed channel is noticed in [`wait_for_brig`].
fn die_with_brig() {
    call::set_parent_death_signal(call::SIGKILL);
}

/// AppArmor and SELinux labels count for the next execve of the writer, so they are written here and not by brig's child. Since
/// Linux 5.13 only that may write which has opened the file after its own execve.
fn write_label(p: &Params) -> Done {
    if p.label_fd >= 0 {
        let file = call::open_to_write(p.label_fd, c"exec").map_err(fault(Step::Label))?;
        call::write(file, p.label).map_err(fault(Step::Label))?;
        call::close(file);
        call::close(p.label_fd);
    }
    Ok(())
}

fn load_filter(p: &Params) -> Done {
    if p.filter.len == 0 {
        return Ok(());
    }
    let fd = call::load_filter(p.filter, p.filter_flags).map_err(fault(Step::LoadFilter))?;
    if p.flags & FLAG_LISTENER != 0 {
        // brig takes the listener out of this process by pidfd_getfd and answers when the agent has it.
        ask(p.sync_fd, Head { tag: Tag::Listener as u16, value: fd as i64, ..Head::default() });
        if call::read_byte(p.sync_fd) != Some(GO) {
            return Err(Fault { step: Step::ParentDied, errno: 0, value: 0 });
        }
        call::close(fd as i32);
    }
    Ok(())
}

fn take_credentials(p: &Params) -> Done {
    for cap in 0..=p.cap_last {
        if p.cap_bounding & (1 << cap) == 0 {
            call::drop_bounding(cap).map_err(|errno| Fault {
                step: Step::DropBounding,
                errno,
                value: cap as i64,
            })?;
        }
    }
    // Permitted capabilities survive the change of uid only with this; execve clears it.
    call::keep_capabilities().map_err(fault(Step::KeepCaps))?;
    if p.flags & FLAG_SET_GROUPS != 0 {
        call::set_groups(p.groups).map_err(fault(Step::SetGroups))?;
    }
    call::set_gid(p.gid).map_err(fault(Step::SetGid))?;
    call::set_uid(p.uid).map_err(fault(Step::SetUid))?;
    call::set_capabilities(p.cap_effective, p.cap_permitted, p.cap_inheritable)
        .map_err(fault(Step::CapSet))?;
    for cap in 0..=p.cap_last {
        if p.cap_ambient & (1 << cap) != 0 {
            // A set that the kernel refuses is not an error for any runtime: the config may ask for more than is inheritable.
            let _ = call::raise_ambient(cap);
        }
    }
    Ok(())
}

/// Some directories can be entered by the container's user only (a FUSE or NFS mount that shuts root out).
fn change_directory(p: &Params) -> Done {
    if p.late_cwd == 0 {
        return Ok(());
    }
    call::chdir(p.late_cwd).map_err(fault(Step::Chdir))?;
    if call::cwd_is_outside() {
        return Err(Fault { step: Step::CwdOutside, errno: 0, value: 0 });
    }
    Ok(())
}

/// Clones once, so that the pid namespace for children becomes this process's own.
///
/// The clone keeps the parent, so brig can wait for it; what called this sends the pidfd and ends.
fn enter_pid_namespace(p: &Params) -> Done {
    let mut pidfd = -1;
    let pid = call::clone_sibling(&mut pidfd).map_err(fault(Step::Clone))?;
    if pid != 0 {
        let head = Head { tag: Tag::Cloned as u16, value: pid as i64, ..Head::default() };
        call::send_with_fd(p.sync_fd, &head.encode(), pidfd);
        call::exit(0);
    }
    die_with_brig();
    // The session of what called this ends with it, and a controlling terminal would be hung up then.
    call::start_session().map_err(fault(Step::Session))?;
    if p.flags & FLAG_TERMINAL != 0 {
        call::take_terminal(0).map_err(fault(Step::Session))?;
    }
    Ok(())
}

/// procfs shows the pid namespace of the process that opens its context, so this one opens it for brig and ends.
fn send_proc_context(p: &Params) -> Done {
    let fd = call::open_proc_context().map_err(fault(Step::ProcContext))?;
    let head = Head { tag: Tag::ProcContext as u16, ..Head::default() };
    call::send_with_fd(p.sync_fd, &head.encode(), fd);
    call::exit(0)
}

/// Picks the program as the container's user would find it, so that a missing one is an error of `create`.
fn look_up(p: &Params) -> Result<u64, Fault> {
    let mut seen = ENOENT;
    for path in call::addresses(p.candidates) {
        match call::executable(path) {
            Ok(()) => return Ok(path),
            // Where a path was given, its own error counts; a search through PATH passes over what cannot be run.
            Err(e) if p.flags & FLAG_SEARCH == 0 => seen = e,
            Err(_) => {}
        }
    }
    Err(Fault { step: Step::Lookup, errno: seen, value: 0 })
}

/// Says that everything is done and waits until the container counts as created.
fn wait_for_brig(p: &Params) -> Done {
    if p.fifo_fd >= 0 {
        // Process 1 of a pid namespace is not killed by signals that it has no handler for; whoever stops a created container relies on TERM.
        for signal in call::ENDING_SIGNALS {
            call::handle_with_exit(signal);
        }
    }
    // From here on brig's end is seen on the channel, which is closed with brig and tells more than a signal: whether the record was replaced before.
    call::set_parent_death_signal(0);
    ask(p.sync_fd, Head { tag: Tag::Ready as u16, ..Head::default() });
    if call::read_byte(p.sync_fd) == Some(GO) {
        return Ok(());
    }
    if p.record_fd >= 0 && call::is_unlinked(p.record_fd) {
        return Ok(());
    }
    call::exit(255)
}

/// Blocks until `start` writes to the fifo. The fifo is open for writing here too, so there is no end-of-file.
fn wait_for_start(p: &Params, channel: &mut i32) {
    call::close(p.sync_fd);
    call::close(p.record_fd);
    while call::read_byte(p.fifo_fd) != Some(START) {}
    // An error from here on is for `start`, which reads it out of the fifo once nobody writes any more.
    *channel = p.fifo_fd;
    for signal in call::ENDING_SIGNALS {
        call::handle_by_default(signal);
    }
}

/// Says what brig has to answer. If it cannot be said, waiting would be for ever: the end of this process is seen.
fn ask(fd: i32, head: Head) {
    while let Err(e) = call::write_bytes(fd, &head.encode()) {
        if e != EINTR {
            call::exit(255);
        }
    }
}

/// Tells why the program gives up: `start` or `exec` is listening at the other end.
fn report(channel: i32, why: Fault) {
    let _ = call::write_bytes(channel, &failed(why).encode());
}

fn failed(why: Fault) -> Head {
    Head { tag: Tag::Failed as u16, step: why.step as u16, errno: why.errno, value: why.value }
}
