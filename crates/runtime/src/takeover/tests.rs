use super::*;

/// As 1.1 writes it: with zeros and nulls.
const OLD: &str = r#"{
    "id": "old", "init_process_pid": 8654, "init_process_start": 1289509, "created": "2026-12-01T03:52:56.5Z",
    "config": {
        "no_pivot_root": false, "rootfs": "/bundle/rootfs", "umask": 7,
        "mounts": [{"source": "proc", "destination": "/proc", "premount_cmds": null}],
        "namespaces": [{"type": "NEWPID", "path": ""}, {"type": "NEWNET", "path": "/run/netns/a"}],
        "capabilities": {"Bounding": ["CAP_KILL"], "Effective": ["CAP_KILL"], "Inheritable": null,
            "Permitted": ["CAP_KILL"], "Ambient": null},
        "cgroups": {"path": "/brig-test/old", "memory": 67108864, "memory_reservation": 0, "memory_swap": 134217728,
            "memory_swappiness": null, "cpu_quota": 50000, "cpu_period": 100000, "cpu_shares": 0, "pids_limit": 40,
            "unified": null, "Systemd": false},
        "oom_score_adj": 500,
        "seccomp": {"default_action": 4, "architectures": ["amd64", "x86"], "default_errno_ret": null,
            "syscalls": [
                {"name": "chmod", "action": 2, "errnoRet": 13, "args": []},
                {"name": "personality", "action": 2, "errnoRet": null,
                    "args": [{"index": 0, "value": 8, "value_two": 1, "op": 7}]}]},
        "no_new_privileges": true,
        "Hooks": {"createContainer": null, "poststart": null,
            "poststop": [{"path": "/bin/sh", "args": ["sh"], "env": ["A=b"], "dir": "", "timeout": 5000000000}]},
        "version": "1.0.2-dev", "labels": ["a.b=c=d", "bundle=/bundle"], "no_new_keyring": false
    },
    "rootless": false,
    "cgroup_paths": {"": "/sys/fs/cgroup/unified/brig-test/old"},
    "namespace_paths": {"NEWPID": "/proc/8654/ns/pid"}
}"#;

/// As 1.5 writes it: what is zero is left out.
const NEW: &str = r#"{
    "id": "new", "init_process_pid": 7, "init_process_start": 9, "created": "2026-12-01T03:52:18Z",
    "config": {"rootfs": "/bundle/rootfs", "namespaces": [{"type": "NEWPID", "path": "/proc/1/ns/pid"}],
        "cgroups": {"path": "/brig-test/new", "pids_limit": 0}, "Hooks": {"prestart": null}, "version": "1.3.0",
        "labels": ["bundle=/bundle"]},
    "namespace_paths": {}
}"#;

fn record(text: &str) -> Record {
    to_record(serde_json::from_str(text).unwrap()).unwrap()
}

#[test]
fn what_runc_wrote_is_understood() {
    let old = record(OLD);
    assert!(old.adopted && old.own_pid_namespace && old.process.no_new_privileges);
    assert_eq!(old.init, Some(Ident { pid: 8654, start: 1_289_509, inode: 0 }));
    assert_eq!(Timestamp::from_nanoseconds(old.created).to_string(), "2026-12-01T03:52:56.5Z");
    assert_eq!(old.namespaces, (CloneFlags::NEWPID | CloneFlags::NEWNET).bits());
    assert_eq!(old.bundle, PathBuf::from("/bundle"));
    assert_eq!(old.annotations, BTreeMap::from([("a.b".to_owned(), "c=d".to_owned())]));
    assert_eq!((old.process.user.umask, old.process.oom_score_adj), (Some(7), Some(500)));
    assert_eq!(old.process.capabilities.unwrap().bounding, ["CAP_KILL"]);
    let hook = &old.hooks.poststop[0];
    assert_eq!(
        (hook.path.as_str(), hook.timeout, hook.env.as_deref()),
        ("/bin/sh", Some(5), Some(&["A=b".to_owned()][..]))
    );
    let memory = old.resources.memory.unwrap();
    assert_eq!((memory.limit, memory.swap, memory.reservation), (Some(64 << 20), Some(128 << 20), None));
    let cpu = old.resources.cpu.unwrap();
    assert_eq!((cpu.quota, cpu.period, cpu.shares), (Some(50_000), Some(100_000), None));

    let new = record(NEW);
    assert!(!new.own_pid_namespace, "it has joined another's");
    assert_eq!((new.filter, new.process.capabilities), (None, None));
}

#[test]
fn the_profile_has_names_again() {
    let state: state::State = serde_json::from_str(OLD).unwrap();
    let profile = brig_spec::Seccomp::from(state.config.seccomp.unwrap());
    assert_eq!(profile.default_action, "SCMP_ACT_ALLOW");
    assert_eq!(profile.architectures, ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"]);
    assert_eq!(
        (profile.syscalls[0].action.as_str(), profile.syscalls[0].errno_ret),
        ("SCMP_ACT_ERRNO", Some(13))
    );
    assert_eq!(profile.syscalls[1].args[0].op, "SCMP_CMP_MASKED_EQ");
    assert!(LoadedFilter::compile(&profile).unwrap().is_some());
}

#[test]
fn a_record_of_runcs_is_one_until_there_is_ours() {
    let root = tempfile::tempdir().unwrap();
    let store = crate::store::Store::new(root.path());
    let (dir, _lock) = store.reserve(&crate::id::ContainerId::parse("x").unwrap()).unwrap();
    assert!(Record::read(&dir).unwrap().is_none());
    dir.replace(STATE, "new", NEW.as_bytes()).unwrap();
    let mut adopted = Record::read(&dir).unwrap().unwrap();
    assert!(adopted.adopted);
    adopted.resources.pids = Some(brig_spec::Pids { limit: Some(5) });
    adopted.write(&dir).unwrap();
    assert_eq!(Record::read(&dir).unwrap(), Some(adopted));
    assert_eq!(std::fs::read_to_string(dir.file(STATE)).unwrap(), NEW);
    dir.replace(STATE, "new", b"{").unwrap();
    std::fs::remove_file(dir.file("record.json")).unwrap();
    assert!(Record::read(&dir).unwrap_err().to_string().contains("runc's record cannot be read"));
}
