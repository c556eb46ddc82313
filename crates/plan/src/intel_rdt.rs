//! `linux.intelRdt`.

use brig_spec as spec;

use crate::Host;
use crate::problem::Problems;

const PATH: &str = "linux.intelRdt";

pub(crate) fn plan(given: &spec::IntelRdt, host: &Host, problems: &mut Problems) -> spec::IntelRdt {
    let support = host.intel_rdt.unwrap_or_default();
    if host.intel_rdt.is_none() {
        problems.error(PATH, "intelRdt is specified in config, but Intel RDT is not enabled");
    } else {
        if !given.l3_cache_schema.is_empty() && !support.l3_cache {
            let message = "intelRdt.l3CacheSchema is specified in config, but Intel RDT/CAT is not enabled";
            problems.error(format!("{PATH}.l3CacheSchema"), message);
        }
        if !given.mem_bw_schema.is_empty() && !support.memory_bandwidth {
            let message = "intelRdt.memBwSchema is specified in config, but Intel RDT/MBA is not enabled";
            problems.error(format!("{PATH}.memBwSchema"), message);
        }
    }
    let id = given.clos_id.as_str();
    // "/" alone is the default class.
    if matches!(id, "." | "..") || (id.len() > 1 && id.contains('/')) || id.contains('\0') {
        problems.error(format!("{PATH}.closID"), format!("invalid intelRdt.ClosID {id:?}"));
    }
    // `l3CacheSchema` may have several: see the specification about those for memory bandwidth in it.
    let memory = std::iter::once(("memBwSchema".to_owned(), &given.mem_bw_schema));
    let schemata =
        given.schemata.iter().enumerate().map(|(index, line)| (format!("schemata[{index}]"), line));
    for (member, line) in memory.chain(schemata) {
        if line.contains('\n') {
            problems.error(format!("{PATH}.{member}"), format!("{line:?} is more than one line"));
        }
    }
    given.clone()
}

#[cfg(test)]
mod tests {
    use crate::IntelRdtSupport;
    use crate::testing::Case;

    fn of(rdt: &str, intel_rdt: Option<IntelRdtSupport>) -> Vec<String> {
        let mut case = Case::linux(&format!(r#"{{"intelRdt":{rdt}}}"#));
        case.host.intel_rdt = intel_rdt;
        case.complaints()
    }

    const FULL: Option<IntelRdtSupport> = Some(IntelRdtSupport { l3_cache: true, memory_bandwidth: true });
    const MONITORING: Option<IntelRdtSupport> =
        Some(IntelRdtSupport { l3_cache: false, memory_bandwidth: false });

    #[test]
    fn the_host_must_have_it() {
        let expected = "linux.intelRdt: intelRdt is specified in config, but Intel RDT is not enabled";
        assert_eq!(of("{}", None), [expected]);
        assert_eq!(of(r#"{"closID":"a","l3CacheSchema":"L3:0=f","memBwSchema":"MB:0=50"}"#, FULL), [""; 0]);
        let expected = "linux.intelRdt.l3CacheSchema: intelRdt.l3CacheSchema is specified in config, but Intel RDT/CAT is not enabled";
        assert_eq!(of(r#"{"l3CacheSchema":"L3:0=f"}"#, MONITORING), [expected]);
        let expected = "linux.intelRdt.memBwSchema: intelRdt.memBwSchema is specified in config, but Intel RDT/MBA is not enabled";
        assert_eq!(of(r#"{"memBwSchema":"MB:0=50"}"#, MONITORING), [expected]);
    }

    #[test]
    fn the_class_is_one_directory() {
        for id in [".", "..", "a/b", "/a"] {
            let expected = format!("linux.intelRdt.closID: invalid intelRdt.ClosID {id:?}");
            assert_eq!(of(&format!(r#"{{"closID":"{id}"}}"#), FULL), [expected]);
        }
        assert_eq!(of(r#"{"closID":"/"}"#, FULL), [""; 0]);
    }

    #[test]
    fn lines_are_lines() {
        let expected = "linux.intelRdt.schemata[1]: \"b\\nc\" is more than one line";
        assert_eq!(of(r#"{"schemata":["a","b\nc"]}"#, FULL), [expected]);
    }
}
