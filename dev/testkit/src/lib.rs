//! Fake servers and worlds for the tests.
