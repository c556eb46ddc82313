//! The document of the `features` command.
//!
//! It tells what was built in, whatever the host has: clients ask once and remember. Only `supportedFlags` of seccomp is
//! about this kernel, as the specification wants it. The lists are those that configurations are judged by.

use std::collections::BTreeMap;

use brig_plan::{capabilities, memory_policy, mount_options, namespaces};
use brig_seccomp::Arch;
use brig_spec::Features;
use brig_spec::features::{
    CgroupFeatures, IntelRdtFeatures, LinuxFeatures, MemoryPolicyFeatures, MountExtensions, SeccompFeatures,
    Support,
};

use crate::version;

const HOOKS: [&str; 6] =
    ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];

/// Annotations of `config.json` that act on the host.
const UNSAFE_ANNOTATIONS: [&str; 4] = ["bundle", "org.systemd.property.", "org.criu.config", "run.oci."];

/// The whole document. `kernel_knows` says which filter flags (their bits) this kernel has.
pub fn document(kernel_knows: impl Fn(u64) -> bool) -> Features {
    Features {
        oci_version_min: "1.0.0".to_owned(),
        oci_version_max: brig_spec::OCI_VERSION.to_owned(),
        hooks: owned(HOOKS),
        mount_options: owned(mount_options::MOUNT_OPTIONS),
        linux: Some(linux(kernel_knows)),
        annotations: annotations(),
        potentially_unsafe_config_annotations: owned(UNSAFE_ANNOTATIONS),
    }
}

fn linux(kernel_knows: impl Fn(u64) -> bool) -> LinuxFeatures {
    let yes = Some(true);
    let support = Some(Support { enabled: yes });
    LinuxFeatures {
        namespaces: owned(namespaces::TYPES),
        capabilities: owned(capabilities::NAMES),
        cgroup: Some(CgroupFeatures { v1: yes, v2: yes, systemd: yes, systemd_user: yes, rdma: yes }),
        seccomp: Some(seccomp(kernel_knows)),
        apparmor: support.clone(),
        selinux: support.clone(),
        intel_rdt: Some(IntelRdtFeatures { enabled: yes, schemata: yes, monitoring: yes }),
        memory_policy: Some(MemoryPolicyFeatures {
            modes: sorted(memory_policy::MODES),
            flags: sorted(memory_policy::FLAGS.map(|(name, _)| name)),
        }),
        mount_extensions: Some(MountExtensions { idmap: support.clone() }),
        net_devices: support,
    }
}

fn seccomp(kernel_knows: impl Fn(u64) -> bool) -> SeccompFeatures {
    let flags = brig_seccomp::FLAGS;
    SeccompFeatures {
        enabled: Some(Arch::NATIVE.is_some()),
        actions: sorted(brig_seccomp::ACTIONS),
        operators: sorted(brig_seccomp::OPERATORS.map(|(name, _)| name)),
        archs: sorted(Arch::ALL.map(Arch::name)),
        known_flags: owned(flags.map(|(name, _)| name)),
        supported_flags: owned(flags.into_iter().filter(|(_, bit)| kernel_knows(*bit)).map(|(name, _)| name)),
    }
}

/// Under runc's names only what tools key on and what is true.
fn annotations() -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from(
        [
            ("org.opencontainers.runc.version", version::COMPATIBLE),
            ("org.opencontainers.runc.checkpoint.enabled", "false"),
            ("brig.version", version::OWN),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    if let Some(commit) = version::COMMIT {
        annotations.insert("brig.commit".to_owned(), commit.to_owned());
    }
    annotations
}

fn owned<'a>(list: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    list.into_iter().map(str::to_owned).collect()
}

fn sorted<'a>(list: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names = owned(list);
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::document;

    fn json(kernel_knows: impl Fn(u64) -> bool) -> serde_json::Value {
        let text = brig_spec::to_string_indented(&document(kernel_knows), "    ").unwrap();
        assert!(text.starts_with("{\n    \"ociVersionMin\": \"1.0.0\",\n"));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn clients_find_what_they_look_for() {
        let json = json(|_| true);
        assert_eq!(json["ociVersionMin"], "1.0.0");
        assert_eq!(json["ociVersionMax"], "1.3.0");
        assert!(json["mountOptions"].as_array().unwrap().contains(&"rro".into()));
        assert_eq!(json["linux"]["mountExtensions"]["idmap"]["enabled"], true);
        assert_eq!(json["linux"]["seccomp"]["enabled"], true);
        assert_eq!(json["annotations"]["org.opencontainers.runc.checkpoint.enabled"], "false");
    }

    /// What the specification asks to be in no particular order is sorted, so that two documents can be compared.
    #[test]
    fn lists_are_sorted() {
        let json = json(|_| true);
        let linux = &json["linux"];
        for list in [
            &json["mountOptions"],
            &linux["namespaces"],
            &linux["seccomp"]["actions"],
            &linux["seccomp"]["operators"],
            &linux["seccomp"]["archs"],
            &linux["memoryPolicy"]["modes"],
            &linux["memoryPolicy"]["flags"],
        ] {
            let names: Vec<_> = list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
            assert!(!names.is_empty() && names.is_sorted(), "{names:?}");
        }
    }

    #[test]
    fn flags_of_the_kernel_are_asked_for() {
        let seccomp = json(|bit| bit == 1 << 2)["linux"]["seccomp"].clone();
        assert_eq!(seccomp["supportedFlags"], serde_json::json!(["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]));
        assert_eq!(seccomp["knownFlags"].as_array().unwrap().len(), 4);
    }
}
