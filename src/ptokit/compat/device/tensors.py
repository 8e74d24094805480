"""`torch_npu` and `torch.npu`: tensors of the device are tensors of this machine.

Wherever torch is told of a device `npu`, it is the host's memory that is meant; copies between the
two are copies. A tensor whose address is asked for becomes memory that kernels may touch. Streams
carry out at once; events tell the time of the processor here, not that of a device.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from ptokit.compat import torches
from ptokit.compat.device import options
from ptokit.compat.device.memory import note

_DEVICE = "npu"
_HOST = "cpu"
_CUBES = 24  # cores of the device that programs are told of, as native/include/acl/acl.h tells it


class Stream:
    """What is launched on it has ended when the call returns."""

    _as_parameter_ = ctypes.c_void_p(0)
    npu_stream = 0

    def synchronize(self) -> None:
        pass

    def wait_stream(self, stream: Stream) -> None:
        pass


class Event:
    """A moment."""

    def __init__(self, **_: object) -> None:
        self._at = 0.0

    def record(self, stream: Stream | None = None) -> None:
        # Of the processor: programs divide by differences, in which others are not to be seen.
        self._at = time.process_time()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds of the processor until another moment."""
        return (end._at - self._at) * 1e3


def _properties(device: object = None) -> SimpleNamespace:
    return SimpleNamespace(name="ptokit", cube_core_num=_CUBES, vector_core_num=2 * _CUBES)


class Npu(ModuleType):
    """`torch.npu`."""

    def __init__(self) -> None:
        super().__init__("torch.npu")
        stream = Stream()
        vars(self).update(
            Event=Event,
            Stream=Stream,
            _is_in_bad_fork=lambda: False,
            config=SimpleNamespace(allow_internal_format=False),  # tensors lie as torch has them
            current_device=lambda: 0,
            current_stream=lambda device=None: stream,
            default_stream=lambda device=None: stream,
            device_count=lambda: 1,
            empty_cache=lambda: None,
            get_device_name=lambda device=None: "ptokit",
            get_device_properties=_properties,
            is_available=lambda: True,
            manual_seed=lambda seed: None,
            manual_seed_all=lambda seed: None,
            set_compile_mode=lambda **_: None,  # of torch's own operations
            set_device=lambda device: None,
            stream=lambda stream: nullcontext(),
            synchronize=lambda device=None: None,
        )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch.npu has no {name} here: tensors are those of this machine")


def module() -> ModuleType:
    """`torch_npu`: importing it makes the device known to torch."""
    found, npu, known = ModuleType("torch_npu"), Npu(), torches.torch()
    vars(found).update(npu=npu)
    if not hasattr(known, _DEVICE):
        _make_known(known, npu)
    return found


def _make_known(torch: Any, npu: ModuleType) -> None:
    gone = torches.torch(".multiprocessing.reductions").StorageWeakRef
    mode: Any = torches.torch(".overrides").TorchFunctionMode
    torch.utils.rename_privateuse1_backend(_DEVICE)  # torch.device("npu:0") is one
    torch._register_device_module(_DEVICE, npu)
    address, to, cpu = torch.Tensor.data_ptr, torch.Tensor.to, torch.Tensor.cpu

    def is_device(given: Any) -> bool:
        name = given.type if isinstance(given, torch.device) else given
        return isinstance(name, str) and name.partition(":")[0] == _DEVICE

    def on_host(given: Any) -> Any:
        return _HOST if is_device(given) else given

    def is_place(given: Any) -> bool:
        return isinstance(given, torch.device) or is_device(given) or given == _HOST

    slack = options.slack()

    def roomy(tensor: Any) -> Any:
        """The tensor with room behind it that is nobody's, where that was asked for."""
        if not slack or not isinstance(tensor, torch.Tensor) or not tensor.is_contiguous():
            return tensor
        size = tensor.untyped_storage().nbytes()
        room = torch.zeros(size + slack, dtype=torch.uint8)
        fresh = torch.empty(0, dtype=tensor.dtype).set_(
            room.untyped_storage(), 0, tensor.shape, tensor.stride()
        )
        return fresh.copy_(tensor)

    class OnHost(mode):
        """Takes the device for the host in all that torch is told."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = kwargs or {}
            is_moved = any(is_device(g) for g in (*args, *named.values()))
            if func is to and any(isinstance(g, str | torch.device) and is_place(g)
                                  for g in (*args[1:], *named.values())):  # fmt: skip
                named = {**named, "copy": True}  # from one memory to the other
            result = func(*map(on_host, args), **{k: on_host(v) for k, v in named.items()})
            if func is address:
                storage = args[0].untyped_storage()
                note(storage.data_ptr(), storage.nbytes(), gone(storage).expired)
            if func is cpu:
                return result.clone()
            return roomy(result) if is_moved else result

    default = torch.set_default_device
    torch.set_default_device = lambda device: default(on_host(device))
    torch.Tensor.npu = lambda self, *_, **__: roomy(self.clone())
    torch.Tensor.is_npu = property(lambda self: True)
    OnHost().__enter__()
