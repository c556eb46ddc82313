//! Commands at once.

use super::*;

#[test]
fn two_starts_at_once_start_once() {
    let b = Bundle::sh("echo x >>/started; exec sleep 1000");
    b.create();
    let both: Vec<_> = (0..2).map(|_| b.brig("start").arg(&b.id).spawn()).collect();
    let codes: Vec<i32> = both.into_iter().map(|start| start.finish().code()).collect();
    assert_eq!(codes.iter().filter(|&&code| code == 0).count(), 1, "{codes:?}");
    host::eventually("the program", || b.rootfs().join("started").exists());
    assert_eq!(std::fs::read_to_string(b.rootfs().join("started")).unwrap(), "x\n");
}

#[test]
fn two_creates_at_once_create_one() {
    if fails_before_runc((1, 2), "loses both now and then") {
        return;
    }
    let b = Bundle::sleeping();
    b.write_config();
    let both: Vec<_> = (0..2).map(|_| b.brig("create").arg(&b.id).detached().spawn()).collect();
    let codes: Vec<i32> = both.into_iter().map(|create| create.finish().code()).collect();
    assert_eq!(codes.iter().filter(|&&code| code == 0).count(), 1, "{codes:?}");
    assert_eq!(b.status(), "created");
}

#[test]
fn deletes_at_once() {
    better_than_runc_at_racing(|| {
        let b = Bundle::sleeping();
        b.start();
        let all: Vec<_> =
            (0..4).map(|_| b.brig("delete").args(["--force", "--timeout=300s", &b.id]).spawn()).collect();
        for delete in all {
            delete.finish().exits(0);
        }
        b.assert_gone();
    });
}

/// runc wins or loses such a race as it comes.
fn better_than_runc_at_racing(test: impl FnOnce()) {
    only_brig("runc fails it now and then", test);
}

#[test]
fn the_state_is_readable_while_commands_work() {
    let b = Bundle::sh("sleep 0.2");
    let create = b.brig("create").arg(&b.id).detached().spawn();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|s| s != "created") {
        let state = b.brig("state").arg(&b.id).run();
        if state.code() == 0 {
            let state: Value = serde_json::from_str(&state.out).unwrap();
            seen.push(state["status"].as_str().unwrap().to_owned());
        } else {
            state.says("does not exist");
        }
    }
    create.finish().exits(0);
    let unexpected = seen.iter().find(|s| !["creating", "created", "stopped"].contains(&s.as_str()));
    assert!(unexpected.is_none() || is_older_runc((1, 2)), "{seen:?}");
}
