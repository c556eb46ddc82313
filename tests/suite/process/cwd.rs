//! The working directory.

use super::*;

#[test]
fn the_working_directory_is_made() {
    let mut b = Bundle::sh("pwd; stat -c '%a %u' .");
    b.config["process"]["cwd"] = "/made/on/the/way".into();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    assert_eq!(b.run().ok().out, "/made/on/the/way\n755 0\n");
    assert!(b.rootfs().join("made/on/the/way").is_dir());
}

#[test]
fn a_working_directory_of_the_user_alone() {
    let mut b = Bundle::sh("pwd");
    let dir = b.rootfs().join("private");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&dir, Some(1000), Some(1000)).unwrap();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    b.config["process"]["cwd"] = "/private".into();
    assert_eq!(b.run().ok().out, "/private\n");
}

#[test]
fn a_working_directory_that_the_user_may_not_enter() {
    let mut b = Bundle::sh("pwd");
    let dir = b.rootfs().join("closed");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    b.config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    b.config["process"]["cwd"] = "/closed".into();
    // runc enters with its own privileges; the specification wants the process to be there.
    let finished = b.run().run();
    assert!(finished.code() == 0 || finished.err.contains("permission denied"), "{finished}");
}

#[test]
fn a_working_directory_that_is_a_link_is_followed_inside() {
    let mut b = Bundle::sh("pwd");
    symlink("/tmp", b.rootfs().join("link")).unwrap();
    b.config["process"]["cwd"] = "/link".into();
    assert_eq!(b.run().ok().out, "/tmp\n");
}

#[test]
fn a_working_directory_that_is_a_file() {
    let mut b = Bundle::sh("pwd");
    b.config["process"]["cwd"] = "/etc/passwd".into();
    b.run().run().exits(1).says("not a directory");
    b.assert_gone();
}

#[test]
fn the_working_directory_is_absolute() {
    let mut b = Bundle::default();
    b.config["process"]["cwd"] = "tmp".into();
    b.run().run().exits(1).says("Cwd must be an absolute path");
    b.config["process"]["cwd"] = "".into();
    b.run().run().exits(1).says("Cwd property must not be empty");
}

/// Case 8: CVE-2024-21626.
#[test]
fn the_working_directory_cannot_be_a_descriptor_of_the_host() {
    let mut b = Bundle::sh("pwd; cat /etc/hostname");
    for fd in 3..=20 {
        b.config["process"]["cwd"] = format!("/proc/self/fd/{fd}").into();
        b.write_config();
        // Directories of the host are open in the runtime.
        let run = Run::new("sh").args(["-c", "exec 3</ 7</etc 8</tmp; exec \"$@\"", "sh"]);
        let run = run.arg(runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle");
        let finished = run.arg(b.path()).arg(&b.id).run();
        finished.exits(1);
        assert_eq!(finished.out, "");
        b.assert_gone();
    }
}

/// Case 8, through a link in the image.
#[test]
fn the_working_directory_cannot_be_a_link_to_a_descriptor() {
    let mut b = Bundle::sh("pwd");
    symlink("/proc/self/fd/7", b.rootfs().join("workdir")).unwrap();
    b.config["process"]["cwd"] = "/workdir".into();
    b.write_config();
    let run = Run::new("sh").args(["-c", "exec 7</etc; exec \"$@\"", "sh"]);
    let run = run.arg(runtime()).arg("--root").arg(&b.root).arg("run").arg("--bundle");
    let finished = run.arg(b.path()).arg(&b.id).run();
    finished.exits(1);
    assert_eq!(finished.out, "");
}
