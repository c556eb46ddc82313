use std::path::Path;

use super::*;
use crate::testing::Case;
use crate::{
    IdMap, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NOSYMFOLLOW, MountAttrs,
};

fn case(mounts: &str) -> Case {
    let mut case = Case::bare();
    let text = format!(r#"{{"mounts":[{mounts}]}}"#);
    case.spec.mounts = Case::json(&text).spec.mounts;
    case
}

/// The one mount in `mount`, which nothing is wrong with.
fn of(mount: &str) -> Mount {
    case(mount).plan().mounts.remove(0)
}

fn complaints(mount: &str) -> Vec<String> {
    case(mount).complaints()
}

fn params(options: &FsOptions) -> Vec<String> {
    let text = |(key, value): &(String, Option<String>)| match value {
        Some(value) => format!("{key}={value}"),
        None => key.clone(),
    };
    options.params.iter().map(text).collect()
}

#[test]
fn a_tmpfs_is_read() {
    let mount = of(
        r#"{"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","strictatime","mode=755","size=64k"]}"#,
    );
    assert_eq!(mount.target, Path::new("/dev"));
    let MountKind::Tmpfs { options, copy_up: false } = &mount.kind else { panic!("{:?}", mount.kind) };
    assert_eq!(options.source.as_deref(), Some("tmpfs"));
    assert_eq!(params(options), ["mode=755", "size=64k"]);
    assert_eq!(mount.attrs, MountAttrs { set: MOUNT_ATTR_NOSUID | 0x20, clear: 0x70 });
    assert_eq!(mount.implied_clear(), 0);
}

#[test]
fn a_bind_mount_is_read() {
    let mount = of(
        r#"{"destination":"/data","type":"ignored","source":"/srv","options":["rbind","ro","rslave","private"]}"#,
    );
    assert_eq!(mount.kind, MountKind::Bind { source: "/srv".into(), recursive: true });
    assert_eq!(mount.attrs, MountAttrs { set: MOUNT_ATTR_RDONLY, clear: 0 });
    assert_eq!(mount.propagation.len(), 2);
}

#[test]
fn bind_sources_are_relative_to_the_bundle() {
    let source = |text: &str| match of(text).kind {
        MountKind::Bind { source, .. } => source,
        kind => panic!("{kind:?}"),
    };
    assert_eq!(
        source(r#"{"destination":"/d","source":"x/../y","options":["bind"]}"#),
        Path::new("/b/x/../y")
    );
    let expected = "mounts[0].source: a bind mount needs a source";
    assert_eq!(complaints(r#"{"destination":"/d","options":["bind"]}"#), [expected]);
}

#[test]
fn a_bind_mount_with_flags_has_exactly_these() {
    let implied =
        |options| of(&format!(r#"{{"destination":"/d","source":"/s","options":["bind"{options}]}}"#));
    assert_eq!(implied("").implied_clear(), 0);
    let all = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOSYMFOLLOW;
    assert_eq!(implied(r#","ro""#).implied_clear(), all);
    assert_eq!(implied(r#","rw""#).implied_clear(), all);
    assert_eq!(
        implied(r#","noatime","nodev","exec""#).implied_clear(),
        all & !0xc | MOUNT_ATTR_RDONLY | 0x80
    );
}

#[test]
fn types_are_told_apart() {
    for (fstype, expected) in [
        ("proc", MountKind::Proc(FsOptions::default())),
        ("sysfs", MountKind::Sysfs(FsOptions::default())),
        ("cgroup", MountKind::Cgroup(FsOptions::default())),
        ("ext4", MountKind::Other { fstype: "ext4".into(), options: FsOptions::default() }),
        ("cgroup2", MountKind::Other { fstype: "cgroup2".into(), options: FsOptions::default() }),
    ] {
        assert_eq!(of(&format!(r#"{{"destination":"/x","type":"{fstype}"}}"#)).kind, expected);
    }
}

#[test]
fn only_options_make_a_bind_mount() {
    for fstype in ["", "bind", "none"] {
        let mount = format!(r#"{{"destination":"/x","type":"{fstype}","source":"/s"}}"#);
        let expected = format!("mounts[0].type: no file system has the type {fstype:?}");
        assert_eq!(complaints(&mount), [expected]);
    }
}

#[test]
fn read_only_is_the_superblocks_where_it_must_be() {
    let of = |fstype: &str, target: &str| {
        let mount =
            of(&format!(r#"{{"destination":"{target}","type":"{fstype}","options":["sync","ro","x"]}}"#));
        assert_eq!(mount.attrs.set, MOUNT_ATTR_RDONLY);
        match &mount.kind {
            MountKind::Proc(options) | MountKind::Sysfs(options) | MountKind::Cgroup(options) => {
                params(options)
            }
            MountKind::Tmpfs { options, .. } | MountKind::Other { options, .. } => params(options),
            kind => panic!("{kind:?}"),
        }
    };
    for fstype in ["proc", "sysfs", "tmpfs", "cgroup"] {
        assert_eq!(of(fstype, "/x"), ["sync", "x"], "{fstype}");
    }
    assert_eq!(of("ext4", "/x"), ["ro", "sync", "x"]);
    assert_eq!(of("devtmpfs", "/dev"), ["sync", "x"]);
}

#[test]
fn a_remount_changes_what_is_there() {
    let options = |mount: &str| match of(mount).kind {
        MountKind::Remount { options } => options.map(|options| params(&options)),
        kind => panic!("{kind:?}"),
    };
    assert_eq!(options(r#"{"destination":"/x","options":["bind","remount","ro"]}"#), None);
    let params = |fstype: &str, given: &str| {
        let given: Vec<_> = given.split(' ').map(|option| format!(r#","{option}""#)).collect();
        let mount =
            format!(r#"{{"destination":"/x","type":"{fstype}","options":["remount"{}]}}"#, given.concat());
        options(&mount).unwrap().join(" ")
    };
    assert_eq!(params("ext4", "noatime ro lazytime data=ordered"), "ro lazytime data=ordered");
    assert_eq!(params("ext4", "rw async"), "rw async");
    assert_eq!(params("", "ro"), "ro");
    assert_eq!(params("tmpfs", "ro size=1m"), "size=1m");
}

#[test]
fn recursive_attributes_are_apart() {
    let mount = of(r#"{"destination":"/x","source":"/s","options":["rbind","rro","rnoatime","rsuid"]}"#);
    assert!(mount.attrs.is_empty());
    let expected = MountAttrs { set: MOUNT_ATTR_RDONLY | 0x10, clear: 0x70 | MOUNT_ATTR_NOSUID };
    assert_eq!(mount.recursive_attrs, expected);
}

#[test]
fn copy_up_is_for_tmpfs() {
    let mount = of(r#"{"destination":"/x","type":"tmpfs","options":["tmpcopyup"]}"#);
    assert!(matches!(mount.kind, MountKind::Tmpfs { copy_up: true, .. }));
    let expected = "mounts[0].options: tmpcopyup has no effect on anything but a new tmpfs";
    assert_eq!(complaints(r#"{"destination":"/x","type":"ext4","options":["tmpcopyup"]}"#), [expected]);
}

#[test]
fn destinations_are_cleaned() {
    let target = |destination: &str| {
        case(&format!(r#"{{"destination":"{destination}","type":"tmpfs"}}"#))
            .draft()
            .value
            .mounts
            .remove(0)
            .target
    };
    assert_eq!(target("/a/./b//../c/"), Path::new("/a/c"));
    assert_eq!(target("a"), Path::new("/a"));
    let expected = "mounts[0].destination: \"a\" is not absolute, using it as relative to /";
    assert_eq!(complaints(r#"{"destination":"a","type":"tmpfs"}"#), [expected]);
}

#[test]
fn the_root_is_not_mounted_over() {
    let expected = "mounts[0].destination: mountpoint \"/b/rootfs\" is on the top of rootfs \"/b/rootfs\"";
    for destination in ["/", "//", "/..", "/a/.."] {
        assert_eq!(complaints(&format!(r#"{{"destination":"{destination}","type":"tmpfs"}}"#)), [expected]);
    }
}

#[test]
fn nul_bytes_are_refused() {
    let expected = "mounts[0]: mount field contains null byte";
    for mount in [
        r#"{"destination":"/a\u0000","type":"tmpfs"}"#,
        r#"{"destination":"/a","type":"tmpfs\u0000"}"#,
        r#"{"destination":"/a","type":"tmpfs","source":"\u0000"}"#,
        r#"{"destination":"/a","type":"tmpfs","options":["mode=\u0000"]}"#,
    ] {
        assert_eq!(complaints(mount), [expected]);
    }
}

#[test]
fn proc_holds_nothing_foreign() {
    for destination in ["/proc/self", "/proc/sys/kernel", "/proc/../proc/1", "/proc/cpuinfo/x"] {
        let mount = format!(r#"{{"destination":"{destination}","source":"/s","options":["bind"]}}"#);
        let clean = absolute(destination);
        let expected = format!(
            "mounts[0].destination: \"/b/rootfs{}\" cannot be mounted because it is inside /proc",
            clean.display()
        );
        assert_eq!(complaints(&mount), [expected]);
    }
    assert!(INSIDE_PROC.iter().all(|file| may_be_inside_proc(Path::new(file))));
    assert!(!["/proc", "/proc/1", "/x"].iter().any(|path| may_be_inside_proc(Path::new(path))));
    for destination in INSIDE_PROC.into_iter().chain(["/proc", "/procfs", "/x/proc/self"]) {
        let mount = format!(r#"{{"destination":"{destination}","source":"/s","options":["bind"]}}"#);
        assert_eq!(complaints(&mount), [""; 0], "{destination}");
    }
}

#[test]
fn only_procfs_goes_on_proc() {
    let expected =
        "mounts[0].destination: \"/b/rootfs/proc\" cannot be mounted because it is not of type proc";
    assert_eq!(complaints(r#"{"destination":"/proc","type":"tmpfs"}"#), [expected]);
    assert_eq!(complaints(r#"{"destination":"/proc","type":"proc"}"#), [""; 0]);
}

#[test]
fn a_bind_mount_takes_no_data() {
    let expected =
        "mounts[0].options: bind mounts cannot have any filesystem-specific options applied: size, mode";
    let mount = r#"{"destination":"/d","source":"/s","options":["bind","size=1","mode=7"]}"#;
    assert_eq!(complaints(mount), [expected]);
    assert_eq!(complaints(r#"{"destination":"/d","source":"/s","options":["bind","defaults"]}"#), [""; 0]);
    let expected = "mounts[0].options: sync has no effect on a bind mount";
    assert_eq!(complaints(r#"{"destination":"/d","source":"/s","options":["bind","sync"]}"#), [expected]);
}

const MAPS: &str = r#""uidMappings":[{"hostID":5,"size":1}],"gidMappings":[{"hostID":6,"size":1}]"#;

#[test]
fn id_maps_are_the_mounts_own() {
    let mount = of(&format!(r#"{{"destination":"/d","source":"/s","options":["rbind","ridmap"],{MAPS}}}"#));
    let maps = IdMaps {
        uid: vec![IdMap { inside: 0, outside: 5, count: 1 }],
        gid: vec![IdMap { inside: 0, outside: 6, count: 1 }],
    };
    assert_eq!(mount.idmap, Some(MountIdMap { recursive: true, maps: Some(maps) }));
    let mount = of(&format!(r#"{{"destination":"/d","source":"/s","options":["rbind"],{MAPS}}}"#));
    assert!(mount.idmap.is_some_and(|idmap| !idmap.recursive));
}

#[test]
fn id_maps_may_be_the_containers() {
    let mount = r#"{"destination":"/d","source":"/s","options":["rbind","idmap"]}"#;
    let expected = "mounts[0]: id-mapped mounts must have both uid and gid mappings specified";
    assert_eq!(complaints(mount), [expected]);
    let mut case = case(mount);
    case.spec.linux = Case::linux(&format!(r#"{{"namespaces":[{{"type":"user"}}],{MAPS}}}"#)).spec.linux;
    assert_eq!(case.plan().mounts[0].idmap, Some(MountIdMap { recursive: false, maps: None }));
}

#[test]
fn id_maps_have_their_rules() {
    for (mount, expected) in [
        (
            format!(r#"{{"destination":"/d","type":"tmpfs",{MAPS}}}"#),
            "mounts[0]: id-mapped mounts are only supported for bind-mounts",
        ),
        (
            format!(r#"{{"destination":"/d","options":["bind","remount"],{MAPS}}}"#),
            "mounts[0]: id-mapped mounts are only supported for bind-mounts",
        ),
        (
            r#"{"destination":"/d","source":"/s","options":["bind"],"uidMappings":[{"size":1}]}"#.to_owned(),
            "mounts[0]: id-mapped mounts must have both uid and gid mappings specified",
        ),
        (
            r#"{"destination":"/d","source":"/s","options":["bind"],"uidMappings":[{}],"gidMappings":[{"size":1}]}"#
                .to_owned(),
            "mounts[0].uidMappings[0]: the range is empty",
        ),
    ] {
        assert_eq!(complaints(&mount), [expected]);
    }
    let mut rootless = Case::rootless();
    let mount = format!(r#"{{"destination":"/d","source":"/s","options":["bind"],{MAPS}}}"#);
    rootless.spec.mounts = case(&mount).spec.mounts;
    assert_eq!(
        rootless.complaints(),
        ["mounts[0]: id-mapped mounts are not supported for rootless containers"]
    );
}

#[test]
fn without_root_owners_in_options_must_be_mapped() {
    let mut rootless = Case::rootless();
    let mount = r#"{"destination":"/d","type":"tmpfs","options":["uid=0","gid=5","uid=x","nr_inodes=5"]}"#;
    rootless.spec.mounts = case(mount).spec.mounts;
    let expected = "mounts[0].options: cannot specify gid=5 mount option for rootless container: user namespaces enabled, but no mapping found for gid 5";
    assert_eq!(rootless.complaints(), [expected]);
    assert_eq!(complaints(mount), [""; 0]);
}

#[test]
fn iversion_is_not_promised() {
    let expected =
        "mounts[0].options: iversion has no effect: file systems that count inode versions do so anyway";
    assert_eq!(complaints(r#"{"destination":"/d","type":"ext4","options":["iversion"]}"#), [expected]);
}

#[test]
fn mounts_keep_their_place() {
    let case = case(
        r#"{"destination":"/a","type":"tmpfs"},{"destination":"/b"},{"destination":"/c","type":"tmpfs"}"#,
    );
    let indices: Vec<_> = case.draft().value.mounts.iter().map(|mount| mount.index).collect();
    assert_eq!(indices, [0, 2]);
}
