//! brig as an ordinary user: with and without subordinate ids, with and without a cgroup.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use brig_tests::{Bundle, Finished, Run, Value, host, is_other_runtime, json, note, runtime};

/// A user that no host has.
const UID: u32 = 43_210;

/// A bundle that belongs to the user, with a configuration for one.
fn bundle(script: &str) -> Bundle {
    let mut b = Bundle::sh(script);
    b.with_namespace("user", None);
    b.config["linux"]["uidMappings"] = map();
    b.config["linux"]["gidMappings"] = map();
    without_privilege(&mut b);
    b
}

/// As [`bundle`], with a configuration that does not care who runs it.
fn plain_bundle(script: &str) -> Bundle {
    let mut b = Bundle::sh(script);
    without_privilege(&mut b);
    b
}

fn map() -> Value {
    json!([{ "containerID": 0, "hostID": UID, "size": 1 }])
}

fn without_privilege(b: &mut Bundle) {
    b.config["linux"].as_object_mut().unwrap().remove("cgroupsPath");
    // Only one group is mapped.
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if let Some(options) = mount["options"].as_array_mut() {
            options.retain(|option| option != "gid=5");
        }
    }
    fs::create_dir_all(b.path().join("state")).unwrap();
    Run::new("chown").args(["-R", &format!("{UID}:{UID}")]).arg(b.path()).ok();
}

/// The command line as the user, after a script that runs as root in a mount namespace of its own.
fn as_user(b: &Bundle, before: &str, words: &[&str]) -> Finished {
    b.write_config();
    chown(b.path().join("config.json"), Some(UID), Some(UID)).unwrap();
    // The runtime may lie where the user cannot go.
    let copy = b.path().join("runtime");
    if !copy.exists() {
        fs::copy(runtime(), &copy).unwrap();
    }
    let user = format!("setpriv --reuid {UID} --regid {UID} --clear-groups --inh-caps=-all --");
    let script = format!("set -e\n{before}\nexec {user} \"$@\"");
    let mut run =
        Run::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"]);
    run = run.arg(copy).arg("--root").arg(b.root.as_path()).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    run.args(words).dir(b.path()).run()
}

/// Files that say what the user is and may, in place of the host's.
fn subordinate(b: &Bundle, ranges: &str) -> String {
    let write = |name: &str, text: &str| {
        fs::write(b.path().join(name), text).unwrap();
        format!("mount --bind {}/{name} /etc/{name}\n", b.path().display())
    };
    let passwd = format!("root:x:0:0::/root:/bin/sh\nsomeone:x:{UID}:{UID}::/:/bin/sh\n");
    // The mount points have to exist.
    "touch /etc/subuid /etc/subgid\n".to_owned()
        + &write("passwd", &passwd)
        + &write("subuid", ranges)
        + &write("subgid", ranges)
}

#[test]
fn a_container_of_an_ordinary_user() {
    let b = bundle("id -u; tr -s ' ' < /proc/self/uid_map; echo > /dev/null && hostname; touch /tmp/made");
    let finished = as_user(&b, "", &["run", &b.id]);
    finished.exits(0);
    assert_eq!(finished.out, format!("0\n 0 {UID} 1\nbrig-test\n"));
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(b.rootfs().join("tmp/made")).unwrap()), UID);
}

#[test]
fn its_life() {
    let mut b = bundle("");
    b.args(&["sleep", "1000"]);
    let ok = |words: &[&str]| {
        let finished = as_user(&b, "", words);
        finished.exits(0);
        finished.out
    };
    as_user(&b, "exec >/dev/null 2>&1", &["create", &b.id]).exits(0);
    assert!(ok(&["state", &b.id]).contains("\"created\""));
    ok(&["start", &b.id]);
    assert_eq!(ok(&["exec", &b.id, "id", "-u"]), "0\n");
    assert!(ok(&["list", "-q"]).contains(&b.id));
    ok(&["kill", &b.id, "KILL"]);
    host::eventually("its end", || ok(&["state", &b.id]).contains("\"stopped\""));
    ok(&["delete", &b.id]);
    b.assert_gone();
}

#[test]
fn without_a_user_namespace_in_the_configuration_one_is_made() {
    if is_other_runtime() {
        return note("as crun does it; runc refuses");
    }
    let mut b = plain_bundle("id -u; tr -s ' ' < /proc/self/uid_map; tr -s ' ' < /proc/self/gid_map");
    let none = subordinate(&b, "");
    let finished = as_user(&b, &none, &["run", &b.id]);
    finished.exits(0);
    assert_eq!(finished.out, format!("0\n 0 {UID} 1\n 0 {UID} 1\n"));
    // With subordinate ids there are others beside.
    let some = subordinate(&b, "other:1:1\nsomeone:200000:1000\n");
    let finished = as_user(&b, &some, &["run", &b.id]);
    finished.exits(0);
    let map = format!(" 0 {UID} 1\n 1 200000 1000\n");
    assert_eq!(finished.out, format!("0\n{map}{map}"));
    // The caller is who the process is.
    b.config["process"]["user"] = json!({ "uid": 5, "gid": 5 });
    let finished = as_user(&b, &some, &["run", &b.id]);
    finished.exits(0);
    let map = format!(" 0 200000 5\n 5 {UID} 1\n 6 200005 995\n");
    assert_eq!(finished.out, format!("5\n{map}{map}"));
    let none = subordinate(&b, "");
    as_user(&b, &none, &["run", &b.id]).exits(1).says("no mapping found for uid 0").says("/etc/subuid");
    b.assert_gone();
}

