//! `config.json`, `process.json` and the resources of `update`, to the plan and to what is written into cgroups.

use std::path::{Component, Path};
use std::sync::OnceLock;

use brig_cgroup::{Layout, v1, v2};
use brig_plan::{CgroupMode, Host, Plan, ProcessContext, Request};
use brig_spec::{Process, Resources, Spec};

use super::kernel::names;

const V1: &str = "30 23 0:26 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n\
                  31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

fn layouts() -> [Layout; 2] {
    let mounts = brig_cgroup::parse::cgroup_mounts(V1);
    let own = brig_cgroup::parse::memberships("2:devices:/own\n1:memory:/own\n");
    let v2 = Layout {
        mode: brig_cgroup::Mode::V2,
        hierarchies: vec![brig_cgroup::Hierarchy::new(&[], true, "/sys/fs/cgroup", Some("/own/leaf"))],
    };
    [Layout::from_v1(&mounts, &own).unwrap(), v2]
}

fn hosts() -> &'static [(Request, Host)] {
    static HOSTS: OnceLock<Vec<(Request, Host)>> = OnceLock::new();
    HOSTS.get_or_init(|| {
        let request = Request { id: "c1".into(), bundle: "/b".into(), detached: true, ..Request::default() };
        let root = Host::default();
        let user = Host { euid: 1000, in_user_ns: true, cgroups: CgroupMode::Hybrid, ..Host::default() };
        let labels = Host { apparmor: true, selinux: true, cgroups: CgroupMode::V1, ..Host::default() };
        vec![
            (request.clone(), root),
            (Request { detached: false, console_socket: true, no_pivot: true, ..request.clone() }, user),
            (Request { rootless: Some(true), systemd_cgroup: true, ..request }, labels),
        ]
    })
}

pub fn config(bytes: &[u8]) {
    let Ok((spec, _)) = Spec::from_slice(bytes) else { return };
    // What was read can be written, and is read the same again.
    let again = brig_spec::to_string_indented(&spec, "").unwrap();
    assert_eq!(Spec::from_slice(again.as_bytes()).unwrap().0, spec);
    for (request, host) in hosts() {
        let draft = Plan::draft(&spec, request, host);
        for problem in &draft.problems {
            assert!(!problem.to_string().is_empty());
        }
        let fine = draft.problems.iter().all(|p| p.severity != brig_plan::Severity::Error);
        assert_eq!(Plan::new(&spec, request, host).is_ok(), fine);
        if fine {
            promises(&draft.value);
        }
    }
}

/// What the runtime relies on of a plan without an error.
fn promises(plan: &Plan) {
    let clean = |path: &Path| {
        path.is_absolute()
            && path.components().all(|c| matches!(c, Component::RootDir | Component::Normal(_)))
    };
    let inside = plan.mounts.iter().map(|m| &m.target).chain(&plan.masked_paths).chain(&plan.readonly_paths);
    for path in inside.chain(plan.devices.iter().map(|d| &d.path)) {
        assert!(clean(path), "{}", path.display());
        assert!(!path.as_os_str().as_encoded_bytes().contains(&0));
    }
    for sysctl in &plan.sysctls {
        assert!(sysctl.path.is_relative() && clean(&Path::new("/").join(&sysctl.path)), "{}", sysctl.key);
    }
    let nul = |s: &String| s.contains('\0');
    assert!(!plan.process.args.iter().chain(&plan.process.env).any(nul));
    assert!(!plan.process.args.is_empty() && plan.process.cwd.is_absolute());
    for layout in &layouts() {
        names(layout, &plan.cgroup.path);
    }
    convert(&plan.cgroup.resources);
    if let Some(seccomp) = &plan.seccomp
        && let Ok(profile) = brig_seccomp::Profile::from_spec(seccomp)
    {
        let _ = brig_seccomp::compile(&profile, brig_seccomp::Arch::X86_64);
    }
}

