//! One definition per key: the macro [`keys!`].
//!
//! A definition lists the keys of a table. Each key has a description, a type, a
//! [`Form`](super::form::Form) (how the type is written in a file) and, optionally, a default. The
//! macro generates the settings type, the code that reads the keys, and their schema, from which
//! the reference page is generated.
//!
//! ```text
//! keys! {
//!     /// The audit log.                          the description of the table
//!     pub merged Audit                            the settings type
//!     keys {
//!         /// Keep an audit log.                  the description of the key
//!         enabled: bool = true, nearest;          key: type = default, how files are merged;
//!         /// The time for which entries are kept.
//!         retention: Duration as Time = DAY, nearest;     a type with a form of its own
//!         /// The file of the log.
//!         path: String, nearest;                  without a default the field is an `Option`
//!     }
//!     by_hand {                                   keys that the table's own code reads:
//!         /// Limits on requests.                 key: type in the schema = default;
//!         limits: <GatewayLimits as Table>::Keys;
//!         /// Grants by role.
//!         roles: Roles as "table of lists";       its type in words, for the reference page
//!     }
//! }
//! ```
//!
//! A string after the name is the word for such a table in the reference page. `merged` tables
//! occur in several files; a `table` occurs once and has no merge policies. A block in braces after
//! the name lists fields of the settings type that are not keys.

