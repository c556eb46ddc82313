//! `list`.

use super::*;

#[test]
fn list_as_a_table() {
    let b = Bundle::sleeping();
    b.start();
    let out = b.runtime().arg("list").ok().out;
    let mut lines = out.lines();
    let titles: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(titles, ["ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"]);
    let cells: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let pid = b.pid().to_string();
    assert_eq!(cells[..4], [&b.id, &pid, "running", b.path().to_str().unwrap()]);
    assert_eq!(cells[5], "root");
    assert!(out.starts_with("ID "), "{out}");
}

#[test]
fn list_as_json_and_as_names() {
    let b = Bundle::sleeping();
    std::fs::create_dir(&b.root).unwrap();
    assert_eq!(b.runtime().args(["list", "-f", "json"]).ok().out.trim_end(), "null");
    b.create();
    let out = b.runtime().args(["list", "--format", "json"]).ok().out;
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(list[0]["id"], b.id.as_str());
    assert_eq!(list[0]["status"], "created");
    assert_eq!(list[0]["owner"], "root");
    assert_eq!(b.runtime().args(["list", "-q"]).ok().out, format!("{}\n", b.id));
    let other = b.runtime().args(["list", "--format", "xml"]).run();
    other.exits(1).says("invalid format option");
}

#[test]
fn list_skips_what_it_cannot_read() {
    let b = Bundle::sleeping();
    b.create();
    std::fs::create_dir(b.root.join("broken")).unwrap();
    std::fs::write(b.root.join("file"), "").unwrap();
    let finished = b.runtime().args(["list", "-q"]).ok();
    assert_eq!(finished.out, format!("{}\n", b.id));
    assert!(!finished.err.contains("file"), "{finished}");
}
