"""The values that pass between parts: plan, manifest, task report, routing, debt. Typed, frozen, JSON."""
