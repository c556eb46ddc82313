//! `doctor`: what this host can do for containers, found out by doing it.

mod cgroups;
mod kernel;
mod probe;
mod rights;
mod services;

use std::fmt::Display;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it belongs to: `kernel`, `namespaces`, `cgroups`, `systemd`, `users`, `security`, `limits`, `tools`.
    pub topic: &'static str,
    /// What was looked at.
    pub name: String,
    /// It is as it should be.
    pub good: bool,
    /// Without it no container runs at all.
    pub vital: bool,
    /// What was found.
    pub found: String,
    /// What its absence means; empty where nothing is absent.
    pub means: String,
    /// How to mend it; empty where nothing is to be mended, or nobody can.
    pub mend: String,
}

/// Looks at the host.
pub fn examine() -> Vec<Finding> {
    let mut findings = Findings::default();
    kernel::look(&mut findings);
    cgroups::look(&mut findings);
    services::systemd(&mut findings);
    rights::look(&mut findings);
    services::security(&mut findings);
    services::limits(&mut findings);
    services::tools(&mut findings);
    findings.list
}

/// The findings so far, and the topic of those that come.
#[derive(Debug, Default)]
struct Findings {
    list: Vec<Finding>,
    topic: &'static str,
}

/// What to say where something is not as it should be.
#[derive(Debug, Clone, Copy)]
struct Absence<'a> {
    vital: bool,
    means: &'a str,
    mend: &'a str,
}

const fn vital<'a>(means: &'a str, mend: &'a str) -> Absence<'a> {
    Absence { vital: true, means, mend }
}

const fn minor<'a>(means: &'a str, mend: &'a str) -> Absence<'a> {
    Absence { vital: false, means, mend }
}

impl Findings {
    fn topic(&mut self, topic: &'static str) {
        self.topic = topic;
    }

    /// What was found, which is good or not.
    fn add(&mut self, name: impl Into<String>, good: bool, found: impl Display, absence: Absence<'_>) {
        let of = |text: &str| if good { String::new() } else { text.to_owned() };
        self.list.push(Finding {
            topic: self.topic,
            name: name.into(),
            good,
            vital: absence.vital,
            found: found.to_string(),
            means: of(absence.means),
            mend: of(absence.mend),
        });
    }

    /// Something that was tried.
    fn tried(
        &mut self,
        name: impl Into<String>,
        answer: Result<(), rustix::io::Errno>,
        absence: Absence<'_>,
    ) {
        let found = match answer {
            Ok(()) => "works".to_owned(),
            Err(errno) => brig_sys::errno_text(errno),
        };
        self.add(name, answer.is_ok(), found, absence);
    }

    /// A fact, which is neither good nor bad.
    fn fact(&mut self, name: impl Into<String>, found: impl Display) {
        self.add(name, true, found, minor("", ""));
    }
}
