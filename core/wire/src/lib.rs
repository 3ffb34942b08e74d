//! Lossless JSON-RPC: bytes in, envelopes out.
