//! Making, finding again, removing.

use std::fs;

use brig_cgroup::{Cgroup, Error};

use crate::view::{Process, View, at_once, content, dir_of, in_each_view, in_v2_view, resources, soon};

fn exists_everywhere(cgroup: &Cgroup) -> bool {
    cgroup.names().groups.iter().all(|group| group.dir().is_dir())
}

fn exists_anywhere(cgroup: &Cgroup) -> bool {
    cgroup.names().groups.iter().any(|group| group.dir().exists())
}

#[test]
fn from_nothing_to_nothing() {
    in_each_view("lifecycle::from_nothing_to_nothing", |view| {
        let names = view.names("a/b");
        names.check_vacant().unwrap();
        let mut cgroup = Cgroup::make(&names, &resources("{}")).unwrap();
        assert!(exists_everywhere(&cgroup) && cgroup.exists().unwrap());
        let unified = names.groups.iter().any(|group| group.unified);
        assert_eq!(cgroup.dir_fd().unwrap().is_some(), unified);
        cgroup.keep();
        drop(cgroup);

        // Another command, later.
        let cgroup = Cgroup::open(&names).unwrap();
        assert!(exists_everywhere(&cgroup));
        let process = Process::sh(&cgroup, "exec sleep 1000");
        assert_eq!(cgroup.pids(true).unwrap(), [process.pid()]);
        for group in &names.groups {
            assert_eq!(content(group.dir().join("cgroup.procs")), process.pid().to_string());
        }
        assert!(cgroup.is_populated().unwrap());
        assert!(cgroup.kill_all(soon()).unwrap());
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
        assert!(!cgroup.is_populated().unwrap());
        cgroup.remove(soon()).unwrap();
        assert!(!exists_anywhere(&cgroup));
        // The ones above are not ours to remove.
        assert!(view.dir("a", "devices").is_dir());

        // And again, with nothing there.
        let cgroup = Cgroup::open(&names).unwrap();
        assert!(!cgroup.exists().unwrap());
        assert!(!cgroup.kill_all(soon()).unwrap());
        cgroup.wait_empty(soon()).unwrap();
        cgroup.thaw().unwrap();
        cgroup.remove(soon()).unwrap();
        assert_eq!(cgroup.pids(true).unwrap(), [0; 0]);
    });
}

#[test]
fn what_is_not_kept_is_unmade() {
    in_each_view("lifecycle::what_is_not_kept_is_unmade", |view| {
        let mut other = view.make("other");
        let cgroup = view.make("x/y/z");
        let names = cgroup.names().clone();
        assert!(exists_everywhere(&cgroup));
        // Even with a payload that has made itself at home, once its processes are killed.
        for group in &names.groups {
            fs::create_dir_all(group.dir().join("sub/sub")).unwrap();
        }
        let process = Process::sh(&cgroup, "exec sleep 1000");
        cgroup.kill_all(soon()).unwrap();
        drop(cgroup);
        drop(process);
        for group in &names.groups {
            assert!(!group.dir().exists());
            assert!(!group.mount.join(&view.place[1..]).join("x").exists());
        }
        other.keep();
        assert!(exists_everywhere(&other));
    });
}

#[test]
fn a_home_with_people_in_it_is_refused() {
    in_each_view("lifecycle::a_home_with_people_in_it_is_refused", |view| {
        let first = view.make("x");
        let process = Process::sh(&first, "exec sleep 1000");
        let names = view.names("x");
        for error in [Cgroup::make(&names, &resources("{}")).unwrap_err(), names.check_vacant().unwrap_err()]
        {
            assert!(
                error.to_string().ends_with("container's cgroup is not empty: 1 process(es) found"),
                "{error}"
            );
        }
        // Also when they are further down.
        let names = {
            let mut names = view.names("x");
            for group in &mut names.groups {
                group.path.pop();
            }
            names
        };
        assert!(matches!(Cgroup::make(&names, &resources("{}")), Err(Error::NotEmpty { count: 1, .. })));
        // None of that has touched what was there.
        assert!(exists_everywhere(&first));
        assert_eq!(first.pids(true).unwrap(), [process.pid()]);
        first.kill_all(soon()).unwrap();
        first.wait_empty(soon()).unwrap();
        // An empty one will do.
        let second = Cgroup::make(&view.names("x"), &resources("{}")).unwrap();
        drop(second);
        assert!(exists_everywhere(&first));
    });
}