#[test]
fn mappings_beyond_what_is_granted_are_refused() {
    let mut b = bundle("true");
    b.config["linux"]["uidMappings"] = json!([{ "containerID": 0, "hostID": UID, "size": 1 }, { "containerID": 1, "hostID": 300_000, "size": 10 }]);
    let before = subordinate(&b, &format!("{UID}:200000:1000\n"));
    let finished = as_user(&b, &before, &["run", &b.id]);
    finished.exits(1).says("newuidmap");
    b.assert_gone();
}

#[test]
fn limits_that_cannot_be_set() {
    let mut b = bundle("echo ran");
    b.config["linux"]["resources"]["pids"] = json!({ "limit": 7 });
    let refused = as_user(&b, "", &["run", &b.id]);
    refused.exits(1);
    let text = if host::is_cgroup_v2() {
        "rootless needs no limits + no cgrouppath when no permission is granted for cgroups"
    } else {
        "cannot set pids limit: container could not join or create cgroup"
    };
    refused.says(text);
    b.assert_gone();
    if is_other_runtime() {
        return;
    }
    // Whoever says so runs without, and is told.
    let finished = as_user(&b, "", &["--rootless=true", "run", &b.id]);
    finished.exits(0).says("linux.resources.pids.limit is not in force");
    assert_eq!(finished.out, "ran\n");
    assert_eq!(as_user(&b, "", &["--rootless=false", "run", &b.id]).code(), 1);
    // A path of the configuration is meant.
    b.config["linux"]["cgroupsPath"] = json!(b.cgroup());
    as_user(&b, "", &["--rootless=true", "run", &b.id]).exits(1).says("permission denied");
    b.assert_gone();
}

#[test]
fn the_cgroup_that_the_user_owns() {
    let mut b = bundle("cat /proc/self/cgroup");
    if host::has_controller("pids") {
        b.config["linux"]["resources"]["pids"] = json!({ "limit": 77 });
    }
    b.config["linux"]["namespaces"].as_array_mut().unwrap().retain(|ns| ns["type"] != "cgroup");
    // The user's own cgroup is below one that is not.
    let own = format!("{}-user", b.cgroup());
    let dirs: Vec<String> =
        host::hierarchies().iter().map(|hierarchy| format!("{}{own}", hierarchy.display())).collect();
    let list = dirs.join(" ");
    let before = format!(
        "for d in {list}; do
            mkdir -p $d
            for f in cpus mems; do [ ! -e $d/cpuset.$f ] || cat ${{d%/*/*}}/cpuset.$f > ${{d%/*}}/cpuset.$f; done
            for f in cpus mems; do [ ! -e $d/cpuset.$f ] || cat ${{d%/*}}/cpuset.$f > $d/cpuset.$f; done
            chown {UID} $d $d/cgroup.procs
            [ ! -e $d/tasks ] || chown {UID} $d/tasks
            echo $$ > $d/cgroup.procs
        done"
    );
    let finished = as_user(&b, &before, &["run", &b.id]);
    for dir in &dirs {
        let _ = fs::remove_dir(Path::new(dir));
    }
    finished.exits(0);
    let inside = format!("{own}/{}", b.id);
    assert!(finished.out.lines().any(|line| line.ends_with(&inside)), "{finished}");
    assert!(!finished.err.contains("not in force"), "{finished}");
    b.assert_gone();
}

#[test]
fn without_pid_namespace_and_cgroup_there_is_a_warning() {
    let mut b = bundle("exit 0");
    b.without_namespace("pid");
    // A procfs of the host's processes may be bound only.
    for mount in b.config["mounts"].as_array_mut().unwrap() {
        if mount["type"] == "proc" {
            *mount = json!({ "destination": "/proc", "source": "/proc", "options": ["rbind", "nosuid", "nodev", "noexec"] });
        }
    }
    let finished = as_user(&b, "", &["run", &b.id]);
    finished.exits(0).says("Such configuration is strongly discouraged");
    b.assert_gone();
}

#[test]
fn the_record_is_below_the_users_runtime_directory() {
    let mut b = bundle("");
    b.args(&["sleep", "1000"]);
    b.write_config();
    let xdg = b.path().join("xdg");
    fs::create_dir(&xdg).unwrap();
    chown(&xdg, Some(UID), Some(UID)).unwrap();
    let copy = b.path().join("runtime");
    fs::copy(runtime(), &copy).unwrap();
    let user = |words: &[&str]| {
        let run = Run::new(&copy).env("XDG_RUNTIME_DIR", &xdg).dir(b.path()).detached();
        run.uid(UID, UID).args(words).ok()
    };
    user(&["create", &b.id]);
    let found: Vec<_> = fs::read_dir(&xdg).unwrap().map(|entry| entry.unwrap().path().join(&b.id)).collect();
    assert!(found.iter().any(|dir| dir.exists()), "{found:?}");
    user(&["delete", "--force", &b.id]);
    assert!(found.iter().all(|dir| !dir.exists()), "{found:?}");
}
