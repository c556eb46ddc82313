use proptest::prelude::*;

use super::*;

fn arguments() -> Vec<Value> {
    let property = |name: &str, value| Value::Struct(vec![name.into(), Value::Variant(Box::new(value))]);
    let pids = Value::Array(Type::Uint32, vec![Value::Uint32(7)]);
    vec![
        "a.scope".into(),
        "fail".into(),
        Value::Array(
            Type::parse("(sv)").unwrap(),
            vec![property("Delegate", true.into()), property("PIDs", pids)],
        ),
        Value::Array(Type::parse("(sa(sv))").unwrap(), vec![]),
    ]
}

const CALL: Call<'_> = Call {
    destination: Some("org.freedesktop.systemd1"),
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
    member: "StartTransientUnit",
    reply: true,
};

#[test]
fn a_call_reads_back() {
    let bytes = CALL.encode(7, &arguments()).unwrap();
    assert_eq!(length(&bytes).unwrap(), bytes.len());
    assert_eq!(bytes.get(..4), Some(&[b'l', 1, 0, 1][..]));
    // The signature of a body has no parentheses around it.
    assert!(bytes.windows(18).any(|window| window == b"\x10ssa(sv)a(sa(sv))\0"));
    let message = Message::decode(&bytes).unwrap();
    assert_eq!(message.kind, Some(Kind::Call));
    assert_eq!(message.name, "StartTransientUnit");
    assert_eq!((message.text(0), message.text(1), message.text(2)), (Some("a.scope"), Some("fail"), None));
}

#[test]
fn a_call_without_arguments_or_answer() {
    let bytes = Call { reply: false, destination: None, ..CALL }.encode(1, &[]).unwrap();
    assert_eq!(bytes.get(2), Some(&NO_REPLY));
    assert_eq!(length(&bytes).unwrap(), bytes.len());
    assert_eq!(Message::decode(&bytes).unwrap().text(0), None);
}

#[test]
fn lengths_are_bounded() {
    let head = |body: u32, fields: u32| {
        let mut head = vec![b'l', 2, 0, 1];
        for number in [body, 1, fields] {
            head.extend(number.to_le_bytes());
        }
        length(&head)
    };
    assert_eq!(head(8, 3), Ok(32));
    for (body, fields) in [(u32::MAX, 0), (0, u32::MAX), (u32::MAX, u32::MAX), (1 << 20, 0)] {
        assert_eq!(head(body, fields), Err("a message of more than 1048576 bytes".to_owned()));
    }
    assert_eq!(length(b"l\x02\x00\x01"), Err("a message that is cut off".to_owned()));
    assert_eq!(length(&[0; 16]), Err("byte order 0x00".to_owned()));
    assert_eq!(
        length(&[b'l', 2, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        Err("version 9 of the protocol".to_owned())
    );
}

/// The same in the words of zbus, which others read and write the bus with.
mod oracle {
    use zbus::wire::serialized::{Context, Data};
    use zbus::wire::{BE, LE, Type as _, to_bytes};

    use super::*;

    type Properties<'a> = Vec<(&'a str, zbus::Variant<'a>)>;
    type Arguments<'a> = (&'a str, &'a str, Properties<'a>, Vec<(&'a str, Properties<'a>)>);

    #[test]
    fn arguments_are_written_as_by_others() {
        let properties: Properties<'_> =
            vec![("Delegate", zbus::Variant::Bool(true)), ("PIDs", zbus::Variant::from(vec![7_u32]))];
        let theirs: Arguments<'_> = ("a.scope", "fail", properties, Vec::new());
        assert_eq!(Arguments::SIGNATURE.to_string_no_parens(), "ssa(sv)a(sa(sv))");
        let theirs = to_bytes(Context::new(LE, 0), &theirs).unwrap();
        let ours = CALL.encode(7, &arguments()).unwrap();
        assert!(ours.ends_with(&theirs), "{ours:?}\n{:?}", theirs.bytes());
    }

    #[test]
    fn headers_are_read_by_others() {
        type Head<'a> = (u8, u8, u8, u8, u32, u32, Vec<(u8, zbus::Variant<'a>)>);
        let ours = CALL.encode(7, &arguments()).unwrap();
        let data = Data::new(&ours, Context::new(LE, 0));
        let (head, _) = data.deserialize::<Head<'_>>().unwrap();
        assert_eq!((head.0, head.1, head.3, head.5), (b'l', 1, 1, 7));
        let fields: Vec<String> = head.6.iter().map(|(code, value)| format!("{code} {value}")).collect();
        assert_eq!(
            fields,
            [
                "1 objectpath \"/org/freedesktop/systemd1\"",
                "2 \"org.freedesktop.systemd1.Manager\"",
                "3 \"StartTransientUnit\"",
                "6 \"org.freedesktop.systemd1\"",
                "8 signature \"(ssa(sv)a(sa(sv)))\"",
            ]
        );
    }

    /// In either order of bytes.
    #[test]
    fn what_others_write_is_read() {
        for (order, letter) in [(LE, b'l'), (BE, b'B')] {
            let context = Context::new(order, 0);
            let path = zbus::ObjectPath::try_from("/job/1").unwrap();
            let body =
                to_bytes(context, &vec![(5_u32, path, "a.scope", zbus::Variant::from(2.5_f64))]).unwrap();
            let fields = vec![
                (3_u8, zbus::Variant::from("JobRemoved")),
                (5_u8, zbus::Variant::U32(9)),
                (8_u8, zbus::Variant::Signature(zbus::Signature::try_from("a(uosv)").unwrap())),
            ];
            let body_length = u32::try_from(body.len()).unwrap();
            let head = (letter, 4_u8, 1_u8, 1_u8, body_length, 3_u32, fields);
            let mut bytes = to_bytes(context, &head).unwrap().to_vec();
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes.extend(body.bytes());
            assert_eq!(length(&bytes), Ok(bytes.len()));
            let message = Message::decode(&bytes).unwrap();
            assert_eq!((message.kind, message.answers), (Some(Kind::Signal), Some(9)));
            assert_eq!(message.name, "JobRemoved");
            let shown: Vec<String> = message.arguments.iter().map(ToString::to_string).collect();
            assert_eq!(shown, ["[(uint32 5, objectpath \"/job/1\", \"a.scope\", <2.5>)]"]);
        }
    }
}

proptest! {
    /// Whatever comes, it is a message or an error.
    #[test]
    fn garbage(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = length(&bytes);
        let _ = Message::decode(&bytes);
    }

    /// So is one with a few bytes changed.
    #[test]
    fn nearly_right(changes in prop::collection::vec((0_usize..400, any::<u8>()), 1..6), cut in 0_usize..400) {
        let mut bytes = CALL.encode(7, &arguments()).unwrap();
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        let _ = length(&bytes);
        let _ = Message::decode(&bytes);
    }
}
