//! Man pages: `brig(8)` and one for each command.

use brig_cli::flags::Command;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use super::PROGRAM;

const SECTION: &str = "8";

/// Names and texts of all pages.
pub fn pages() -> Vec<(String, String)> {
    let commands =
        super::commands().map(|command| (format!("{PROGRAM}-{}.{SECTION}", command.name), of(command)));
    commands.chain([(format!("{PROGRAM}.{SECTION}"), of_program())]).collect()
}

fn of(command: &'static Command) -> String {
    let name = format!("{PROGRAM}-{}", command.name);
    let mut page = title(&name, command.summary);
    page.control("SH", ["SYNOPSIS"]);
    for (number, operands) in command.operands.split("  ||  ").enumerate() {
        if number > 0 {
            page.control("br", []);
        }
        page.text([
            bold(PROGRAM),
            roman(" [global options] "),
            bold(command.name),
            roman(format!(" [options] {operands}")),
        ]);
    }
    if !command.description.is_empty() {
        page.control("SH", ["DESCRIPTION"]);
        paragraphs(&mut page, command.description);
    }
    let mut text = page.render();
    text.push_str(&options(super::clap::command(command)));
    let mut rest = Roff::new();
    rest.control("PP", []);
    rest.text([
        roman("For the global options, log and exit status, see "),
        bold(PROGRAM),
        roman(format!("({SECTION}).")),
    ]);
    text.push_str(&rest.to_roff());
    text
}

fn of_program() -> String {
    let mut page = title(PROGRAM, "Open Container Initiative runtime");
    page.control("SH", ["SYNOPSIS"]);
    page.text([bold(PROGRAM), roman(" [global options] <command> [options] [operands]")]);
    page.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut page, DESCRIPTION);
    page.control("SH", ["COMMANDS"]);
    for command in super::commands() {
        page.control("TP", []);
        page.text([bold(format!("{PROGRAM}-{}", command.name)), roman(format!("({SECTION})"))]);
        page.text([roman(command.summary)]);
    }
    let mut text = page.render();
    let program = super::clap::program();
    text.push_str(&options(program));
    let mut page = Roff::new();
    for (heading, body) in [("EXIT STATUS", EXIT_STATUS), ("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        page.control("SH", [heading]);
        paragraphs(&mut page, body);
    }
    text.push_str(&page.to_roff());
    text
}

const DESCRIPTION: &str = "\
Creates, runs, signals and deletes containers. Mostly called by Docker, containerd, Podman or
CRI-O; takes the command line of runc, and can be installed under that name.

A container is made of a bundle: a directory with a config.json, as the OCI runtime
specification defines it, and as a rule the root file system.

Flags are given with one dash or two, with their value behind a blank or an equals sign, and
before or behind the container's name; what follows the name is passed on as it is by exec,
kill and ps.";

const EXIT_STATUS: &str = "\
0, or 1 after an error. run and exec exit with the status of the process, or with 128 and the
number of the signal that ended it; exec with 255 if the process could not be run. An unknown
command gives 3.

What went wrong is one line on standard error, and a record in the log if there is one.";

const ENVIRONMENT: &str = "\
XDG_RUNTIME_DIR: for users other than root, the state of containers is in its directory runc.

NOTIFY_SOCKET, LISTEN_FDS: passed on to the container's process, with the
socket and the descriptors.";

const FILES: &str = "\
/run/runc/<container-id>/: the state of a container.";

fn title(name: &str, summary: &str) -> Roff {
    let mut page = Roff::new();
    page.control("TH", [name, SECTION, "", PROGRAM, "System Administration"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {summary}"))]);
    page
}

/// The flags of a command, as clap's companion sets them.
fn options(mut command: clap::Command) -> String {
    command.build();
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command).render_options_section(&mut text);
    let text = String::from_utf8_lossy(&text);
    // The page begins with the same definitions.
    text.find(".SH ").and_then(|begin| text.get(begin..)).unwrap_or_default().to_owned()
}

/// Paragraphs, divided by empty lines. One that is indented is shown as it is.
fn paragraphs(page: &mut Roff, text: &str) {
    for (number, paragraph) in text.split("\n\n").enumerate() {
        if number > 0 {
            page.control("PP", []);
        }
        let verbatim = paragraph.starts_with(' ');
        if verbatim {
            page.control("nf", []);
        }
        for line in paragraph.lines() {
            page.text([roman(line)]);
        }
        if verbatim {
            page.control("fi", []);
        }
    }
}
