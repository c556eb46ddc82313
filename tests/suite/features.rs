//! `features`: complete, and true.

use brig_tests::{Bundle, Run, Value, json, only_brig, runtime};

fn text() -> String {
    Run::new(runtime()).arg("features").ok().out
}

/// All that features.md of the specification has for Linux is said, and nothing else.
#[test]
fn every_field_of_the_specification_is_there() {
    only_brig("runtimes say what they know", || {
        let text = text();
        let (_, unknown) = brig_spec::from_slice::<brig_spec::Features>(text.as_bytes()).unwrap();
        assert!(unknown.is_empty(), "{unknown:?}");
        let document: Value = serde_json::from_str(&text).unwrap();
        for field in brig_spec::fields::<brig_spec::Features>() {
            let pointer = format!("/{}", field.replace('.', "/"));
            let value = document.pointer(&pointer).unwrap_or_else(|| panic!("no {field} in {text}"));
            let empty =
                value.as_array().is_some_and(Vec::is_empty) || value.as_str().is_some_and(str::is_empty);
            assert!(!empty, "{field} is empty");
        }
    });
}

/// A flag is called supported where a filter with it can be loaded.
#[test]
fn supported_seccomp_flags_are_those_that_work() {
    only_brig("the flag for a filter that notifies nobody is refused", || {
        let document: Value = serde_json::from_str(&text()).unwrap();
        let list = |key: &str| document["linux"]["seccomp"][key].as_array().unwrap().clone();
        let supported = list("supportedFlags");
        for flag in list("knownFlags") {
            if flag == "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV" {
                // It needs an agent, which this container does not have.
                let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
                let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
                let kernel = (numbers.next().unwrap(), numbers.next().unwrap());
                assert_eq!(supported.contains(&flag), kernel >= (5, 19), "{kernel:?}");
                continue;
            }
            let mut b = Bundle::default();
            b.config["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW", "flags": [flag] });
            let works = b.run().run().code() == 0;
            assert_eq!(works, supported.contains(&flag), "{flag}");
        }
    });
}

/// What is listed is not passed on to a file system that would refuse it.
#[test]
fn listed_mount_options_are_taken() {
    only_brig("some of them are not for a tmpfs", || {
        let document: Value = serde_json::from_str(&text()).unwrap();
        let other = ["bind", "rbind", "remount"];
        let options: Vec<&Value> = document["mountOptions"].as_array().unwrap().iter().collect();
        let fresh: Vec<&&Value> = options.iter().filter(|o| !other.contains(&o.as_str().unwrap())).collect();
        // Propagation types exclude each other, and an unbindable mount cannot be slave; the rest goes at once.
        let propagation =
            |o: &str| ["shared", "slave", "private", "unbindable"].iter().any(|kind| o.ends_with(kind));
        let (kinds, rest): (Vec<&&&Value>, Vec<&&&Value>) =
            fresh.iter().partition(|o| propagation(o.as_str().unwrap()));
        let mut b = Bundle::default();
        b.mount(json!({ "destination": "/all", "type": "tmpfs", "source": "tmpfs", "options": rest }));
        for (number, kind) in kinds.iter().enumerate() {
            b.mount(json!({
                "destination": format!("/kind{number}"), "type": "tmpfs", "source": "tmpfs", "options": [kind],
            }));
        }
        b.run().ok();
    });
}
