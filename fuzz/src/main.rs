//! `brig-fuzz TARGET|all [--runs N] [--seed N] [--corpus DIR] [--dump DIR] [INPUT…]`
//!
//! With `--dump DIR`, only writes what the targets begin with to DIR/TARGET, for other drivers. With inputs, runs the target on those
//! files only. A finding is written to `finding-TARGET-RUN` in the working directory.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a tool that reports to whoever runs it"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use brig_fuzz::{TARGETS, Target, driver};

struct Args {
    targets: Vec<&'static Target>,
    runs: u64,
    seed: u64,
    corpus: PathBuf,
    dump: Option<PathBuf>,
    inputs: Vec<PathBuf>,
}

fn args() -> Result<Args, String> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or_else(usage)?;
    let targets: Vec<_> = TARGETS.iter().filter(|t| name == "all" || t.name == name).collect();
    if targets.is_empty() {
        return Err(usage());
    }
    let mut args = Args {
        targets,
        runs: 100_000,
        seed: 1,
        corpus: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus"),
        dump: None,
        inputs: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--runs" => args.runs = number(value()?)?,
            "--seed" => args.seed = number(value()?)?,
            "--corpus" => args.corpus = value()?.into(),
            "--dump" => args.dump = Some(value()?.into()),
            input => args.inputs.push(input.into()),
        }
    }
    Ok(args)
}

fn usage() -> String {
    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
    format!(
        "usage: brig-fuzz TARGET [--runs N] [--seed N] [--corpus DIR] [--dump DIR] [INPUT...]\ntargets: all {}",
        names.join(" ")
    )
}

fn main() -> ExitCode {
    match args().and_then(|args| fuzz(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn dump(target: &Target, corpus: &Path, to: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for (index, input) in driver::corpus(target, corpus).map_err(failed)?.iter().enumerate() {
        std::fs::write(to.join(format!("seed-{index:04}")), input).map_err(failed)?;
    }
    Ok(())
}

fn fuzz(args: &Args) -> Result<(), String> {
    if let Some(dir) = &args.dump {
        return args.targets.iter().try_for_each(|target| dump(target, &args.corpus, &dir.join(target.name)));
    }
    // Panics are caught and told once, not by the hook of each.
    std::panic::set_hook(Box::new(|_| {}));
    for target in &args.targets {
        let begun = Instant::now();
        let (inputs, runs) = if args.inputs.is_empty() {
            (driver::corpus(target, &args.corpus).map_err(|e| e.to_string())?, args.runs)
        } else {
            let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
            (args.inputs.iter().map(read).collect::<Result<_, _>>()?, 0)
        };
        if let Err(finding) = driver::run(target, runs, args.seed, &inputs) {
            let file = format!("finding-{}-{}", target.name, finding.run);
            std::fs::write(&file, &finding.input).map_err(|e| format!("{file}: {e}"))?;
            return Err(format!(
                "{}: {} (run {}, seed {}; input in {file})",
                target.name, finding.message, finding.run, args.seed
            ));
        }
        println!(
            "{:<12} {:>9} runs in {:>6.1} s, no finding",
            target.name,
            runs,
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
