//! Which devices can be used.

use std::os::fd::AsFd;

use brig_cgroup::Cgroup;

use crate::view::{Process, View, content, in_each_view, in_host_view, in_v2_view, resources, soon};

const NULL_ONLY: &str = r#"{"devices":[{"allow":false,"access":"rwm"},
    {"allow":true,"type":"c","major":1,"minor":3,"access":"rw"}]}"#;

/// Which of four uses work: reading null, writing null, reading zero, making a node.
fn uses(cgroup: &Cgroup, view: &View) -> String {
    let node = format!("/tmp/brig-test-{}", view.place.replace('/', "-"));
    let (text, _) = Process::output(
        cgroup,
        &format!(
            "head -c0 /dev/null && echo read-null; true >/dev/null && echo write-null; \
             head -c1 /dev/zero >&2 && echo read-zero; mknod {node} c 1 3 && echo mknod; rm -f {node}"
        ),
    );
    text.lines()
        .map(|line| line.trim_start_matches('\0'))
        .filter(|line| ["read-null", "write-null", "read-zero", "mknod"].contains(line))
        .collect::<Vec<_>>()
        .join(" ")
}

fn filters(cgroup: &Cgroup) -> Vec<u32> {
    let fd = cgroup.dir_fd().unwrap().unwrap();
    brig_sys::bpf::device_filters(fd.as_fd()).unwrap()
}

