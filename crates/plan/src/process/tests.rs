use super::*;
use crate::IdMap;
use crate::Rlimit;

fn given(text: &str) -> spec::Process {
    let mut process: spec::Process = brig_spec::from_slice(text.as_bytes()).unwrap().0;
    if process.args.is_empty() {
        process.args.push("a".to_owned());
    }
    if process.cwd.is_empty() {
        process.cwd.push('/');
    }
    process
}

fn of(text: &str) -> Draft<Process> {
    process(&given(text), &ProcessContext::default(), &Host::default())
}

fn texts<T>(draft: Draft<T>) -> Vec<String> {
    draft.problems.iter().map(ToString::to_string).collect()
}

fn good(text: &str) -> Process {
    of(text).into_result().unwrap().0
}

#[test]
fn a_process_is_read() {
    let process = good(
        r#"{"args":["a","b"],"env":["A=1","HOME="],"cwd":"/srv/../x","user":{"uid":1,"gid":2,"umask":63,
            "additionalGids":[3]},"noNewPrivileges":true,"oomScoreAdj":-5,
            "capabilities":{"bounding":["CAP_CHOWN"]},"rlimits":[{"type":"RLIMIT_CORE","soft":1,"hard":2}],
            "execCPUAffinity":{"initial":"1,0"},"ioPriority":{"class":"IOPRIO_CLASS_BE","priority":4}}"#,
    );
    assert_eq!(process.args, ["a", "b"]);
    assert_eq!(process.env, ["A=1"]);
    assert_eq!(process.cwd, PathBuf::from("/srv/../x"));
    assert_eq!(
        process.user,
        User { uid: 1, gid: 2, additional_gids: vec![3], keep_groups: false, umask: 0o077 }
    );
    assert!(process.no_new_privileges);
    assert_eq!(process.oom_score_adj, Some(-5));
    assert_eq!(process.capabilities.bounding, 1);
    assert_eq!(process.rlimits, [Rlimit { resource: 4, soft: 1, hard: 2 }]);
    assert_eq!((process.affinity_initial, process.affinity_final), (Some(vec![0, 1]), None));
    assert_eq!(process.io_priority, Some(0x4004));
}

#[test]
fn what_is_not_given_stays_as_it_is() {
    let expected = Process {
        args: vec!["a".into()],
        cwd: "/".into(),
        user: User { umask: 0o022, ..User::default() },
        ..Process::default()
    };
    assert_eq!(good("{}"), expected);
}

