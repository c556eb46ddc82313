//! Annotations that change what is done: those of crun that make sense here, and refusals of what would need more.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::path::has_nul;
use crate::problem::Problems;

/// What annotations ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// `run.oci.keep_original_groups`: the caller's supplementary groups stay.
    pub keep_groups: bool,
    /// `run.oci.seccomp_fail_unknown_syscall`: a filter may name only calls that are known.
    pub fail_unknown_syscalls: bool,
    /// `run.oci.seccomp_bpf_data`: a compiled filter, `struct sock_filter` each, in place of `linux.seccomp`.
    pub filter: Option<Vec<u8>>,
    /// `run.oci.seccomp.receiver`: the agent's socket where `linux.seccomp.listenerPath` names none.
    pub receiver: Option<String>,
    /// `run.oci.mount_context_type`: the mount option that `linux.mountLabel` becomes.
    pub mount_context: Option<String>,
    /// `run.oci.hooks.stdout`: file that the hooks' output is appended to.
    pub hooks_stdout: Option<PathBuf>,
    /// `run.oci.hooks.stderr`, likewise.
    pub hooks_stderr: Option<PathBuf>,
}

const MOUNT_CONTEXTS: [&str; 4] = ["context", "fscontext", "defcontext", "rootcontext"];

/// What nothing here can do.
const REFUSED: [(&str, &str); 5] = [
    ("org.criu.config", "checkpoint and restore are not supported by this build"),
    ("run.oci.handler", "handlers are not supported"),
    ("run.oci.seccomp.plugins", "plugins are not supported"),
    ("run.oci.systemd.force_cgroup_v1", "cgroups are mounted as the host has them"),
    ("run.oci.delegate-cgroup", "a cgroup is delegated by a cgroup namespace with a writable cgroup mount"),
];

/// What the annotations of a record ask for, which were checked when it was made.
pub fn extensions(annotations: &BTreeMap<String, String>) -> Extensions {
    plan(annotations, &mut Problems::default())
}

pub(crate) fn plan(annotations: &BTreeMap<String, String>, problems: &mut Problems) -> Extensions {
    let mut found = Extensions::default();
    for (key, value) in annotations {
        let path = || format!("annotations[{key:?}]");
        if let Some((_, why)) = REFUSED.iter().find(|(name, _)| name == key) {
            problems.error(path(), *why);
        }
        match key.as_str() {
            "run.oci.keep_original_groups" => found.keep_groups = value != "0",
            "run.oci.seccomp_fail_unknown_syscall" => found.fail_unknown_syscalls = value != "0",
            "run.oci.seccomp_bpf_data" => match filter(value) {
                Ok(filter) => found.filter = Some(filter),
                Err(why) => problems.error(path(), why),
            },
            "run.oci.seccomp.receiver" | "run.oci.pidfd_receiver" if !value.starts_with('/') => {
                problems.error(path(), format!("{value:?} is not an absolute path"));
            }
            "run.oci.seccomp.receiver" => found.receiver = Some(value.clone()),
            "run.oci.mount_context_type" if MOUNT_CONTEXTS.contains(&value.as_str()) => {
                found.mount_context = Some(value.clone());
            }
            "run.oci.mount_context_type" => {
                problems.error(path(), format!("{value:?} is none of {}", MOUNT_CONTEXTS.join(", ")));
            }
            "run.oci.hooks.stdout" | "run.oci.hooks.stderr" if !value.starts_with('/') || has_nul(value) => {
                problems.error(path(), format!("{value:?} is not an absolute path"));
            }
            "run.oci.hooks.stdout" => found.hooks_stdout = Some(PathBuf::from(value)),
            "run.oci.hooks.stderr" => found.hooks_stderr = Some(PathBuf::from(value)),
            "run.oci.systemd.subgroup" if !value.is_empty() => {
                problems.warn(path(), "no sub-cgroup is made: the container is in its scope itself");
            }
            _ => {}
        }
    }
    found
}

/// A filter as the kernel takes it: base64 of at most 4096 instructions of eight bytes.
fn filter(text: &str) -> Result<Vec<u8>, String> {
    const MOST: usize = 4096;
    let bytes = base64(text).ok_or("it is not base64")?;
    if bytes.is_empty() || !bytes.len().is_multiple_of(8) || bytes.len() / 8 > MOST {
        return Err(format!("{} bytes are no filter: 1 to {MOST} instructions of 8 bytes", bytes.len()));
    }
    Ok(bytes)
}

/// Decodes base64 with its padding, RFC 4648.
fn base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let data = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(&text);
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(data.len() * 3 / 4);
    for chunk in data.chunks(4) {
        let mut bits = 0_u32;
        for byte in chunk {
            let value = LETTERS.iter().position(|letter| letter == byte)?;
            bits = bits << 6 | u32::try_from(value).ok()?;
        }
        let missing = 4 - chunk.len();
        bits <<= 6 * missing;
        let [_, a, b, c] = bits.to_be_bytes();
        out.extend(&[a, b, c][..3 - missing.min(2)]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn with(key: &str, value: &str) -> Case {
        let mut case = Case::bare();
        case.spec.annotations.insert(key.into(), value.into());
        case
    }

    #[test]
    fn annotations_are_read() {
        let of = |key: &str, value: &str| extensions(&with(key, value).spec.annotations);
        assert!(of("run.oci.keep_original_groups", "1").keep_groups);
        assert!(!of("run.oci.keep_original_groups", "0").keep_groups);
        assert!(of("run.oci.seccomp_fail_unknown_syscall", "1").fail_unknown_syscalls);
        assert_eq!(of("run.oci.mount_context_type", "fscontext").mount_context.as_deref(), Some("fscontext"));
        assert_eq!(of("run.oci.seccomp.receiver", "/s").receiver.as_deref(), Some("/s"));
        assert_eq!(of("run.oci.hooks.stderr", "/e").hooks_stderr, Some(PathBuf::from("/e")));
        assert_eq!(
            of("run.oci.seccomp_bpf_data", "BgAAAAAA/38=").filter.unwrap(),
            [6, 0, 0, 0, 0, 0, 0xff, 0x7f]
        );
        assert_eq!(of("com.example.other", "x"), Extensions::default());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (key, value, expected) in [
            ("org.criu.config", "/x", "checkpoint and restore are not supported by this build"),
            ("run.oci.handler", "wasm", "handlers are not supported"),
            (
                "run.oci.mount_context_type",
                "x",
                "\"x\" is none of context, fscontext, defcontext, rootcontext",
            ),
            ("run.oci.hooks.stdout", "x", "\"x\" is not an absolute path"),
            ("run.oci.seccomp.receiver", "x", "\"x\" is not an absolute path"),
            ("run.oci.seccomp_bpf_data", "?", "it is not base64"),
            ("run.oci.seccomp_bpf_data", "AAAA", "3 bytes are no filter: 1 to 4096 instructions of 8 bytes"),
        ] {
            assert_eq!(with(key, value).complaints(), [format!("annotations[{key:?}]: {expected}")]);
        }
    }

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9v\nYmE=", "fooba")]
        {
            assert_eq!(base64(text).unwrap(), bytes.as_bytes(), "{text}");
        }
        for text in ["Z", "Zm9v=", "Zm=v", "Zm9-"] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
