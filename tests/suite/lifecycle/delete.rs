//! `delete`.

use super::*;

/// Case 37: runc 4040, 4102.
#[test]
fn delete_ends_what_init_left_in_the_hosts_pid_namespace() {
    since_runc((1, 2), "delete that ends what is left", || {
        let mut b = Bundle::sh("sleep 1000 & touch /ready; exec sleep 1000");
        b.without_namespace("pid");
        b.start();
        host::eventually("all to be there", || b.rootfs().join("ready").exists());
        b.brig("kill").args([&b.id, "TERM"]).ok();
        b.wait_status("stopped");
        let left = b.processes();
        assert_eq!(left.len(), 1);
        b.brig("delete").arg(&b.id).ok();
        b.assert_gone();
        assert!(!host::is_alive(left[0]));
    });
}

#[test]
fn delete_refuses_a_running_container() {
    let b = Bundle::sleeping();
    b.start();
    let delete = || b.brig("delete").arg(&b.id).run();
    let text = |status: &str| format!("cannot delete container {} that is not stopped: {status}", b.id);
    delete().exits(1).says(&text("running"));
    b.brig("pause").arg(&b.id).ok();
    delete().exits(1).says(&text("paused"));
    b.brig("resume").arg(&b.id).ok();
    assert_eq!(b.status(), "running");
}

#[test]
fn delete_takes_a_created_container() {
    let b = Bundle::sleeping();
    b.create();
    let pid = b.pid();
    b.brig("delete").arg(&b.id).ok();
    b.assert_gone();
    assert!(!host::is_alive(pid));
}

#[test]
fn delete_by_force_takes_a_running_and_a_paused_container() {
    for pause in [false, true] {
        let b = Bundle::sleeping();
        b.start();
        if pause {
            b.brig("pause").arg(&b.id).ok();
        }
        b.delete();
        b.assert_gone();
    }
}

#[test]
fn delete_by_force_of_nothing() {
    let b = Bundle::default();
    let finished = b.brig("delete").args(["--force", &b.id]).ok();
    assert_eq!(finished.both(), "");
}

#[test]
fn delete_by_force_removes_sub_cgroups() {
    let b = Bundle::sleeping();
    b.start();
    let controller = if host::is_cgroup_v2() { "" } else { "freezer" };
    let sub = b.cgroup_dir(controller).join("a/b/c");
    std::fs::create_dir_all(&sub).unwrap();
    let child = Run::new("sleep").arg("1000").spawn();
    std::fs::write(sub.join("cgroup.procs"), child.pid().to_string()).unwrap();
    // A process that is in the container's cgroup ends with it where the pid namespace does not end it.
    drop(child);
    b.delete();
    b.assert_gone();
}

#[test]
fn delete_removes_an_empty_directory() {
    // What a creator leaves that was killed early.
    let b = Bundle::default();
    std::fs::create_dir_all(b.root.join(&b.id)).unwrap();
    b.runtime().arg("list").ok();
    let state = b.brig("state").arg(&b.id).run();
    state.exits(1).says("container does not exist");
    b.brig("delete").args(["--force", &b.id]).ok();
    b.assert_gone();
}

#[test]
fn delete_by_force_does_without_a_readable_record() {
    better_than_runc("fails on a broken state.json", || {
        let b = Bundle::sleeping();
        b.start();
        let pid = b.pid();
        for entry in std::fs::read_dir(b.root.join(&b.id)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|x| x == "json") {
                std::fs::write(path, "{ \"id\": ").unwrap();
            }
        }
        b.brig("delete").args(["--force", &b.id]).ok();
        assert!(!b.root.join(&b.id).exists());
        // Where it was is only in the record; what follows from the id is another place.
        host::kill(pid);
        host::remove_cgroups(&b.cgroup());
    });
}

/// Cases 2 and its siblings in small; the kill matrix has them all.
#[test]
fn delete_by_force_after_a_creator_was_killed() {
    only_brig("now and then runc leaks cgroups, or finds the directory without a state", || {
        let b = Bundle::sleeping();
        for delay in 0..20 {
            let mut create = b.brig("create").arg(&b.id).detached().spawn();
            std::thread::sleep(std::time::Duration::from_millis(delay));
            create.child().kill().unwrap();
            create.child().wait().unwrap();
            b.brig("delete").args(["--force", &b.id]).ok();
            host::eventually("nothing to be left", || b.leftovers().is_empty());
        }
    });
}
