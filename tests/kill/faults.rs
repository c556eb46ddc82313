//! Each system call made to fail once: an error that says so in one line, or success, and nothing left.

use std::time::{Duration, Instant};

use crate::driver::{Blow, drive};
use crate::options::Options;
use crate::scene::Scene;

/// ENOMEM, EMFILE, EINTR, EIO, ENOSPC, EPERM.
const ERRNOS: [i32; 6] = [12, 24, 4, 5, 28, 1];

/// Runs the matrix; the number of points at which something was wrong.
pub fn run(options: &Options) -> usize {
    println!("{:10} {:>7} {:>7} {:>5}", "command", "faults", "errors", "wrong");
    let mut failures = 0;
    for command in
        options.commands.iter().filter(|c| matches!(c.as_str(), "create" | "run" | "exec" | "delete"))
    {
        let scene = Scene::new();
        let (mut points, mut errors, mut wrong) = (0, 0, 0);
        let first = 1 + usize::try_from(std::process::id()).unwrap() % options.stride;
        for point in (first..).step_by(options.stride) {
            scene.prepare(command);
            let errno = ERRNOS[point / options.stride % ERRNOS.len()];
            let begun = Instant::now();
            let driven = drive(point, Blow::Fail(errno), &scene.command_line(command));
            let verdict = judge(driven.status, &driven.said, begun.elapsed());
            points += usize::from(driven.reached);
            errors += usize::from(driven.status != Some(0));
            if let Err(what) = verdict.and(scene.delete()) {
                wrong += 1;
                println!("  {command}: call {point} ({}) fails with {errno}: {what}", driven.call);
            }
            if !driven.reached {
                break;
            }
        }
        println!("{command:10} {points:>7} {errors:>7} {wrong:>5}");
        failures += wrong;
    }
    failures
}

fn judge(status: Option<i32>, said: &str, took: Duration) -> Result<(), String> {
    if took > Duration::from_secs(30) {
        return Err(format!("it took {took:?}"));
    }
    if said.contains("panicked") {
        return Err(format!("a panic: {said}"));
    }
    match status {
        Some(0) => Ok(()),
        Some(1 | 255) => {
            let errors = said.lines().filter(|line| line.contains("level=error")).count();
            if errors == 1 { Ok(()) } else { Err(format!("not one line of error: {said:?}")) }
        }
        // Before the program begins, the C library sets itself up, and ends in words of its own.
        Some(127)
            if ["thread-local storage", "loading shared libraries"].iter().any(|s| said.contains(s)) =>
        {
            Ok(())
        }
        other => Err(format!("status {other:?}: {said:?}")),
    }
}
