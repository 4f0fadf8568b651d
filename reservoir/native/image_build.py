"""Links kernels that Numba compiled into an image, from which a process loads all kernels at once (image.py).

`railgun/kernel_list.py` calls it when all are compiled. The code of each is taken from Numba's cache, optimised as it
is there, so that an image computes what Numba's own kernels do. The way in which Python calls it is added: it takes
integers, and returns integers or truth values.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import llvmlite.binding as llvm
from numba.core import types as numba_types
from numba.core.registry import cpu_target

from reservoir.native import image as kernel_image

types: Any = numba_types  # made by the module as it is imported, unseen by a type checker

_DECLARED = """
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare ptr @PyNumber_Index(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare i64 @PyThread_get_thread_ident()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
@railgun_none = external global i8
@railgun_type_error = external global i8
@railgun_runtime_error = external global i8
@railgun_keeper = global i64 0
@failed = private constant [16 x i8] c"a kernel failed\\00"
@count = private constant [26 x i8] c"wrong number of arguments\\00"
"""


def build(kernels: Sequence[tuple[Any, Any]], entries: Sequence[Any]) -> None:
    """Save the image of dispatchers, each with the signature to use, and of entry points. All are in Numba's cache.

    Raises OSError, and ValueError if a kernel has a parameter or a result of a type that an image does not support.
    """
    codegen = cpu_target.target_context.codegen()
    text, parts = [_DECLARED], []
    for index, (dispatcher, signature) in enumerate(kernels):
        code, described = _cached(dispatcher._cache, signature, codegen)
        parts.append(code)
        text.append(_call(index, described))
    for index, entry in enumerate(entries):
        code, described = _cached(entry._cache, entry._sig, codegen)
        parts.append(code)
        text.append(_entry(index, described))
    code = _linked("".join(text), parts, codegen)
    names = [(dispatcher.py_func.__module__, dispatcher.py_func.__name__) for dispatcher, _ in kernels]
    entry_names = [(entry.__wrapped__.__module__, entry.__wrapped__.__name__) for entry in entries]
    kernel_image.save(kernel_image.Header(names, entry_names), code)


def _cached(cache: Any, signature: Any, codegen: Any) -> tuple[bytes, Any]:
    """Return what Numba's cache has of a kernel: its module, which is to be linked, and its description."""
    found = cache._cache_file.load(cache._index_key(signature, codegen))
    if found is None:
        raise ValueError(f"{signature} is not in Numba's cache")
    (_, _, (_, module)), described, *_ = found
    return module, described


def _linked(text: str, parts: Iterable[bytes], codegen: Any) -> bytes:
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = llvm.get_process_triple(), codegen._data_layout
    for part in parts:
        module.link_in(llvm.parse_bitcode(part))
    # Numba adds functions for its own calls to each kernel. They are not called here, and are removed.
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(codegen._tm, llvm.create_pipeline_tuning_options()))
    return bytes(codegen._tm.emit_object(module))


def _entry(index: int, described: Any) -> str:
    return f"""
declare i32 @"{described.llvm_func_name}"(ptr, ptr, i64)
define i64 @entry{index}(i64 %v) {{
  %result = alloca i64
  %raised = alloca ptr
  store i64 0, ptr %result
  call i32 @"{described.llvm_func_name}"(ptr %result, ptr %raised, i64 %v)
  %given = load i64, ptr %result
  ret i64 %given
}}
"""


def _call(index: int, described: Any) -> str:
    """Return the code of `PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)`."""
    count = len(described.argtypes)
    lines = [f"define ptr @call{index}(ptr %self, ptr %args, i64 %nargs) {{", "entry:"]
    lines += [f"  %result = alloca {_memory(described.restype)}", "  %raised = alloca ptr"]
    lines += [f"  %fits = icmp eq i64 %nargs, {count}", "  br i1 %fits, label %arg0, label %wrong"]
    for place, kind in enumerate(described.argtypes):
        lines += _taken(place, kind)
    given = "".join(f", i64 %v{place}" for place in range(count))
    name = described.llvm_func_name
    lines += [
        f"arg{count}:",
        "  %me = call i64 @PyThread_get_thread_ident()",
        "  %keeper = load atomic i64, ptr @railgun_keeper monotonic, align 8",
        "  %keeps = icmp eq i64 %me, %keeper",
        "  br i1 %keeps, label %run, label %release",
        "release:",
        "  %saved = call ptr @PyEval_SaveThread()",
        "  br label %run",
        "run:",
        f"  %thread = phi ptr [ null, %arg{count} ], [ %saved, %release ]",
        f'  %status = call i32 @"{name}"(ptr %result, ptr %raised{given})',
        "  br i1 %keeps, label %ran, label %restore",
        "restore:",
        "  call void @PyEval_RestoreThread(ptr %thread)",
        "  br label %ran",
        "ran:",
        "  %good = icmp eq i32 %status, 0",
        "  br i1 %good, label %done, label %bad",
        "done:",
        *_boxed(described.restype),
    ]
    for label, kind, message in (("bad", "runtime_error", "failed"), ("wrong", "type_error", "count")):
        lines += [
            f"{label}:",
            f"  call void @PyErr_SetString(ptr @railgun_{kind}, ptr @{message})",
            "  ret ptr null",
        ]
    lines += ["none:", "  ret ptr null", "}"]
    words = ", i64" * count
    return f'\ndeclare i32 @"{name}"(ptr, ptr{words})\n' + "\n".join(lines) + "\n"


