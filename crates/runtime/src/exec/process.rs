//! What `exec` runs: the container's process with changes, or one described in a file. `config.json` is not read: the
//! specification says that later edits of it have no effect.

use brig_spec::{Capabilities, Process};

use crate::error::{Error, Result};

/// What to run.
#[derive(Debug, Clone)]
pub enum Program {
    /// `--process FILE`: the file's contents.
    File(Box<Process>),
    /// The container's process, changed by flags.
    Changes(Changes),
}

/// Flags of `exec` about the process.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The command.
    pub args: Vec<String>,
    /// `--cwd`.
    pub cwd: Option<String>,
    /// `--env`.
    pub env: Vec<String>,
    /// `--tty`.
    pub terminal: bool,
    /// `--user`: user and, if given, group.
    pub user: Option<(u32, Option<u32>)>,
    /// `--additional-gids`.
    pub additional_gids: Vec<u32>,
    /// `--cap`.
    pub capabilities: Vec<String>,
    /// `--no-new-privs`.
    pub no_new_privileges: bool,
    /// `--apparmor`.
    pub apparmor_profile: Option<String>,
    /// `--process-label`.
    pub selinux_label: Option<String>,
}

/// The process as the specification would describe it.
///
/// # Errors
///
/// There is no command.
pub(super) fn describe(program: &Program, container: &Process) -> Result<Process> {
    match program {
        Program::File(file) => Ok(from_file(file, container)),
        Program::Changes(changes) => changed(changes, container),
    }
}

/// A described process stands for itself; what it leaves out of the things that confine it is the container's.
fn from_file(file: &Process, container: &Process) -> Process {
    let mut process = file.clone();
    process.capabilities = process.capabilities.or_else(|| container.capabilities.clone());
    process.oom_score_adj = process.oom_score_adj.or(container.oom_score_adj);
    process.scheduler = process.scheduler.or_else(|| container.scheduler.clone());
    process.io_priority = process.io_priority.or_else(|| container.io_priority.clone());
    process.exec_cpu_affinity = process.exec_cpu_affinity.or_else(|| container.exec_cpu_affinity.clone());
    process.user.umask = process.user.umask.or(container.user.umask);
    if process.selinux_label.is_empty() {
        process.selinux_label.clone_from(&container.selinux_label);
    }
    process
}

fn changed(changes: &Changes, container: &Process) -> Result<Process> {
    if changes.args.is_empty() {
        return Err(Error::config("exec args cannot be empty"));
    }
    let mut process = container.clone();
    process.args.clone_from(&changes.args);
    process.terminal = changes.terminal;
    process.console_size = None;
    process.env.extend(changes.env.iter().cloned());
    process.no_new_privileges |= changes.no_new_privileges;
    process.user.additional_gids.extend(&changes.additional_gids);
    if let Some(cwd) = &changes.cwd {
        process.cwd.clone_from(cwd);
    }
    if let Some((uid, gid)) = changes.user {
        process.user.uid = uid;
        process.user.gid = gid.unwrap_or(process.user.gid);
    }
    if let Some(profile) = &changes.apparmor_profile {
        process.apparmor_profile.clone_from(profile);
    }
    if let Some(label) = &changes.selinux_label {
        process.selinux_label.clone_from(label);
    }
    if !changes.capabilities.is_empty() {
        add_capabilities(process.capabilities.get_or_insert_default(), &changes.capabilities);
    }
    Ok(process)
}

/// Never to the inheritable set (CVE-2022-29162), and to the ambient one only where it could have an effect.
fn add_capabilities(sets: &mut Capabilities, names: &[String]) {
    let ambient = !sets.inheritable.is_empty();
    for set in [&mut sets.bounding, &mut sets.effective, &mut sets.permitted] {
        set.extend(names.iter().cloned());
    }
    if ambient {
        sets.ambient.extend(names.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Process {
        Process {
            args: vec!["sh".to_owned()],
            cwd: "/srv".to_owned(),
            env: vec!["A=1".to_owned()],
            user: brig_spec::User { uid: 1000, gid: 7, ..Default::default() },
            capabilities: Some(Capabilities { bounding: vec!["CAP_KILL".to_owned()], ..Default::default() }),
            terminal: true,
            ..Default::default()
        }
    }

    #[test]
    fn what_is_not_changed_is_the_containers() {
        let changes =
            Changes { args: vec!["id".to_owned()], env: vec!["A=2".to_owned()], ..Default::default() };
        let p = changed(&changes, &container()).unwrap();
        assert_eq!(
            (p.args.as_slice(), p.cwd.as_str(), p.user.uid, p.user.gid),
            (["id".to_owned()].as_slice(), "/srv", 1000, 7)
        );
        assert_eq!(p.env, ["A=1", "A=2"]);
        assert!(!p.terminal, "a terminal is asked for anew");
    }

    #[test]
    fn capabilities_never_become_inheritable() {
        let changes = Changes {
            args: vec!["id".to_owned()],
            capabilities: vec!["CAP_SYS_TIME".to_owned()],
            ..Default::default()
        };
        let sets = changed(&changes, &container()).unwrap().capabilities.unwrap();
        assert_eq!(sets.bounding, ["CAP_KILL", "CAP_SYS_TIME"]);
        assert_eq!(sets.effective, ["CAP_SYS_TIME"]);
        assert!(sets.inheritable.is_empty() && sets.ambient.is_empty());
    }

    #[test]
    fn a_command_is_needed() {
        assert_eq!(
            changed(&Changes::default(), &container()).unwrap_err().to_string(),
            "exec args cannot be empty"
        );
    }
}
