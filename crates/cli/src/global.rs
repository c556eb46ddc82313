//! The global flags, resolved against the environment.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::caller::Caller;
use crate::error::Error;
use crate::flags::Values;
use crate::log;
use crate::paths;
use crate::value::number::{NumberError, boolean};

/// What holds for every command.
#[derive(Debug, Clone)]
pub struct Global {
    /// The name the program was called by, without directories.
    pub program: String,
    /// `--debug`.
    pub debug: bool,
    /// `--systemd-cgroup`.
    pub systemd_cgroup: bool,
    /// Where the state of containers is.
    pub root: Root,
    /// `--rootless`, as it was given: only the commands that make containers look at it.
    rootless: String,
    /// `--trace` or `$BRIG_TRACE`, absolute.
    pub trace: Option<PathBuf>,
}

/// The directory with the state of containers, and where its name comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// `--root`.
    Given(PathBuf),
    /// The system's.
    System,
    /// The user's own, in `$XDG_RUNTIME_DIR`.
    User(PathBuf),
}

impl Root {
    const SYSTEM: &str = "/run/runc";

    fn resolve(given: Option<OsString>) -> Result<Self, Error> {
        if let Some(given) = given {
            let root = paths::absolute(Path::new(&given))?;
            if root == Path::new("/") {
                return Err(Error::caller("Option --root argument should not be set to /"));
            }
            return Ok(Self::Given(root));
        }
        let Some(xdg) = env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) else {
            return Ok(Self::System);
        };
        let user = env::var_os("USER");
        if Caller::this_process().uses_xdg_runtime_dir(user.as_deref()) {
            Ok(Self::User(Path::new(&xdg).join("runc")))
        } else {
            Ok(Self::System)
        }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        match self {
            Self::Given(path) | Self::User(path) => path,
            Self::System => Path::new(Self::SYSTEM),
        }
    }

    /// The path, for commands that go on to use what is in it. The user's own directory is made if it is missing,
    /// and made sticky: that keeps cleaners of `$XDG_RUNTIME_DIR` away (XDG Base Directory Specification).
    ///
    /// # Errors
    ///
    /// `$XDG_RUNTIME_DIR` is not the user's.
    pub fn prepared(&self) -> Result<&Path, Error> {
        if let Self::User(path) = self {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
                Error::path("mkdir", path, &error)
                    .with_hint("the path in $XDG_RUNTIME_DIR must be writable by the user")
            })?;
            fs::set_permissions(path, Permissions::from_mode(0o1700)).map_err(|error| {
                Error::path("chmod", path, &error)
                    .with_hint("you should check permission of the path in $XDG_RUNTIME_DIR")
            })?;
        }
        Ok(self.path())
    }
}

impl Global {
    /// Reads `values`, the environment and, for relative paths, the current directory.
    ///
    /// # Errors
    ///
    /// `--root` is `/`, or a value is not one of those that its flag has.
    pub fn resolve(program: &str, values: &Values) -> Result<Self, Error> {
        let trace =
            values.path("trace").or_else(|| env::var_os("BRIG_TRACE").filter(|path| !path.is_empty()));
        Ok(Self {
            program: program.to_owned(),
            debug: values.switch("debug"),
            systemd_cgroup: systemd_cgroup(values)?,
            root: Root::resolve(values.raw("root"))?,
            rootless: values.text("rootless")?.unwrap_or_default(),
            trace: trace.map(|path| paths::absolute(Path::new(&path))).transpose()?,
        })
    }

    /// `--rootless`: whether errors for want of permission on cgroups are ignored; `None` is `auto`.
    ///
    /// # Errors
    ///
    /// It is neither `auto` nor a boolean.
    pub fn rootless(&self) -> Result<Option<bool>, Error> {
        if self.rootless.is_empty() || self.rootless.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        boolean(&self.rootless)
            .map(Some)
            .ok_or_else(|| Error::caller(NumberError::syntax("ParseBool", &self.rootless).to_string()))
    }
}