macro_rules! keys {
    // The schema of the keys.
    (@schema [$($about:literal)+] [$($title:literal)?] $Name:ident [$({
        $how:ident [$($doc:literal)+] $key:ident, $Type:ty $(as $words:literal)? $(= $default:expr)?
    })*]) => {
        const _: () = {
            $(#[doc = $about])+
            #[derive(schemars::JsonSchema)]
            #[schemars(deny_unknown_fields $(, title = $title)?)]
            #[expect(dead_code, reason = "only its schema is used")]
            pub(crate) struct Keys {
                $(
                    $(#[doc = $doc])+
                    $(#[schemars(title = $words)])?
                    $(#[schemars(extend("default" = keys!(@schema_default $how $Type, $default)))])?
                    $key: keys!(@schema_type $how $Type),
                )*
            }

            impl $crate::settings::form::Table for $Name {
                type Keys = Keys;
            }
        };
    };
    (@schema_type form $Form:ty) => { <$Form as $crate::settings::form::Form>::Schema };
    (@schema_type schema $Schema:ty) => { $Schema };
    (@schema_default form $Form:ty, $default:expr) => {
        <$Form as $crate::settings::form::Form>::write(&$default)
    };
    (@schema_default schema $Schema:ty, $default:expr) => { $default };
    // The type of a field: a key without a default may be absent.
    (@type $Type:ty) => { Option<$Type> };
    (@type $Type:ty = $default:expr) => { $Type };
    // The form of a key: its type, unless the definition names another.
    (@form $Type:ty) => { $Type };
    (@form $Type:ty as $Form:ty) => { $Form };
    // The value of a key in one table.
    (@read $fields:ident, $key:ident, $Form:ty) => {
        <$Form as $crate::settings::form::Form>::read($fields, stringify!($key))
    };
    (@read $fields:ident, $key:ident, $Form:ty = $default:expr) => {
        <$Form as $crate::settings::form::Form>::read($fields, stringify!($key))
            .unwrap_or_else(|| $default)
    };
    // The value of a key in all files.
    (@merge $merge:ident, $section:ident, $found:expr, $key:ident, $Form:ty, $policy:ident) => {
        $merge.optional(&$section.key(stringify!($key)), $crate::merge::policy::$policy($found, None))
    };
    (@merge $merge:ident, $section:ident, $found:expr, $key:ident, $Form:ty = $default:expr, $policy:ident) => {
        $merge.value::<$Form>(
            $section,
            stringify!($key),
            $crate::merge::policy::$policy($found, Some($default)),
            $default,
        )
    };
    // Sorts the blocks into the keys that become fields, and all keys.
    (@sort $head:tt [$($fields:tt)*] [$($all:tt)*] keys { $(
        $(#[doc = $doc:literal])+
        $key:ident: $Type:ty $(as $Form:ty)? $(= $default:expr)? $(, $policy:ident)?;
    )* } $($rest:tt)*) => {
        keys! { @sort $head
            [$($fields)* $({
                [$($doc)+] $key, $Type, keys!(@form $Type $(as $Form)?) $(= $default)? $(, $policy)?
            })*]
            [$($all)* $({ form [$($doc)+] $key, keys!(@form $Type $(as $Form)?) $(= $default)? })*]
            $($rest)*
        }
    };
    (@sort $head:tt $fields:tt [$($all:tt)*] by_hand { $(
        $(#[doc = $doc:literal])+
        $key:ident: $Schema:ty $(as $words:literal)? $(= $default:expr)?;
    )* } $($rest:tt)*) => {
        keys! { @sort $head
            $fields
            [$($all)* $({ schema [$($doc)+] $key, $Schema $(as $words)? $(= $default)? })*]
            $($rest)*
        }
    };
    // A table that occurs once.
    (@sort { $about:tt $title:tt $vis:vis table $Name:ident [] } [$({
        [$($doc:literal)+] $key:ident, $Type:ty, $Form:ty $(= $default:expr)?
    })*] $all:tt) => {
        keys! { @struct $about $vis $Name [] [$({ [$($doc)+] $key, $Type $(= $default)? })*] }
        keys! { @schema $about $title $Name $all }

        impl $Name {
            /// Reads the keys of a table.
            pub(crate) fn read(fields: &mut $crate::fields::Fields<'_, '_>) -> Self {
                Self { $($key: keys!(@read fields, $key, $Form $(= $default)?),)* }
            }
        }

        keys! { @impl_default $Name [] [$({ $key $(, $default)? })*] }
    };
    // A table that occurs once, with fields that are not keys.
    (@sort { $about:tt $title:tt $vis:vis table $Name:ident [$({
        [$($own_doc:literal)+] $own:ident, $Own:ty
    })+] } [$({
        [$($doc:literal)+] $key:ident, $Type:ty, $Form:ty $(= $default:expr)?
    })*] $all:tt) => {
        keys! { @struct $about $vis $Name [$({ [$($own_doc)+] $own, $Own })+]
            [$({ [$($doc)+] $key, $Type $(= $default)? })*] }
        keys! { @schema $about $title $Name $all }

        impl $Name {
            /// Reads the keys of a table; `None` if one of the other fields has no value.
            ///
            /// The keys are checked in any case.
            pub(crate) fn read(
                fields: &mut $crate::fields::Fields<'_, '_>,
                $($own: Option<$Own>,)*
            ) -> Option<Self> {
                $(let $key = keys!(@read fields, $key, $Form $(= $default)?);)*
                Some(Self { $($own: $own?,)* $($key,)* })
            }
        }
    };
    // A table that may occur in every file.
    (@sort { $about:tt $title:tt $vis:vis merged $Name:ident [$({ [$($own_doc:literal)+] $own:ident, $Own:ty })*] } [$({
        [$($doc:literal)+] $key:ident, $Type:ty, $Form:ty $(= $default:expr)?, $policy:ident
    })*] $all:tt) => {
        keys! { @struct $about $vis $Name [$({ [$($own_doc)+] $own, $Own })*]
            [$({ [$($doc)+] $key, $Type $(= $default)? })*] }
        keys! { @schema $about $title $Name $all }

        /// The keys of the table in one file.
        #[derive(Debug, Default)]
        pub(crate) struct InFile {
            $(pub(crate) $key: Option<$crate::settings::form::Setting<$Type>>,)*
        }

        impl InFile {
            /// Reads the keys of one file.
            pub(crate) fn read(fields: &mut $crate::fields::Fields<'_, '_>) -> Self {
                Self {
                    $($key: $crate::settings::form::Setting::read::<$Form>(
                        fields, stringify!($key),
                    ),)*
                }
            }
        }

        impl $Name {
            /// Merges the keys of all files.
            pub(crate) fn merged(
                merge: &mut $crate::merge::Merge<'_>,
                section: $crate::merge::Section,
                get: fn(&$crate::read::Tables) -> &InFile,
            ) -> Self {
                Self {
                    $($own: Default::default(),)*
                    $($key: {
                        let found = merge.settings(|tables| get(tables).$key.as_ref());
                        keys!(@merge merge, section, found, $key, $Form $(= $default)?, $policy)
                    },)*
                }
            }
        }

        keys! { @impl_default $Name [$({ $own })*] [$({ $key $(, $default)? })*] }
    };
    (@impl_default $Name:ident [$({ $own:ident })*] [$({ $key:ident $(, $default:expr)? })*]) => {
        impl Default for $Name {
            fn default() -> Self {
                Self {
                    $($own: Default::default(),)*
                    $($key: keys!(@default $($default)?),)*
                }
            }
        }
    };
    (@default) => { None };
    (@default $default:expr) => { $default };
    (@struct [$($about:literal)+] $vis:vis $Name:ident [$({ [$($own_doc:literal)+] $own:ident, $Own:ty })*]
        [$({ [$($doc:literal)+] $key:ident, $Type:ty $(= $default:expr)? })*]) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $Name {
            $($(#[doc = $own_doc])+ pub $own: $Own,)*
            $($(#[doc = $doc])+ pub $key: keys!(@type $Type $(= $default)?),)*
        }
    };
    ($(#[doc = $about:literal])+ $vis:vis $mode:ident $Name:ident $(: $title:literal)?
        $({ $($(#[doc = $own_doc:literal])+ $own:ident: $Own:ty,)* })?
        $($blocks:ident { $($keys:tt)* })+
    ) => {
        keys! { @sort
            { [$($about)+] [$($title)?] $vis $mode $Name [$($({ [$($own_doc)+] $own, $Own })*)?] }
            [] []
            $($blocks { $($keys)* })+
        }
    };
}

pub(crate) use keys;
