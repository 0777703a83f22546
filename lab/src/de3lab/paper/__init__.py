"""The paper, table by table and figure by figure: our runs beside the published numbers."""
