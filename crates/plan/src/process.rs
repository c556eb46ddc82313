//! `process`, from the configuration or from what `exec` is told.

use std::path::PathBuf;

use brig_spec as spec;

use crate::path::has_nul;
use crate::problem::{Draft, Problems};
use crate::{Host, IdMaps, Process, Request, User, capabilities, cpu_list, env, rlimits, scheduler};

/// What a process depends on besides its own description.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessContext {
    /// The caller is not root.
    pub rootless_euid: bool,
    /// The container has a user namespace of its own, new or joined.
    pub user_namespace: bool,
    /// Its id mappings; empty when they are not known.
    pub id_maps: IdMaps,
    /// The command returns while the process runs: `create`, `run -d`, `exec -d`.
    pub detached: bool,
    /// `--console-socket` was given.
    pub console_socket: bool,
}

impl ProcessContext {
    /// The context of a container's init.
    pub(crate) fn of_init(request: &Request, host: &Host, user_namespace: bool, id_maps: &IdMaps) -> Self {
        Self {
            rootless_euid: host.euid != 0,
            user_namespace,
            id_maps: id_maps.clone(),
            detached: request.detached,
            console_socket: request.console_socket,
        }
    }
}

/// Decides a process.
///
/// Absent capabilities are empty sets; `exec`, where they mean the container's, puts those in beforehand. What the
/// configuration has outside `process` (`mountLabel`, `personality`, `memoryPolicy`) is left unset.
pub fn process(given: &spec::Process, context: &ProcessContext, host: &Host) -> Draft<Process> {
    let mut problems = Problems::default();
    let process = plan(given, context, host, &mut problems);
    problems.draft(process)
}

pub(crate) fn plan(
    given: &spec::Process,
    context: &ProcessContext,
    host: &Host,
    problems: &mut Problems,
) -> Process {
    check_command(given, problems);
    let console_size = terminal(given, context, problems);
    let user = user(&given.user, context, problems);
    let (affinity_initial, affinity_final) = affinity(given.exec_cpu_affinity.as_ref(), problems);
    security(given, host, problems);
    Process {
        args: given.args.clone(),
        env: env::plan(&given.env, problems),
        cwd: PathBuf::from(&given.cwd),
        terminal: given.terminal,
        console_size,
        user,
        capabilities: capabilities::plan(given.capabilities.as_ref(), host, problems),
        rlimits: rlimits::plan(&given.rlimits, problems),
        no_new_privileges: given.no_new_privileges,
        oom_score_adj: given.oom_score_adj,
        scheduler: given.scheduler.as_ref().map(|scheduler| scheduler::plan(scheduler, problems)),
        io_priority: given.io_priority.as_ref().map(|priority| scheduler::io_priority(priority, problems)),
        affinity_initial,
        affinity_final,
        apparmor_profile: non_empty(&given.apparmor_profile),
        selinux_label: non_empty(&given.selinux_label),
        ..Process::default()
    }
}

fn check_command(given: &spec::Process, problems: &mut Problems) {
    if given.cwd.is_empty() {
        problems.error("process.cwd", "Cwd property must not be empty");
    } else if !given.cwd.starts_with('/') {
        problems.error("process.cwd", "Cwd must be an absolute path");
    } else if has_nul(&given.cwd) {
        problems.error("process.cwd", "path contains nul byte (\\x00)");
    }
    if given.args.is_empty() {
        problems.error("process.args", "args must not be empty");
    }
    if let Some(index) = given.args.iter().position(|arg| has_nul(arg)) {
        problems.error(format!("process.args[{index}]"), "argument contains nul byte (\\x00)");
    }
}

