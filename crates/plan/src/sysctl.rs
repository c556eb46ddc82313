//! `linux.sysctl`: only parameters that belong to a namespace of the container's own can be set.

use std::path::PathBuf;

use brig_spec as spec;

use crate::problem::Problems;
use crate::{Host, Namespaces, Ns, Request, Sysctl};

/// Parameters of the IPC namespace, besides `fs.mqueue.*`.
const IPC: [&str; 8] = [
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
];

pub(crate) fn plan(
    linux: &spec::Linux,
    namespaces: &Namespaces,
    request: &Request,
    host: &Host,
    problems: &mut Problems,
) -> Vec<Sysctl> {
    // A joined network namespace may be the runtime's own.
    let own_network = match &namespaces.network {
        Ns::Host => false,
        Ns::New => true,
        Ns::Join(path) => !host.own_namespaces.iter().any(|own| request.bundle.join(own) == *path),
    };
    let mut sysctls = Vec::with_capacity(linux.sysctl.len());
    for (key, value) in &linux.sysctl {
        let dotted = dotted(key);
        let refusal = match path(&dotted) {
            Some(path) => {
                sysctls.push(Sysctl { key: key.clone(), path, value: value.clone() });
                refusal(&dotted, namespaces, own_network)
            }
            None => Some(format!("sysctl {key:?} is not a valid name")),
        };
        if let Some(message) = refusal {
            problems.error(format!("linux.sysctl[{key:?}]"), message);
        }
    }
    sysctls
}

/// The name with dots as separators, whichever it is written with, see sysctl.d(5): what comes first is the
/// separator, and the other of the two stands for it within a component (`net/ipv4/conf/eth0.100/rp_filter`).
fn dotted(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(first) if key[first..].starts_with('/') => swap(key),
        _ => key.to_owned(),
    }
}

fn swap(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        })
        .collect()
}

/// The file below `/proc/sys`; `None` when the name leads anywhere else.
fn path(dotted: &str) -> Option<PathBuf> {
    let path = swap(dotted);
    let plain = |component: &str| !matches!(component, "" | "." | "..") && !component.contains('\0');
    path.split('/').all(plain).then(|| PathBuf::from(path))
}

/// Why a parameter cannot be set.
fn refusal(key: &str, namespaces: &Namespaces, own_network: bool) -> Option<String> {
    if IPC.contains(&key) || key.starts_with("fs.mqueue.") {
        return (!namespaces.ipc.is_private())
            .then(|| format!("sysctl {key:?} is not allowed in the hosts ipc namespace"));
    }
    if key.starts_with("net.") {
        return (!own_network).then(|| format!("sysctl {key:?} not allowed in host network namespace"));
    }
    if key.starts_with("user.") {
        return (!namespaces.user.is_private())
            .then(|| format!("setting ucounts without a user namespace not allowed: {key}"));
    }
    match key {
        "kernel.domainname" if namespaces.uts.is_private() => None,
        "kernel.hostname" if namespaces.uts.is_private() => {
            Some(format!("sysctl {key:?} is not allowed as it conflicts with the OCI \"hostname\" field"))
        }
        _ => Some(format!("sysctl {key:?} is not in a separate kernel namespace")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    /// What is said about setting `key` in a container with namespaces of the types `own`.
    fn of(key: &str, own: &[&str]) -> Vec<String> {
        let namespaces: Vec<_> = own.iter().map(|kind| format!(r#"{{"type":"{kind}"}}"#)).collect();
        let maps = r#""uidMappings":[{"size":1}],"gidMappings":[{"size":1}]"#;
        let maps = if own.contains(&"user") { maps } else { r#""uidMappings":null"# };
        let text = format!(r#"{{{maps},"namespaces":[{}],"sysctl":{{"{key}":"1"}}}}"#, namespaces.join(","));
        Case::linux(&text).complaints()
    }

    #[test]
    fn parameters_of_own_namespaces_pass() {
        for (key, own) in [
            ("kernel.msgmax", "ipc"),
            ("kernel.shm_rmid_forced", "ipc"),
            ("fs.mqueue.msg_max", "ipc"),
            ("fs/mqueue/msg_max", "ipc"),
            ("net.ipv4.ip_forward", "network"),
            ("net/ipv4/conf/eth0.100/rp_filter", "network"),
            ("kernel.domainname", "uts"),
            ("user.max_net_namespaces", "user"),
        ] {
            assert_eq!(of(key, &[own]), [""; 0], "{key}");
        }
    }

    #[test]
    fn parameters_of_the_host_are_refused() {
        for (key, own, expected) in [
            ("kernel.msgmax", "uts", "sysctl \"kernel.msgmax\" is not allowed in the hosts ipc namespace"),
            ("fs.mqueue.x", "uts", "sysctl \"fs.mqueue.x\" is not allowed in the hosts ipc namespace"),
            ("net/core/x", "ipc", "sysctl \"net.core.x\" not allowed in host network namespace"),
            (
                "kernel.domainname",
                "ipc",
                "sysctl \"kernel.domainname\" is not in a separate kernel namespace",
            ),
            ("kernel.hostname", "ipc", "sysctl \"kernel.hostname\" is not in a separate kernel namespace"),
            (
                "kernel.hostname",
                "uts",
                "sysctl \"kernel.hostname\" is not allowed as it conflicts with the OCI \"hostname\" field",
            ),
            ("user.x", "ipc", "setting ucounts without a user namespace not allowed: user.x"),
            (
                "kernel.core_pattern",
                "ipc",
                "sysctl \"kernel.core_pattern\" is not in a separate kernel namespace",
            ),
            ("vm.swappiness", "ipc", "sysctl \"vm.swappiness\" is not in a separate kernel namespace"),
        ] {
            assert_eq!(of(key, &[own]), [format!("linux.sysctl[{key:?}]: {expected}")], "{key}");
        }
    }

    #[test]
    fn a_joined_network_must_not_be_the_hosts() {
        let text = r#"{"namespaces":[{"type":"network","path":"/proc/1/ns/net"}],"sysctl":{"net.a":"1"}}"#;
        let mut case = Case::linux(text);
        assert_eq!(case.complaints(), [""; 0]);
        case.host.own_namespaces.push("/proc/1/ns/net".into());
        let expected = "linux.sysctl[\"net.a\"]: sysctl \"net.a\" not allowed in host network namespace";
        assert_eq!(case.complaints(), [expected]);
    }

    #[test]
    fn names_lead_nowhere_else() {
        for key in ["net.", "net//x", "net/../kernel/x", "net/./x", "", ".net", "net....kernel.x", "net.a\0b"]
        {
            let mut problems = Problems::default();
            let linux =
                spec::Linux { sysctl: [(key.to_owned(), String::new())].into(), ..Default::default() };
            let network = Namespaces { network: Ns::New, ..Default::default() };
            assert_eq!(
                plan(&linux, &network, &Request::default(), &Host::default(), &mut problems),
                [],
                "{key}"
            );
            let problems = problems.into_vec();
            assert_eq!(problems[0].message, format!("sysctl {key:?} is not a valid name"));
        }
    }

    #[test]
    fn names_become_paths() {
        for (key, expected) in [
            ("net.ipv4.ip_forward", "net/ipv4/ip_forward"),
            ("net/ipv4/conf/eth0.100/rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
            ("net.ipv4.conf.eth0/100.rp_filter", "net/ipv4/conf/eth0.100/rp_filter"),
        ] {
            assert_eq!(path(&dotted(key)), Some(PathBuf::from(expected)), "{key}");
        }
    }
}
