//! JSON-RPC error codes of the base protocol and of MCP.

/// JSON-RPC: the text is not JSON.
pub const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: valid JSON, but not a valid message.
pub const INVALID_REQUEST: i64 = -32600;

/// JSON-RPC: the method is not known.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC: the parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;

/// JSON-RPC: internal error.
pub const INTERNAL: i64 = -32603;

/// MCP up to 2025-11-25: resource not found.
pub const RESOURCE_NOT_FOUND: i64 = -32002;

/// MCP 2025-11-25: the user has to visit a page first.
pub const URL_REQUIRED: i64 = -32042;

/// MCP 2026-07-28: the headers of a request do not match its body.
pub const HEADER_MISMATCH: i64 = -32020;

/// MCP 2026-07-28: the client lacks a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;

/// MCP 2026-07-28: the revision is not supported; `data.supported` lists the supported ones.
pub const UNSUPPORTED_VERSION: i64 = -32022;