fn terminal(given: &spec::Process, context: &ProcessContext, problems: &mut Problems) -> Option<(u16, u16)> {
    const PATH: &str = "process.terminal";
    let handed_over = given.terminal && context.detached;
    if handed_over && !context.console_socket {
        let message = "cannot allocate tty if runc will detach without setting console socket";
        problems.error_with_hint(PATH, message, "give --console-socket, or set process.terminal to false");
    }
    if context.console_socket && !handed_over {
        let message = "cannot use console socket if runc will not detach or allocate tty";
        problems.error_with_hint(
            PATH,
            message,
            "set process.terminal to true, or leave --console-socket out",
        );
    }
    let size = given.console_size.as_ref().filter(|_| given.terminal)?;
    match (u16::try_from(size.width), u16::try_from(size.height)) {
        (Ok(0), _) | (_, Ok(0)) => None,
        (Ok(columns), Ok(rows)) => Some((columns, rows)),
        _ => {
            let message = format!("no terminal is {} by {} characters", size.width, size.height);
            problems.error("process.consoleSize", message);
            None
        }
    }
}

fn user(given: &spec::User, context: &ProcessContext, problems: &mut Problems) -> User {
    /// The kernel takes -1 for "leave it".
    const INVALID: u32 = u32::MAX;
    if context.rootless_euid && !given.additional_gids.is_empty() {
        let message = "cannot set any additional groups in a rootless container";
        problems.error("process.user.additionalGids", message);
    }
    if given.uid == INVALID {
        problems.error("process.user.uid", format!("invalid user id {INVALID}"));
    }
    if given.gid == INVALID {
        problems.error("process.user.gid", format!("invalid group id {INVALID}"));
    }
    if context.user_namespace {
        check_mapped(given, &context.id_maps, problems);
    }
    let umask = given.umask.unwrap_or(0o022);
    if umask > 0o777 {
        problems.error("process.user.umask", format!("invalid umask {umask:#o} (0 to 0o777)"));
    }
    User {
        uid: given.uid,
        gid: given.gid,
        additional_gids: given.additional_gids.clone(),
        keep_groups: false,
        umask,
    }
}

/// An empty list is not known, or has been complained about.
fn check_mapped(given: &spec::User, maps: &IdMaps, problems: &mut Problems) {
    if !maps.uid.is_empty() && maps.outside_uid(given.uid).is_none() {
        let message = format!("cannot setuid to unmapped uid {} in user namespace", given.uid);
        problems.error_with_hint("process.user.uid", message, "linux.uidMappings must cover the user");
    }
    let unmapped = |gid: u32| !maps.gid.is_empty() && maps.outside_gid(gid).is_none();
    if unmapped(given.gid) {
        let message = format!("cannot setgid to unmapped gid {} in user namespace", given.gid);
        problems.error_with_hint("process.user.gid", message, "linux.gidMappings must cover the group");
    }
    if let Some(gid) = given.additional_gids.iter().find(|gid| unmapped(**gid)) {
        let message = format!("cannot set unmapped additional group {gid} in user namespace");
        problems.error("process.user.additionalGids", message);
    }
}

type CpuList = Option<Vec<usize>>;

fn affinity(given: Option<&spec::ExecCpuAffinity>, problems: &mut Problems) -> (CpuList, CpuList) {
    let mut list = |name: &str, text: &str| {
        if text.is_empty() {
            return None;
        }
        match cpu_list::parse(text) {
            Ok(cpus) => Some(cpus),
            Err(error) => {
                problems
                    .error(format!("process.execCPUAffinity.{name}"), format!("bad CPU affinity: {error}"));
                None
            }
        }
    };
    match given {
        Some(given) => (list("initial", &given.initial), list("final", &given.final_)),
        None => (None, None),
    }
}

fn security(given: &spec::Process, host: &Host, problems: &mut Problems) {
    if !given.apparmor_profile.is_empty() && !host.apparmor {
        let message = "unable to apply apparmor profile: apparmor is disabled or not supported";
        let hint = "leave the profile out, or enable AppArmor on the kernel's command line";
        problems.error_with_hint("process.apparmorProfile", message, hint);
    }
    if !given.selinux_label.is_empty() && !host.selinux {
        let message = "selinux label is specified in config, but selinux is disabled or not supported";
        let hint = "leave the label out, or run a system with SELinux";
        problems.error_with_hint("process.selinuxLabel", message, hint);
    }
    if let Some(adj) = given.oom_score_adj.filter(|adj| !(-1000..=1000).contains(adj)) {
        let message = format!(
            "failed to update /proc/self/oom_score_adj: invalid argument ({adj} is not within ±1000)"
        );
        problems.error("process.oomScoreAdj", message);
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
