//! The other half: a creator that ends as it should, or whose parent, session or terminal goes, must leave a container that
//! can be started. A cure for orphans that kills good containers is none.

use brig_tests::{Bundle, Run, host};

use crate::options::Options;

/// Ways to call `create` from something that is gone a moment later.
const WAYS: [(&str, &str); 5] = [
    ("background", "\"$@\" & wait"),
    ("gone at once", "(\"$@\" &) ; exit 0"),
    ("own session", "setsid \"$@\""),
    ("double fork", "(setsid sh -c '\"$@\"' sh \"$@\" &) ; exit 0"),
    ("thread", ""),
];

/// Runs it; the number of containers that were found dead.
pub fn run(options: &Options) -> usize {
    println!("{:14} {:>7} {:>6}", "creator", "runs", "dead");
    let mut failures = 0;
    for (name, script) in WAYS {
        let runs = options.runs.div_ceil(WAYS.len());
        let dead = (0..runs).filter(|_| !survives(script)).count();
        println!("{name:14} {runs:>7} {dead:>6}");
        failures += dead;
    }
    failures
}

fn survives(script: &str) -> bool {
    let bundle = Bundle::sleeping();
    bundle.write_config();
    let line = [
        brig_tests::runtime().display().to_string(),
        "--root".to_owned(),
        bundle.root.display().to_string(),
        "create".to_owned(),
        "--bundle".to_owned(),
        bundle.path().display().to_string(),
        bundle.id.clone(),
    ];
    if script.is_empty() {
        // The parent-death signal follows the thread that made the child, and this one ends.
        std::thread::spawn(move || Run::new(&line[0]).args(&line[1..]).detached().ok()).join().unwrap();
    } else {
        Run::new("sh").args(["-c", script, "sh"]).args(&line).detached().run();
    }
    host::eventually("the container to be there", || {
        bundle.root.join(&bundle.id).join("record.json").exists() || brig_tests::is_other_runtime()
    });
    host::eventually("the end of create", || {
        let state = bundle.brig("state").arg(&bundle.id).run();
        state.status.success() && !state.out.contains("\"creating\"")
    });
    if bundle.status() != "created" {
        println!("  found {} after create", bundle.status());
        return false;
    }
    let started = bundle.brig("start").arg(&bundle.id).run();
    if !started.status.success() || bundle.status() != "running" {
        println!("  not started: {started}");
        return false;
    }
    true
}
