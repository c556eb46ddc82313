//! Which boot a record belongs to.

use std::path::Path;
use std::sync::OnceLock;

/// Boot id for a record below `root`; empty where the record cannot outlive a boot, which is the usual place for it.
pub fn id_for(root: &Path) -> String {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    const RAMFS_MAGIC: u64 = 0x8584_58f6;
    let on_ram = rustix::fs::statfs(root)
        .ok()
        .and_then(|fs| u64::try_from(fs.f_type).ok())
        .is_some_and(|kind| kind == TMPFS_MAGIC || kind == RAMFS_MAGIC);
    if on_ram { String::new() } else { current().to_owned() }
}

/// The boot id of now, read once: `list` asks for each container.
pub fn current() -> &'static str {
    static CURRENT: OnceLock<String> = OnceLock::new();
    CURRENT.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_default()
    })
}
