//! Intel Resource Director Technology, through the resctrl file system.

use std::path::Path;

use brig_plan::IntelRdtSupport;

/// What the mounted resctrl file system offers; `None` when there is none.
pub fn support() -> Option<IntelRdtSupport> {
    let info = Path::new("/sys/fs/resctrl/info");
    info.exists().then(|| IntelRdtSupport {
        l3_cache: info.join("L3").exists() || info.join("L3CODE").exists(),
        memory_bandwidth: info.join("MB").exists(),
    })
}