/// Values go to plain files: a name never leads elsewhere.
fn convert(resources: &Resources) {
    for converted in
        [v1::convert(resources), v2::convert(resources, None), v2::convert(resources, Some("max 100000"))]
            .into_iter()
            .flatten()
    {
        for write in &converted.writes {
            let name = &write.file;
            assert!(
                !name.is_empty()
                    && !name.contains('/')
                    && name != "."
                    && name != ".."
                    && !name.contains('\0'),
                "{name:?}"
            );
        }
    }
}

pub fn resources(bytes: &[u8]) {
    if let Ok((resources, _)) = brig_spec::from_slice::<Resources>(bytes) {
        convert(&resources);
    }
}

pub fn process(bytes: &[u8]) {
    let Ok((process, _)) = brig_spec::from_slice::<Process>(bytes) else { return };
    for user_namespace in [false, true] {
        let context =
            ProcessContext { user_namespace, detached: user_namespace, ..ProcessContext::default() };
        let draft = brig_plan::process(&process, &context, &Host::default());
        if let Ok((planned, _)) = draft.into_result() {
            assert!(!planned.args.is_empty() && planned.cwd.is_absolute());
            assert!(!planned.args.iter().chain(&planned.env).any(|s| s.contains('\0')));
            assert_eq!(planned.user.uid, process.user.uid);
        }
    }
}

pub fn config_seeds() -> Vec<Vec<u8>> {
    let made = [(false, true), (true, true), (false, false)].map(|(rootless, v2)| {
        brig_spec::to_string_indented(&brig_spec::default::spec(rootless, v2, 1000, 1000), "").unwrap()
    });
    let mut seeds = made.map(|text| text.replace("\"terminal\":true,", "").into_bytes()).to_vec();
    seeds.push(
        br#"{"ociVersion":"1.3.0","process":{"args":["a"],"cwd":"/"},"root":{"path":"rootfs"}}"#.to_vec(),
    );
    seeds
}

pub fn process_seeds() -> Vec<Vec<u8>> {
    let spec = brig_spec::default::spec(false, true, 0, 0);
    vec![
        brig_spec::to_string_indented(&spec.process.unwrap_or_default(), "").unwrap().into_bytes(),
        br#"{"terminal":true,"consoleSize":{"height":1,"width":65535},"user":{"uid":4294967295,"gid":1,"umask":511,"additionalGids":[1,2]},"args":["sh"],"commandLine":"x","env":["A=B","A=C","=","HOME="],"cwd":"/x","rlimits":[{"type":"RLIMIT_NOFILE","hard":1,"soft":18446744073709551615}],"apparmorProfile":"p","oomScoreAdj":-1000,"selinuxLabel":"l","scheduler":{"policy":"SCHED_DEADLINE","nice":-20,"priority":99,"flags":["SCHED_FLAG_RECLAIM"],"runtime":1,"deadline":2,"period":3},"ioPriority":{"class":"IOPRIO_CLASS_RT","priority":8},"execCPUAffinity":{"initial":"0-3,7","final":"1"}}"#.to_vec(),
    ]
}

pub fn resources_seeds() -> Vec<Vec<u8>> {
    vec![br#"{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":1,"minor":3,"access":"r"}],"memory":{"limit":1,"reservation":-1,"swap":2,"kernel":3,"kernelTCP":4,"swappiness":60,"disableOOMKiller":true,"useHierarchy":true,"checkBeforeUpdate":true},"cpu":{"shares":1024,"quota":-1,"burst":5,"period":100000,"realtimeRuntime":1,"realtimePeriod":2,"cpus":"0-3","mems":"0","idle":1},"pids":{"limit":0},"blockIO":{"weight":10,"leafWeight":1000,"weightDevice":[{"major":8,"minor":0,"weight":5}],"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":18446744073709551615}]},"hugepageLimits":[{"pageSize":"2MB","limit":9}],"network":{"classID":1,"priorities":[{"name":"eth0","priority":1}]},"rdma":{"mlx5":{"hcaHandles":1,"hcaObjects":2}},"unified":{"memory.high":"1","../x":"2","a/b":"3","cgroup.procs":"1"}}"#.to_vec()]
}
