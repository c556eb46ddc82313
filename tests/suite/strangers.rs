//! The kernel gives a number to somebody else one day: a recorded pid that is a stranger's now is nobody of the container's.
//!
//! Once as it happens, in a pid namespace with so few numbers that they come round again (Linux 6.14), and once by records that are
//! made to name a stranger.

use std::fs;
use std::path::Path;

use brig_tests::{Bundle, Finished, Run, Spawned, Value, host, json, note, only_brig, runtime};

/// A process that has nothing to do with any container.
fn stranger() -> Spawned {
    Run::new("sleep").arg("1000").spawn()
}

/// Whether it has been neither killed nor stopped nor frozen.
fn is_untouched(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

/// Makes a record name another process, keeping what else it knows about it.
fn rename_process(file: &Path, key: &str, pid: i32) {
    let mut record: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert!(record[key]["pid"].is_i64(), "{record}");
    record[key]["pid"] = pid.into();
    fs::write(file, record.to_string()).unwrap();
}

fn record(b: &Bundle) -> std::path::PathBuf {
    b.root.join(&b.id).join("record.json")
}

/// Commands on a container whose process is gone, and what they say.
fn check_commands(b: &Bundle, own_namespace: bool, stranger: i32) {
    let brig = |words: &[&str]| b.brig(words[0]).args(&words[1..]).run();
    let id = b.id.as_str();
    assert_eq!((b.status(), b.pid()), ("stopped".to_owned(), 0));
    let list = b.runtime().args(["list", "--format", "json"]).ok().out;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()[0]["pid"], 0);
    for signal in ["TERM", "STOP", "0"] {
        brig(&["kill", id, signal]).exits(1).says("container not running");
    }
    // What the first process of another pid namespace left in the cgroup is killed still. A scope without processes is gone.
    brig(&["kill", id, "KILL"]).exits(i32::from(own_namespace || host::by_systemd()));
    brig(&["kill", "--all", id, "KILL"]).exits(0);
    let number = stranger.to_string();
    for flags in [&["--pid"][..], &["--tree", "--pid"]] {
        let words = [&["kill"], flags, &[&number, id, "KILL"]].concat();
        brig(&words).exits(1).says("is not in the container: no such process");
    }
    brig(&["pause", id]).exits(1).says("container not running");
    brig(&["resume", id]).exits(1);
    brig(&["exec", id, "true"]).exits(255).says("cannot exec in a stopped container");
    brig(&["start", id]).exits(1).says("cannot start a container that has stopped");
    let wait = brig(&["wait", id]);
    wait.exits(125);
    assert_eq!(wait.out, "unknown\n");
    let ps: Finished = brig(&["ps", "--format", "json", id]);
    assert_eq!(ps.out, "null\n");
    assert!(is_untouched(stranger));
    brig(&["delete", id]).exits(0);
    b.assert_gone();
    assert!(is_untouched(stranger));
}

#[test]
fn a_container_whose_number_is_a_strangers() {
    only_brig("the record is brig's own", || {
        for own_namespace in [true, false] {
            let mut b = Bundle::sleeping();
            if !own_namespace {
                b.without_namespace("pid");
            }
            b.start();
            b.brig("kill").args([&b.id, "KILL"]).ok();
            b.wait_status("stopped");
            let other = stranger();
            rename_process(&record(&b), "init", other.pid());
            check_commands(&b, own_namespace, other.pid());
        }
    });
}

#[test]
fn delete_by_force_spares_strangers() {
    only_brig("the record is brig's own", || {
        let b = Bundle::sleeping();
        b.start();
        let (pid, other) = (b.pid(), stranger());
        rename_process(&record(&b), "init", other.pid());
        // The real one still is in the cgroup.
        b.delete();
        b.assert_gone();
        assert!(!host::is_alive(pid) && is_untouched(other.pid()));
    });
}

#[test]
fn a_creator_whose_number_is_a_strangers() {
    only_brig("the record is brig's own", || {
        let mut b = Bundle::sleeping();
        b.config["hooks"] = json!({ "createRuntime": [{ "path": "/bin/sleep", "args": ["sleep", "1000"] }] });
        for force in [false, true] {
            let create = b.brig("create").arg(&b.id).detached().spawn();
            let is_creating = || b.brig("state").arg(&b.id).run().out.contains("creating");
            host::eventually("the creation", is_creating);
            host::eventually("the record", || record(&b).exists());
            drop(create);
            let other = stranger();
            rename_process(&record(&b), "creator", other.pid());
            assert_eq!(b.status(), "stopped");
            let delete = b.brig("delete");
            if force { delete.arg("--force") } else { delete }.arg(&b.id).ok();
            b.assert_gone();
            assert!(is_untouched(other.pid()));
        }
    });
}

