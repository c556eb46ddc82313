//! The one place where a JSON object's type is described.

/// Makes a struct out of a description of a JSON object: its fields, with the member each is read from.
///
/// What comes out is the struct (all fields public, `Default` is the empty object), the reader, the list of known
/// members, and serialization in the order given. A field that is empty (`None`, `""`, `[]`, `false`, `0`) is not
/// written, unless `always` follows its name. Members listed after `ignores` are known but not kept.
macro_rules! object {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* pub $field:ident: $type:ty = $key:literal $($always:ident)? ),* $(,)?
        }
        $( ignores $($ignored:literal),+; )?
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl $crate::read::Object for $name {
            const KEYS: &'static [&'static str] = &[$( $key, )* $( $($ignored,)+ )?];

            fn read_member(
                &mut self,
                key: &'static str,
                node: $crate::node::Node<'_>,
                unknown: &mut $crate::read::Unknown,
            ) -> $crate::read::Outcome {
                match key {
                    $( $key => $crate::read::Read::read(&mut self.$field, node, unknown), )*
                    _ => Ok(()),
                }
            }
        }

        impl $crate::read::Read for $name {
            fn read(&mut self, node: $crate::node::Node<'_>, unknown: &mut $crate::read::Unknown)
                -> $crate::read::Outcome {
                $crate::read::read_object(self, node, unknown)
            }

            fn is_absent(&self) -> bool {
                false
            }

            fn fields(path: &str, out: &mut Vec<String>) {
                $( $crate::read::field::<$type>(path, $key, out); )*
                $( $( out.push($crate::read::member_path(path, $ignored)); )+ )?
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(
                    if object!(@written self.$field $($always)?) {
                        serde::ser::SerializeMap::serialize_entry(&mut map, $key, &self.$field)?;
                    }
                )*
                serde::ser::SerializeMap::end(map)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::read::deserialize(deserializer)
            }
        }
    )+};
    (@written $self:ident.$field:ident always) => { true };
    (@written $self:ident.$field:ident) => { !$crate::read::Read::is_absent(&$self.$field) };
}
