//! What `state` and `list` print.

use brig_spec::Summary;

use super::table;
use crate::error::{Error, Kind};

/// The output of `state`: indented by two blanks, no newline at the end.
///
/// # Errors
///
/// None that is known: the type has nothing that JSON lacks.
pub fn state(summary: &Summary) -> Result<String, Error> {
    brig_spec::to_string_indented(summary, "  ").map_err(|error| bug(&error))
}

/// The output of `list --format json`: one line, `null` for an empty list.
///
/// # Errors
///
/// As [`state`].
pub fn list_json(summaries: &[Summary]) -> Result<String, Error> {
    let list = (!summaries.is_empty()).then_some(summaries);
    let mut line = serde_json::to_string(&list).map_err(|error| bug(&error))?;
    line.push('\n');
    Ok(line)
}

/// The output of `list`.
pub fn list_table(summaries: &[Summary]) -> String {
    let head = ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"].map(str::to_owned);
    let rows: Vec<_> = [head]
        .into_iter()
        .chain(summaries.iter().map(|container| {
            [
                container.id.clone(),
                container.pid.to_string(),
                container.status.to_string(),
                container.bundle.clone(),
                container.created.clone(),
                container.owner.clone(),
            ]
        }))
        .collect();
    table::text(&rows)
}

/// The output of `list --quiet`.
pub fn list_ids(summaries: &[Summary]) -> String {
    summaries.iter().flat_map(|container| [container.id.as_str(), "\n"]).collect()
}

fn bug(error: &serde_json::Error) -> Error {
    Error::new(Kind::Bug, format!("writing JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brig_spec::{Status, Summary};

    use super::{list_ids, list_json, list_table, state};

    fn summary() -> Summary {
        Summary {
            oci_version: "1.3.0".to_owned(),
            id: "c1".to_owned(),
            pid: 42,
            status: Status::Running,
            bundle: "/b".to_owned(),
            rootfs: "/b/rootfs".to_owned(),
            created: "2026-08-01T10:00:00.5Z".to_owned(),
            annotations: BTreeMap::new(),
            owner: String::new(),
            execs: Vec::new(),
        }
    }

    #[test]
    fn state_is_indented_and_ordered() {
        let expected = "{\n  \"ociVersion\": \"1.3.0\",\n  \"id\": \"c1\",\n  \"pid\": 42,\n  \"status\": \"running\",\n  \
             \"bundle\": \"/b\",\n  \"rootfs\": \"/b/rootfs\",\n  \"created\": \"2026-08-01T10:00:00.5Z\",\n  \
             \"owner\": \"\"\n}";
        assert_eq!(state(&summary()).unwrap(), expected);
        let mut annotated = summary();
        annotated.annotations.insert("a".to_owned(), "b".to_owned());
        assert!(state(&annotated).unwrap().contains("\"annotations\": {\n    \"a\": \"b\"\n  },\n"));
    }

    #[test]
    fn lists() {
        assert_eq!(list_json(&[]).unwrap(), "null\n");
        let mut one = summary();
        one.owner = "root".to_owned();
        assert_eq!(
            list_json(&[one.clone()]).unwrap(),
            "[{\"ociVersion\":\"1.3.0\",\"id\":\"c1\",\"pid\":42,\"status\":\"running\",\"bundle\":\"/b\",\
             \"rootfs\":\"/b/rootfs\",\"created\":\"2026-08-01T10:00:00.5Z\",\"owner\":\"root\"}]\n"
        );
        assert_eq!(list_ids(&[one.clone(), one.clone()]), "c1\nc1\n");
        assert_eq!(list_table(&[]), "ID          PID         STATUS      BUNDLE      CREATED     OWNER\n");
        assert_eq!(
            list_table(&[one]),
            "ID          PID         STATUS      BUNDLE      CREATED                  OWNER\n\
             c1          42          running     /b          2026-08-01T10:00:00.5Z   root\n"
        );
    }
}