def _taken(place: int, kind: Any) -> list[str]:
    """Return code that converts an argument to a word, and goes to `none` if it is no integer of its type."""
    if kind not in (types.int64, types.uint64):
        raise ValueError(f"a kernel takes {kind}")
    convert = "PyLong_AsLongLong" if kind == types.int64 else "PyLong_AsUnsignedLongLong"
    return [
        f"arg{place}:",
        f"  %at{place} = getelementptr ptr, ptr %args, i64 {place}",
        f"  %given{place} = load ptr, ptr %at{place}",
        f"  %whole{place} = call ptr @PyNumber_Index(ptr %given{place})",
        f"  %no{place} = icmp eq ptr %whole{place}, null",
        f"  br i1 %no{place}, label %none, label %is{place}",
        f"is{place}:",
        f"  %v{place} = call i64 @{convert}(ptr %whole{place})",
        f"  call void @Py_DecRef(ptr %whole{place})",
        f"  %odd{place} = icmp eq i64 %v{place}, -1",
        f"  br i1 %odd{place}, label %ask{place}, label %arg{place + 1}",
        f"ask{place}:",
        f"  %error{place} = call ptr @PyErr_Occurred()",
        f"  %ok{place} = icmp eq ptr %error{place}, null",
        f"  br i1 %ok{place}, label %arg{place + 1}, label %none",
    ]


def _memory(kind: Any) -> str:
    """Return the type that a kernel's result has in memory."""
    if kind == types.none:
        return "ptr"
    if kind in (types.int64, types.uint64):
        return "i64"
    if kind == types.boolean:
        return "i8"
    if isinstance(kind, types.UniTuple):
        return f"[{kind.count} x {_memory(kind.dtype)}]"
    if isinstance(kind, types.Tuple):
        return "{" + ", ".join(_memory(each) for each in kind.types) + "}"
    raise ValueError(f"a kernel gives {kind}")


def _boxed(kind: Any) -> list[str]:
    """Return code that converts a kernel's result to a Python object."""
    if kind == types.none:
        return ["  call void @Py_IncRef(ptr @railgun_none)", "  ret ptr @railgun_none"]
    if not isinstance(kind, types.BaseTuple):
        return [*_item("", kind, "%result"), "  ret ptr %object"]
    lines = [f"  %tuple = call ptr @PyTuple_New(i64 {len(kind.types)})"]
    for index, each in enumerate(kind.types):
        lines += [f"  %p{index} = getelementptr {_memory(kind)}, ptr %result, i32 0, i32 {index}"]
        lines += _item(str(index), each, f"%p{index}")
        lines += [f"  %set{index} = call i32 @PyTuple_SetItem(ptr %tuple, i64 {index}, ptr %object{index})"]
    return [*lines, "  ret ptr %tuple"]


def _item(suffix: str, kind: Any, where: str) -> list[str]:
    if kind == types.boolean:
        return [
            f"  %byte{suffix} = load i8, ptr {where}",
            f"  %word{suffix} = zext i8 %byte{suffix} to i64",
            f"  %object{suffix} = call ptr @PyBool_FromLong(i64 %word{suffix})",
        ]
    box = "PyLong_FromLongLong" if kind == types.int64 else "PyLong_FromUnsignedLongLong"
    return [
        f"  %word{suffix} = load i64, ptr {where}",
        f"  %object{suffix} = call ptr @{box}(i64 %word{suffix})",
    ]
