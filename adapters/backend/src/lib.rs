//! Connections to MCP servers.
