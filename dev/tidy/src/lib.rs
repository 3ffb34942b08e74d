//! Tests about the tree.
