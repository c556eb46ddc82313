//! Device rules in the words of systemd, which has a list of what is allowed and no exceptions from it.

use crate::devices::{Kind, Policy};

/// What `policy` allows, as `DeviceAllow=` of systemd.resource-control(5) wants it: at least that. Where the list cannot say it
/// exactly, such as for one minor number of all majors, it allows more.
pub(super) fn allowed(policy: &Policy) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for rule in policy.rules.iter().filter(|rule| rule.allow) {
        let kind = match rule.kind {
            Kind::Block => "block",
            Kind::Char => "char",
        };
        let device = match (rule.major, rule.minor) {
            // systemd (since 240) reads the number off the path; there need not be such a file.
            (Some(major), Some(minor)) => format!("/dev/{kind}/{major}:{minor}"),
            (Some(major), None) => format!("{kind}-{major}"),
            (None, _) => format!("{kind}-*"),
        };
        list.push((device, rule.access.to_string()));
    }
    list
}

#[cfg(test)]
mod tests {
    use brig_spec::DeviceRule;

    use super::*;

    #[test]
    fn in_words_of_systemd() {
        let rules: Vec<DeviceRule> = serde_json::from_str(
            r#"[{"allow":false,"access":"rwm"},
                {"allow":true,"type":"c","access":"m"},
                {"allow":true,"type":"c","major":136,"access":"rwm"},
                {"allow":true,"type":"b","major":8,"minor":1,"access":"r"},
                {"allow":true,"type":"b","minor":7,"access":"w"},
                {"allow":false,"type":"c","major":136,"minor":5,"access":"rwm"}]"#,
        )
        .unwrap();
        let list = allowed(&Policy::new(&rules).unwrap());
        let list: Vec<(&str, &str)> =
            list.iter().map(|(device, access)| (device.as_str(), access.as_str())).collect();
        assert_eq!(list, [("char-*", "m"), ("char-136", "rwm"), ("/dev/block/8:1", "r"), ("block-*", "w")]);
    }
}