/// `--systemd-cgroup`, or podman's word for it.
fn systemd_cgroup(values: &Values) -> Result<bool, Error> {
    let manager = values.text("cgroup-manager")?;
    match manager.as_deref() {
        None | Some("cgroupfs") => Ok(values.switch("systemd-cgroup")),
        Some("systemd") => Ok(true),
        Some(other) => Err(Error::caller(format!("--cgroup-manager {other} is not supported"))),
    }
}

/// The part of the global flags that is needed before anything can be said.
///
/// # Errors
///
/// `invalid log-format: X`.
pub fn log_settings(values: &Values) -> Result<log::Settings, Error> {
    let format = values.text("log-format")?.unwrap_or_default();
    let json = match format.as_str() {
        "" | "text" => false,
        "json" => true,
        _ => return Err(Error::caller(format!("invalid log-format: {format}"))),
    };
    Ok(log::Settings { debug: values.switch("debug"), json, file: values.path("log").map(PathBuf::from) })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use super::{Global, Root, log_settings};
    use crate::flags::{Values, parse};

    fn values(words: &[&str]) -> Values {
        let words: Vec<_> = words.iter().chain(&["list"]).map(OsString::from).collect();
        parse(&words).unwrap().globals
    }

    fn global(words: &[&str]) -> Result<Global, String> {
        Global::resolve("brig", &values(words)).map_err(|error| error.message)
    }

    #[test]
    fn root() {
        assert_eq!(global(&["--root", "/a/./b/.."]).unwrap().root, Root::Given("/a".into()));
        let here = std::env::current_dir().unwrap();
        assert_eq!(global(&["--root", ""]).unwrap().root, Root::Given(here.clone()));
        assert_eq!(global(&["--root", "r"]).unwrap().root, Root::Given(here.join("r")));
        for root in ["/", "//", "/..", "/a/.."] {
            assert_eq!(
                global(&["--root", root]).unwrap_err(),
                "Option --root argument should not be set to /"
            );
        }
        assert_eq!(Root::System.path(), Path::new("/run/runc"));
    }

    #[test]
    fn the_users_root_is_made_sticky() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x/runc");
        assert_eq!(Root::User(path.clone()).prepared(), Ok(path.as_path()));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o1700);
        let error = Root::User(PathBuf::from("/proc/none/runc")).prepared().unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("the path in $XDG_RUNTIME_DIR must be writable by the user"));
    }

    #[test]
    fn rootless() {
        let answer = |setting| {
            let global = global(&["--rootless", setting]).unwrap();
            global.rootless().map_err(|error| error.message)
        };
        assert_eq!(answer("true"), Ok(Some(true)));
        assert_eq!(answer("0"), Ok(Some(false)));
        assert_eq!(answer("AUTO"), Ok(None));
        assert_eq!(answer(""), Ok(None));
        assert_eq!(answer("abc").unwrap_err(), r#"strconv.ParseBool: parsing "abc": invalid syntax"#);
    }

    #[test]
    fn cgroup_manager() {
        assert!(!global(&["--cgroup-manager", "cgroupfs"]).unwrap().systemd_cgroup);
        assert!(global(&["--cgroup-manager", "systemd"]).unwrap().systemd_cgroup);
        assert!(global(&["--systemd-cgroup"]).unwrap().systemd_cgroup);
        assert!(global(&["--cgroup-manager", "disabled"]).is_err());
    }

    #[test]
    fn log_format() {
        assert!(!log_settings(&values(&[])).unwrap().json);
        assert!(!log_settings(&values(&["--log-format", ""])).unwrap().json);
        let settings = log_settings(&values(&["--log-format=json", "--debug", "--log", "x"])).unwrap();
        assert!(settings.json && settings.debug);
        assert_eq!(settings.file, Some(PathBuf::from("x")));
        assert_eq!(
            log_settings(&values(&["--log-format", "xml"])).unwrap_err().message,
            "invalid log-format: xml"
        );
    }
}
