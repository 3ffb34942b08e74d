//! Constants of MCP that the hub itself uses.

/// The newest revision with a handshake; offered to legacy servers.
pub const LATEST_LEGACY: &str = "2025-11-25";

/// The revision without a handshake: every request carries its own metadata.
pub const MODERN: &str = "2026-07-28";

/// Every revision with a handshake, newest first.
pub const LEGACY_REVISIONS: [&str; 4] = [LATEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// `_meta` key of a modern request: the revision in which it is written.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// `_meta` key of a modern request: the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// `_meta` key of a modern request: the client's name and version.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// `_meta` key of a modern result: the server's name and version.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// `_meta` key of any request: the token for its progress notifications.
pub const META_PROGRESS: &str = "progressToken";

/// `_meta` key of a modern request: the lowest log level that the client wants to receive.
pub const META_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// `_meta` key of a message on a subscription: the id of the request that asked for it.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// `resultType` of a modern result that asks the client for input before the call can continue.
pub const INPUT_REQUIRED: &str = "input_required";
