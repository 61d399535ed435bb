"""The figures of the sifters paper, measured again."""
