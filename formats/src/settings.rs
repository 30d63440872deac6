//! What a format's settings were set to: the value given, else the default, checked when read.

#![allow(dead_code, reason = "a build with fewer formats reads fewer kinds of settings")]

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use lakemark_core::table::Setting;

/// The settings of one format, as given.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    known: &'static [Setting],
    given: &'a BTreeMap<String, String>,
}

impl<'a> Settings<'a> {
    /// Those given, of those that a format has. Names that it does not have are not looked at.
    pub(crate) fn new(known: &'static [Setting], given: &'a BTreeMap<String, String>) -> Self {
        Self { known, given }
    }

    /// Value of a setting, or its default.
    pub(crate) fn text(&self, name: &str) -> &'a str {
        self.given.get(name).map_or_else(|| default(self.known, name), String::as_str)
    }

    /// Reads a setting.
    ///
    /// # Errors
    ///
    /// One line that names the setting, its value and what is allowed, if `parse` takes the value for none.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, String> {
        let value = self.text(name);
        parse(value).ok_or_else(|| format!("{name} is `{value}`; it must be {allowed}"))
    }

    /// Reads a setting that is true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, String> {
        self.read(name, "true or false", |value| value.parse().ok())
    }

    /// Reads a setting that is a whole number from `least`.
    pub(crate) fn number<T: FromStr + PartialOrd + Display>(&self, name: &str, least: T) -> Result<T, String> {
        let allowed = format!("a whole number from {least}");
        self.read(name, &allowed, |value| value.parse().ok().filter(|number| *number >= least))
    }

    /// Reads a setting that is a word, such as `off`, or a whole number from `least`. None stands for the word.
    pub(crate) fn number_or<T: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        word: &str,
        least: T,
    ) -> Result<Option<T>, String> {
        let allowed = format!("{word} or a whole number from {least}");
        self.read(name, &allowed, |value| match value.parse().ok().filter(|number| *number >= least) {
            None if value == word => Some(None),
            number => number.map(Some),
        })
    }

    /// Reads a setting that is one of a few words, each with its meaning.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, String> {
        let allowed = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        self.read(name, &allowed, |value| words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning))
    }
}

/// Default of a setting.
pub(crate) fn default(known: &'static [Setting], name: &str) -> &'static str {
    known.iter().find(|setting| setting.name == name).map_or("", |setting| setting.default)
}

/// Settings as a cell gives them, for tests.
#[cfg(test)]
pub(crate) fn given(settings: &[(&str, &str)]) -> BTreeMap<String, String> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Setting] = &[
        Setting { name: "flag", default: "true", help: "" },
        Setting { name: "number", default: "3", help: "" },
        Setting { name: "keep", default: "off", help: "" },
    ];

    fn with<T>(name: &str, value: &str, read: impl FnOnce(Settings<'_>) -> T) -> T {
        read(Settings::new(KNOWN, &BTreeMap::from([(name.to_owned(), value.to_owned())])))
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let settings = BTreeMap::new();
        let settings = Settings::new(KNOWN, &settings);
        assert_eq!(settings.flag("flag"), Ok(true));
        assert_eq!(settings.number("number", 1_u32), Ok(3));
        assert_eq!(settings.number_or("keep", "off", 1_u64), Ok(None));
    }

    #[test]
    fn what_is_given_counts() {
        assert_eq!(with("flag", "false", |settings| settings.flag("flag")), Ok(false));
        assert_eq!(with("keep", "7", |settings| settings.number_or("keep", "off", 1_u64)), Ok(Some(7)));
        assert_eq!(with("number", "b", |settings| settings.one_of("number", &[("a", 1), ("b", 2)])), Ok(2));
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        let refused = |name: &str, value: &str, allowed: &str| format!("{name} is `{value}`; it must be {allowed}");
        assert_eq!(with("flag", "yes", |settings| settings.flag("flag")), Err(refused("flag", "yes", "true or false")));
        assert_eq!(
            with("number", "0", |settings| settings.number("number", 1_u32)),
            Err(refused("number", "0", "a whole number from 1"))
        );
        assert_eq!(
            with("keep", "on", |settings| settings.number_or("keep", "off", 1_u64)),
            Err(refused("keep", "on", "off or a whole number from 1"))
        );
        assert_eq!(
            with("number", "c", |settings| settings.one_of("number", &[("a", 1), ("b", 2)])),
            Err(refused("number", "c", "a or b"))
        );
    }
}
