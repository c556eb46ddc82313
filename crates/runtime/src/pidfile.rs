//! `--pid-file`.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use brig_sys::{Context, SysError};

use crate::error::{Doing, Result};

/// Writes the pid, digits only. It appears whole, by rename: callers read it at any moment and parse it strictly.
///
/// # Errors
///
/// The directory is missing or not writable.
pub fn write(path: &Path, pid: i32) -> Result<()> {
    put(path, pid).doing(|| format!("writing pid file {}", path.display()))
}

fn put(path: &Path, pid: i32) -> Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(SysError::path("open", path, Errno::ISDIR).into());
    };
    // A name of its own, so that what a killed command left is in nobody's way.
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).on("getrandom", "")?;
    let temporary = dir.join(format!(".{}.{:016x}", name.to_string_lossy(), u64::from_ne_bytes(random)));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, &temporary, flags, Mode::from_raw_mode(0o666)).on_path("open", &temporary)?;
    let written = brig_sys::write_all(file.as_fd(), pid.to_string().as_bytes())
        .on_path("write", &temporary)
        .and_then(|()| renameat(CWD, &temporary, CWD, path).on_path("rename", path));
    if written.is_err() {
        let _ = unlinkat(CWD, &temporary, AtFlags::empty());
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_digits_only_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        write(&path, 1).unwrap();
        write(&path, 4711).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"4711");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("no/pid"), 1).is_err());
        assert!(write(dir.path(), 1).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
