use super::*;
use crate::id::ContainerId;
use crate::record::{Record, Stage};
use crate::store::Store;

/// A container without any process, and the folder that it is in.
fn container() -> (tempfile::TempDir, Container) {
    let root = tempfile::tempdir().unwrap();
    let (dir, _lock) = Store::new(root.path()).reserve(&ContainerId::parse("x").unwrap()).unwrap();
    let record = serde_json::json!({
        "version": Record::VERSION, "stage": "created", "creator": Ident::own().unwrap(), "oci_version": "1.2.0",
        "bundle": "/", "rootfs": "/", "namespaces": 0, "own_pid_namespace": true, "process": { "cwd": "/" },
        "cgroup": { "driver": "cgroupfs", "mode": "v2", "rootless": false, "explicit": true, "groups": [] },
    });
    let record: Record = serde_json::from_value(record).unwrap();
    assert_eq!(record.stage, Stage::Created);
    (root, Container { dir, record: Box::new(record) })
}

/// A record by this very process, whose process it is too if it has one.
fn exec(id: &str, process: Option<Ident>) -> ExecRecord {
    ExecRecord {
        id: id.to_owned(),
        creator: Ident::own().unwrap(),
        process,
        args: vec!["sh".to_owned()],
        started: 0,
        cgroup: None,
    }
}

/// Nobody: this process's pid with another identity.
fn stranger() -> Ident {
    let own = Ident::own().unwrap();
    Ident { start: own.start + 1, inode: own.inode + 1, ..own }
}

fn on_disk(container: &Container) -> Vec<String> {
    let mut ids = Execs::open(container).unwrap().map_or_else(Vec::new, |execs| execs.ids().unwrap());
    ids.sort();
    ids
}

#[test]
fn a_name_is_taken_once_and_free_again() {
    let (_root, container) = container();
    assert!(live(&container).unwrap().is_empty());
    exec("a", None).reserve(&container).unwrap();
    let again = exec("a", None).reserve(&container).unwrap_err();
    assert_eq!(again.to_string(), "exec with given ID already exists: a");
    let alive = exec("a", Some(Ident::own().unwrap()));
    alive.write(&container).unwrap();
    assert!(exec("a", None).reserve(&container).is_err());
    assert_eq!(live(&container).unwrap()[0].pid, alive.process.unwrap().pid);
    alive.forget(&container).unwrap();
    exec("a", None).reserve(&container).unwrap();
}

#[test]
fn a_starting_one_is_not_shown_but_has_its_name() {
    let (_root, container) = container();
    exec("a", None).reserve(&container).unwrap();
    assert!(live(&container).unwrap().is_empty());
    let found = find(&container.dir, "a").unwrap().unwrap();
    assert!(found.is_starting(&container).unwrap());
    assert!(found.open(&container).unwrap().is_none());
}

#[test]
fn what_has_ended_gives_way() {
    let (_root, container) = container();
    let mut dead = exec("a", Some(stranger()));
    dead.write(&container).unwrap_err();
    dead.reserve(&container).unwrap();
    exec("a", None).reserve(&container).unwrap();
    // Killed while it was starting.
    dead = ExecRecord { creator: stranger(), ..exec("b", None) };
    dead.reserve(&container).unwrap();
    assert!(!dead.is_starting(&container).unwrap());
    exec("b", None).reserve(&container).unwrap();
}

#[test]
fn a_look_sweeps() {
    let (_root, container) = container();
    exec("alive", Some(Ident::own().unwrap())).reserve(&container).unwrap();
    exec("dead", Some(stranger())).reserve(&container).unwrap();
    exec("starting", None).reserve(&container).unwrap();
    assert_eq!(live(&container).unwrap().len(), 1);
    assert_eq!(on_disk(&container), ["alive", "starting"]);
}

#[test]
fn records_of_the_dead_do_not_pile_up() {
    let (_root, container) = container();
    for n in 0..200 {
        exec(&format!("e{n}"), Some(stranger())).reserve(&container).unwrap();
    }
    assert!(on_disk(&container).len() <= SWEEP_EVERY);
}

#[test]
fn who_has_lost_his_name_does_not_remove_the_next_ones_record() {
    let (_root, container) = container();
    let first = ExecRecord { creator: stranger(), ..exec("a", Some(stranger())) };
    first.reserve(&container).unwrap();
    exec("a", None).reserve(&container).unwrap();
    first.forget(&container).unwrap();
    assert!(find(&container.dir, "a").unwrap().is_some());
}

#[test]
fn a_record_of_another_boot_names_nobody() {
    let (_root, mut container) = container();
    exec("a", Some(Ident::own().unwrap())).reserve(&container).unwrap();
    container.record.boot = "another".to_owned();
    assert!(live(&container).unwrap().is_empty());
    assert!(on_disk(&container).is_empty());
}

#[test]
fn rubbish_is_no_record() {
    let (_root, container) = container();
    exec("b", Some(Ident::own().unwrap())).reserve(&container).unwrap();
    for rubbish in ["", "{", "[]", "{\"id\":\"a\"}"] {
        container.dir.replace(&file_name("a"), NEW, rubbish.as_bytes()).unwrap();
        assert!(find(&container.dir, "a").unwrap().is_none());
        assert_eq!(live(&container).unwrap().len(), 1);
    }
    exec("a", None).reserve(&container).unwrap();
    assert!(find(&container.dir, "a").unwrap().is_some());
}

#[test]
fn a_container_that_is_deleted_meanwhile() {
    let (_root, container) = container();
    exec("a", None).reserve(&container).unwrap();
    container.dir.remove().unwrap();
    exec("a", None).forget(&container).unwrap();
    assert!(exec("a", Some(Ident::own().unwrap())).write(&container).is_err());
    assert!(exec("b", None).reserve(&container).is_err());
    assert!(live(&container).unwrap().is_empty());
}
