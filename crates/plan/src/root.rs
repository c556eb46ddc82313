//! `root`, and what `linux` says about the root file system as a whole.

use std::path::PathBuf;

use brig_spec as spec;

use crate::path::{absolute, has_nul};
use crate::problem::Problems;
use crate::{Ns, Propagation, PropagationKind, Request, Root, mount_options};

/// The root file system's path on the host.
///
/// That it exists and no symbolic link leads to it is for the runtime to see, with a descriptor in its hands.
pub(crate) fn rootfs(given: Option<&spec::Root>, request: &Request, problems: &mut Problems) -> PathBuf {
    let Some(root) = given else {
        problems.error("root", "root must be specified");
        return PathBuf::new();
    };
    if has_nul(&root.path) {
        problems.error("root.path", "invalid rootfs: path contains nul byte (\\x00)");
    }
    // `join` keeps an absolute path as it is.
    absolute(&request.bundle.join(&root.path).to_string_lossy())
}

pub(crate) fn plan(
    given: Option<&spec::Root>,
    linux: &spec::Linux,
    request: &Request,
    problems: &mut Problems,
) -> Root {
    const PATH: &str = "linux.rootfsPropagation";
    let name = linux.rootfs_propagation.as_str();
    let propagation = mount_options::propagation(name);
    if propagation.is_none() && !name.is_empty() {
        problems.error(PATH, format!("rootfsPropagation={name} is not supported"));
    }
    if request.no_pivot && matches!(propagation, Some(Propagation { kind: PropagationKind::Private, .. })) {
        problems.error(PATH, "rootfsPropagation of [r]private is not safe without pivot_root");
    }
    Root { readonly: given.is_some_and(|root| root.readonly), propagation, no_pivot: request.no_pivot }
}

/// `linux.maskedPaths` and `linux.readonlyPaths`.
pub(crate) fn restricted_paths(
    linux: &spec::Linux,
    mount: &Ns,
    problems: &mut Problems,
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let lists = [("linux.maskedPaths", &linux.masked_paths), ("linux.readonlyPaths", &linux.readonly_paths)];
    if !mount.is_private()
        && let Some((path, _)) = lists.iter().find(|(_, list)| !list.is_empty())
    {
        problems.error(*path, "unable to restrict sys entries without a private MNT namespace");
    }
    let [masked, readonly] = lists.map(|(path, list)| clean(path, list, problems));
    (masked, readonly)
}

fn clean(path: &str, list: &[String], problems: &mut Problems) -> Vec<PathBuf> {
    let mut paths = Vec::with_capacity(list.len());
    // Orchestrators list hundreds of paths, for each CPU some.
    let mut seen = std::collections::BTreeSet::new();
    for (index, given) in list.iter().enumerate() {
        let path = || format!("{path}[{index}]");
        if has_nul(given) {
            problems.error(path(), "path contains nul byte (\\x00)");
        }
        if !given.starts_with('/') {
            problems.warn(path(), format!("{given:?} is not absolute, using it as relative to /"));
        }
        let clean = absolute(given);
        if seen.insert(clean.clone()) {
            paths.push(clean);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    #[test]
    fn a_root_is_needed() {
        let mut case = Case::bare();
        case.spec.root = None;
        assert_eq!(case.complaints(), ["root: root must be specified"]);
    }

    #[test]
    fn the_root_is_relative_to_the_bundle() {
        for (path, expected) in
            [("rootfs", "/b/rootfs"), ("", "/b"), ("./x/../y/", "/b/y"), ("/r//s", "/r/s"), ("../r", "/r")]
        {
            let mut case = Case::bare();
            case.spec.root = Some(spec::Root { path: path.into(), readonly: true });
            let plan = case.plan();
            assert_eq!(plan.rootfs.to_str(), Some(expected), "{path}");
            assert!(plan.root.readonly);
        }
    }

    #[test]
    fn a_nul_is_refused() {
        let mut case = Case::bare();
        case.spec.root = Some(spec::Root { path: "a\0".into(), readonly: false });
        assert_eq!(case.complaints(), ["root.path: invalid rootfs: path contains nul byte (\\x00)"]);
    }

    #[test]
    fn propagation_is_read() {
        let of = |name| Case::linux(&format!(r#"{{"rootfsPropagation":"{name}"}}"#));
        let expected = Propagation { kind: PropagationKind::Shared, recursive: false };
        assert_eq!(of("shared").plan().root.propagation, Some(expected));
        let expected = Propagation { kind: PropagationKind::Unbindable, recursive: true };
        assert_eq!(of("runbindable").plan().root.propagation, Some(expected));
        assert_eq!(of("").plan().root.propagation, None);
        let expected = "linux.rootfsPropagation: rootfsPropagation=open is not supported";
        assert_eq!(of("open").complaints(), [expected]);
    }

    #[test]
    fn a_private_root_needs_pivot_root() {
        for (name, fine) in [("private", false), ("rprivate", false), ("rslave", true)] {
            let mut case = Case::linux(&format!(r#"{{"rootfsPropagation":"{name}"}}"#));
            case.request.no_pivot = true;
            let expected =
                "linux.rootfsPropagation: rootfsPropagation of [r]private is not safe without pivot_root";
            assert_eq!(case.complaints() == [expected], !fine, "{name}");
        }
    }

    #[test]
    fn restricted_paths_need_a_mount_namespace() {
        let expected = "unable to restrict sys entries without a private MNT namespace";
        let masked = Case::linux(r#"{"maskedPaths":["/a"]}"#);
        assert_eq!(masked.complaints(), [format!("linux.maskedPaths: {expected}")]);
        let readonly = Case::linux(r#"{"readonlyPaths":["/a"]}"#);
        assert_eq!(readonly.complaints(), [format!("linux.readonlyPaths: {expected}")]);
    }

    #[test]
    fn restricted_paths_are_cleaned_and_unique() {
        let case = Case::linux(
            r#"{"namespaces":[{"type":"mount"}],"maskedPaths":["/a//b","/a/b","/c/../d"],"readonlyPaths":["x"]}"#,
        );
        let draft = case.draft();
        assert_eq!(draft.value.masked_paths, ["/a/b", "/d"].map(PathBuf::from));
        assert_eq!(draft.value.readonly_paths, ["/x"].map(PathBuf::from));
        let expected = "linux.readonlyPaths[0]: \"x\" is not absolute, using it as relative to /";
        assert_eq!(case.complaints(), [expected]);
    }
}