#[test]
fn a_command_is_needed() {
    let none = process(&spec::Process::default(), &ProcessContext::default(), &Host::default());
    let expected = ["process.cwd: Cwd property must not be empty", "process.args: args must not be empty"]
        .map(str::to_owned);
    assert_eq!(texts(none), expected);
    assert_eq!(texts(of(r#"{"cwd":"srv"}"#)), ["process.cwd: Cwd must be an absolute path"]);
}

#[test]
fn nul_bytes_are_refused() {
    assert_eq!(texts(of(r#"{"cwd":"/a\u0000"}"#)), ["process.cwd: path contains nul byte (\\x00)"]);
    let expected = "process.args[1]: argument contains nul byte (\\x00)";
    assert_eq!(texts(of(r#"{"args":["a","b\u0000"]}"#)), [expected]);
}

#[test]
fn terminals_and_sockets_go_together() {
    let with = |terminal, detached, console_socket| {
        let context = ProcessContext { detached, console_socket, ..ProcessContext::default() };
        let given = spec::Process { terminal, ..given("{}") };
        texts(process(&given, &context, &Host::default()))
    };
    let no_socket =
        "process.terminal: cannot allocate tty if runc will detach without setting console socket";
    let no_use = "process.terminal: cannot use console socket if runc will not detach or allocate tty";
    for (terminal, detached, socket, expected) in [
        (false, false, false, None),
        (true, false, false, None),
        (false, true, false, None),
        (true, true, true, None),
        (true, true, false, Some(no_socket)),
        (true, false, true, Some(no_use)),
        (false, true, true, Some(no_use)),
        (false, false, true, Some(no_use)),
    ] {
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(with(terminal, detached, socket), expected, "{terminal} {detached} {socket}");
    }
}

#[test]
fn the_size_counts_with_a_terminal_and_as_a_whole() {
    let size = |text: &str| good(text).console_size;
    assert_eq!(size(r#"{"terminal":true,"consoleSize":{"height":24,"width":80}}"#), Some((80, 24)));
    assert_eq!(size(r#"{"terminal":true,"consoleSize":{"height":0,"width":80}}"#), None);
    assert_eq!(size(r#"{"terminal":true,"consoleSize":{"height":24}}"#), None);
    assert_eq!(size(r#"{"consoleSize":{"height":24,"width":80}}"#), None);
    let expected = "process.consoleSize: no terminal is 80 by 65536 characters";
    assert_eq!(texts(of(r#"{"terminal":true,"consoleSize":{"height":65536,"width":80}}"#)), [expected]);
}

#[test]
fn users_must_be_possible() {
    let expected = "process.user.uid: invalid user id 4294967295";
    assert_eq!(texts(of(r#"{"user":{"uid":4294967295}}"#)), [expected]);
    let expected = "process.user.gid: invalid group id 4294967295";
    assert_eq!(texts(of(r#"{"user":{"gid":4294967295}}"#)), [expected]);
    let expected = "process.user.umask: invalid umask 0o1000 (0 to 0o777)";
    assert_eq!(texts(of(r#"{"user":{"umask":512}}"#)), [expected]);
}

#[test]
fn users_must_be_mapped() {
    let id_maps = IdMaps {
        uid: vec![IdMap { inside: 0, outside: 1000, count: 2 }],
        gid: vec![IdMap { inside: 0, outside: 1000, count: 3 }],
    };
    let context = ProcessContext { user_namespace: true, id_maps, ..ProcessContext::default() };
    let of = |text: &str, context: &ProcessContext| texts(process(&given(text), context, &Host::default()));
    assert_eq!(of(r#"{"user":{"uid":1,"gid":2,"additionalGids":[0]}}"#, &context), [""; 0]);
    let expected = [
        "process.user.uid: cannot setuid to unmapped uid 2 in user namespace",
        "process.user.gid: cannot setgid to unmapped gid 3 in user namespace",
        "process.user.additionalGids: cannot set unmapped additional group 9 in user namespace",
    ];
    let text = r#"{"user":{"uid":2,"gid":3,"additionalGids":[1,9]}}"#;
    assert_eq!(of(text, &context), expected);
    // What is not known is for the kernel to refuse.
    assert_eq!(of(text, &ProcessContext { id_maps: IdMaps::default(), ..context }), [""; 0]);
}

#[test]
fn additional_groups_need_root() {
    let context = ProcessContext { rootless_euid: true, ..ProcessContext::default() };
    let given = given(r#"{"user":{"additionalGids":[5]}}"#);
    let expected = "process.user.additionalGids: cannot set any additional groups in a rootless container";
    assert_eq!(texts(process(&given, &context, &Host::default())), [expected]);
}

#[test]
fn labels_need_their_security_module() {
    let given = given(r#"{"apparmorProfile":"p","selinuxLabel":"l"}"#);
    let of = |host: &Host| process(&given, &ProcessContext::default(), host);
    let expected = [
        "process.apparmorProfile: unable to apply apparmor profile: apparmor is disabled or not supported",
        "process.selinuxLabel: selinux label is specified in config, but selinux is disabled or not supported",
    ];
    assert_eq!(texts(of(&Host::default())), expected);
    let (planned, _) = of(&Host { apparmor: true, selinux: true, ..Host::default() }).into_result().unwrap();
    assert_eq!(
        (planned.apparmor_profile.as_deref(), planned.selinux_label.as_deref()),
        (Some("p"), Some("l"))
    );
}

#[test]
fn the_oom_score_has_a_range() {
    assert_eq!(good(r#"{"oomScoreAdj":1000}"#).oom_score_adj, Some(1000));
    let expected = "process.oomScoreAdj: failed to update /proc/self/oom_score_adj: invalid argument (-1001 is not within ±1000)";
    assert_eq!(texts(of(r#"{"oomScoreAdj":-1001}"#)), [expected]);
}

#[test]
fn cpu_lists_are_read() {
    let process = good(r#"{"execCPUAffinity":{"initial":"0-2","final":"5"}}"#);
    assert_eq!(process.affinity_initial, Some(vec![0, 1, 2]));
    assert_eq!(process.affinity_final, Some(vec![5]));
    let expected = "process.execCPUAffinity.final: bad CPU affinity: invalid number: \"x\"";
    assert_eq!(texts(of(r#"{"execCPUAffinity":{"final":"x"}}"#)), [expected]);
}

#[test]
fn all_problems_are_told_and_the_first_error_counts() {
    let draft = of(r#"{"capabilities":{"bounding":["CAP_X"]},"env":["A"],"user":{"umask":512}}"#);
    assert_eq!(draft.problems.len(), 3);
    assert_eq!(draft.into_result().unwrap_err().path, "process.user.umask");
    let warned = of(r#"{"capabilities":{"bounding":["CAP_X"]}}"#).into_result().unwrap();
    assert_eq!(warned.1.len(), 1);
}
