package torch

import (
	"fmt"
	"maps"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// These are the names that messages refer to. See
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/multiprocessing/reductions.py.
var (
	rebuildTensor   = named("torch.multiprocessing.reductions.rebuild_tensor")
	rebuildTyped    = named("torch.multiprocessing.reductions.rebuild_typed_storage")
	rebuildChild    = named("torch.multiprocessing.reductions.rebuild_typed_storage_child")
	rebuildFD       = named("torch.multiprocessing.reductions.rebuild_storage_fd")
	rebuildFilename = named("torch.multiprocessing.reductions.rebuild_storage_filename")
	rebuildFromType = named("torch._tensor._rebuild_from_type_v2")
	rebuildEmpty    = named("torch.multiprocessing.reductions.rebuild_storage_empty")
	untypedStorage  = named("torch.storage.UntypedStorage")
	tensorClass     = named("torch.Tensor")
	parameterClass  = named("torch.nn.parameter.Parameter")
	sharedFD        = named("multiprocessing.resource_sharer.DupFd")
	inheritedFD     = named("multiprocessing.popen_spawn_posix._DupFd")
	posixOpen       = named("posix.open")
	rebuildConn     = named("multiprocessing.connection.rebuild_connection")
	rebuildSocket   = named("multiprocessing.reduction._rebuild_socket")
	authString      = named("multiprocessing.process.AuthenticationString")
)

// cannotCross maps the names of values that cannot be decoded to a description for the error, with
// a remedy.
var cannotCross = map[python.Global]string{
	named("torch.multiprocessing.reductions.rebuild_sparse_coo_tensor"): "sparse tensor: send .to_dense(), " +
		"or its indices and values",
	named("torch.multiprocessing.reductions.rebuild_sparse_compressed_tensor"): "sparse tensor: send .to_dense(), " +
		"or its indices and values",
	named("torch.multiprocessing.reductions.rebuild_nested_tensor"): "nested tensor: send .unbind()",
	named("torch.multiprocessing.reductions.rebuild_meta_tensor"):   "meta tensor, which has no elements",
	rebuildFromType:                          "subclass of Tensor: send .as_subclass(torch.Tensor)",
	named("torch._utils._rebuild_tensor_v2"): "tensor pickled for a file: decode it with Unmarshal",
	named("multiprocessing.queues.Queue"):    "queue: pass it as an argument of the process",
	inheritedFD: "Value, Array or Barrier of multiprocessing: pass a tensor after " +
		"share_memory_(), or an object of a Manager",
}

// allowed returns the names that a message may refer to. The constructor of a name must have no
// effect outside of the message; names without one are handled by the importer.
var allowed = sync.OnceValue(func() pickle.Table {
	t := pickle.Table{
		named("torch.serialization._get_layout"): nil,
		authString:                               newAuthString,
		named("socket.AddressFamily"):            newEnum, named("socket.SocketKind"): newEnum,
		named("socket.AF_UNIX"): nil, named("socket.AF_INET"): nil, named("socket.AF_INET6"): nil,
		named("socket.SOCK_STREAM"): nil, named("socket.SOCK_DGRAM"): nil,
	}
	for _, g := range []python.Global{rebuildTensor, rebuildTyped, rebuildChild, rebuildFD, rebuildFilename,
		rebuildEmpty, untypedStorage,
		tensorClass, parameterClass, sharedFD, inheritedFD, rebuildConn, rebuildSocket, value.PackedClass,
		rebuildProxy, autoProxy, tokenClass, rebuildCUDA, typedStorage} {
		t[g] = nil
	}
	for _, g := range proxyClasses {
		t[g] = nil
	}
	for g := range cannotCross {
		t[g] = nil
	}
	maps.Copy(t, value.Names())
	return t
})

// newAuthString is the constructor of an authkey as Python pickles it, and returns a []byte.
func newAuthString(args python.Tuple) (any, error) {
	if len(args) == 1 {
		if b, ok := args[0].([]byte); ok {
			return b, nil
		}
	}
	return nil, fmt.Errorf("authkey has %d parts, want 1", len(args))
}

// newEnum is the constructor of a Python enum member, and returns its value, an int64.
func newEnum(args python.Tuple) (any, error) {
	if len(args) == 1 {
		if n, ok := args[0].(int64); ok {
			return n, nil
		}
	}
	return nil, fmt.Errorf("enum has %d parts, want 1", len(args))
}
