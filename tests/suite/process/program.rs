//! What is executed: names, interpreters, arguments.

use super::*;

#[test]
fn a_bare_name_is_looked_for_in_the_containers_path() {
    let mut b = Bundle::new(&["mine"]);
    fs::create_dir_all(b.rootfs().join("opt/x")).unwrap();
    symlink("/bin/busybox", b.rootfs().join("opt/x/true")).unwrap();
    b.args(&["true"]);
    b.config["process"]["env"] = json!(["PATH=/opt/none:/opt/x"]);
    b.run().ok();
    b.config["process"]["env"] = json!(["PATH=/opt/none"]);
    let text = "exec: \"true\": executable file not found in $PATH";
    b.run().run().exits(1).says("executable file not found in $PATH").says("true");
    assert!(b.run().run().err.replace('\\', "").contains(text));
    // The caller's PATH does not count.
    b.config["process"]["env"] = json!(["A=b"]);
    b.run().run().exits(1).says("executable file not found in $PATH");
}

/// Case 30: crun 1664, 1671; runc 3238. The names.
#[test]
fn a_name_that_begins_with_a_dot_is_found() {
    let mut b = Bundle::new(&[".hidden"]);
    symlink("busybox", b.rootfs().join("bin/.hidden")).unwrap();
    fs::write(b.rootfs().join("bin/.script"), "#!/bin/sh\nexit 9\n").unwrap();
    fs::set_permissions(b.rootfs().join("bin/.script"), fs::Permissions::from_mode(0o755)).unwrap();
    b.args(&[".script"]);
    b.run().run().exits(9);
}

/// Case 30: what cannot be executed.
#[test]
fn programs_that_cannot_be_executed() {
    let mut b = Bundle::default();
    fs::write(b.rootfs().join("plain"), "#!/bin/sh\n").unwrap();
    let mut run = |args: &[&str]| {
        b.args(args);
        let finished = b.run().run();
        b.assert_gone();
        finished.exits(1);
        finished.err.replace('\\', "")
    };
    for (program, text) in [
        ("/missing", "exec: \"/missing\": stat /missing: no such file or directory"),
        ("/etc/passwd/x", "exec: \"/etc/passwd/x\": stat /etc/passwd/x: not a directory"),
        ("/plain", "exec: \"/plain\": permission denied"),
        ("nothing", "exec: \"nothing\": executable file not found in $PATH"),
    ] {
        let err = run(&[program]);
        assert!(err.contains(text), "{err}");
    }
    since_runc((1, 2), "a text for directories", || {
        let err = run(&["/etc"]);
        assert!(err.contains("exec: \"/etc\": is a directory"), "{err}");
    });
}

/// Case 30: interpreters. What only the last execve finds out is an error of `start`.
#[test]
fn a_missing_interpreter_is_reported_by_start() {
    better_than_runc("start succeeds, the container ends with 255", || {
        let mut b = Bundle::new(&["/script"]);
        let write = |b: &Bundle, text: &str| {
            fs::write(b.rootfs().join("script"), text).unwrap();
            fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        };
        for (text, says) in [
            ("#!/no/interpreter\n", "no such file or directory"),
            ("#!/bin/sh\r\nexit 0\n", "no such file or directory"),
            ("\x7fELF rubbish", "exec format error"),
        ] {
            write(&b, text);
            b.create();
            b.brig("start").arg(&b.id).run().exits(1).says(says);
            b.delete();
            b.run().run().exits(1).says(says);
            b.assert_gone();
        }
        b.args(&["true"]);
    });
}

/// Case 30: whose fault it is.
#[test]
fn a_missing_interpreter_is_named() {
    better_than_runc("says nothing about interpreters", || {
        let b = Bundle::new(&["/script"]);
        fs::write(b.rootfs().join("script"), "#!/no/interpreter\n").unwrap();
        fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
        b.run().run().exits(1).says("/no/interpreter");
    });
}

#[test]
fn the_waiting_process_is_no_way_to_the_runtime() {
    // CVE-2019-5736: what could be written to through it is not the runtime's file.
    let b = Bundle::sleeping();
    b.create();
    let exe = format!("/proc/{}/exe", b.pid());
    let runtime = fs::metadata(runtime()).unwrap();
    let image = fs::metadata(&exe).unwrap();
    // runc may show a read-only mount of its file.
    let writable = fs::OpenOptions::new().append(true).open(&exe).is_ok();
    assert!((image.dev(), image.ino()) != (runtime.dev(), runtime.ino()) || !writable);
    assert!(!writable);
}

#[test]
fn self_exe_as_the_program_does_not_reach_the_runtime() {
    let before = fs::read(runtime()).unwrap();
    let mut b = Bundle::new(&["/proc/self/exe", "--no-such-flag"]);
    let finished = b.run().limit(std::time::Duration::from_secs(20)).run();
    assert_ne!(finished.code(), 0, "{finished}");
    fs::write(b.rootfs().join("script"), "#!/proc/self/exe\n").unwrap();
    fs::set_permissions(b.rootfs().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    b.args(&["/script"]);
    assert_ne!(b.run().limit(std::time::Duration::from_secs(20)).run().code(), 0);
    assert_eq!(fs::read(runtime()).unwrap(), before);
}

#[test]
fn arguments_arrive_as_they_are() {
    let args = ["printf", "%s|", "", "a b", "ü", "new\nline", "*", "$HOME", "--"];
    let out = Bundle::new(&args).run().ok().out;
    assert_eq!(out, "|a b|ü|new\nline|*|$HOME|--|");
}

#[test]
fn a_long_list_of_arguments_and_variables() {
    let mut b = Bundle::sh("echo $# ${#LONG}");
    let mut args = vec!["sh".to_owned(), "-c".to_owned(), "echo $# ${#LONG}".to_owned(), "sh".to_owned()];
    args.extend((0..5000).map(|n| format!("argument number {n}")));
    b.config["process"]["args"] = json!(args);
    b.config["process"]["env"] = json!(["PATH=/bin", format!("LONG={}", "x".repeat(100_000))]);
    assert_eq!(b.run().ok().line(), "5000 100000");
}
