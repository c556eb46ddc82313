//! `gc`: what is left by commands that were killed, and by records that were lost.

use std::fs;

use brig_tests::{Bundle, Spawned, host, only_brig};
use serde_json::{Value, json};

fn found(b: &Bundle, args: &[&str]) -> Vec<Value> {
    let out = b.runtime().args(["gc", "--format", "json"]).args(args).ok().out;
    serde_json::from_str(&out).unwrap()
}

fn reasons(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["reason"].as_str().unwrap()).collect()
}

/// A `create` that a hook holds up.
fn held_up(b: &mut Bundle) -> Spawned {
    b.config["hooks"] = json!({ "createRuntime": [{ "path": "/bin/sleep", "args": ["sleep", "1000"] }] });
    b.write_config();
    let create = b.brig("create").arg("--bundle").arg(b.path()).arg(&b.id).detached().spawn();
    host::eventually("the hook to run", || {
        !b.processes().is_empty() && b.root.join(&b.id).join("record.json").exists()
    });
    create
}

#[test]
fn what_a_killed_creator_left_is_found_and_removed() {
    only_brig("gc is brig's", || {
        let mut b = Bundle::sleeping();
        let create = held_up(&mut b);
        assert_eq!(found(&b, &[]), [] as [Value; 0], "its creator is at work");
        assert_eq!(b.status(), "creating");
        create.signal(9);
        create.finish();
        let rows = found(&b, &[]);
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(reasons(&rows)[0].ends_with("was killed"), "{rows:?}");
        assert_eq!(rows[0]["id"], b.id);
        assert_eq!(rows[0]["state"], "found");
        assert!(b.root.join(&b.id).exists(), "without --force it only looks");
        assert_eq!(found(&b, &["--force"])[0]["state"], "removed");
        b.assert_gone();
        assert_eq!(found(&b, &[]), [] as [Value; 0]);
    });
}

#[test]
fn containers_that_somebody_can_still_use_are_left_alone() {
    only_brig("gc is brig's", || {
        let b = Bundle::sleeping();
        b.create();
        assert_eq!(found(&b, &["--force"]), [] as [Value; 0]);
        b.brig("start").arg(&b.id).ok();
        assert_eq!(found(&b, &["--force"]), [] as [Value; 0]);
        assert_eq!(b.status(), "running");
        b.brig("kill").args([&b.id, "KILL"]).ok();
        b.wait_status("stopped");
        assert_eq!(found(&b, &["--force"]), [] as [Value; 0]);
        assert_eq!(b.status(), "stopped");
    });
}

#[test]
fn a_cgroup_whose_record_is_lost_is_found_by_its_mark() {
    only_brig("gc is brig's", || {
        let b = Bundle::sleeping();
        b.start();
        let processes = b.members();
        assert!(!processes.is_empty());
        fs::remove_dir_all(b.root.join(&b.id)).unwrap();
        let rows = found(&b, &[]);
        assert_eq!(rows.len(), host::cgroup_dirs(&b.cgroup()).len(), "{rows:?}");
        assert!(reasons(&rows).iter().all(|why| *why == "a cgroup without a record"), "{rows:?}");
        // To another root it is a stranger's.
        let other = Bundle::sleeping();
        assert_eq!(found(&other, &["--force"]), [] as [Value; 0]);
        assert!(host::is_alive(processes[0]));
        assert!(found(&b, &["--force"]).iter().all(|row| row["state"] == "removed"));
        b.assert_gone();
        assert!(!host::is_alive(processes[0]));
    });
}

#[test]
fn delete_by_force_needs_no_record_either() {
    only_brig("runc says that the container does not exist, and leaves its processes", || {
        for lost in ["directory", "record", "half of the record"] {
            let b = Bundle::sleeping();
            b.start();
            let dir = b.root.join(&b.id);
            match lost {
                "directory" => fs::remove_dir_all(dir).unwrap(),
                "record" => fs::remove_file(dir.join("record.json")).unwrap(),
                _ => {
                    let record = fs::read(dir.join("record.json")).unwrap();
                    fs::write(dir.join("record.json"), &record[..record.len() / 2]).unwrap();
                    assert!(reasons(&found(&b, &[]))[0].contains("the record cannot be read"), "{lost}");
                }
            }
            b.brig("delete").args(["--force", &b.id]).ok();
            b.assert_gone();
            b.create();
        }
    });
}

#[test]
fn the_table_is_for_people() {
    only_brig("gc is brig's", || {
        let b = Bundle::sleeping();
        assert_eq!(b.runtime().arg("gc").ok().out, "ID          STATE       PATH        REASON\n");
    });
}
