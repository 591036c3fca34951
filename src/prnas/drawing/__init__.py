"""Pictures: cells, graphs, matrices; as SVG, PNG and PDF."""
