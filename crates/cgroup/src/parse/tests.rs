use proptest::prelude::*;

use super::*;

#[test]
fn memberships_of_all_kinds() {
    let text =
        "12:cpu,cpuacct:/docker/ab:c\n1:name=systemd:/init.scope\n0::/user.slice (deleted)\nbad\nx::/\n";
    let got = memberships(text);
    assert_eq!(got.len(), 3);
    assert_eq!(
        got[0],
        Membership { id: 12, controllers: vec!["cpu".into(), "cpuacct".into()], path: "/docker/ab:c".into() }
    );
    assert_eq!(got[1].controllers, ["name=systemd"]);
    assert_eq!(got[2].id, 0);
    assert!(got[2].controllers.is_empty());
    assert_eq!(got[2].path, Path::new("/user.slice"));
}

#[test]
fn mounts_of_all_kinds() {
    let text = "\
25 30 0:23 / /proc rw,nosuid - proc proc rw
33 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct
34 24 0:29 /docker/x /sys/fs/cgroup/a\\040b rw - cgroup none rw,xattr,name=systemd
35 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
36 24 0:31 broken
";
    let got = cgroup_mounts(text);
    assert_eq!(got.len(), 3);
    assert_eq!(got[0].mount_point, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
    assert_eq!(got[0].options, ["rw", "cpu", "cpuacct"]);
    assert_eq!(got[1].root, Path::new("/docker/x"));
    assert_eq!(got[1].mount_point, Path::new("/sys/fs/cgroup/a b"));
    assert!(got[2].unified && !got[1].unified);
}

#[test]
fn numbers() {
    assert_eq!(single("max\n"), Some(u64::MAX));
    assert_eq!(single("-1\n"), Some(u64::MAX));
    assert_eq!(single("42\n"), Some(42));
    assert_eq!(single(""), None);
    assert_eq!(number_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
    assert_eq!(number_list("\n"), Some(vec![]));
    assert_eq!(number_list("3-1"), None);
    assert_eq!(number_list("65536"), None);
    assert_eq!(flat_keyed("low 0\noom 1\noom_kill 7\n", "oom_kill"), Some(7));
    assert_eq!(flat_keyed("oom_kill", "oom_kill"), None);
    assert_eq!(pids("12\n0\nx\n7").collect::<Vec<_>>(), [12, 0, 7]);
    assert_eq!(device_number("8:16"), Some((8, 16)));
}

#[test]
fn cleaning() {
    for (path, clean_path) in [
        ("/a/b", "a/b"),
        ("a//b/./c/", "a/b/c"),
        ("/../../a", "a"),
        ("a/../../../b", "b"),
        ("..", ""),
        ("/", ""),
        ("", ""),
    ] {
        assert_eq!(clean(path), Path::new(clean_path), "{path}");
    }
    assert_eq!(relative(Path::new("/x/y"), Path::new("/x")), Path::new("y"));
    assert_eq!(relative(Path::new("/x/y"), Path::new("/z")), Path::new("x/y"));
    // What /proc/self/cgroup shows for a process outside of the reader's cgroup namespace.
    assert_eq!(relative(Path::new("/../other"), Path::new("/")), Path::new("other"));
}

proptest! {
    #[test]
    fn nothing_panics(text in "(?s).{0,200}") {
        memberships(&text);
        cgroup_mounts(&text);
        cgroup_mounts(&format!("1 2 0:1 {text} {text} rw - cgroup {text} {text}"));
        single(&text);
        flat_keyed(&text, "a");
        device_number(&text);
        pids(&text).count();
        prop_assert!(!clean(&text).components().any(|part| !matches!(part, std::path::Component::Normal(_))));
    }

    #[test]
    fn lists_round_trip(numbers in proptest::collection::btree_set(0u16..500, 0..20)) {
        let text: Vec<String> = numbers.iter().map(u16::to_string).collect();
        prop_assert_eq!(number_list(&text.join(",")), Some(numbers.into_iter().collect()));
    }
}
