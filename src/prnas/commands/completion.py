"""`prnas completion`: the script by which a shell completes command lines, installed or printed."""

from typing import get_args

from cyclopts import App
from cyclopts.completion import ShellDetectionError, detect_shell

from prnas.commands.options import CompletionOptions
from prnas.config.choices import Shell
from prnas.io.errors import UserError
from prnas.terminal.output import show

STARTUP = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "powershell": "its profile"}


def run(app: App, shell: Shell | None, options: CompletionOptions) -> None:
    """Without options, install the script where the shell looks for it, and say what changed."""
    if options.printed and options.out is not None:
        raise UserError("--print and --out are two ways to get the script: leave out one of them")
    shell = shell or _running_shell()
    if options.printed:
        print(app.generate_completion(shell=shell), end="")
        return
    try:
        path = app.install_completion(
            shell=shell, output=options.out, add_to_startup=options.out is None
        )
    except OSError as error:
        raise UserError(
            f"cannot write {error.filename}: {error.strerror}. `prnas completion {shell} --print` "
            "prints the script, for a place of your choice"
        ) from None
    show(f"wrote {path}")
    if options.out is None and shell in STARTUP:
        show(f"{STARTUP[shell]} loads it, unless it did before; a new {shell} completes prnas")
    elif options.out is None:
        show(f"a new {shell} completes prnas")


def _running_shell() -> Shell:
    try:
        return detect_shell()
    except ShellDetectionError:
        choices = ", ".join(get_args(Shell))
        raise UserError(f"cannot tell which shell is running; name it: {choices}") from None
