//! `hooks`.

use std::path::PathBuf;

use brig_spec as spec;

use crate::path::has_nul;
use crate::problem::Problems;
use crate::{Extensions, Hook, Hooks};

pub(crate) fn plan(given: &spec::Hooks, extensions: &Extensions, problems: &mut Problems) -> Hooks {
    for (name, list) in [
        ("prestart", &given.prestart),
        ("createRuntime", &given.create_runtime),
        ("createContainer", &given.create_container),
        ("startContainer", &given.start_container),
        ("poststart", &given.poststart),
        ("poststop", &given.poststop),
    ] {
        for (index, hook) in list.iter().enumerate() {
            check(hook, &format!("hooks.{name}[{index}]"), problems);
        }
    }
    let redirected = extensions.hooks_stdout.is_some() || extensions.hooks_stderr.is_some();
    if redirected && !given.start_container.is_empty() {
        let message = "the files that annotations name for hooks are the host's, and these hooks run in the container: their output is not written there";
        problems.warn("hooks.startContainer", message);
    }
    hooks(given, extensions)
}

/// Hooks as they are to be run, without checking them: for the record of a container, whose plan did that.
pub fn hooks(given: &spec::Hooks, extensions: &Extensions) -> Hooks {
    let list = |hooks: &[spec::Hook]| hooks.iter().map(|hook| convert(hook, extensions)).collect();
    Hooks {
        prestart: list(&given.prestart),
        create_runtime: list(&given.create_runtime),
        create_container: list(&given.create_container),
        start_container: list(&given.start_container),
        poststart: list(&given.poststart),
        poststop: list(&given.poststop),
    }
}

fn convert(given: &spec::Hook, extensions: &Extensions) -> Hook {
    Hook {
        path: PathBuf::from(&given.path),
        args: if given.args.is_empty() { vec![given.path.clone()] } else { given.args.clone() },
        env: given.env.clone(),
        timeout: given.timeout.and_then(timeout),
        stdout: extensions.hooks_stdout.clone(),
        stderr: extensions.hooks_stderr.clone(),
    }
}

/// A limit longer than fits is as good as the longest; one that is none is left out.
fn timeout(seconds: i64) -> Option<u32> {
    u32::try_from(seconds.min(i64::from(u32::MAX))).ok().filter(|seconds| *seconds > 0)
}

fn check(hook: &spec::Hook, path: &str, problems: &mut Problems) {
    if !hook.path.starts_with('/') {
        problems.error(format!("{path}.path"), format!("hook path must be absolute, got {:?}", hook.path));
    }
    if let Some(timeout) = hook.timeout.filter(|seconds| *seconds <= 0) {
        let message = format!("hook timeout must be greater than zero, got {timeout}");
        problems.error_with_hint(
            format!("{path}.timeout"),
            message,
            "leave it out for a hook without a limit",
        );
    }
    let mut texts = std::iter::once(&hook.path).chain(&hook.args).chain(hook.env.iter().flatten());
    if texts.any(|text| has_nul(text)) {
        problems.error(path, "hook contains nul byte (\\x00)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Case;

    fn of(hooks: &str) -> Case {
        let mut case = Case::bare();
        case.spec.hooks = Some(brig_spec::from_slice(hooks.as_bytes()).unwrap().0);
        case
    }

    #[test]
    fn hooks_are_read() {
        let hooks =
            of(r#"{"prestart":[{"path":"/a"}],"createRuntime":[{"path":"/b","args":["x","y"],"timeout":5}],
                "createContainer":[{"path":"/c","env":[]}],"startContainer":[{"path":"/d","env":["A=1"]}],
                "poststart":[{"path":"/e"}],"poststop":[{"path":"/f"},{"path":"/g"}]}"#);
        let Hooks { prestart, create_runtime, create_container, start_container, poststart, poststop } =
            hooks.plan().hooks;
        assert_eq!(
            prestart,
            [Hook {
                path: "/a".into(),
                args: vec!["/a".into()],
                env: None,
                timeout: None,
                stdout: None,
                stderr: None
            }]
        );
        assert_eq!(create_runtime[0].args, ["x", "y"]);
        assert_eq!(create_runtime[0].timeout, Some(5));
        assert_eq!(create_container[0].env, Some(vec![]));
        assert_eq!(start_container[0].env, Some(vec!["A=1".to_owned()]));
        assert_eq!(poststart.len(), 1);
        assert_eq!(poststop[1].path, PathBuf::from("/g"));
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (hooks, expected) in [
            (
                r#"{"poststop":[{"path":"a"}]}"#,
                "hooks.poststop[0].path: hook path must be absolute, got \"a\"",
            ),
            (r#"{"prestart":[{}]}"#, "hooks.prestart[0].path: hook path must be absolute, got \"\""),
            (
                r#"{"poststart":[{"path":"/a"},{"path":"/a","timeout":0}]}"#,
                "hooks.poststart[1].timeout: hook timeout must be greater than zero, got 0",
            ),
            (
                r#"{"createRuntime":[{"path":"/a","timeout":-1}]}"#,
                "hooks.createRuntime[0].timeout: hook timeout must be greater than zero, got -1",
            ),
            (
                r#"{"startContainer":[{"path":"/a","args":["b\u0000"]}]}"#,
                "hooks.startContainer[0]: hook contains nul byte (\\x00)",
            ),
        ] {
            assert_eq!(of(hooks).complaints(), [expected]);
        }
    }

    #[test]
    fn a_record_says_the_same_as_the_configuration() {
        let case = of(r#"{"poststart":[{"path":"/a","args":["b"],"timeout":99999999999}]}"#);
        let planned = case.plan().hooks;
        assert_eq!(hooks(case.spec.hooks.as_ref().unwrap(), &Extensions::default()), planned);
        assert_eq!(planned.poststart[0].timeout, Some(u32::MAX));
        assert_eq!([-1, 0, i64::MIN].map(timeout), [None; 3]);
    }
}
