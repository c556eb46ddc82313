use super::*;

fn spec() -> Seccomp {
    Seccomp { default_action: "SCMP_ACT_ERRNO".to_owned(), ..Seccomp::default() }
}

fn rule(action: &str) -> SeccompSyscall {
    SeccompSyscall { names: vec!["read".to_owned()], action: action.to_owned(), ..SeccompSyscall::default() }
}

fn with_rule(rule: SeccompSyscall) -> Seccomp {
    Seccomp { syscalls: vec![self::rule("SCMP_ACT_ALLOW"), rule], ..spec() }
}

fn with_flags(flags: &[&str]) -> Seccomp {
    Seccomp { flags: Some(flags.iter().map(|&flag| flag.to_owned()).collect()), ..spec() }
}

#[track_caller]
fn refused(spec: &Seccomp, message: &str) {
    assert_eq!(Profile::from_spec(spec).unwrap_err().to_string(), message);
}

#[test]
fn actions() {
    let verdicts = [
        ("SCMP_ACT_ALLOW", 0x7fff_0000),
        ("SCMP_ACT_ERRNO", 0x0005_0001),
        ("SCMP_ACT_KILL", 0),
        ("SCMP_ACT_KILL_PROCESS", 0x8000_0000),
        ("SCMP_ACT_KILL_THREAD", 0),
        ("SCMP_ACT_LOG", 0x7ffc_0000),
        ("SCMP_ACT_NOTIFY", 0x7fc0_0000),
        ("SCMP_ACT_TRACE", 0x7ff0_0001),
        ("SCMP_ACT_TRAP", 0x0003_0000),
    ];
    assert_eq!(verdicts.map(|(name, _)| name), ACTIONS);
    for (name, verdict) in verdicts {
        let spec = Seccomp { listener_path: "/run/agent".to_owned(), ..with_rule(rule(name)) };
        let profile = Profile::from_spec(&spec).unwrap();
        assert_eq!(profile.rules[1].action.verdict(), verdict, "{name}");
    }
}

#[test]
fn error_numbers() {
    for (action, errno, verdict) in [
        ("SCMP_ACT_ERRNO", 38, 0x0005_0026),
        ("SCMP_ACT_ERRNO", 0, 0x0005_0000),
        ("SCMP_ACT_TRACE", 0xffff, 0x7ff0_ffff),
        ("SCMP_ACT_TRAP", 99_999, 0x0003_0000),
    ] {
        let rule = SeccompSyscall { errno_ret: Some(errno), ..rule(action) };
        let spec =
            Seccomp { default_action: action.to_owned(), default_errno_ret: Some(errno), ..with_rule(rule) };
        let profile = Profile::from_spec(&spec).unwrap();
        assert_eq!(profile.rules[1].action.verdict(), verdict);
        assert_eq!(profile.default_action.verdict(), verdict);
    }
    let rule = SeccompSyscall { errno_ret: Some(4096), ..rule("SCMP_ACT_ERRNO") };
    refused(&with_rule(rule), "linux.seccomp.syscalls[1].errnoRet: 4096 is not a valid error number");
    let spec = Seccomp { default_errno_ret: Some(70_000), ..spec() };
    refused(&spec, "linux.seccomp.defaultErrnoRet: 70000 is not a valid error number");
}

#[test]
fn unknown_words() {
    refused(
        &with_rule(rule("SCMP_ACT_FORBID")),
        "linux.seccomp.syscalls[1].action: string SCMP_ACT_FORBID is not a valid action for seccomp",
    );
    refused(
        &Seccomp { default_action: String::new(), ..spec() },
        "linux.seccomp.defaultAction: string  is not a valid action for seccomp",
    );
    refused(
        &Seccomp { architectures: vec!["SCMP_ARCH_X86".to_owned(), "vax".to_owned()], ..spec() },
        "linux.seccomp.architectures[1]: string vax is not a valid arch for seccomp",
    );
    let args = vec![SeccompArg { op: "SCMP_CMP_EQUAL".to_owned(), ..SeccompArg::default() }];
    refused(
        &with_rule(SeccompSyscall { args, ..rule("SCMP_ACT_LOG") }),
        "linux.seccomp.syscalls[1].args[0].op: string SCMP_CMP_EQUAL is not a valid operator for seccomp",
    );
    let args = vec![SeccompArg { index: 6, op: "SCMP_CMP_EQ".to_owned(), ..SeccompArg::default() }];
    refused(
        &with_rule(SeccompSyscall { args, ..rule("SCMP_ACT_LOG") }),
        "linux.seccomp.syscalls[1].args[0].index: system calls have 6 arguments, so 6 is not a valid index",
    );
    refused(
        &with_flags(&["SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_NEW_LISTENER"]),
        "linux.seccomp.flags[1]: seccomp flag SECCOMP_FILTER_FLAG_NEW_LISTENER is not known to runc",
    );
    refused(
        &with_rule(SeccompSyscall { names: vec!["read".to_owned(), String::new()], ..rule("SCMP_ACT_LOG") }),
        "linux.seccomp.syscalls[1].names[1]: empty string is not a valid syscall",
    );
}

#[test]
fn flags() {
    let flags = |spec: &Seccomp| Profile::from_spec(spec).unwrap().flags;
    assert_eq!(flags(&spec()), 1 << 2, "SPEC_ALLOW");
    assert_eq!(flags(&with_flags(&[])), 0);
    assert_eq!(flags(&with_flags(&["SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG"])), 1 << 1);
    let notifies = Seccomp {
        listener_path: "/run/agent".to_owned(),
        flags: Some(vec![WAIT_KILLABLE_RECV.to_owned(), "SECCOMP_FILTER_FLAG_SPEC_ALLOW".to_owned()]),
        ..with_rule(rule("SCMP_ACT_NOTIFY"))
    };
    assert_eq!(flags(&notifies), 1 << 2 | 1 << 5);
    refused(
        &with_flags(&["SECCOMP_FILTER_FLAG_TSYNC", WAIT_KILLABLE_RECV]),
        "linux.seccomp.flags[1]: SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs a rule with SCMP_ACT_NOTIFY",
    );
}

#[test]
fn notify() {
    let spec = with_rule(rule("SCMP_ACT_NOTIFY"));
    refused(&spec, "linux.seccomp.listenerPath: seccomp listenerPath is not set");
    let listener_path = "/run/agent".to_owned();
    let spec = Seccomp { listener_path: listener_path.clone(), ..spec };
    assert!(Profile::from_spec(&spec).unwrap().notifies());

    let names = vec!["close".to_owned(), "write".to_owned()];
    let rule = SeccompSyscall { names, ..rule("SCMP_ACT_NOTIFY") };
    refused(
        &Seccomp { listener_path: listener_path.clone(), ..with_rule(rule) },
        "linux.seccomp.syscalls[1]: SCMP_ACT_NOTIFY cannot be used for the write syscall",
    );
    let default_action = "SCMP_ACT_NOTIFY".to_owned();
    refused(
        &Seccomp { default_action, listener_path, ..self::spec() },
        "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY cannot be used as default action",
    );
}

#[test]
fn lists_for_features_are_sorted() {
    assert!(ACTIONS.is_sorted());
    assert!(OPERATORS.is_sorted_by_key(|(name, _)| name));
}
