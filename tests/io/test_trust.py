"""Nothing that is read is ever run: no pickles, no programs, neither here nor in what we call."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import prnas
from tests.support.made_data import picture
from tests.support.settings import small_config, small_training, write_images

SOURCE = Path(prnas.__file__).parent
FORBIDDEN_MODULES = {
    *("pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "code"),
    *("imp", "runpy", "pty", "pickletools", "jsonpickle"),
}
FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__", "execfile"}
# Method names that run, unpickle or unpack without looking, whoever has them.
FORBIDDEN_ENDS = {
    *("extractall", "mktemp", "load_module", "exec_module", "unsafe_load", "full_load", "system"),
    *(
        "unsafe_load_all",
        "full_load_all",
        "popen",
        "Unpickler",
        "unpack_archive",
        "getstatusoutput",
    ),
    *("load_state_dict_from_url", "UnsafeLoader", "FullLoader", "fromregex", "ctypeslib"),
}
KNOWN = {
    # Modules of ours, and of the extra that exporters need, from lists in the source.
    ("__init__.py", "imports what a value says"),
    ("exporting/onnx.py", "imports what a value says"),
    # What was exported a moment before, to check it; PyTorch loads its example by `weights_only`.
    ("exporting/torch_program.py", "calls torch.export.load"),
}


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or an attribute; what is called on a value has `?` for it."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def is_constant(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def problems(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for one in node.names:
                    if one.name.split(".")[0] in FORBIDDEN_MODULES:
                        yield f"imports {one.name}"
            case ast.ImportFrom():
                names = {str(node.module).split(".")[0], *(one.name for one in node.names)}
                if names & (FORBIDDEN_MODULES | FORBIDDEN_NAMES | FORBIDDEN_ENDS):
                    yield f"imports {sorted(names)}"
            case ast.Call():
                yield from call_problems(node)
            case ast.Attribute() if node.attr in FORBIDDEN_ENDS:
                yield f"uses {dotted(node)}"
            case _:
                pass


def call_problems(call: ast.Call) -> Iterator[str]:
    name = dotted(call.func)
    head, _, last = name.rpartition(".")
    if name in FORBIDDEN_NAMES:
        yield f"calls {name}"
    if name.endswith("import_module") and not isinstance(call.args[0], ast.Constant):
        yield f"imports what a value says: {ast.unparse(call)}"
    if head in ("torch", "hub", "torch.hub", "jit", "torch.jit", "torch.export") and last == "load":
        yield f"calls {name}"
    if (
        last == "load"
        and head in ("np", "numpy")
        and not is_constant(keyword(call, "allow_pickle"), False)
    ):
        yield f"{name} without allow_pickle=False"
    if last == "read_array" and not is_constant(keyword(call, "allow_pickle"), False):
        yield f"{name} without allow_pickle=False"
    if name in ("yaml.load", "yaml.load_all"):
        loader = keyword(call, "Loader")
        if loader is None or dotted(loader) not in ("_Loader", "yaml.SafeLoader"):
            yield f"{name} without a safe loader"
    if head == "subprocess" or last in ("Popen", "check_output", "check_call"):
        first = call.args[0] if call.args else None
        if keyword(call, "shell") is not None or isinstance(first, ast.Constant | ast.JoinedStr):
            yield f"{name} with a shell"
    if last == "extract":
        yield f"{name}: members are read one by one"


def test_the_sources_load_no_programs() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {problem}"
        for path in SOURCE.rglob("*.py")
        for problem in problems(ast.parse(path.read_text(encoding="utf-8")))
        if (path.relative_to(SOURCE).as_posix(), problem.partition(":")[0]) not in KNOWN
    }
    assert not found
    assert all((SOURCE / name).is_file() for name, _ in KNOWN)
    assert len(list(SOURCE.rglob("*.py"))) > 100


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import marshal as m",
        "from joblib import load",
        "from os import system",
        "import os; os.system('x')",
        "eval('1')",
        "exec(x)",
        "compile(x, '', 'exec')",
        "__import__(name)",
        "importlib.import_module(name)",
        "yaml.load(text)",
        "yaml.load(text, Loader=yaml.Loader)",
        "yaml.unsafe_load(text)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "npy.read_array(stream)",
        "torch.load(path)",
        "torch.load(path, weights_only=True)",
        "torch.hub.load(a, b)",
        "torch.jit.load(path)",
        "torch.export.load(path)",
        "subprocess.run('x', shell=True)",
        "subprocess.run(words, shell=flag)",
        "subprocess.run('x y')",
        "tempfile.mktemp()",
        "archive.extractall(path)",
        "archive.extract(member)",
        "shutil.unpack_archive(path)",
    ],
)
def test_the_walk_finds_what_it_should(text: str) -> None:
    assert list(problems(ast.parse(text)))


def test_the_yaml_loader_is_a_safe_one() -> None:
    import yaml

    from prnas.io import yaml_files

    assert issubclass(yaml_files._Loader, yaml.SafeLoader)
    assert not issubclass(yaml_files._Loader, yaml.FullLoader | yaml.UnsafeLoader)
    unsafe = [tag for tag in yaml_files._Loader.yaml_constructors if tag and "python" in tag]
    assert not unsafe


# Whatever would unpickle anything ends this process; both of pickle's implementations, and torch's.
GUARDED = """
import _pickle, pickle, sys
def refuse(*arguments, **options):
    raise SystemExit("UNPICKLED")
class Refusing:
    def __init__(self, *arguments, **options):
        refuse()
import torch, torch.serialization
for module in (pickle, _pickle):
    module.load = module.loads = refuse
    module.Unpickler = Refusing
pickle._Unpickler = pickle._load = pickle._loads = Refusing
torch.load = torch.serialization.load = refuse
from prnas.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split("|"))
    except SystemExit as exit_:
        if exit_.code:
            raise
print("ALL DONE")
try:
    pickle.loads(b"N.")  # the guard would have noticed
except SystemExit as exit_:
    print(exit_.code)
"""


def guarded(folder: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", GUARDED, *lines],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_a_whole_day_without_unpickling_anything(tmp_path: Path) -> None:
    """Search, go on, train, go on, test, ask, export, report, in one process."""
    from prnas.io.yaml_files import dump_yaml

    images = write_images(tmp_path / "images.npz", number=48)
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        images, schedule={"cycles": [last]}, network={"cells": 3, "channels": 2, "nodes": 1}
    )
    training = small_training(
        images,
        network={"cells": 3, "channels": 2},
        training={"epochs": 1, "warmup_epochs": 0},
        batch={"min": 8, "multiple": 4, "max": 12},
    )
    (tmp_path / "search.yaml").write_text(dump_yaml(config.to_data()))
    (tmp_path / "train.yaml").write_text(dump_yaml(training.to_data()))
    picture(tmp_path / "image.png")
    done = guarded(
        tmp_path,
        "search|search.yaml|--name|found|--quiet",
        "search|--resume|runs/found|--quiet",
        "retrain|runs/found|train.yaml|--name|trained|--quiet",
        "retrain|--resume|runs/trained|--quiet",
        "evaluate|runs/trained|--skip-speed|-o|evaluation",
        "predict|runs/trained|image.png",
        "export|runs/trained|-o|model.py",
        "export|runs/trained|-o|model.safetensors|--force",
        "report|runs/found",
        "report|runs/trained",
        "data|npz:images.npz",
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("ALL DONE\nUNPICKLED\n")
