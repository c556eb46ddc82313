//! The way from a profile to a program.

use crate::arch::Arch;
use crate::bpf::{Insn, MAX_INSNS};
use crate::emit::{Emitter, Goal};
use crate::error::Error;
use crate::profile::{Action, FLAG_NEW_LISTENER, Profile};
use crate::resolve::Resolver;

/// A compiled profile: what seccomp(2) wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The program; never empty, at most [`MAX_INSNS`] long.
    pub insns: Vec<Insn>,
    /// `SECCOMP_FILTER_FLAG_*` to load it with.
    pub flags: u64,
    /// A rule notifies: loading gives a descriptor, to be handed to the agent. The flag for it is among `flags`.
    pub needs_listener: bool,
    /// Names in rules that no architecture has, each once. They are without effect.
    pub unknown: Vec<String>,
}

impl Filter {
    /// The program as an array of `struct sock_filter`, in this machine's byte order.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.insns.iter().flat_map(|insn| insn.to_ne_bytes()).collect()
    }
}

/// Compiles a profile for the architecture `native` and those that the profile lists.
///
/// - A call of another architecture kills the thread, whatever the default action.
/// - A name that an architecture does not have is skipped there. Rules with the default action have no effect.
/// - When several rules match a call, a rule without conditions decides, and of several the first. Among those with
///   conditions it is libseccomp's order that counts: conditions on later arguments first; then comparisons for
///   (in)equality before "less" before "greater"; then greater values first, but with "less" smaller ones. Two rules
///   with the same conditions and different actions are an error, and so is a rule whose conditions are the beginning
///   of an earlier one's. The other way round the later rule has no effect.
/// - On 32-bit architectures, only the low words of arguments and values are compared.
/// - Where socketcall(2) or ipc(2) stands for a call, rules for the call are rules for both, but conditions on the first
///   argument then get lost, since it selects the call.
/// - Unless the default action lets calls through, calls with a number above all that the profile names get ENOSYS, on
///   each architecture: those are newer than the profile, and programs know what to do without them.
///
/// Differences from libseccomp 2.5 with runc: on ARM, private calls such as `set_tls` do not count for the last rule
/// (with runc, a profile that names one hides nothing), and calls behind a multiplexer do (with runc, a profile that
/// names `socket` and only older calls hides `socket`).
///
/// # Errors
///
/// [`Error::ByteOrder`], [`Error::Contradiction`] and [`Error::TooLong`].
pub fn compile(profile: &Profile<'_>, native: Arch) -> Result<Filter, Error> {
    let archs = all_archs(profile, native)?;
    let mut resolver = Resolver::new(profile);
    let mut sections: Vec<(u32, _)> = Vec::with_capacity(archs.len());
    for &arch in &archs {
        if !sections.iter().any(|(audit, _)| *audit == arch.audit()) {
            sections.push((arch.audit(), resolver.ranges(arch, &archs)?));
        }
    }

    let default = profile.default_action.verdict();
    let mut emitter = Emitter::new(&resolver.trees, default, native.is_little_endian());
    // The native architecture comes first: nearly all calls are its.
    let wrong_arch = Goal::Verdict(Action::KillThread.verdict());
    let start = sections
        .iter()
        .rev()
        .fold(wrong_arch, |other, (audit, ranges)| emitter.section(*audit, ranges.as_slice(), other));
    let insns = emitter.finish(start);
    if insns.len() > MAX_INSNS {
        return Err(Error::TooLong { insns: insns.len() });
    }

    let needs_listener = profile.notifies();
    let listener = if needs_listener { FLAG_NEW_LISTENER } else { 0 };
    Ok(Filter {
        insns,
        flags: profile.flags | listener,
        needs_listener,
        unknown: resolver.unknown.into_iter().map(str::to_owned).collect(),
    })
}

/// The native architecture and the others, each once.
fn all_archs(profile: &Profile<'_>, native: Arch) -> Result<Vec<Arch>, Error> {
    let mut archs = vec![native];
    for &listed in &profile.archs {
        if listed.is_little_endian() != native.is_little_endian() {
            return Err(Error::ByteOrder { listed, native });
        }
        if !archs.contains(&listed) {
            archs.push(listed);
        }
    }
    Ok(archs)
}
