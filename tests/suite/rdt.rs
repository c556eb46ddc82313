//! `linux.intelRdt`, on a tree that looks like resctrl: in a mount namespace of the test's own, since only the hardware of some
//! machines brings a real one. Its directories lack the files that the kernel would make in them.

use brig_tests::{Bundle, Finished, Run, is_other_runtime, json, note, runtime};

const TREE: &str = "
    mount --rbind /sys/fs/cgroup $place
    mount -t tmpfs tmpfs /sys/fs
    mkdir -p /sys/fs/cgroup /sys/fs/resctrl/info/L3 /sys/fs/resctrl/info/MB /sys/fs/resctrl/gold/mon_groups
    mount --rbind $place /sys/fs/cgroup
    cd /sys/fs/resctrl
    printf '    L3:0=00f;1=0ff\\n    MB:0= 20;1=100\\n' > gold/schemata
";

/// Runs a script where there is such a tree; `create`, `start` and so on are the runtime's commands on the container.
fn with_tree(b: &Bundle, script: &str) -> Option<Finished> {
    if is_other_runtime() {
        note("not run against another runtime: it looks for the file system's type");
        return None;
    }
    b.write_config();
    let place = b.path().join("place");
    std::fs::create_dir_all(&place).unwrap();
    let functions = format!(
        "rt={}; root={}; bundle={}; id={}; place={}",
        runtime().display(),
        b.root.display(),
        b.path().display(),
        b.id,
        place.display()
    );
    let commands = "
        create() { $rt --root $root create --bundle $bundle $id </dev/null >/dev/null; }
        start() { $rt --root $root start $id; }
        delete() { $rt --root $root delete --force $id; }
        on() { $rt --root $root exec $id \"$@\"; }
    ";
    let script = format!("set -e\n{functions}{TREE}\n{commands}\n{script}");
    Some(Run::new("unshare").args(["--mount", "--propagation", "private", "sh", "-c", &script]).run())
}

#[test]
fn a_class_of_the_containers_own() {
    let mut b = Bundle::sleeping();
    b.config["linux"]["intelRdt"] =
        json!({ "l3CacheSchema": "L3:0=f\nMB:0=5", "memBwSchema": "MB:0=20", "schemata": ["L2:0=3"] });
    let script = "
        create; start
        cat $id/schemata
        test \"$(cat $id/tasks)\" = \"$($rt --root $root state $id | grep '\"pid\"' | tr -dc 0-9)\" && echo joined
        : > $id/tasks
        on true
        grep -c . $id/tasks
        delete
        test -e $id || echo gone
        ls -d gold
    ";
    let Some(finished) = with_tree(&b, script) else { return };
    finished.exits(0);
    assert_eq!(finished.out, "L3:0=f\nMB:0=20\nL2:0=3\njoined\n1\ngone\ngold\n");
    b.assert_gone();
}

#[test]
fn a_class_that_others_have_made() {
    let mut b = Bundle::sleeping();
    b.config["linux"]["intelRdt"] =
        json!({ "closID": "gold", "l3CacheSchema": "L3:1=ff", "enableMonitoring": true });
    let script = "
        create
        test -s gold/tasks && test -s gold/mon_groups/$id/tasks && echo joined
        delete
        ls gold/mon_groups
        test -e gold/schemata && echo kept
    ";
    let Some(finished) = with_tree(&b, script) else { return };
    finished.exits(0);
    assert_eq!(finished.out, "joined\nkept\n");
}

#[test]
fn the_default_class() {
    let mut b = Bundle::sleeping();
    b.config["linux"]["intelRdt"] = json!({ "closID": "/" });
    let script = "create; test -s tasks && echo joined; delete; ls -d info";
    let Some(finished) = with_tree(&b, script) else { return };
    finished.exits(0);
    assert_eq!(finished.out, "joined\ninfo\n");
}

#[test]
fn classes_that_do_not_fit() {
    for (rdt, text) in [
        (
            json!({ "closID": "silver" }),
            "clos dir not accessible (must be pre-created when schemata, l3CacheSchema and memBwSchema are empty)",
        ),
        (
            json!({ "closID": "gold", "l3CacheSchema": "L3:0=ff" }),
            "does not match /sys/fs/resctrl/gold/schemata",
        ),
        (
            json!({ "closID": "gold", "memBwSchema": "MB:0=30" }),
            "does not match /sys/fs/resctrl/gold/schemata",
        ),
        (json!({ "closID": "../x" }), "invalid intelRdt.ClosID"),
    ] {
        let mut b = Bundle::default();
        b.config["linux"]["intelRdt"] = rdt;
        let Some(finished) = with_tree(&b, "create") else { return };
        finished.exits(1).says(text);
        b.assert_gone();
    }
}

#[test]
fn without_resctrl_it_is_refused() {
    if std::path::Path::new("/sys/fs/resctrl/info").exists() {
        return note("not checked: this host has resctrl");
    }
    let mut b = Bundle::default();
    b.config["linux"]["intelRdt"] = json!({ "l3CacheSchema": "L3:0=f" });
    b.run().run().exits(1).says("intelRdt is specified in config, but Intel RDT is not enabled");
    b.assert_gone();
}
