//! The root with the records: what others planted in it is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use brig_tests::{Bundle, Finished, Run, host, json, runtime};

use crate::support::{Victim, ended_in_order, naive};

/// Every command that believes a record.
fn commands(b: &Bundle) -> Vec<(&'static str, Finished)> {
    let of = |words: &[&'static str]| {
        let (name, rest) = words.split_first().unwrap();
        (*name, b.brig(name).arg(&b.id).args(rest).detached().run())
    };
    vec![
        of(&["state"]),
        of(&["start"]),
        of(&["kill", "KILL"]),
        of(&["exec", "true"]),
        of(&["pause"]),
        of(&["resume"]),
        of(&["ps"]),
        of(&["update", "--pids-limit", "5"]),
        of(&["delete"]),
    ]
}

#[track_caller]
fn all_refuse(b: &Bundle, why: &str) {
    for (command, finished) in commands(b) {
        ended_in_order(&finished);
        assert_ne!(finished.code(), 0, "{command} believes a record although {why}: {finished}");
    }
}

fn dir_of(b: &Bundle) -> PathBuf {
    b.root.join(&b.id)
}

#[test]
fn a_record_that_anybody_can_write() {
    for (file, mode) in
        [("", 0o777), ("", 0o771), ("", 0o713), ("record.json", 0o666), ("record.json", 0o620)]
    {
        let b = Bundle::sleeping();
        b.start();
        let pid = b.pid();
        let path = dir_of(&b).join(file);
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        all_refuse(&b, &format!("{file} has mode {mode:o}"));
        assert!(host::is_alive(pid));
        fs::set_permissions(&path, before).unwrap();
        assert_eq!(b.status(), "running");
    }
}

#[test]
fn a_record_of_somebody_else() {
    for file in ["", "record.json"] {
        let b = Bundle::sleeping();
        b.start();
        let pid = b.pid();
        let path = dir_of(&b).join(file);
        std::os::unix::fs::chown(&path, Some(1000), Some(1000)).unwrap();
        all_refuse(&b, &format!("user 1000 owns {file}"));
        assert!(host::is_alive(pid));
        std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
        assert_eq!(b.status(), "running");
    }
}

/// A link, whatever it leads to, is not what brig made.
#[test]
fn planted_links() {
    let victim = Victim::new();
    let b = Bundle::sleeping();
    b.start();
    let pid = b.pid();
    let dir = dir_of(&b);
    // A directory elsewhere, with a record in it that is good.
    let moved = b.path().join("moved");
    fs::rename(&dir, &moved).unwrap();
    symlink(&moved, &dir).unwrap();
    let read = naive().args(["read", &dir.join("record.json").to_string_lossy()]).ok();
    assert!(read.out.contains("\"version\""), "the naive variant believes it");
    all_refuse(&b, "its directory is a link");
    assert!(!b.brig("delete").args(["--force", &b.id]).run().status.success());
    assert!(moved.join("record.json").exists() && host::is_alive(pid));
    fs::remove_file(&dir).unwrap();
    fs::rename(&moved, &dir).unwrap();
    // The record alone.
    let (record, aside) = (dir.join("record.json"), b.path().join("aside"));
    fs::rename(&record, &aside).unwrap();
    symlink(&aside, &record).unwrap();
    all_refuse(&b, "its record is a link");
    fs::remove_file(&record).unwrap();
    fs::rename(&aside, &record).unwrap();
    // Files that commands make or change.
    for name in ["record.json.new", "lock", "exec.fifo", "seccomp.bpf"] {
        let path = dir.join(name);
        let _ = fs::remove_file(&path);
        symlink(victim.file(), &path).unwrap();
    }
    for (_, finished) in commands(&b) {
        ended_in_order(&finished);
        victim.assert_untouched();
    }
    b.brig("delete").args(["--force", &b.id]).run();
    victim.assert_untouched();
    let _ = fs::remove_file(dir.join("lock"));
    b.delete();
    victim.assert_untouched();
    b.assert_gone();
}

