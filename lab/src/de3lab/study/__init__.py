"""Comparing methods: tasks x methods x seeds, trained once each, scored at equal speed."""