#[test]
fn a_frozen_home_is_refused() {
    in_each_view("lifecycle::a_frozen_home_is_refused", |view| {
        let parent = view.make("p");
        parent.freeze(soon()).unwrap();
        for name in ["p", "p/new"] {
            let error = Cgroup::make(&view.names(name), &resources("{}")).unwrap_err();
            assert!(error.to_string().ends_with("container's cgroup unexpectedly frozen"), "{error}");
        }
        assert!(!view.dir("p/new", "freezer").exists());
        parent.thaw().unwrap();
        drop(Cgroup::make(&view.names("p/new"), &resources("{}")).unwrap());
    });
}

#[test]
fn a_whole_tree_is_removed() {
    in_each_view("lifecycle::a_whole_tree_is_removed", |view| {
        let mut cgroup = view.make("x");
        for group in &cgroup.names().groups {
            let mut dir = group.dir();
            for level in 0..40 {
                dir.push(format!("level{level}"));
                fs::create_dir(&dir).unwrap();
                fs::create_dir(dir.join("side")).unwrap();
            }
        }
        cgroup.keep();
        cgroup.remove(soon()).unwrap();
        assert!(!exists_anywhere(&cgroup));
    });
}

#[test]
fn what_is_in_the_way_is_named() {
    in_each_view("lifecycle::what_is_in_the_way_is_named", |view| {
        let cgroup = view.make("x");
        for group in &cgroup.names().groups {
            fs::create_dir_all(group.dir().join("a/b")).unwrap();
        }
        let sub = cgroup.sub(&["a/b"]).unwrap();
        if !view.is_v2() {
            brig_cpuset(&sub);
        }
        let process = Process::sh(&sub, "exec sleep 1000");
        let error = cgroup.remove(at_once()).unwrap_err().to_string();
        assert!(error.contains("/x/a/b: device or resource busy: process"), "{error}");
        assert!(error.contains(&format!("process {} (", process.pid())), "{error}");
        let error = cgroup.wait_empty(at_once()).unwrap_err().to_string();
        assert!(error.contains(&format!("process {} (", process.pid())), "{error}");

        // The tree goes once they are gone, which is waited for.
        cgroup.kill_all(soon()).unwrap();
        cgroup.remove(soon()).unwrap();
        assert!(!exists_anywhere(&cgroup));
    });
}

/// v1 cpusets made by hand are empty, and take no process.
fn brig_cpuset(cgroup: &Cgroup) {
    let dir = dir_of(cgroup.names(), "cpuset");
    for dir in [dir.parent().unwrap(), &dir] {
        for file in ["cpuset.cpus", "cpuset.mems"] {
            fs::write(dir.join(file), content(dir.parent().unwrap().join(file))).unwrap();
        }
    }
}

#[test]
fn exec_joins_a_sub_cgroup() {
    in_each_view("lifecycle::exec_joins_a_sub_cgroup", |view| {
        let cgroup = view.make("x");
        let sub = cgroup.sub(&["sub"]).unwrap();
        let error = sub.attach(1 << 22, true).unwrap_err().to_string();
        assert!(error.starts_with("error adding pid 4194304 to cgroups: "), "{error}");
        assert!(error.ends_with("no such file or directory"), "{error}");
        for group in &sub.names().groups {
            fs::create_dir(group.dir()).unwrap();
        }
        if !view.is_v2() {
            let dir = dir_of(sub.names(), "cpuset");
            for file in ["cpuset.cpus", "cpuset.mems"] {
                fs::write(dir.join(file), content(dir.parent().unwrap().join(file))).unwrap();
            }
        }
        let process = Process::sh(&sub, "exec sleep 1000");
        assert_eq!(cgroup.pids(false).unwrap(), [0; 0]);
        assert_eq!(cgroup.pids(true).unwrap(), [process.pid()]);
        if view.is_v2() {
            assert!(cgroup.current_of(process.pid()).unwrap().is_some());
        }
        cgroup.kill_all(soon()).unwrap();
    });
}

