//! Drops all privileges: of root, and of the user namespace.

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

/// Gives up every capability, for good. A program that root owns gets none back.
pub(super) fn drop_all() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let ours = capabilities(None)?;
    if ours.permitted.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            // Capabilities that this kernel does not know.
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if matches!(rustix::thread::capability_is_in_bounding_set(one), Ok(true)) {
                remove_capability_from_bounding_set(one)?;
            }
        }
        set_capabilities_secure_bits(
            CapabilitiesSecureBits::NO_ROOT
                | CapabilitiesSecureBits::NO_ROOT_LOCKED
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
                | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
        )?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
