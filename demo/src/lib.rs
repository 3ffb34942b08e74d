//! Small real MCP servers that ship with the binary.