/// `delete --force` removes a directory that holds links, not what they lead to.
#[test]
fn delete_follows_no_link() {
    let victim = Victim::new();
    let b = Bundle::sleeping();
    b.create();
    symlink(victim.path(), dir_of(&b).join("link")).unwrap();
    fs::create_dir(dir_of(&b).join("sub")).unwrap();
    symlink(victim.path(), dir_of(&b).join("sub/link")).unwrap();
    b.delete();
    victim.assert_untouched();
    b.assert_gone();
}

/// What should be a file is something that never ends, or blocks.
#[test]
fn records_that_are_no_files() {
    for kind in ["fifo", "directory", "device"] {
        let b = Bundle::sleeping();
        b.start();
        let record = dir_of(&b).join("record.json");
        let aside = b.path().join("aside");
        fs::rename(&record, &aside).unwrap();
        match kind {
            "fifo" => Run::new("mkfifo").arg(&record).ok(),
            "directory" => Run::new("mkdir").arg(&record).ok(),
            _ => Run::new("mknod").arg(&record).args(["c", "1", "5"]).ok(),
        };
        all_refuse(&b, kind);
        let _ = fs::remove_file(&record).or_else(|_| fs::remove_dir(&record));
        fs::rename(&aside, &record).unwrap();
    }
}

/// Nothing outside of the container's own cgroups goes, whatever a record says.
#[test]
fn records_that_name_other_cgroups() {
    let bystander = Bundle::sleeping();
    bystander.start();
    let b = Bundle::sleeping();
    b.start();
    let record = dir_of(&b).join("record.json");
    let good = fs::read_to_string(&record).unwrap();
    for path in ["", "/", ".", "..", "../..", "brig-test/../..", "brig-test/./x/../.."] {
        let mut evil: brig_tests::Value = serde_json::from_str(&good).unwrap();
        for group in evil["cgroup"]["groups"].as_array_mut().unwrap() {
            group["path"] = json!(path);
        }
        fs::write(&record, evil.to_string()).unwrap();
        for (command, finished) in commands(&b) {
            ended_in_order(&finished);
            assert!(command == "start" || command == "state" || finished.code() != 0, "{path}: {finished}");
        }
        assert!(host::is_alive(bystander.pid()));
    }
    fs::write(&record, good).unwrap();
    assert_eq!(bystander.status(), "running");
}

/// A user's containers are that user's, and root's are root's: neither acts on the other's.
#[test]
fn users_and_each_others_containers() {
    let b = Bundle::sleeping();
    b.start();
    let as_user = |root: &std::path::Path, words: &[&str]| {
        let run = Run::new(runtime()).arg("--root").arg(root).args(words).uid(1000, 1000);
        run.dir("/").run()
    };
    for words in [
        &["kill", &b.id, "KILL"][..],
        &["delete", "--force", &b.id],
        &["exec", &b.id, "true"],
        &["state", &b.id],
    ] {
        let finished = as_user(&b.root, words);
        ended_in_order(&finished);
        assert_ne!(finished.code(), 0, "{finished}");
    }
    assert_eq!(b.status(), "running");
    // A directory that the user made: root does not believe it, in neither direction.
    let users = tempfile::Builder::new().prefix("brig-user-").tempdir_in("/tmp").unwrap();
    let planted = users.path().join(&b.id);
    fs::create_dir(&planted).unwrap();
    fs::copy(dir_of(&b).join("record.json"), planted.join("record.json")).unwrap();
    for path in [users.path(), &planted, &planted.join("record.json")] {
        std::os::unix::fs::chown(path, Some(1000), Some(1000)).unwrap();
    }
    for words in [&["kill", &b.id, "KILL"][..], &["delete", "--force", &b.id], &["exec", &b.id, "true"]] {
        let finished = Run::new(runtime()).arg("--root").arg(users.path()).args(words).run();
        assert_ne!(finished.code(), 0, "{finished}");
        finished.says("it belongs to user 1000");
    }
    assert_eq!(b.status(), "running");
    // The user's own root, with a record that names root's process: signals are refused by the kernel.
    as_user(users.path(), &["kill", &b.id, "KILL"]);
    assert_eq!(b.status(), "running");
}
