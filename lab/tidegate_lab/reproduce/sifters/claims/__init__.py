"""The claims of the sifters paper, read and judged."""
