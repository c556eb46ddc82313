//! `--trace`: what a command spends its time with.

use std::collections::BTreeSet;

use brig_tests::{Bundle, only_brig};
use serde_json::Value;

fn events(file: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    // The format lets the array stay open, so that everybody can append to it.
    serde_json::from_str(&format!("{}]", text.trim_end().trim_end_matches(','))).unwrap()
}

#[test]
fn steps_of_the_command_and_of_the_containers_process() {
    only_brig("--trace is brig's", || {
        let b = Bundle::new(&["true"]);
        b.write_config();
        let file = b.path().join("trace.json");
        b.runtime().arg("--trace").arg(&file).arg("run").arg("--bundle").arg(b.path()).arg(&b.id).ok();
        let events = events(&file);
        let steps = |track: u64| -> BTreeSet<String> {
            let steps = events.iter().filter(|e| e["ph"] == "X" && e["tid"] == track);
            steps.map(|e| e["name"].as_str().unwrap().to_owned()).collect()
        };
        for step in ["reading config.json", "cloning", "starting the program", "removing the cgroup"] {
            assert!(steps(1).contains(step), "{step}: {events:#?}");
        }
        for step in
            ["attaching the root file system", "mounting", "masking paths", "preparing the init program"]
        {
            assert!(steps(2).contains(step), "{step}: {events:#?}");
        }
        assert!(
            events.iter().all(|e| e["ph"] == "M" || (e["dur"].as_f64() >= Some(0.0) && e["ts"].is_number()))
        );
        let pids: BTreeSet<u64> = events.iter().map(|e| e["pid"].as_u64().unwrap()).collect();
        assert_eq!(pids.len(), 1, "one command is one process of the timeline");
    });
}

#[test]
fn commands_share_a_file() {
    only_brig("--trace is brig's", || {
        let b = Bundle::sleeping();
        b.write_config();
        let file = b.path().join("trace.json");
        for args in
            [&["create", "--bundle", b.path().to_str().unwrap()][..], &["start"], &["delete", "--force"]]
        {
            b.runtime().env("BRIG_TRACE", &file).args(args).arg(&b.id).detached().ok();
        }
        let names: Vec<Value> = events(&file).into_iter().filter(|e| e["name"] == "process_name").collect();
        let titles: Vec<&str> = names.iter().map(|e| e["args"]["name"].as_str().unwrap()).collect();
        assert_eq!(titles, ["create", "start", "delete"].map(|c| format!("brig {c} {}", b.id)), "{names:?}");
    });
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    only_brig("--trace is brig's", || {
        let b = Bundle::new(&["true"]);
        b.runtime().args(["--trace", "/proc/none", "list"]).fails().says("--trace: open /proc/none");
    });
}