#[test]
fn cpus_of_a_container() {
    in_each_view("lifecycle::cpus_of_a_container", |view| {
        let cgroup = view.make("x");
        let cpus = cgroup.effective_cpus().unwrap();
        let file = if view.is_v2() { "cpuset.cpus.effective" } else { "cpuset.effective_cpus" };
        // There is no cpuset controller for v2 where v1 has it.
        assert_eq!(cpus.is_some(), view.dir("x", "cpuset").join(file).exists());
        assert!(cpus.is_none_or(|cpus| !cpus.is_empty()));
    });
}

#[test]
fn delegation() {
    in_v2_view("lifecycle::delegation", |view| {
        use std::os::unix::fs::MetadataExt;
        let cgroup = view.make("x");
        cgroup.delegate(12345).unwrap();
        let dir = view.dir("x", "");
        for (file, uid) in [
            ("", 12345),
            ("cgroup.procs", 12345),
            ("cgroup.subtree_control", 12345),
            ("cgroup.threads", 12345),
            ("cgroup.freeze", 0),
            ("cgroup.kill", 0),
        ] {
            assert_eq!(fs::metadata(dir.join(file)).unwrap().uid(), uid, "{file}");
        }
    });
}

#[test]
fn a_threaded_parent() {
    in_v2_view("lifecycle::a_threaded_parent", |view: &View| {
        let parent = view.make("p");
        // Makes the parent a domain threaded one, where ordinary cgroups are invalid.
        fs::create_dir(view.dir("p/t", "")).unwrap();
        fs::write(view.dir("p/t/cgroup.type", ""), "threaded").unwrap();
        let limits = resources(r#"{"memory":{"limit":1048576}}"#);
        let error = Cgroup::make(&view.names("p/x"), &limits).unwrap_err().to_string();
        assert!(error.contains("with domain controllers -- it is in an invalid state"), "{error}");
        assert!(!view.dir("p/x", "").exists());
        // Without such limits it becomes threaded itself, and can be killed and removed.
        let cgroup = Cgroup::make(&view.names("p/x"), &resources("{}")).unwrap();
        assert_eq!(content(view.dir("p/x/cgroup.type", "")), "threaded");
        let process = Process::sh(&parent, "exec sleep 1000");
        cgroup.attach(process.pid(), true).unwrap();
        assert_eq!(cgroup.pids(true).unwrap(), [process.pid()]);
        assert!(cgroup.kill_all(soon()).unwrap());
        cgroup.wait_empty(soon()).unwrap();
        assert_eq!(process.killed_by(), Some(9));
    });
}

/// Without any rights, but also without limits, a container goes without a cgroup.
#[test]
fn rootless() {
    in_each_view("lifecycle::rootless", |view| {
        let request =
            |cgroups_path| brig_cgroup::Request { cgroups_path, id: "brig-test-rootless", rootless: true };
        let chosen = brig_cgroup::Names::decide(&view.layout, &request("")).unwrap();
        let given = brig_cgroup::Names::decide(&view.layout, &request(&view.place)).unwrap();
        let limits = resources(r#"{"memory":{"limit":1048576}}"#);

        // This thread only: the others go on as root.
        let (root, nobody) = (rustix::process::Uid::ROOT, rustix::process::Uid::from_raw(65534));
        rustix::thread::set_thread_res_uid(root, nobody, root).unwrap();
        let without = Cgroup::make(&chosen, &resources("{}"));
        let limited = Cgroup::make(&chosen, &limits).and_then(|cgroup| cgroup.apply(&limits));
        let refused = Cgroup::make(&given, &resources("{}"));
        rustix::thread::set_thread_res_uid(root, root, root).unwrap();

        let without = without.unwrap();
        assert!(without.names().groups.is_empty());
        assert!(!without.exists().unwrap() && without.dir_fd().unwrap().is_none());
        let skipped = without.apply(&resources(r#"{"devices":[{"allow":false,"access":"rwm"}]}"#)).unwrap();
        assert_eq!(skipped[0].source, "linux.resources.devices");
        without.remove(soon()).unwrap();

        let text = limited.unwrap_err().to_string();
        let expected = if view.is_v2() {
            "rootless needs no limits + no cgrouppath when no permission is granted for cgroups: creating cgroup"
        } else {
            "linux.resources.memory.limit: cannot set memory limit: container could not join or create cgroup"
        };
        assert!(text.starts_with(expected), "{text}");
        let text = refused.unwrap_err().to_string();
        assert!(text.ends_with("permission denied"), "{text}");
    });
}
