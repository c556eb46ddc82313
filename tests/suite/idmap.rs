//! Id-mapped mounts.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;

use brig_tests::{Bundle, Value, json, since_runc};

/// A directory in the bundle with a file of user and group 1000 in it.
fn source(b: &Bundle) -> PathBuf {
    let dir = b.path().join("source");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("file"), "x").unwrap();
    chown(dir.join("file"), Some(1000), Some(1000)).unwrap();
    dir
}

fn maps(inside: u32, outside: u32, size: u32) -> Value {
    json!([{ "containerID": inside, "hostID": outside, "size": size }])
}

fn mapped(b: &mut Bundle, options: &[&str], map: Option<Value>) {
    let mut mount = json!({ "destination": "/mnt", "source": source(b), "options": options });
    if let Some(map) = map {
        mount["uidMappings"] = map.clone();
        mount["gidMappings"] = map;
    }
    b.mount(mount);
}

const SHOW: &str = "stat -c '%u %g' /mnt/file";

#[test]
fn mappings_of_the_mount() {
    since_runc((1, 2), "id-mapped mounts", || {
        let mut b = Bundle::sh(SHOW);
        mapped(&mut b, &["bind"], Some(maps(1000, 5, 10)));
        assert_eq!(b.run().ok().out, "5 5\n");
        // What is not mapped belongs to nobody.
        let mut b = Bundle::sh(SHOW);
        mapped(&mut b, &["rbind", "idmap"], Some(maps(0, 5, 10)));
        assert_eq!(b.run().ok().out, "65534 65534\n");
    });
}

#[test]
fn mappings_of_the_containers_user_namespace() {
    since_runc((1, 2), "id-mapped mounts", || {
        for option in ["idmap", "ridmap"] {
            let mut b = Bundle::sh(SHOW);
            b.in_user_namespace();
            mapped(&mut b, &["rbind", option], None);
            assert_eq!(b.run().ok().out, "1000 1000\n", "{option}");
        }
        // Without, the file's owner is nobody there.
        let mut b = Bundle::sh(SHOW);
        b.in_user_namespace();
        mapped(&mut b, &["rbind"], None);
        assert_eq!(b.run().ok().out, "65534 65534\n");
    });
}

#[test]
fn mappings_of_another_user_namespace() {
    since_runc((1, 2), "id-mapped mounts", || {
        // As seen from the host: 1000 becomes 100005, which is 5 in the container.
        let mut b = Bundle::sh(SHOW);
        b.in_user_namespace();
        mapped(&mut b, &["bind"], Some(maps(1000, 100_005, 10)));
        assert_eq!(b.run().ok().out, "5 5\n");
    });
}

#[test]
fn mounts_below_are_mapped_where_that_is_asked_for() {
    since_runc((1, 2), "id-mapped mounts", || {
        for (option, expected) in [("idmap", "1000 1000\n"), ("ridmap", "5 5\n")] {
            let shared = brig_tests::host::SharedMount::new();
            let below = shared.path().join("below");
            fs::create_dir(&below).unwrap();
            rustix::mount::mount("tmpfs", &below, "tmpfs", rustix::mount::MountFlags::empty(), c"").unwrap();
            fs::write(below.join("file"), "x").unwrap();
            chown(below.join("file"), Some(1000), Some(1000)).unwrap();
            let mut b = Bundle::sh("stat -c '%u %g' /mnt/below/file");
            b.mount(json!({
                "destination": "/mnt", "source": shared.path(), "options": ["rbind", "rprivate", option],
                "uidMappings": maps(1000, 5, 10), "gidMappings": maps(1000, 5, 10),
            }));
            assert_eq!(b.run().ok().out, expected, "{option}");
        }
    });
}

#[test]
fn a_source_in_the_container_itself() {
    since_runc((1, 4), "sources in mounts that the container has just made", || {
        let mut b = Bundle::sh("stat -c '%u %g' /other/file");
        let rootfs = b.rootfs();
        b.mount(json!({ "destination": "/mnt", "source": source(&b), "options": ["bind"] }));
        b.mount(json!({
            "destination": "/other", "source": rootfs.join("mnt"), "options": ["bind"],
            "uidMappings": maps(1000, 5, 10), "gidMappings": maps(1000, 5, 10),
        }));
        assert_eq!(b.run().ok().out, "5 5\n");
    });
}

#[test]
fn what_cannot_be_mapped_is_refused() {
    since_runc((1, 2), "id-mapped mounts", || {
        let mut b = Bundle::default();
        mapped(&mut b, &["bind"], None);
        let count = b.config["mounts"].as_array().unwrap().len();
        b.config["mounts"][count - 1]["uidMappings"] = maps(0, 0, 1);
        b.run().run().exits(1).says("id-mapped mounts must have both uid and gid mappings specified");
        let mut b = Bundle::default();
        b.mount(json!({
            "destination": "/mnt", "type": "tmpfs", "source": "tmpfs",
            "uidMappings": maps(0, 0, 1), "gidMappings": maps(0, 0, 1),
        }));
        b.run().run().exits(1).says("id-mapped mounts are only supported for bind-mounts");
        b.assert_gone();
    });
}
