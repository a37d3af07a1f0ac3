"""What touches a live system: samplers, launched servers, process trees, injected tags."""
