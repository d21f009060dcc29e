//! The rotary settings of `config.json`, wherever the tool that wrote it put them.
//!
//! `rope_parameters` is the present home, `rope_scaling` the former one, and older files have
//! `rope_theta` and `partial_rotary_factor` beside the other sizes. All places are read; where
//! they disagree, or none has a value, it is an error: a guessed theta gives text that is right
//! for a page and then decays.

use serde_json::{Map, Value};

use super::config::{Fields, show, unexpected, whole};
use crate::error::{Error, Result};

/// The published split of 32 frequencies over time, height and width.
const PUBLISHED_SECTION: [usize; 3] = [11, 11, 10];

pub(super) struct Rope {
    pub theta: f64,
    pub rotary_dim: usize,
    pub mrope_section: [usize; 3],
}

impl Rope {
    pub(super) fn read(fields: &Fields, head_dim: usize) -> Result<Rope> {
        let places = Places::new(fields)?;
        places.check_type()?;

        let theta = places.number("rope_theta")?;
        if !(theta.is_finite() && theta > 1.0) {
            return Err(Error::format(format!("rope_theta is {theta}, expected more than 1")));
        }
        let factor = places.number("partial_rotary_factor")?;
        if !(factor > 0.0 && factor <= 1.0) {
            return Err(Error::format(format!(
                "partial_rotary_factor is {factor}, expected more than 0 and at most 1"
            )));
        }
        // Rounded down, as the reference does.
        let rotary_dim = (head_dim as f64 * factor) as usize;
        if rotary_dim == 0 || !rotary_dim.is_multiple_of(2) {
            return Err(Error::format(format!(
                "partial_rotary_factor {factor} of head_dim {head_dim} gives {rotary_dim} rotated \
                 dimensions, expected an even number of at least 2"
            )));
        }
        Ok(Rope { theta, rotary_dim, mrope_section: places.section(rotary_dim / 2)? })
    }
}

/// The objects that may hold rotary settings.
struct Places<'a> {
    nested: Vec<(String, &'a Map<String, Value>)>,
    flat: Vec<(String, &'a Map<String, Value>)>,
}

impl<'a> Places<'a> {
    fn new(fields: &Fields<'a>) -> Result<Self> {
        let mut places = Places { nested: Vec::new(), flat: Vec::new() };
        for (name, section) in &fields.sections {
            for key in ["rope_parameters", "rope_scaling"] {
                match section.get(key) {
                    None | Some(Value::Null) => {}
                    Some(Value::Object(object)) => {
                        places.nested.push((format!("{key} of {name}"), object));
                    }
                    Some(other) => return Err(unexpected(key, "an object", other)),
                }
            }
            places.flat.push(((*name).to_owned(), section));
        }
        Ok(places)
    }

    /// Every value of `key` with the place where it stands.
    fn all(&self, key: &str) -> impl Iterator<Item = (&str, &'a Value)> {
        self.nested.iter().chain(&self.flat).filter_map(move |(place, object)| {
            object.get(key).filter(|v| !v.is_null()).map(|value| (place.as_str(), value))
        })
    }

    /// Only the plain rotation is run; scaled variants change the angles.
    fn check_type(&self) -> Result<()> {
        let old =
            self.nested.iter().filter_map(|(place, o)| Some((place.as_str(), o.get("type")?)));
        for (place, value) in self.all("rope_type").chain(old).filter(|(_, v)| !v.is_null()) {
            // "mrope" is an older name of the same.
            if !matches!(value.as_str(), Some("default" | "mrope")) {
                return Err(Error::unsupported(format!(
                    "the rope type is {} in {place}; only \"default\" is supported",
                    show(value)
                )));
            }
        }
        Ok(())
    }

    fn number(&self, key: &str) -> Result<f64> {
        let mut found: Option<(&str, f64)> = None;
        for (place, value) in self.all(key) {
            let number = value.as_f64().ok_or_else(|| unexpected(key, "a number", value))?;
            match found {
                None => found = Some((place, number)),
                Some((first, other)) if other != number => {
                    return Err(Error::format(format!(
                        "{key} is {other} in {first} and {number} in {place}"
                    )));
                }
                Some(_) => {}
            }
        }
        found.map(|(_, number)| number).ok_or_else(|| {
            Error::format(format!(
                "{key} is missing (looked in rope_parameters, in rope_scaling and beside them)"
            ))
        })
    }

    /// `mrope_section`, which must cover the `frequencies`. Files without it are text-only: the
    /// published split if it fits, else all frequencies on the time axis, which is the same for
    /// text.
    fn section(&self, frequencies: usize) -> Result<[usize; 3]> {
        let key = "mrope_section";
        let mut found: Option<[usize; 3]> = None;
        for (place, value) in self.all(key) {
            let Some([a, b, c]) = value.as_array().map(Vec::as_slice) else {
                return Err(unexpected(key, "an array of three numbers", value));
            };
            let mut section = [0; 3];
            for (slot, value) in section.iter_mut().zip([a, b, c]) {
                *slot = whole(key, value, 0, 1 << 14)?;
            }
            if section.iter().sum::<usize>() != frequencies {
                return Err(Error::format(format!(
                    "{key} is {section:?} in {place}, which does not add up to {frequencies}, half \
                     of the rotated dimensions"
                )));
            }
            if found.is_some_and(|other| other != section) {
                return Err(Error::format(format!("{key} differs between two places")));
            }
            found = Some(section);
        }
        Ok(found.unwrap_or(match PUBLISHED_SECTION.iter().sum::<usize>() == frequencies {
            true => PUBLISHED_SECTION,
            false => [frequencies, 0, 0],
        }))
    }
}