#[test]
fn all_but_null_is_denied() {
    in_each_view("devices::all_but_null_is_denied", |view| {
        let cgroup = view.make("x");
        assert_eq!(uses(&cgroup, view), "read-null write-null read-zero mknod");
        cgroup.apply(&resources(NULL_ONLY)).unwrap();
        assert_eq!(uses(&cgroup, view), "read-null write-null");
        // Whatever else is updated, the rules stay.
        if view.is_v2() {
            let before = filters(&cgroup);
            cgroup.update(&resources("{}")).unwrap();
            assert_eq!(filters(&cgroup), before);
        } else {
            cgroup.update(&resources(r#"{"pids":{"limit":50}}"#)).unwrap();
        }
        assert_eq!(uses(&cgroup, view), "read-null write-null");
    });
}

#[test]
fn rules_can_be_replaced() {
    in_each_view("devices::rules_can_be_replaced", |view| {
        let cgroup = view.make("x");
        cgroup.apply(&resources(NULL_ONLY)).unwrap();
        // Another command, which knows nothing of the first.
        let cgroup = Cgroup::open(cgroup.names()).unwrap();
        for (rules, expected) in [
            (
                r#"[{"allow":true,"type":"c","major":1,"access":"r"},{"allow":true,"type":"c","access":"m"}]"#,
                "read-null read-zero mknod",
            ),
            (r#"[{"allow":true,"type":"c","major":1,"minor":5,"access":"rwm"}]"#, "read-zero"),
            (
                r#"[{"allow":true,"access":"rwm"},{"allow":false,"type":"c","major":1,"minor":3,"access":"wm"}]"#,
                "read-null read-zero",
            ),
            (r#"[{"allow":true,"access":"rwm"}]"#, "read-null write-null read-zero mknod"),
            (r#"[{"allow":false,"access":"rwm"}]"#, ""),
        ] {
            cgroup.set_devices(&resources(&format!(r#"{{"devices":{rules}}}"#)).devices).unwrap();
            assert_eq!(uses(&cgroup, view), expected, "{rules}");
        }
    });
}

#[test]
fn one_filter_at_most() {
    in_v2_view("devices::one_filter_at_most", |view| {
        let cgroup = view.make("x");
        cgroup.apply(&resources(r#"{"devices":[{"allow":true,"access":"rwm"}]}"#)).unwrap();
        assert_eq!(filters(&cgroup).len(), 0);
        cgroup.apply(&resources(NULL_ONLY)).unwrap();
        let again = Cgroup::open(cgroup.names()).unwrap();
        for _ in 0..3 {
            again.apply(&resources(NULL_ONLY)).unwrap();
            assert_eq!(filters(&cgroup).len(), 1);
        }
        let all = resources(r#"{"devices":[{"allow":true,"access":"rwm"}]}"#);
        again.set_devices(&all.devices).unwrap();
        assert_eq!(filters(&cgroup).len(), 0);
    });
}

#[test]
fn the_filter_of_another_stays() {
    in_v2_view("devices::the_filter_of_another_stays", |view| {
        use brig_sys::bpf::{Insn, attach_device_filter, load_device_filter};
        let cgroup = view.make("x");
        let yes = [Insn::new(0xb7, 0, 0, 0, 1), Insn::new(0x95, 0, 0, 0, 0)];
        let other = load_device_filter(&yes, "other", None).unwrap();
        attach_device_filter(cgroup.dir_fd().unwrap().unwrap(), other.as_fd(), None).unwrap();
        let theirs = filters(&cgroup);
        let again = Cgroup::open(cgroup.names()).unwrap();
        again.set_devices(&resources(NULL_ONLY).devices).unwrap();
        again.set_devices(&resources(NULL_ONLY).devices).unwrap();
        assert_eq!(filters(&cgroup).len(), 2);
        assert_eq!(uses(&cgroup, view), "read-null write-null");
        again.set_devices(&resources(r#"{"devices":[{"allow":true,"access":"rwm"}]}"#).devices).unwrap();
        assert_eq!(filters(&cgroup), theirs);
    });
}

/// The verifier accepts what the compiler makes, and does not choke on long lists.
#[test]
fn long_lists() {
    in_v2_view("devices::long_lists", |view| {
        let cgroup = view.make("x");
        let mut rules = vec![r#"{"allow":false,"access":"rwm"}"#.to_owned()];
        for number in 0..1000 {
            let access = ["r", "rw", "rwm", "w"][number % 4];
            let allow = number % 7 != 3;
            let (major, minor) = (number % 31, number / 31);
            rules.push(format!(
                r#"{{"allow":{allow},"type":"c","major":{major},"minor":{minor},"access":"{access}"}}"#
            ));
        }
        rules.push(r#"{"allow":true,"type":"c","major":1,"minor":3,"access":"rw"}"#.to_owned());
        let json = format!(r#"{{"devices":[{}]}}"#, rules.join(","));
        cgroup.set_devices(&resources(&json).devices).unwrap();
        assert!(uses(&cgroup, view).starts_with("read-null write-null"));
        assert_eq!(filters(&cgroup).len(), 1);
    });
}

#[test]
fn v1_lists() {
    in_host_view("devices::v1_lists", |view| {
        if view.is_v2() {
            return;
        }
        let list = || content(view.dir("x/devices.list", "devices"));
        let cgroup = view.make("x");
        cgroup.apply(&resources(NULL_ONLY)).unwrap();
        assert_eq!(list(), "c 1:3 rw");
        let set =
            |rules: &str| cgroup.set_devices(&resources(&format!(r#"{{"devices":[{rules}]}}"#)).devices);
        set(r#"{"allow":true,"type":"c","major":1,"minor":3,"access":"r"},{"allow":true,"type":"b","access":"m"}"#)
            .unwrap();
        assert_eq!(list(), "c 1:3 r\nb *:* m");
        let error = set(
            r#"{"allow":true,"type":"c","major":1,"access":"rw"},{"allow":false,"type":"c","major":1,"minor":3,"access":"w"}"#,
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("cannot punch a hole in"), "{error}");
        // Below one that allows little, not much can be allowed.
        let child = view.make("x/c");
        let error = child.apply(&resources(NULL_ONLY)).unwrap_err().to_string();
        assert!(error.contains("operation not permitted (the cgroup above does not allow it)"), "{error}");
        child.kill_all(soon()).unwrap();
    });
}
