//! Kernels without a call, or filters around brig that hide it: a way around, or a clear word.

use brig_tests::{Bundle, Run, Socket, json, only_brig, runtime};

const ENOSYS: &str = "38";
const EPERM: &str = "1";

/// The calls that an outer container's filter refuses when it is older than they are.
const NEW_CALLS: &str =
    "openat2,faccessat2,close_range,mount_setattr,epoll_pwait2,futex_waitv,process_madvise";

/// The runtime under a filter that answers this errno to these calls.
fn filtered(b: &Bundle, errno: &str, calls: &str) -> Run {
    filtered_by(Run::new(HELPER), b, errno, calls)
}

const HELPER: &str = env!("CARGO_BIN_EXE_brig-test-helper");

fn filtered_by(helper: Run, b: &Bundle, errno: &str, calls: &str) -> Run {
    helper.args(["without", errno, calls]).arg(runtime()).arg("--root").arg(&b.root)
}

/// `run` of the bundle's container so.
fn without(b: &Bundle, errno: &str, calls: &str) -> Run {
    b.write_config();
    filtered(b, errno, calls).args(["run", "--bundle"]).arg(b.path()).arg(&b.id)
}

#[test]
fn runs_without() {
    only_brig("the calls are those of brig", || {
        let mut b = Bundle::sh("cat /data/file; touch /data/no 2>/dev/null || echo read-only");
        let dir = b.path().join("data");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("file"), "there\n").unwrap();
        b.mount(json!({ "destination": "/data", "source": dir, "options": ["bind", "ro", "nosuid"] }));
        for (errno, calls) in [
            (ENOSYS, "openat2"),
            (EPERM, "openat2"),
            (ENOSYS, "openat2,faccessat2"),
            (EPERM, "openat2,faccessat2"),
            (ENOSYS, "faccessat2"),
            (EPERM, "faccessat2"),
            (ENOSYS, "mount_setattr"),
            (EPERM, "mount_setattr"),
            (ENOSYS, "close_range"),
            (EPERM, "close_range"),
            (ENOSYS, "memfd_create"),
            (ENOSYS, "keyctl"),
            (ENOSYS, "sched_setaffinity"),
            (EPERM, "sched_setaffinity"),
            (ENOSYS, NEW_CALLS),
            (EPERM, NEW_CALLS),
        ] {
            let finished = without(&b, errno, calls).run();
            assert_eq!(finished.out, "there\nread-only\n", "{calls}: {finished}");
            finished.exits(0);
        }
    });
}

/// `create` and `start`, each under the filter.
fn start_filtered(b: &Bundle, errno: &str, calls: &str, options: &[&str]) {
    b.write_config();
    let create = filtered(b, errno, calls).arg("create").args(options).arg("--bundle").arg(b.path());
    create.arg(&b.id).detached().ok();
    filtered(b, errno, calls).args(["start", &b.id]).ok();
}

const FILTERS: [(&str, &str); 4] =
    [(ENOSYS, "close_range"), (EPERM, "close_range"), (ENOSYS, NEW_CALLS), (EPERM, NEW_CALLS)];

/// All that opens something in the root file system or in procfs: a mount behind a link, a working directory that is made, a sysctl,
/// a terminal, hooks.
#[test]
fn paths_without_the_new_calls() {
    only_brig("the calls are those of brig", || {
        for (errno, calls) in FILTERS {
            let mut b = Bundle::sleeping();
            std::os::unix::fs::symlink("/run/../tmp", b.rootfs().join("link")).unwrap();
            std::fs::create_dir(b.rootfs().join("run")).unwrap_or_default();
            b.mount(json!({ "destination": "/link/made/here", "type": "tmpfs", "source": "tmpfs" }));
            b.config["process"]["cwd"] = json!("/link/dir/of/its/own");
            b.config["process"]["terminal"] = json!(true);
            b.config["linux"]["sysctl"] = json!({ "net.ipv4.ip_forward": "1" });
            let hook = json!([{ "path": "/bin/true" }]);
            b.config["hooks"] = json!({ "createRuntime": hook, "createContainer": hook, "poststart": hook });
            let socket = Socket::new(b.path().join("console.sock"));
            start_filtered(&b, errno, calls, &["--console-socket", &socket.path.to_string_lossy()]);
            assert_eq!(socket.receive().fds.len(), 1);
            let look = "pwd; cat /proc/sys/net/ipv4/ip_forward; grep -c ' /tmp/made/here ' /proc/mounts";
            let exec = filtered(&b, errno, calls).args(["exec", &b.id, "sh", "-c", look]).ok();
            assert_eq!(exec.out, "/tmp/dir/of/its/own\n1\n1\n", "{calls}");
            filtered(&b, errno, calls).args(["exec", "-u", "1000", "--cwd", "/link", &b.id, "true"]).ok();
        }
    });
}

/// Without close_range(2), descriptors of the caller stay out too, also where the container has no procfs to list them in.
#[test]
fn descriptors_without_the_new_calls() {
    only_brig("the calls are those of brig", || {
        for (errno, calls) in FILTERS {
            let b = Bundle::sleeping();
            start_filtered(&b, errno, calls, &[]);
            let look = "for fd in /proc/self/fd/*; do readlink $fd; done; true";
            // With a directory of the host open.
            let script = "exec 7<\"$0\"; exec \"$@\"";
            let shell = Run::new("sh").args(["-c", script]).arg(b.path()).arg(HELPER);
            let exec = filtered_by(shell, &b, errno, calls).args(["exec", &b.id, "sh", "-c", look]);
            let listed = exec.ok().out;
            assert!(
                listed.contains("/dev/null") && !listed.contains(&*b.path().to_string_lossy()),
                "{listed}"
            );

            let mut b = Bundle::sleeping();
            b.config["mounts"] = json!([]);
            for hidden in ["maskedPaths", "readonlyPaths"] {
                b.config["linux"][hidden] = json!([]);
            }
            start_filtered(&b, errno, calls, &[]);
            filtered(&b, errno, calls).args(["exec", &b.id, "true"]).ok();
        }
    });
}

#[test]
fn what_has_no_way_around_is_named() {
    only_brig("the calls are those of brig", || {
        for (errno, calls, reason) in [
            (ENOSYS, "clone3", "function not implemented"),
            (ENOSYS, "pidfd_open", "function not implemented"),
            (EPERM, "pivot_root", "operation not permitted"),
            (ENOSYS, "statx", "function not implemented"),
            (ENOSYS, "execveat", "function not implemented"),
        ] {
            let b = Bundle::default();
            without(&b, errno, calls).exits_with(1, calls).says(reason);
            b.assert_gone();
        }
        let mut b = Bundle::default();
        b.mount(json!({ "destination": "/data", "source": "/", "options": ["rbind", "rro"] }));
        without(&b, ENOSYS, "mount_setattr").exits_with(1, "mount_setattr").says("mounts[7]");
        b.assert_gone();
    });
}
