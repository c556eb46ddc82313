//! The program `brig`, also installed as `runc`.

use std::process::ExitCode;

fn main() -> ExitCode {
    brig_cli::main(std::env::args_os())
}
