//! Help for the tests of the other modules.

use brig_spec::Spec;

use crate::problem::Problems;
use crate::{Draft, Host, Plan, Request};

/// What `decide` complains about.
pub(crate) fn complaints(decide: impl FnOnce(&mut Problems)) -> Vec<String> {
    let mut problems = Problems::default();
    decide(&mut problems);
    texts(problems.into_vec())
}

fn texts(problems: Vec<crate::Problem>) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// A configuration as `brig spec` makes it, a request that fits, and a host on which it works; to be varied.
pub(crate) struct Case {
    pub(crate) spec: Spec,
    pub(crate) request: Request,
    pub(crate) host: Host,
}

impl Case {
    pub(crate) fn new() -> Self {
        Self::of(brig_spec::default::spec(false, true, 0, 0))
    }

    /// As [`Case::new`], for a caller who is not root.
    pub(crate) fn rootless() -> Self {
        let case = Self::of(brig_spec::default::spec(true, true, 1000, 1000));
        Self { host: Host { euid: 1000, ..Host::default() }, ..case }
    }

    /// A process and a root, and nothing else.
    pub(crate) fn bare() -> Self {
        Self::json(r#"{"ociVersion":"1.3.0","process":{"args":["a"],"cwd":"/"},"root":{"path":"rootfs"}}"#)
    }

    /// `text` as the configuration.
    pub(crate) fn json(text: &str) -> Self {
        Self::of(Spec::from_slice(text.as_bytes()).unwrap().0)
    }

    fn of(mut spec: Spec) -> Self {
        if let Some(process) = &mut spec.process {
            process.terminal = false;
        }
        let request = Request { id: "c1".into(), bundle: "/b".into(), detached: true, ..Request::default() };
        Self { spec, request, host: Host::default() }
    }

    /// [`Case::bare`] with `text` as its `linux`.
    pub(crate) fn linux(text: &str) -> Self {
        let mut case = Self::bare();
        case.spec.linux = Some(brig_spec::from_slice(text.as_bytes()).unwrap().0);
        case
    }

    pub(crate) fn draft(&self) -> Draft<Plan> {
        Plan::draft(&self.spec, &self.request, &self.host)
    }

    /// The plan, which must have no problems at all.
    pub(crate) fn plan(&self) -> Plan {
        let Draft { value, problems } = self.draft();
        assert_eq!(texts(problems), [""; 0]);
        value
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        texts(self.draft().problems)
    }
}
