//! Kernels without a call, or filters around brig that hide it: a way around, or a clear word.

use brig_tests::{Bundle, Run, json, only_brig, runtime};

const ENOSYS: &str = "38";
const EPERM: &str = "1";

/// `run` of the bundle's container under a filter that answers this errno to these calls.
fn without(b: &Bundle, errno: &str, calls: &str) -> Run {
    b.write_config();
    Run::new(env!("CARGO_BIN_EXE_brig-test-helper"))
        .args(["without", errno, calls])
        .arg(runtime())
        .arg("--root")
        .arg(&b.root)
        .args(["run", "--bundle"])
        .arg(b.path())
        .arg(&b.id)
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
            (ENOSYS, "mount_setattr"),
            (EPERM, "mount_setattr"),
            (ENOSYS, "close_range"),
            (EPERM, "close_range"),
            (ENOSYS, "memfd_create"),
            (ENOSYS, "keyctl"),
            (ENOSYS, "sched_setaffinity"),
            (EPERM, "sched_setaffinity"),
        ] {
            let finished = without(&b, errno, calls).run();
            assert_eq!(finished.out, "there\nread-only\n", "{calls}: {finished}");
            finished.exits(0);
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
