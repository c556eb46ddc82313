//! `spec`: writes a `config.json` to start from.

use crate::status::ExitCode;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::process::{getegid, geteuid};

use super::setup;
use crate::error::{Error, Kind};
use crate::flags::{Command, Flag, Parsed};
use crate::global::Global;

const FILE: &str = "config.json";

/// The table.
pub static COMMAND: Command = Command {
    operands: "",
    description: "\
Writes a config.json that runs sh on a terminal, in a root file system that is to be found in
the directory rootfs of the bundle. It is made to be edited.",
    flags: &[setup::BUNDLE, Flag::switch("rootless", "for a container that a user other than root runs")],
    min_operands: 0,
    max_operands: 0,
    ..Command::new("spec", "write a config.json to start from", run)
};

/// What `spec` is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecArgs {
    /// `--bundle`; empty for the current directory.
    pub bundle: PathBuf,
    /// `--rootless`.
    pub rootless: bool,
}

impl SpecArgs {
    fn new(parsed: &Parsed) -> Self {
        Self {
            bundle: parsed.flags.path("bundle").unwrap_or_default().into(),
            rootless: parsed.flags.switch("rootless"),
        }
    }
}

fn run(parsed: &Parsed, _global: &Global) -> Result<ExitCode, Error> {
    write(&SpecArgs::new(parsed))?;
    Ok(ExitCode::SUCCESS)
}

fn write(args: &SpecArgs) -> Result<(), Error> {
    let (euid, egid) = (geteuid().as_raw(), getegid().as_raw());
    let spec = brig_spec::default::spec(args.rootless, is_pure_cgroup_v2(), euid, egid);
    let text = brig_spec::default::to_text(&spec)
        .map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))?;
    let path = args.bundle.join(FILE);
    let mut file =
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::caller(format!("File {FILE} exists. Remove it first")),
            _ => Error::path("open", &path, &error),
        })?;
    file.write_all(text.as_bytes()).map_err(|error| Error::path("write", &path, &error))
}

fn is_pure_cgroup_v2() -> bool {
    /// `CGROUP2_SUPER_MAGIC`, see statfs(2).
    const CGROUP2: i64 = 0x6367_7270;
    statfs(Path::new("/sys/fs/cgroup")).is_ok_and(|fs| fs.f_type == CGROUP2)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::message;
    use super::{SpecArgs, write};

    #[test]
    fn writes_once() {
        let dir = tempfile::tempdir().unwrap();
        for rootless in [false, true] {
            let args = SpecArgs { bundle: dir.path().join(if rootless { "a" } else { "b" }), rootless };
            fs::create_dir(&args.bundle).unwrap();
            write(&args).unwrap();
            let text = fs::read_to_string(args.bundle.join("config.json")).unwrap();
            assert!(text.starts_with("{\n\t\"ociVersion\": \"1.3.0\",\n"), "{text}");
            assert!(text.ends_with('}'));
            assert_eq!(text.contains("\"type\": \"user\""), rootless);
            assert_eq!(message(write(&args)), "File config.json exists. Remove it first");
        }
    }

    #[test]
    fn the_bundle_has_to_be_there() {
        let args = SpecArgs { bundle: "/none".into(), rootless: false };
        assert_eq!(message(write(&args)), "open /none/config.json: no such file or directory");
    }
}
