//! Which boot a record belongs to.

use std::path::Path;

/// Boot id for a record below `root`; empty where the record cannot outlive a boot, which is the usual place for it.
pub fn id_for(root: &Path) -> String {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let on_ram = rustix::fs::statfs(root)
        .ok()
        .and_then(|fs| u64::try_from(fs.f_type).ok())
        .is_some_and(|kind| kind == TMPFS_MAGIC || kind == RAMFS_MAGIC);
    if on_ram { String::new() } else { current() }
}

/// The boot id of now.
pub fn current() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
