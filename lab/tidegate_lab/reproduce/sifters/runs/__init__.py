"""The runs behind the sifters figures: data, queries, quality."""
