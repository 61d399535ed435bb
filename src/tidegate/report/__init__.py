"""What a person or a program sees of a run: live progress, a final table, a JSON frame. No pyspark here."""
