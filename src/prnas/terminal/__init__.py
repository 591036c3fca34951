"""Views, tables and lines that commands show in a terminal."""
