//! What `list --execs` and `ps --execs` print.

use brig_spec::ExecSummary;

use super::table;
use crate::error::{Error, Kind};

/// One row for each process, under the name of its container.
pub fn table(containers: &[(String, Vec<ExecSummary>)]) -> String {
    let head = ["ID", "EXEC", "PID", "STARTED", "COMMAND"].map(str::to_owned);
    let rows = containers.iter().flat_map(|(id, execs)| {
        execs.iter().map(move |exec| {
            let command = exec.args.join(" ").escape_debug().to_string();
            [id.clone(), exec.id.clone(), exec.pid.to_string(), exec.started.clone(), command]
        })
    });
    table::text(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

/// One line: an array, `[]` when there is none.
///
/// # Errors
///
/// None that is known: the type has nothing that JSON lacks.
pub fn json(execs: &[ExecSummary]) -> Result<String, Error> {
    let line = serde_json::to_string(execs);
    line.map(|line| line + "\n").map_err(|error| Error::new(Kind::Bug, format!("writing JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use brig_spec::ExecSummary;

    use super::{json, table};

    fn exec() -> ExecSummary {
        ExecSummary {
            id: "e1".to_owned(),
            pid: 42,
            args: vec!["sh".to_owned(), "-c".to_owned(), "a\nb".to_owned()],
            started: "2026-08-01T10:00:00.5Z".to_owned(),
        }
    }

    #[test]
    fn a_row_for_each() {
        let text = table(&[("c1".to_owned(), vec![exec()]), ("c2".to_owned(), vec![])]);
        assert_eq!(
            text,
            "ID          EXEC        PID         STARTED                  COMMAND\n\
             c1          e1          42          2026-08-01T10:00:00.5Z   sh -c a\\nb\n"
        );
    }

    #[test]
    fn for_programs() {
        assert_eq!(json(&[]).unwrap(), "[]\n");
        let line = r#"[{"id":"e1","pid":42,"args":["sh","-c","a\nb"],"started":"2026-08-01T10:00:00.5Z"}]"#;
        assert_eq!(json(&[exec()]).unwrap(), format!("{line}\n"));
    }
}
