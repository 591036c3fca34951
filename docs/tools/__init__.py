"""Pages of the reference that the program itself writes, before Sphinx reads (docs/conf.py).

Commands come from the command line, config keys from the models that check them, recipes from their
files. None of these pages is kept under version control.
"""
