//! Hands a v2 cgroup over to a user of the container.

use std::path::Path;

use rustix::fs::{AtFlags, Uid, chownat};
use rustix::io::Errno;

use crate::cgroup::Cgroup;
use crate::dir::read_path;
use crate::error::Result;
use crate::layout::Mode;

/// Names the files to hand over, since Linux 4.15.
const LIST: &str = "/sys/kernel/cgroup/delegate";

/// Those that cgroup-v2.rst names.
const FALLBACK: [&str; 3] = ["cgroup.procs", "cgroup.subtree_control", "cgroup.threads"];

impl Cgroup {
    /// Makes `uid` (of the host) the owner of the cgroup and of those files in it that are safe to give away: the
    /// limits stay the host's. On v1 nothing is safe, and nothing is done.
    ///
    /// # Errors
    ///
    /// An owner cannot be changed.
    pub fn delegate(&self, uid: u32) -> Result<()> {
        let Some(dir) = self.unified_dir()?.filter(|_| self.names.mode == Mode::V2) else {
            return Ok(());
        };
        let owner = Some(Uid::from_raw(uid));
        chownat(dir, "", owner, None, AtFlags::EMPTY_PATH)
            .map_err(|errno| dir.error("changing the owner of", "", errno))?;
        let list = read_path(Path::new(LIST)).unwrap_or_else(|_| FALLBACK.join("\n"));
        for file in list.lines().filter(|file| !file.is_empty() && !file.contains('/')) {
            match chownat(dir, file, owner, None, AtFlags::SYMLINK_NOFOLLOW) {
                // The list has files of controllers that need not be here.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(dir.error("changing the owner of", file, errno)),
            }
        }
        Ok(())
    }
}
