//! Files of the kernel: mountinfo, `/proc/PID/cgroup`, `/proc/PID/stat`, and those of cgroups.

use std::path::Path;

use brig_cgroup::{Layout, Names, Request, parse};

pub fn kernel(bytes: &[u8]) {
    brig_runtime::fuzzing::proc_files(bytes);
    let text = String::from_utf8_lossy(bytes);
    let mounts = parse::cgroup_mounts(&text);
    let own = parse::memberships(&text);
    if let Ok(layout) = Layout::from_v1(&mounts, &own) {
        for path in ["/a/b", "a", "../../x", text.as_ref()] {
            names(&layout, path);
        }
    }
    for (key, value) in parse::flat_entries(&text) {
        // The first line of a name is its value.
        assert!(parse::flat_keyed(&text, key).is_some(), "{key} {value}");
    }
    let _ = parse::single(&text);
    let _ = parse::device_number(&text);
    let _ = parse::pids(&text).count();
    if let Some(numbers) = text.lines().take(4).find_map(parse::number_list) {
        assert!(numbers.len() <= 65536 * (1 + text.matches(',').count()));
    }
}

/// No path leads out of a hierarchy, or to its root.
pub fn names(layout: &Layout, path: &str) {
    let request = Request { cgroups_path: path, id: "c1", rootless: false };
    let Ok(names) = Names::decide(layout, &request) else { return };
    for group in &names.groups {
        let dir = group.dir();
        assert!(dir.starts_with(&group.mount) && dir != group.mount, "{}", dir.display());
        assert!(!group.path.components().any(|part| part.as_os_str() == ".."), "{}", dir.display());
        assert!(group.path.is_relative() && group.path != Path::new(""));
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "22 28 0:20 / /sys rw,nosuid shared:7 master:1 - sysfs sysfs rw\n\
         30 23 0:26 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n\
         31 23 0:27 /sub /sys/fs/cgroup/a\\040b rw - cgroup2 cgroup2 rw\n",
        "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n12:memory:/a\n11:devices:/b:c\n0::/u (deleted)\n",
        "12 (a) b (c)) S 1 12 12 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2",
        "oom 0\noom_kill 3\npopulated 1\nfrozen 0\n",
        "0-3,7,65535\n",
        "max\n",
        "8:0\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
