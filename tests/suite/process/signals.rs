//! Signals and the session.

use super::*;

/// The `Sig` lines of a process that does nothing about signals, its runtime started by this prefix.
fn signals(b: &Bundle, prefix: &[&str], detach: bool) -> Vec<String> {
    let run = Run::new(prefix[0]).args(&prefix[1..]).arg(runtime()).arg("--root").arg(&b.root).arg("run");
    let run = if detach { run.arg("--detach").detached() } else { run };
    let finished = run.arg("--bundle").arg(b.path()).arg(&b.id).ok();
    let text = if detach {
        host::eventually("the file", || {
            fs::read_to_string(b.rootfs().join("out")).is_ok_and(|t| t.contains("done"))
        });
        fs::read_to_string(b.rootfs().join("out")).unwrap()
    } else {
        finished.out
    };
    b.brig("delete").args(["--force", &b.id]).ok();
    let of = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or(&text).to_owned();
    vec![of("SigBlk:"), of("SigIgn:")]
}

const CLEAN: [&str; 2] = ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"];

#[test]
fn the_callers_ignored_signals_are_not_inherited() {
    let ignoring = ["sh", "-c", "trap '' HUP INT QUIT USR1 PIPE; exec \"$@\"", "sh"];
    better_than_runc("ignores one of its own, and those of the caller when detached", move || {
        let mut b = Bundle::new(&["grep", "^Sig", "/proc/self/status"]);
        b.write_config();
        assert_eq!(signals(&b, &ignoring, false), CLEAN);
        b.args(&["sh", "-c", "grep ^Sig /proc/self/status >/out; echo done >>/out"]);
        b.write_config();
        assert_eq!(signals(&b, &ignoring, true), CLEAN);
    });
}

#[test]
fn the_callers_blocked_signals_are_not_inherited() {
    let blocking = ["env", "--block-signal=HUP,USR1,TERM"];
    if Run::new(blocking[0]).args([blocking[1], "true"]).run().code() != 0 {
        return note("not checked: env of this host blocks no signals");
    }
    better_than_runc("inherits the mask", move || {
        let mut b = Bundle::new(&["grep", "^Sig", "/proc/self/status"]);
        b.write_config();
        assert_eq!(signals(&b, &blocking, false), CLEAN);
        b.args(&["sh", "-c", "grep ^Sig /proc/self/status >/out; echo done >>/out"]);
        b.write_config();
        assert_eq!(signals(&b, &blocking, true), CLEAN);
    });
}

#[test]
fn the_process_leads_a_session() {
    let mut b = Bundle::sh("exec cut -d' ' -f1,5,6 /proc/self/stat");
    assert_eq!(b.run().ok().line(), "1 1 1");
    b.without_namespace("pid");
    let out = b.run().ok().out;
    let ids: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(ids[0], ids[2]);
}