#[test]
fn an_exec_whose_number_is_a_strangers() {
    only_brig("the record is brig's own", || {
        let b = Bundle::sleeping();
        b.start();
        let brig = |words: &[&str]| b.brig(words[0]).args(&words[1..]);
        let id = b.id.as_str();
        let file = b.root.join(id).join("execs/e.json");
        let begin = || brig(&["exec", "-d", "--exec-id", "e", id, "sleep", "1000"]).detached().ok();
        begin();
        let other = stranger();
        rename_process(&file, "process", other.pid());
        let edited = fs::read(&file).unwrap();
        for flags in [&["--exec-id", "e"][..], &["--exec-id", "e", "--tree"]] {
            for signal in ["KILL", "STOP"] {
                let words = [&["kill"], flags, &[id, signal]].concat();
                brig(&words).run().exits(1).says("process already finished");
            }
        }
        let wait = brig(&["wait", "--exec-id", "e", id]).run();
        wait.exits(125);
        assert_eq!(wait.out, "unknown\n");
        assert!(b.state()["execs"].is_null());
        fs::write(&file, &edited).unwrap();
        assert_eq!(brig(&["ps", "--execs", "--format", "json", id]).ok().out, "[]\n");
        fs::write(&file, &edited).unwrap();
        begin();
        b.delete();
        assert!(is_untouched(other.pid()));
    });
}

fn has_own_pid_max() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// A script in a pid namespace with 400 numbers, of which the kernel keeps 300 to itself once they have come round.
fn with_few_numbers(b: &Bundle, script: &str) -> Finished {
    let functions = format!(
        "set -eu; id={}; brig() {{ {} --root {} \"$@\"; }}\n\
         fails() {{ text=$1; shift; if brig \"$@\" >out 2>&1; then echo \"no failure: $*\"; exit 1; fi; grep -q \"$text\" out || {{ cat out; exit 1; }}; }}\n\
         # Starts processes until one has this number.\n\
         take() {{ for i in $(seq 2000); do sleep 1000 & [ $! != $1 ] || return 0; kill $!; wait $! || true; done 2>/dev/null; echo never; exit 1; }}\n\
         # The first 300 are given once only.\n\
         while [ \"$(sh -c 'echo $$')\" -lt 310 ]; do :; done\n\
         gone() {{ while [ -e /proc/$1 ]; do sleep 0.01; done; }}\n\
         untouched() {{ read -r stat </proc/$1/stat; case $stat in *') S '*) ;; *) echo \"touched: $stat\"; exit 1;; esac; }}\n",
        b.id,
        runtime().display(),
        b.root.display()
    );
    b.write_config();
    let unshare = Run::new("unshare").args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    let helper = unshare.arg(env!("CARGO_BIN_EXE_brig-test-helper")).args(["init", "400"]);
    helper.args(["sh", "-c", &(functions + script)]).dir(b.path()).run()
}

#[test]
fn numbers_that_come_round() {
    if !has_own_pid_max() {
        return note("not run: a pid namespace has no pid_max of its own before Linux 6.14");
    }
    only_brig("what it says differs", || {
        let b = Bundle::sleeping();
        with_few_numbers(
            &b,
            "brig run -d --pid-file pid --bundle . $id >/dev/null
             pid=$(cat pid); brig kill $id KILL; gone $pid; take $pid
             brig state $id >out; grep -q '\"status\": \"stopped\"' out; grep -q '\"pid\": 0' out
             for signal in KILL TERM STOP; do fails 'container not running' kill $id $signal; done
             fails 'is not in the container' kill --pid $pid $id KILL
             fails 'container not running' pause $id
             fails 'cannot exec in a stopped container' exec $id true
             fails unknown wait $id
             [ \"$(brig ps --format json $id)\" = null ]
             untouched $pid
             brig delete $id; [ ! -e state/$id ]; untouched $pid",
        )
        .exits(0);
        b.assert_gone();
    });
}

#[test]
fn numbers_of_execs_that_come_round() {
    if !has_own_pid_max() {
        return note("not run: a pid namespace has no pid_max of its own before Linux 6.14");
    }
    only_brig("execs have no names elsewhere", || {
        let b = Bundle::sleeping();
        with_few_numbers(
            &b,
            "brig run -d --bundle . $id >/dev/null
             brig exec -d --exec-id e --pid-file pid $id sleep 1000 >/dev/null
             pid=$(cat pid); brig kill --exec-id e $id KILL; gone $pid; take $pid
             fails 'process already finished' kill --exec-id e $id KILL
             fails 'process already finished' kill --exec-id e --tree $id KILL
             fails unknown wait --exec-id e $id
             [ \"$(brig ps --execs --format json $id)\" = '[]' ]
             untouched $pid
             brig exec --exec-id e $id true; untouched $pid
             brig delete --force $id; untouched $pid",
        )
        .exits(0);
        b.assert_gone();
    });
}
