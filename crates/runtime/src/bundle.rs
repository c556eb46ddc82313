//! The bundle: a directory with a `config.json`.

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use brig_spec::Spec;
use brig_sys::trace::span;
use brig_sys::{Context, errno_text};

use crate::error::{Doing, Error, Result};

/// A bundle, read.
#[derive(Debug)]
pub struct Bundle {
    /// Its directory, absolute.
    pub dir: PathBuf,
    /// Its configuration.
    pub spec: Box<Spec>,
}

impl Bundle {
    /// Changes to the directory and reads its `config.json`. Relative paths of the command line are relative to it from here on,
    /// and hooks of the host's side run in it.
    ///
    /// # Errors
    ///
    /// The directory or the file is missing, or the file is not a configuration: the error has the JSON path.
    pub fn enter(dir: Option<&Path>) -> Result<Self> {
        if let Some(dir) = dir {
            rustix::process::chdir(dir).on_path("chdir", dir).doing(|| "entering the bundle")?;
        }
        let dir = rustix::process::getcwd(Vec::new()).on("getcwd", "")?;
        let dir = PathBuf::from(OsString::from_vec(dir.into_bytes()));
        let _span = span("reading config.json");
        let bytes = std::fs::read("config.json").map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::config("JSON specification file config.json not found")
                .hint("a bundle is made with the spec command"),
            _ => crate::error::io_error("read", Path::new("config.json"), &e).into(),
        })?;
        let (spec, _unknown) = Spec::from_slice(&bytes).map_err(|e| {
            Error::config(e.to_string())
                .context("config.json")
                .hint("brig check shows all that is wrong with it")
        })?;
        Ok(Self { dir, spec: Box::new(spec) })
    }
}

/// Opens the root file system and makes sure that its path is what it seems: a link on the way could lead to another
/// directory by the time it is used.
///
/// # Errors
///
/// The directory is missing, or its path leads through a link.
pub fn open_rootfs(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A filter around this process may hide the call.
        Err(Errno::NOSYS | Errno::PERM) => open_without_links(path, flags),
        other => other,
    };
    opened.map_err(|e| {
        let error = match e {
            Errno::LOOP => Error::config("invalid rootfs: not an absolute path, or a symlink"),
            e => Error::config(format!("invalid rootfs: stat {}: {}", path.display(), errno_text(e))),
        };
        error.with_errno(e).hint("root.path must name an existing directory, without links")
    })
}

/// Opens a directory, and asks the kernel whether that is where it is.
fn open_without_links(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let dir = rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
    let place = rustix::fs::readlink(format!("/proc/self/fd/{}", dir.as_raw_fd()), Vec::new())?;
    if Path::new(&OsString::from_vec(place.into_bytes())) == path { Ok(dir) } else { Err(Errno::LOOP) }
}
