use super::*;

fn rules(text: &[&str]) -> Vec<DeviceRule> {
    text.iter()
        .map(|line| {
            let (allow, line) = (line.starts_with('+'), &line[1..]);
            let mut fields = line.split([' ', ':']);
            let kind = fields.next().unwrap();
            let mut number = || fields.next().and_then(|n| n.parse().ok());
            let (major, minor) = (number(), number());
            DeviceRule {
                allow,
                kind: kind.into(),
                major,
                minor,
                access: line.rsplit(' ').next().unwrap().into(),
            }
        })
        .collect()
}

fn shown(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(|rule| format!("{}{rule}", if rule.allow { '+' } else { '-' })).collect()
}

#[test]
fn only_what_matters_is_kept() {
    let policy = Policy::new(&rules(&[
        "+c 5:1 rwm",
        "-a *:* rwm",
        "-c 9:9 r",
        "+c 1:3 rwm",
        "+c *:* m",
        "+c 1:3 rwm",
        "+c 1:5 r",
        "-c 1:5 r",
    ]))
    .unwrap();
    assert!(!policy.default_allow);
    assert_eq!(shown(&policy.rules), ["+c *:* m", "+c 1:3 rwm"]);
}

#[test]
fn v1_exceptions() {
    let of = |text: &[&str]| Policy::new(&rules(text)).unwrap().exceptions();
    assert_eq!(
        shown(&of(&["-a *:* rwm", "+c 1:3 w", "+c 1:* r", "+b 8:0 rwm", "-b 8:0 w"]).unwrap()),
        ["+b 8:0 rm", "+c 1:* r", "+c 1:3 rw"]
    );
    // Denying more than was allowed is no hole.
    assert_eq!(shown(&of(&["+c 1:3 rw", "-c 1:* w"]).unwrap()), ["+c 1:3 r"]);
    assert_eq!(shown(&of(&["+a *:* rwm", "-c 1:3 w"]).unwrap()), ["-c 1:3 w"]);
}

#[test]
fn v1_holes_are_refused() {
    for text in [
        ["-a *:* rwm", "+c 1:* rwm", "-c 1:3 w"],
        ["+a *:* rwm", "-c 1:* rwm", "+c 1:3 w"],
        ["-a *:* rwm", "+c 1:* rw", "-c *:3 w"],
    ] {
        let error = Policy::new(&rules(&text)).unwrap().exceptions().unwrap_err();
        assert!(error.to_string().contains("cannot punch a hole in"), "{error}");
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    for (rule, text) in [
        ("+z 1:1 r", "linux.resources.devices[0].type: invalid cgroup device type \"z\""),
        ("+c 1:1 ", "linux.resources.devices[0].access: device access at 0 field cannot be empty"),
        ("+c 1:1 x", "linux.resources.devices[0].access: invalid device access \"x\""),
        ("+c 4294967296:1 r", "linux.resources.devices[0].major: invalid device number: 4294967296"),
    ] {
        assert_eq!(Policy::new(&rules(&[rule])).unwrap_err().to_string(), text);
    }
}
