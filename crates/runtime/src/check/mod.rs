//! `check`: what `create` would say about a bundle on this host, all of it, without making anything.

mod files;
mod host;
mod view;

use std::path::{Path, PathBuf};

use brig_cgroup::Layout;
use brig_plan::{Draft, Plan, Problem, Severity};
use brig_spec::{ReadError, Spec, Survey, UnknownKey};

use crate::error::{Error, Kind, Result};
use view::View;

/// What the command line asks for.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// `--bundle`.
    pub bundle: PathBuf,
    /// `--systemd-cgroup`.
    pub systemd_cgroup: bool,
    /// `--rootless`; `None` is `auto`.
    pub rootless: Option<bool>,
}

/// Looks at a bundle; the complaints, in the order in which they stand in `config.json` as far as that can be told.
///
/// The container is one that `create` makes with nothing but `--bundle` and, where the process wants a terminal,
/// `--console-socket`.
///
/// # Errors
///
/// Not what is wrong with the bundle: that this process itself cannot look, because procfs is missing, say.
pub fn check(request: &CheckRequest) -> Result<Vec<Problem>> {
    let mut complaints = Complaints::default();
    if let Err(errno) = rustix::process::chdir(&request.bundle) {
        let message = format!("chdir {}: {}", request.bundle.display(), brig_sys::errno_text(errno));
        complaints.error("--bundle", message, Some("a bundle is a directory with a config.json".to_owned()));
        return Ok(complaints.0);
    }
    let Some(spec) = read(&mut complaints)? else { return Ok(complaints.0) };
    let layout = match Layout::detect() {
        Ok(layout) => Some(layout),
        Err(error) => {
            complaints.of_error("linux.cgroupsPath", &error.into());
            None
        }
    };
    host::namespaces(&spec, &mut complaints);
    let plan = plan(&spec, request, layout.as_ref(), &mut complaints)?;
    let root = files::root(&plan, &mut complaints);
    let view = View::new(root, &plan.mounts);
    files::mounts(&plan, &view, &mut complaints);
    files::program(&plan, &view, &mut complaints);
    files::hooks(&plan, &view, &mut complaints);
    host::cgroup(&plan, layout.as_ref(), &mut complaints);
    host::rights(&plan, &mut complaints);
    host::kernel(&spec, &plan, &mut complaints);
    Ok(complaints.sorted())
}

/// Reads `config.json` as far as it goes.
fn read(complaints: &mut Complaints) -> Result<Option<Spec>> {
    const FILE: &str = "config.json";
    let bytes = match std::fs::read(FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = "JSON specification file config.json not found";
            complaints.error(FILE, message, Some("a bundle is made with the spec command".to_owned()));
            return Ok(None);
        }
        Err(error) => return Err(crate::error::io_error("read", Path::new(FILE), &error).into()),
    };
    let Survey { value, unknown, misfits } = match Spec::survey(&bytes) {
        Ok(survey) => survey,
        Err(error) => {
            complaints.error(FILE, error.to_string(), None);
            return Ok(None);
        }
    };
    for misfit in misfits {
        if let ReadError::Value { path, expected, found } = misfit {
            complaints.error(path, format!("expected {expected}, found {found}"), None);
        }
    }
    for key in unknown {
        complaints.unknown(&key);
    }
    Ok(Some(value))
}

/// What would be made, and what the planner says about it.
fn plan(
    spec: &Spec,
    request: &CheckRequest,
    layout: Option<&Layout>,
    complaints: &mut Complaints,
) -> Result<Plan> {
    let none = Layout { mode: brig_cgroup::Mode::V2, hierarchies: Vec::new() };
    let layout = layout.unwrap_or(&none);
    // A namespace that cannot be looked into has been complained about.
    let facts =
        crate::host::probe(spec, layout).or_else(|_| crate::host::probe(&without_paths(spec), layout))?;
    let wishes = brig_plan::Request {
        id: "check".to_owned(),
        bundle: bundle_dir(&request.bundle)?,
        systemd_cgroup: request.systemd_cgroup,
        rootless: request.rootless,
        detached: true,
        console_socket: spec.process.as_ref().is_some_and(|process| process.terminal),
        ..brig_plan::Request::default()
    };
    let Draft { value, problems } = Plan::draft(spec, &wishes, &facts);
    for problem in problems {
        // What could not be read is as if it were absent; that it is not there need not be said as well.
        let misfit = complaints.0.iter().any(|misfit| misfit.path == problem.path);
        if !misfit && !is_habit(spec, &problem) {
            complaints.0.push(problem);
        }
    }
    Ok(value)
}

