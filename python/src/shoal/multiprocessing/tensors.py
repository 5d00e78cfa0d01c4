"""Tensors of PyTorch and arrays of numpy in shared memory.

PyTorch and numpy are imported when the first tensor or array is made or received, not before.
"""

from __future__ import annotations

import collections
import operator
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any, Optional, Sequence, Union

from . import runtime
from .runtime import native

torch: Any = None  # the module, once this process has imported it
numpy: Any = None

# DLPack's code and bits by the name of a dtype.
DTYPES = {
    "bool": (6, 8), "uint8": (1, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32),
    "float64": (2, 64), "bfloat16": (4, 16), "complex64": (5, 64), "complex128": (5, 128),
    "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
}
_torch_dtypes: dict = {}  # DTYPES by the dtypes of torch, once this process has imported it


def register() -> None:
    """Tells the extension about PyTorch and numpy, if this process has imported them."""
    global torch, numpy
    module = sys.modules.get("torch")
    if torch is None and module is not None and hasattr(module, "Tensor") and hasattr(module, "_C"):
        _register_torch(module)
    module = sys.modules.get("numpy")
    if numpy is None and module is not None and hasattr(module, "ndarray"):
        numpy = module
        native.register(array=numpy.ndarray, asarray=numpy.asarray)
        ForkingPickler.register(numpy.ndarray, _reduce_array)


def _register_torch(module: Any) -> None:
    global torch
    from torch.utils import dlpack

    torch = module
    _torch_dtypes.update((getattr(torch, name), code) for name, code in DTYPES.items() if hasattr(torch, name))
    native.register(tensor=torch.Tensor, to_dlpack=torch._C._to_dlpack,
                    from_dlpack=getattr(torch._C, "_from_dlpack", None) or dlpack.from_dlpack)
    import torch.multiprocessing  # its reducers are registered when it is imported

    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    default = reducers.get(torch.Tensor)
    if default is not None:
        ForkingPickler.register(torch.Tensor, lambda t: _reduce_tensor(t, default))


def need(kind: str) -> None:
    """Imports torch ("t") or numpy ("n") for a value that was received."""
    name = "torch" if kind == "t" else "numpy"
    try:
        __import__(name)
    except ModuleNotFoundError as e:
        if e.name != name:
            raise
        raise ImportError(f"cannot receive a {'tensor' if kind == 't' else 'numpy array'} without {name}: "
                          f"pip install {name}") from e
    register()


def refuse(t: Any) -> bool:
    """Raises the error for a tensor that cannot be shared. It returns True for a tensor without memory."""
    if t.device.type == "meta":
        return True
    if t.requires_grad and not t.is_leaf:
        raise RuntimeError("cannot share a non-leaf tensor that requires_grad, because gradients do not cross "
                           "processes: call detach() first, or send a leaf")
    if t.layout != torch.strided:
        raise NotImplementedError(f"cannot share a tensor of layout {t.layout}, want torch.strided: call to_dense() "
                                  "first")
    if t.is_quantized:
        raise NotImplementedError(f"cannot share a quantized tensor ({t.dtype}): send int_repr(), the scale and the "
                                  "zero point")
    if t.device.type != "cpu":
        raise NotImplementedError(f"cannot share a tensor on {t.device}, want cpu: call cpu() first, or use "
                                  "torch.multiprocessing")
    if t.dim() > 32:
        raise ValueError(f"cannot share a tensor of {t.dim()} dimensions, want at most 32")
    raise TypeError(f"cannot share a tensor of {t.dtype}: send view(torch.uint8)")


def _reduce_lazy(t: Any) -> Any:
    """Reduces a tensor that the extension does not share as it is: a meta tensor, which has no memory, and
    a conjugated or negated view, of which the receiver gets a copy."""
    if t.device.type == "meta":
        return _rebuild_meta, (tuple(t.shape), t.stride(), t.dtype, t.requires_grad)
    return _identity, (t.resolve_conj().resolve_neg(),)


def _rebuild_meta(shape: tuple, strides: tuple, dtype: Any, grad: bool) -> Any:
    if torch is None:
        need("t")
    return torch.empty_strided(shape, strides, dtype=dtype, device="meta", requires_grad=grad)


