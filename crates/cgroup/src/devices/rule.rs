//! One rule.

use std::fmt;

use brig_spec::DeviceRule;

use crate::limits::Invalid;

/// Kinds of device nodes, by the number that the kernel gives to a filter (`BPF_DEVCG_DEV_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Block devices.
    Block = 1,
    /// Character devices.
    Char = 2,
}

/// A set of ways to use a device, in the kernel's bits (`BPF_DEVCG_ACC_*`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access(u8);

impl Access {
    /// Making a node.
    pub const MKNOD: Self = Self(1);
    /// Opening for reading.
    pub const READ: Self = Self(2);
    /// Opening for writing.
    pub const WRITE: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);
    /// None.
    pub const NONE: Self = Self(0);

    /// The bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// What is in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this one only.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Reads letters.
    pub(super) fn parse(text: &str) -> Option<Self> {
        text.chars().try_fold(Self::NONE, |access, letter| {
            Some(access.union(match letter {
                'r' => Self::READ,
                'w' => Self::WRITE,
                'm' => Self::MKNOD,
                // runc takes it, and it says nothing.
                'a' => Self::NONE,
                _ => return None,
            }))
        })
    }
}

/// As v1's files have it.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in [(Self::READ, "r"), (Self::WRITE, "w"), (Self::MKNOD, "m")] {
            if !self.intersection(bit).is_empty() {
                f.write_str(letter)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rule about one kind of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Allow or deny.
    pub allow: bool,
    /// Kind.
    pub kind: Kind,
    /// Major number; `None` for all.
    pub major: Option<u32>,
    /// Minor number; `None` for all.
    pub minor: Option<u32>,
    /// What is allowed or denied.
    pub access: Access,
}

impl Rule {
    /// Reads `linux.resources.devices[index]`. A rule about all kinds becomes two.
    pub(super) fn parse(rule: &DeviceRule, index: usize) -> Result<Vec<Self>, Invalid> {
        let at = |member: &str| format!("linux.resources.devices[{index}].{member}");
        let kinds: &[Kind] = match rule.kind.as_str() {
            "" | "a" => &[Kind::Block, Kind::Char],
            "b" => &[Kind::Block],
            "c" => &[Kind::Char],
            other => {
                return Err(Invalid::new(at("type"), format!("invalid cgroup device type {other:?}")));
            }
        };
        let number = |number: Option<i64>, member: &str| match number {
            None | Some(i64::MIN..0) => Ok(None),
            Some(number) => match u32::try_from(number) {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(Invalid::new(at(member), format!("invalid device number: {number}"))),
            },
        };
        let access = match Access::parse(&rule.access) {
            Some(access) if !access.is_empty() => access,
            Some(_) => {
                let message = format!("device access at {index} field cannot be empty");
                return Err(Invalid::new(at("access"), message));
            }
            None => {
                return Err(Invalid::new(at("access"), format!("invalid device access {:?}", rule.access)));
            }
        };
        let (major, minor) = (number(rule.major, "major")?, number(rule.minor, "minor")?);
        let make = |&kind| Self { allow: rule.allow, kind, major, minor, access };
        Ok(kinds.iter().map(make).collect())
    }

    /// Whether this rule is about all devices that `other` is about.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let wider = |mine: Option<u32>, its: Option<u32>| mine.is_none() || mine == its;
        self.kind == other.kind && wider(self.major, other.major) && wider(self.minor, other.minor)
    }

    /// Whether there is a device and a use of it that both are about.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let meet = |mine: Option<u32>, its: Option<u32>| mine.is_none() || its.is_none() || mine == its;
        self.kind == other.kind
            && meet(self.major, other.major)
            && meet(self.minor, other.minor)
            && !self.access.intersection(other.access).is_empty()
    }
}

impl Rule {
    /// The devices, as v1's files have them: `c 1:3`.
    pub(super) fn devices(&self) -> String {
        let number = |number: Option<u32>| number.map_or("*".to_owned(), |number| number.to_string());
        let kind = match self.kind {
            Kind::Block => 'b',
            Kind::Char => 'c',
        };
        format!("{kind} {}:{}", number(self.major), number(self.minor))
    }
}

/// As v1's files have it: `c 1:3 rwm`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.devices(), self.access)
    }
}
