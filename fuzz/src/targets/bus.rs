//! D-Bus: messages as they come over the socket, and the words that go into ours.

use brig_cgroup::fuzzing::{annotation, bus_message, unit};

/// The same bytes as a message, as the text of an annotation, and as a `cgroupsPath`.
pub fn bus(bytes: &[u8]) {
    bus_message(bytes);
    let text = String::from_utf8_lossy(bytes);
    annotation(&text);
    unit(&text);
}

/// A reply with a string, in either byte order, and a signal.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for big in [false, true] {
        let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        for (kind, member) in [(2_u8, ""), (4, "JobRemoved"), (3, "org.freedesktop.DBus.Error.Failed")] {
            // Header fields: what is answered, the member or error name, and the signature of the body.
            let mut fields = vec![5, 1, b'u', 0];
            fields.extend(word(7));
            if !member.is_empty() {
                fields.extend([if kind == 4 { 3 } else { 4 }, 1, b's', 0]);
                fields.extend(word(u32::try_from(member.len()).unwrap()));
                fields.extend(member.bytes());
                fields.push(0);
            }
            fields.resize(fields.len().next_multiple_of(8), 0);
            fields.extend([8, 1, b'g', 0, 2, b'u', b's', 0]);
            let mut body: Vec<u8> = word(42).to_vec();
            body.extend(word(4));
            body.extend(b"done\0");
            let mut message = vec![if big { b'B' } else { b'l' }, kind, 0, 1];
            message.extend(word(u32::try_from(body.len()).unwrap()));
            message.extend(word(3));
            message.extend(word(u32::try_from(fields.len()).unwrap()));
            message.extend(&fields);
            message.resize(message.len().next_multiple_of(8), 0);
            message.extend(&body);
            seeds.push(message);
        }
    }
    let texts = [
        "'text'",
        "uint64 5000000",
        "[('a', <1>), ('b', <@as []>)]",
        "{'k': <(1, true, 2.5)>}",
        "@a(sv) []",
        "\"x\\u263a\"",
        "machine.slice:libpod:c1",
        "a-b-c.slice:x:y",
        ":brig:c1",
        "-:p:n",
        "user.slice:p:n.slice",
        "../x:..:/../y",
    ];
    seeds.extend(texts.map(|text| text.as_bytes().to_vec()));
    seeds
}