def _identity(x: Any) -> Any:
    return x


def replace_reducers(table: dict) -> dict:
    """Replaces PyTorch's reducers, which send descriptors, by ours in a table."""
    if torch is not None:
        for cls in [c for c in table if isinstance(c, type) and issubclass(c, torch.Tensor)]:
            del table[cls]
        table[torch.Tensor] = _reduce_lazy
        table[torch.nn.Parameter] = _reduce_parameter
    if numpy is not None:
        table.pop(numpy.ndarray, None)
    return table


def _reduce_parameter(p: Any) -> tuple:
    hooks: Any = collections.OrderedDict()
    return torch._utils._rebuild_parameter, (p.detach(), p.requires_grad, hooks)


# Tensors in the arguments of a process that is being started.


def _reduce_tensor(t: Any, default: Any) -> Any:
    if type(t) is torch.Tensor and t.device.type == "cpu" and t.layout == torch.strided and not t.requires_grad:
        token = native.export_tensor(t, 1, runtime.TOKEN_LIFETIME)
        if token is not None:
            return _import, ("t", token)
    return default(t)


def _reduce_array(a: Any) -> Any:
    if type(a) is numpy.ndarray:
        token = native.export_tensor(a, 1, runtime.TOKEN_LIFETIME)
        if token is not None:
            return _import, ("n", token)
    return a.__reduce_ex__(4)


def _import(kind: str, token: bytes) -> Any:
    return native.import_tensor(kind, token, runtime.JOIN_TIMEOUT)


# New tensors.


def _dims(shape: Union[int, Sequence[int]]) -> tuple:
    if hasattr(shape, "__index__"):
        return (operator.index(shape),)  # type: ignore[arg-type]
    return tuple(map(operator.index, shape))  # type: ignore[arg-type]


def _unknown(dtype: Any) -> TypeError:
    return TypeError(f"cannot share a tensor of dtype {dtype}: want one of {', '.join(DTYPES)}")


def _new(shape: Any, dtype: Any, zeros: bool) -> Any:
    if torch is None:
        need("t")
    runtime.ensure_domain()
    dtype = dtype or torch.get_default_dtype()
    code = _torch_dtypes.get(dtype)
    if code is None:
        raise _unknown(dtype) if isinstance(dtype, torch.dtype) else TypeError(f"got dtype {dtype!r}, want a torch.dtype")
    return native.empty("t", *code, _dims(shape), zeros)


def empty(shape: Union[int, Sequence[int]], dtype: Any = None) -> Any:
    """Returns a torch.Tensor with uninitialized elements in shared memory, which put does not copy."""
    return _new(shape, dtype, False)


def zeros(shape: Union[int, Sequence[int]], dtype: Any = None) -> Any:
    """Returns a torch.Tensor of zeros in shared memory, which put does not copy."""
    return _new(shape, dtype, True)


def empty_array(shape: Union[int, Sequence[int]], dtype: Any = None) -> Any:
    """Returns a numpy.ndarray with uninitialized elements in shared memory, which put does not copy."""
    need("n")
    runtime.ensure_domain()
    d = numpy.dtype(dtype or "float64")
    if not d.isnative:
        raise TypeError(f"cannot share an array of dtype {d!r}: want the byte order of the machine")
    if d.name not in DTYPES:
        raise _unknown(d)
    return native.empty("n", *DTYPES[d.name], _dims(shape), False)


def is_shared(x: Any) -> bool:
    """Reports whether the memory of a tensor or an array is shared memory of Shoal."""
    register()
    if torch is not None and isinstance(x, torch.Tensor):
        return x.device.type == "cpu" and x.layout == torch.strided and native.contains(x.data_ptr())
    if numpy is not None and isinstance(x, numpy.ndarray):
        return native.contains(x.__array_interface__["data"][0])
    return False


def share(x: Any) -> Optional[Any]:
    """Returns a copy of a tensor or an array in shared memory, or x itself if it is there already."""
    register()
    if is_shared(x):
        return x
    if torch is not None and isinstance(x, torch.Tensor):
        return empty(x.shape, x.dtype).copy_(x.detach())
    a = empty_array(x.shape, x.dtype)
    a[...] = x
    return a
