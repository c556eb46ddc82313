//! The seccomp profile in runc's record, which has numbers where the specification has names.

use serde::Deserialize;

use super::state::nullable;

/// Numbered from 1.
const ACTIONS: [&str; 9] = [
    "SCMP_ACT_KILL",
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_TRAP",
    "SCMP_ACT_ALLOW",
    "SCMP_ACT_TRACE",
    "SCMP_ACT_LOG",
    "SCMP_ACT_NOTIFY",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_KILL_PROCESS",
];

/// Numbered from 1.
const OPERATORS: [&str; 7] = [
    "SCMP_CMP_EQ",
    "SCMP_CMP_NE",
    "SCMP_CMP_GT",
    "SCMP_CMP_GE",
    "SCMP_CMP_LT",
    "SCMP_CMP_LE",
    "SCMP_CMP_MASKED_EQ",
];

/// Those whose name is not that of the specification in small letters.
const ARCHITECTURES: [(&str, &str); 3] =
    [("amd64", "SCMP_ARCH_X86_64"), ("arm64", "SCMP_ARCH_AARCH64"), ("loong64", "SCMP_ARCH_LOONGARCH64")];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Seccomp {
    default_action: usize,
    default_errno_ret: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    architectures: Vec<String>,
    flags: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    syscalls: Vec<Syscall>,
    pub listener_path: String,
    pub listener_metadata: String,
}

#[derive(Debug, Deserialize)]
struct Syscall {
    name: String,
    action: usize,
    #[serde(default, rename = "errnoRet")]
    errno_ret: Option<u32>,
    #[serde(default, deserialize_with = "nullable")]
    args: Vec<Arg>,
}

#[derive(Debug, Deserialize)]
struct Arg {
    index: u32,
    value: u64,
    value_two: u64,
    op: usize,
}

/// A number that runc does not give stays one, for the compiler to refuse.
fn name(of: &[&str], number: usize) -> String {
    let known = number.checked_sub(1).and_then(|index| of.get(index));
    known.map_or_else(|| number.to_string(), |&name| name.to_owned())
}

impl From<Seccomp> for brig_spec::Seccomp {
    fn from(given: Seccomp) -> Self {
        if given.default_action == 0 {
            return Self::default();
        }
        let architecture = |short: &String| {
            let other = ARCHITECTURES.iter().find(|(theirs, _)| theirs == short);
            other
                .map_or_else(|| format!("SCMP_ARCH_{}", short.to_uppercase()), |(_, name)| (*name).to_owned())
        };
        Self {
            default_action: name(&ACTIONS, given.default_action),
            default_errno_ret: given.default_errno_ret,
            architectures: given.architectures.iter().map(architecture).collect(),
            flags: given.flags,
            listener_path: given.listener_path,
            listener_metadata: given.listener_metadata,
            syscalls: given.syscalls.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Syscall> for brig_spec::SeccompSyscall {
    fn from(given: Syscall) -> Self {
        let args = given.args.into_iter().map(|arg| brig_spec::SeccompArg {
            index: arg.index,
            value: arg.value,
            value_two: arg.value_two,
            op: name(&OPERATORS, arg.op),
        });
        Self {
            names: vec![given.name],
            action: name(&ACTIONS, given.action),
            errno_ret: given.errno_ret,
            args: args.collect(),
        }
    }
}
