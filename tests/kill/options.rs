//! What the command line asks for.

#[derive(Debug, Clone)]
pub struct Options {
    pub what: String,
    pub stride: usize,
    pub runs: usize,
    pub commands: Vec<String>,
    pub victims: Vec<String>,
    pub delays: Vec<u64>,
}

pub const COMMANDS: [&str; 8] = ["create", "run", "start", "exec", "update", "pause", "resume", "delete"];

impl Options {
    pub fn parse(words: &[String]) -> Self {
        let mut options = Self {
            what: String::new(),
            stride: 1,
            runs: 2000,
            commands: COMMANDS.map(str::to_owned).to_vec(),
            victims: vec!["command".to_owned(), "caller".to_owned()],
            delays: vec![0, 50],
        };
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        for word in words {
            match word.split_once('=') {
                Some(("stride", n)) => options.stride = n.parse().unwrap(),
                Some(("runs", n)) => options.runs = n.parse().unwrap(),
                Some(("command", names)) => options.commands = list(names),
                Some(("victim", names)) => options.victims = list(names),
                Some(("delay", ms)) => options.delays = list(ms).iter().map(|n| n.parse().unwrap()).collect(),
                // cargo test passes flags of its harness.
                None if word.starts_with("--") => {}
                None => word.clone_into(&mut options.what),
                Some(other) => panic!("unknown option {other:?}"),
            }
        }
        options
    }

    /// Enough to notice what breaks, in a minute or two.
    pub fn brief(&self) -> Self {
        Self { stride: 23, runs: 60, delays: vec![0], ..self.clone() }
    }
}
