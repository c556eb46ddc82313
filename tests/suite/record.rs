//! The directory with the records.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use brig_tests::{Bundle, Run, better_than_runc, host, only_brig, runtime};

fn mode(path: impl AsRef<std::path::Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn directories_have_narrow_permissions() {
    let mut b = Bundle::sleeping();
    b.root = b.path().join("made/on/the/way");
    b.create();
    assert_eq!(mode(&b.root), 0o700);
    // A root of a user namespace must get at its gate.
    assert_eq!(mode(b.root.join(&b.id)), 0o711);
    for entry in fs::read_dir(b.root.join(&b.id)).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_file() {
            assert_eq!(entry.metadata().unwrap().mode() & 0o077, 0, "{entry:?}");
        }
    }
}

#[test]
fn permissions_do_not_depend_on_the_umask() {
    for umask in ["000", "022"] {
        let b = Bundle::sleeping();
        b.write_config();
        let create = Run::new("sh").args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
        let create = create.arg(runtime()).arg("--root").arg(&b.root).arg("create");
        create.arg("--bundle").arg(b.path()).arg(&b.id).detached().ok();
        assert_eq!(mode(&b.root) & 0o077, 0);
        assert_eq!(mode(b.root.join(&b.id)), 0o711);
    }
}

#[test]
fn a_fifo_is_the_gate() {
    let b = Bundle::sleeping();
    b.create();
    let fifo = b.root.join(&b.id).join("exec.fifo");
    assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn ids_may_be_long_and_have_these_characters() {
    let mut b = Bundle::sleeping();
    let own = b.id.clone();
    for id in ["a".repeat(64), "A-Z_az.09+x".to_owned(), "-starts-with-a-dash".to_owned(), "...".to_owned()] {
        id.clone_into(&mut b.id);
        b.config["linux"]["cgroupsPath"] = b.cgroups_path().into();
        b.brig("create").arg("--").arg(&id).detached().ok();
        assert_eq!(b.runtime().args(["list", "-q"]).ok().out, format!("{id}\n"));
        b.runtime().args(["delete", "--force", "--", &id]).ok();
        b.assert_gone();
    }
    b.id = own;
}

#[test]
fn an_id_longer_than_a_file_name_is_refused() {
    let b = Bundle::default();
    let finished = b.brig("create").arg("a".repeat(300)).run();
    finished.exits(1).says("file name too long");
    assert!(host::cgroup_dirs("/brig-test").iter().all(|dir| !dir.join("a".repeat(300)).exists()));
}

#[test]
fn a_failed_create_leaves_nothing_behind() {
    let mut b = Bundle::default();
    b.mount(
        brig_tests::json!({ "destination": "/x", "type": "bind", "source": "/nowhere", "options": ["bind"] }),
    );
    b.brig("create").arg(&b.id).run().exits(1);
    b.assert_gone();
    assert!(!b.root.exists() || fs::read_dir(&b.root).unwrap().next().is_none());
}

#[test]
fn a_refused_config_takes_no_id() {
    let mut b = Bundle::default();
    b.config["process"]["args"] = brig_tests::json!([]);
    b.brig("create").arg(&b.id).run().exits(1).says("args must not be empty");
    b.assert_gone();
}

#[test]
fn containers_of_two_roots_do_not_meet() {
    let a = Bundle::sleeping();
    let mut b = Bundle::sleeping();
    let own = b.id.clone();
    a.create();
    b.id.clone_from(&a.id);
    // The configuration still has its own cgroup: the first one's would not be empty.
    b.create();
    assert_ne!(a.pid(), b.pid());
    b.brig("delete").args(["--force", &b.id]).ok();
    assert_eq!(a.status(), "created");
    b.id = own;
}

#[test]
fn the_root_may_be_relative() {
    let b = Bundle::sleeping();
    b.write_config();
    let runtime = || Run::new(runtime()).args(["--root", "state"]).dir(b.path());
    runtime().args(["create", &b.id]).detached().ok();
    assert_eq!(b.status(), "created");
    runtime().args(["delete", "--force", &b.id]).ok();
    b.assert_gone();
}

#[test]
fn a_root_that_cannot_be_made() {
    let mut b = Bundle::default();
    let good = b.root.clone();
    b.root = "/proc/self/none".into();
    b.run().run().exits(1).says("/proc/self/none").says("no such file or directory");
    b.root = good;
}

#[test]
fn the_record_says_creating_while_hooks_run() {
    let mut b = Bundle::sleeping();
    b.write_config();
    let out = b.path().join("out");
    let script = format!(
        "{} --root {} state {} >{} 2>&1; true",
        runtime().display(),
        b.root.display(),
        b.id,
        out.display()
    );
    b.config["hooks"] =
        brig_tests::json!({ "createRuntime": [{ "path": "/bin/sh", "args": ["sh", "-c", script] }] });
    better_than_runc("knows no container before it is created", move || {
        b.create();
        let seen = fs::read_to_string(&out).unwrap();
        assert!(seen.contains("\"status\": \"creating\""), "{seen}");
    });
}

#[test]
fn a_reboot_is_told_from_the_record() {
    // A record whose process has another start time is that of a stopped container, whoever has the pid now.
    let b = Bundle::sleeping();
    b.start();
    let pid = b.pid();
    let other = Run::new("sleep").arg("1000").spawn();
    for entry in fs::read_dir(b.root.join(&b.id)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|x| x != "json") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let changed = text.replace(&format!(":{pid},"), &format!(":{},", other.pid()));
        assert_ne!(text, changed, "the pid is not in {}", path.display());
        fs::write(&path, changed).unwrap();
    }
    assert_eq!(b.status(), "stopped");
    b.brig("kill").args([&b.id, "KILL"]).run().exits(1).says("container not running");
    host::kill(pid);
    b.brig("delete").args(["--force", &b.id]).ok();
    assert!(host::is_alive(other.pid()));
}

#[test]
fn a_record_of_a_later_version_is_named_as_such() {
    only_brig("the record is brig's own", || {
        let b = Bundle::sleeping();
        b.create();
        let path = b.root.join(&b.id).join("record.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut record: brig_tests::Value = serde_json::from_str(&text).unwrap();
        record["version"] = 4711.into();
        fs::write(&path, record.to_string()).unwrap();
        b.brig("state").arg(&b.id).run().exits(1).says("version");
        fs::write(&path, text).unwrap();
    });
}