/// Engines fill all sets of capabilities alike, and since CVE-2022-24769 leave the inheritable ones out: then the ambient ones
/// mean nothing, and nobody expects them to.
fn is_habit(spec: &Spec, problem: &Problem) -> bool {
    let capabilities = spec.process.as_ref().and_then(|process| process.capabilities.as_ref());
    problem.path == "process.capabilities.ambient"
        && capabilities.is_some_and(|sets| sets.inheritable.is_empty())
}

/// The bundle's directory as `create` would record it.
fn bundle_dir(given: &Path) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    match rustix::process::getcwd(Vec::new()) {
        Ok(path) => Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes()))),
        Err(errno) => Err(brig_sys::SysError::path("getcwd", given, errno).into()),
    }
}

fn without_paths(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    for namespace in spec.linux.iter_mut().flat_map(|linux| &mut linux.namespaces) {
        namespace.path.clear();
    }
    spec
}

/// The complaints so far.
#[derive(Debug, Default)]
struct Complaints(Vec<Problem>);

impl Complaints {
    fn error(&mut self, path: impl Into<String>, message: impl Into<String>, hint: Option<String>) {
        self.push(path.into(), Severity::Error, message.into(), hint);
    }

    fn warning(&mut self, path: impl Into<String>, message: impl Into<String>, hint: Option<String>) {
        self.push(path.into(), Severity::Warning, message.into(), hint);
    }

    /// Two looks at the same thing may find the same fault.
    fn push(&mut self, path: String, severity: Severity, message: String, hint: Option<String>) {
        let known = self.0.iter().any(|other| other.path == path && other.message == message);
        if !known {
            self.0.push(Problem { path, severity, message, hint });
        }
    }

    fn of_error(&mut self, path: &str, error: &Error) {
        // That a limit is unheard of says the planner too.
        let hint = match (error.hint_text(), error.kind()) {
            (Some(hint), _) => Some(hint.to_owned()),
            (None, Kind::Attack) => Some("the root file system tries to lead the runtime astray".to_owned()),
            (None, _) => None,
        };
        self.error(path, error.message(), hint);
    }

    /// A text that may begin with the path that it is about.
    fn of_text(&mut self, text: &str, path: &str) {
        let (path, message) = match text.split_once(": ") {
            Some((place, message)) if place.starts_with(path) && !place.contains(' ') => (place, message),
            _ => (path, text),
        };
        if !self.0.iter().any(|other| other.path == path && other.severity == Severity::Error) {
            self.error(path, message, None);
        }
    }

    /// A member that nothing is made of: most often a slip of the pen.
    fn unknown(&mut self, key: &UnknownKey) {
        let hint = match brig_spec::nearest(&key.key, key.known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "runtimes ignore members that the specification does not have".to_owned(),
        };
        self.warning(key.path.clone(), format!("unknown member {:?}, it has no effect", key.key), Some(hint));
    }

    /// By section, each in the order in which it was looked at.
    fn sorted(mut self) -> Vec<Problem> {
        const SECTIONS: [&str; 10] = [
            "config.json",
            "ociVersion",
            "process",
            "root",
            "hostname",
            "domainname",
            "mounts",
            "hooks",
            "annotations",
            "linux",
        ];
        self.0.sort_by_key(|problem| {
            let section = problem.path.split(['.', '[']).next().unwrap_or_default();
            SECTIONS.iter().position(|known| *known == section).unwrap_or(SECTIONS.len())
        });
        self.0
    }
}
