//! The runtimes, and their commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A runtime, or a way to use one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Brig,
    /// What the kernel alone costs: only `run` and `exec`.
    Floor,
    Crun,
    /// crun keeps compiled seccomp filters below its root; here that folder is removed before each command.
    CrunUncached,
    Runc,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Brig => "brig",
            Self::Floor => "floor",
            Self::Crun => "crun",
            Self::CrunUncached => "crun, no cache",
            Self::Runc => "runc",
        }
    }

    /// Whether it has all commands and is not a variant for one row.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Brig | Self::Crun | Self::Runc)
    }
}

#[derive(Debug)]
pub struct Runtime {
    pub kind: Kind,
    pub program: PathBuf,
    pub root: PathBuf,
    /// The first line of its `--version`.
    pub version: String,
}

impl Runtime {
    pub fn new(kind: Kind, program: &str, dir: &Path) -> Self {
        let version = if kind == Kind::Floor {
            "floor.c".to_owned()
        } else {
            let out = Command::new(program).arg("--version").output();
            let out = out.unwrap_or_else(|e| panic!("{program}: {e}"));
            String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned()
        };
        let root = dir.join(kind.name().replace(", ", "-").replace(' ', "-"));
        std::fs::create_dir_all(&root).unwrap();
        Self { kind, program: PathBuf::from(program), root, version }
    }

    /// The words of a command line.
    pub fn words(&self, args: &[&str]) -> Vec<String> {
        let mut words = vec![self.program.to_str().unwrap().to_owned()];
        if self.kind != Kind::Floor {
            words.extend(["--root".to_owned(), self.root.to_str().unwrap().to_owned()]);
        }
        words.extend(args.iter().map(|&arg| arg.to_owned()));
        words
    }

    /// Runs a command that is not measured.
    pub fn ok(&self, args: &[&str]) {
        let words = self.words(args);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().unwrap();
        assert!(status.success(), "{words:?}: {status}");
    }

    pub fn before(&self) {
        if self.kind == Kind::CrunUncached {
            let _ = std::fs::remove_dir_all(self.root.join(".cache"));
        }
    }
}
