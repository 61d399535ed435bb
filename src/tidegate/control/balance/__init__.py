"""Where rows lie next: loads in, routing out."""
