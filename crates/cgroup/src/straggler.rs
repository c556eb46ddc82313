//! Who is still there, and what it waits for: the words for an error that nobody can fix but the host's owner.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::dir::read_path;

/// A process that has not left a cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Straggler {
    /// 0 if it is not in our pid namespace.
    pub pid: i32,
    /// Its name.
    pub comm: String,
    /// State letter of proc_pid_stat(5); `D` is an uninterruptible wait, in which SIGKILL has no effect.
    pub state: char,
    /// Kernel function it sleeps in, when known.
    pub wchan: Option<String>,
    /// Number of the system call it is in, when known.
    pub syscall: Option<i64>,
    /// The cgroup it is in.
    pub cgroup: PathBuf,
}

impl Straggler {
    /// Looks at a process that `cgroup` lists. What cannot be read is left out; `None` if it is gone or a zombie.
    pub(crate) fn look(pid: i32, cgroup: &Path) -> Option<Self> {
        let mut found = Self {
            pid,
            comm: String::new(),
            state: '?',
            wchan: None,
            syscall: None,
            cgroup: cgroup.to_owned(),
        };
        if pid <= 0 {
            return Some(found);
        }
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let stat = read_path(&proc.join("stat")).ok()?;
        let (comm, state) = comm_and_state(&stat)?;
        if matches!(state, 'Z' | 'X') {
            return None;
        }
        found.comm = comm.to_owned();
        found.state = state;
        found.wchan = read_path(&proc.join("wchan"))
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|name| !name.is_empty() && name != "0");
        found.syscall = read_path(&proc.join("syscall"))
            .ok()
            .and_then(|text| text.split(' ').next()?.parse().ok())
            .filter(|&number| number >= 0);
        Some(found)
    }
}

/// The second and third field of `/proc/PID/stat`. The name may hold anything, parentheses too.
fn comm_and_state(stat: &str) -> Option<(&str, char)> {
    let (front, back) = stat.rsplit_once(") ")?;
    let (_, comm) = front.split_once('(')?;
    Some((comm, back.chars().next()?))
}

impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid <= 0 {
            return write!(f, "a process outside of this pid namespace in {}", self.cgroup.display());
        }
        write!(f, "process {} ({}) in state {}", self.pid, self.comm, self.state)?;
        if self.state == 'D' {
            f.write_str(" (uninterruptible)")?;
        }
        if let Some(number) = self.syscall {
            write!(f, ", in system call {number}")?;
        }
        if let Some(wchan) = &self.wchan {
            write!(f, ", sleeping in {wchan}")?;
        }
        write!(f, ", cgroup {}", self.cgroup.display())
    }
}

/// At most three, as the end of a message; empty for none.
pub(crate) fn list(left: &[Straggler]) -> String {
    let mut text = String::new();
    for (index, straggler) in left.iter().take(3).enumerate() {
        text.push_str(if index == 0 { ": " } else { "; " });
        text.push_str(&straggler.to_string());
    }
    if left.len() > 3 {
        text.push_str(&format!("; and {} more", left.len() - 3));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn straggler(pid: i32) -> Straggler {
        Straggler {
            pid,
            comm: "dd".into(),
            state: 'D',
            wchan: Some("nfs_wait".into()),
            syscall: Some(1),
            cgroup: "/sys/fs/cgroup/x".into(),
        }
    }

    #[test]
    fn names_with_parentheses() {
        assert_eq!(comm_and_state("12 (a) b) (c) D 1 2"), Some(("a) b) (c", 'D')));
        assert_eq!(comm_and_state("12 (a"), None);
    }

    #[test]
    fn the_text_says_what_it_waits_for() {
        assert_eq!(
            straggler(7).to_string(),
            "process 7 (dd) in state D (uninterruptible), in system call 1, sleeping in nfs_wait, \
             cgroup /sys/fs/cgroup/x"
        );
        let many: Vec<_> = (1..=5).map(straggler).collect();
        assert!(list(&many).ends_with("; and 2 more"));
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn one_can_look_at_oneself() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = Straggler::look(pid, Path::new("/x")).unwrap();
        assert!(!found.comm.is_empty());
        assert!(Straggler::look(i32::MAX, Path::new("/x")).is_none());
    }
}
