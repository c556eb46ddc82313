//! Containers confined by AppArmor.

use std::fs;
use std::path::Path;

use brig_tests::{Bundle, Run, json, note};

/// Says so where the kernel has no AppArmor.
fn lacks_it() -> bool {
    let lacks = !Path::new("/sys/kernel/security/apparmor/.replace").exists();
    if lacks {
        note("not run: the kernel has no AppArmor");
    }
    lacks
}

/// Loads a profile that forbids one file.
fn load(name: &str) {
    let text = format!(
        "profile {name} flags=(attach_disconnected,mediate_deleted) {{
            file, capability, network, mount, umount, pivot_root, signal, ptrace, unix,
            deny /tmp/forbidden w,
        }}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("profile");
    fs::write(&file, text).unwrap();
    Run::new("apparmor_parser").args(["--replace", "--skip-cache"]).arg(file).ok();
}

#[test]
fn the_first_process_and_those_of_exec_are_confined() {
    if lacks_it() {
        return;
    }
    let name = format!("brig-test-{}", std::process::id());
    load(&name);
    let script = "cat /proc/self/attr/current; echo x >/tmp/allowed && echo x >/tmp/forbidden";
    let mut b = Bundle::sh(script);
    b.config["process"]["apparmorProfile"] = json!(name);
    let finished = b.run().run();
    assert!(finished.out.starts_with(&format!("{name} (enforce)")), "{finished}");
    finished.exits(1).says("Permission denied");

    b.args(&["sleep", "1000"]).start();
    let finished = b.exec(&["sh", "-c", script]).run();
    assert!(finished.out.starts_with(&format!("{name} (enforce)")), "{finished}");
    finished.exits(1).says("Permission denied");

    let other = format!("{name}-other");
    load(&other);
    let run = b.brig("exec").args(["--apparmor", &other, &b.id, "cat", "/proc/self/attr/current"]);
    assert_eq!(run.ok().line(), format!("{other} (enforce)"));
}

#[test]
fn a_profile_that_is_not_loaded_is_an_error() {
    if lacks_it() {
        return;
    }
    let mut b = Bundle::default();
    b.config["process"]["apparmorProfile"] = json!("brig-test-no-such-profile");
    b.run().fails().says("apparmor");
    b.assert_gone();
}
