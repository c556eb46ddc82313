//! Complaints about a configuration.

use std::fmt;

/// Something wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: a JSON path such as `linux.namespaces[2].path`, or the flag that does not fit; empty for the whole
    /// document.
    pub path: String,
    /// Whether the container can be made all the same.
    pub severity: Severity,
    /// What.
    pub message: String,
    /// What to do about it, where that is not plain.
    pub hint: Option<String>,
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The container cannot be made.
    Error,
    /// It can, but something that the configuration says has no effect.
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// What was decided, with everything that speaks against it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft<T> {
    /// The decision. Fit for use only where none of the problems is an error.
    pub value: T,
    /// Errors and warnings in the order of the configuration's sections, except that namespaces and id mappings come
    /// before what depends on them.
    pub problems: Vec<Problem>,
}

impl<T> Draft<T> {
    /// The decision and the warnings about it.
    ///
    /// # Errors
    ///
    /// The first error, where there is one.
    pub fn into_result(self) -> Result<(T, Vec<Problem>), Problem> {
        match self.problems.iter().find(|problem| problem.severity == Severity::Error) {
            Some(error) => Err(error.clone()),
            None => Ok((self.value, self.problems)),
        }
    }
}

/// Collects complaints while deciding.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn error(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.push(path.into(), Severity::Error, message.into(), None);
    }

    pub(crate) fn error_with_hint(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.push(path.into(), Severity::Error, message.into(), Some(hint.to_owned()));
    }

    pub(crate) fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.push(path.into(), Severity::Warning, message.into(), None);
    }

    pub(crate) fn draft<T>(self, value: T) -> Draft<T> {
        Draft { value, problems: self.0 }
    }

    fn push(&mut self, path: String, severity: Severity, message: String, hint: Option<String>) {
        self.0.push(Problem { path, severity, message, hint });
    }

    #[cfg(test)]
    pub(crate) fn into_vec(self) -> Vec<Problem> {
        self.0
    }
}
