//! A container for a command to be killed at, and the look at what is left afterwards.

use std::time::{Duration, Instant};

use brig_tests::{Bundle, host, runtime};
use rustix::process::{WaitId, WaitIdOptions, waitid};

/// One container id, used again and again: that it can be is part of what is shown.
pub struct Scene {
    bundle: Bundle,
}

impl Scene {
    pub fn new() -> Self {
        let bundle = Bundle::sleeping();
        bundle.write_config();
        Self { bundle }
    }

    /// Brings the container to where the command begins.
    pub fn prepare(&self, command: &str) {
        match command {
            "create" | "run" => {}
            "start" => self.bundle.create(),
            "resume" => {
                self.bundle.start();
                self.bundle.brig("pause").arg(&self.bundle.id).ok();
            }
            _ => self.bundle.start(),
        }
    }

    /// The whole command line.
    pub fn command_line(&self, command: &str) -> Vec<String> {
        let bundle = self.bundle.path().display().to_string();
        let id = self.bundle.id.as_str();
        let mut line = vec![
            runtime().display().to_string(),
            "--root".to_owned(),
            self.bundle.root.display().to_string(),
        ];
        line.extend(host::by_systemd().then(|| "--systemd-cgroup".to_owned()));
        line.push(command.to_owned());
        let rest: Vec<&str> = match command {
            "create" => vec!["--bundle", &bundle, id],
            "run" => vec!["--bundle", &bundle, "--detach", id],
            "exec" => vec!["--detach", id, "sleep", "2000"],
            "update" => vec!["--pids-limit", "77", id],
            "delete" => vec!["--force", id],
            _ => vec![id],
        };
        line.extend(rest.into_iter().map(str::to_owned));
        line
    }

    /// What must hold before anybody cleans up: nothing frozen that was not, no process that only exec's payload may be.
    pub fn check_before_delete(&self, command: &str) -> Result<(), String> {
        match command {
            "update" if self.status() == "paused" => Err("update left the container frozen".to_owned()),
            "exec" => {
                let begun = Instant::now();
                loop {
                    let strangers: Vec<String> =
                        self.commands().into_iter().filter(|c| !c.starts_with("sleep")).collect();
                    if strangers.is_empty() {
                        return Ok(());
                    }
                    if begun.elapsed() > Duration::from_secs(2) {
                        return Err(format!("exec left {strangers:?}"));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => Ok(()),
        }
    }

    fn status(&self) -> String {
        let state = self.bundle.brig("state").arg(&self.bundle.id).run();
        serde_json::from_str::<serde_json::Value>(&state.out)
            .ok()
            .and_then(|v| v["status"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Command lines of all processes in the container's cgroups.
    fn commands(&self) -> Vec<String> {
        let mut pids: Vec<String> = host::cgroup_dirs(&self.bundle.cgroup())
            .iter()
            .filter_map(|dir| std::fs::read_to_string(dir.join("cgroup.procs")).ok())
            .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        pids.sort();
        pids.dedup();
        pids.iter()
            .filter_map(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| !line.is_empty())
            .collect()
    }

    /// `delete --force`, and the look around.
    pub fn delete(&self) -> Result<(), String> {
        self.delete_and_look(orphans)
    }

    /// The same while others are at work, whose processes are no orphans.
    pub fn delete_beside_others(&self) -> Result<(), String> {
        self.delete_and_look(Vec::new)
    }

    fn delete_and_look(&self, orphans: impl FnOnce() -> Vec<String>) -> Result<(), String> {
        let delete = self.bundle.brig("delete").args(["--force", &self.bundle.id]).run();
        // First these: the command whose child was killed may itself be on its way to the end.
        let mut left = orphans();
        left.extend(self.bundle.leftovers());
        if !delete.status.success() {
            left.insert(0, format!("delete --force failed: {}", delete.err.trim()));
        }
        if left.is_empty() {
            return Ok(());
        }
        self.sweep();
        Err(left.join(", "))
    }

    /// Takes away by hand what the runtime left, so that the next point starts clean.
    fn sweep(&self) {
        for dir in host::cgroup_dirs(&self.bundle.cgroup()) {
            for file in ["cgroup.freeze", "freezer.state"] {
                let thawed = if file == "cgroup.freeze" { "0" } else { "THAWED" };
                let _ = std::fs::write(dir.join(file), thawed);
            }
            for pid in std::fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default().lines() {
                if let Some(pid) = pid.parse().ok().and_then(rustix::process::Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
        orphans();
        for dir in host::cgroup_dirs(&self.bundle.cgroup()) {
            let _ = std::fs::remove_dir(dir);
        }
        let _ = std::fs::remove_dir_all(self.bundle.root.join(&self.bundle.id));
    }
}

/// Processes that were orphaned to this one and do not end. Those that are about to get a moment.
pub fn orphans() -> Vec<String> {
    let begun = Instant::now();
    let left = loop {
        while let Ok(Some(_)) = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {}
        let left = children();
        if left.is_empty() || begun.elapsed() > Duration::from_secs(10) {
            break left;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut found = Vec::new();
    for pid in left {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        found.push(format!("process {pid} ({})", String::from_utf8_lossy(&line).replace('\0', " ").trim()));
        if let Some(pid) = rustix::process::Pid::from_raw(pid) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED);
        }
    }
    found
}

/// Children of this process but the one that clears up behind it, those included that have ended.
pub fn children() -> Vec<i32> {
    let own = std::process::id();
    let text = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.filter(|pid| Some(*pid) != brig_tests::caretaker::pid()).collect()
}
