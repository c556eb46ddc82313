//! Killed at each system call.

use std::time::Duration;

use crate::driver::{Blow, drive};
use crate::options::Options;
use crate::scene::Scene;

/// Runs the matrix; the number of points at which something was left.
pub fn run(options: &Options) -> usize {
    println!("{:10} {:8} {:>6} {:>7} {:>5}", "command", "killed", "delay", "points", "left");
    let mut failures = 0;
    for command in &options.commands {
        for victim in &options.victims {
            for delay in &options.delays {
                let (points, left) = line(command, victim, *delay, options.stride);
                println!("{command:10} {victim:8} {delay:>4}ms {points:>7} {left:>5}");
                failures += left;
            }
        }
    }
    failures
}

fn line(command: &str, victim: &str, delay: u64, stride: usize) -> (usize, usize) {
    let blow = if victim == "caller" { Blow::KillCaller } else { Blow::KillCommand };
    let scene = Scene::new();
    let (mut points, mut left) = (0, 0);
    // Strides begin at different points, so that repeated runs see different ones.
    let first = 1 + usize::try_from(std::process::id()).unwrap() % stride;
    for point in (first..).step_by(stride) {
        scene.prepare(command);
        let driven = drive(point, blow, &scene.command_line(command));
        if driven.reached {
            points += 1;
        }
        std::thread::sleep(Duration::from_millis(delay));
        let before = scene.check_before_delete(command);
        if let Err(what) = before.and(scene.delete()) {
            left += 1;
            println!("  {command} killed ({victim}) at call {point} ({}): {what}", driven.call);
        }
        if !driven.reached {
            assert!(points > 0, "{command} was never struck: {driven:?}");
            break;
        }
    }
    (points, left)
}
