package torch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// The names that messages use.
var (
	rebuildTensor   = named("torch.multiprocessing.reductions.rebuild_tensor")
	rebuildTyped    = named("torch.multiprocessing.reductions.rebuild_typed_storage")
	rebuildChild    = named("torch.multiprocessing.reductions.rebuild_typed_storage_child")
	rebuildFD       = named("torch.multiprocessing.reductions.rebuild_storage_fd")
	rebuildFilename = named("torch.multiprocessing.reductions.rebuild_storage_filename")
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

// named returns the name that Python writes with dots.
func named(dotted string) Global {
	at := strings.LastIndexByte(dotted, '.')
	return Global{Module: dotted[:at], Name: dotted[at+1:]}
}

// A Size is a torch.Size.
type Size []int

// A Device is a torch.device, such as "cpu" or "cuda:0".
type Device string

// cannotCross are names that are understood well enough to say what they are.
var cannotCross = map[Global]string{
	named("torch.multiprocessing.reductions.rebuild_sparse_coo_tensor"):        "a sparse tensor; send its indices and values",
	named("torch.multiprocessing.reductions.rebuild_sparse_compressed_tensor"): "a sparse tensor; send its indices and values",
	named("torch.multiprocessing.reductions.rebuild_nested_tensor"):            "a nested tensor; send its parts",
	named("torch.multiprocessing.reductions.rebuild_meta_tensor"):              "a meta tensor, which has no elements",
	named("torch._tensor._rebuild_from_type_v2"):                               "a subclass of Tensor; call .as_subclass(torch.Tensor) first",
	named("torch._utils._rebuild_tensor_v2"):                                   "a tensor in a form for files",
	named("multiprocessing.queues.Queue"):                                      "a queue outside the arguments of a process",
}

// allowed are the names that messages may use. What has a constructor has no effect outside the message.
var allowed = allow()

func allow() pickle.Table {
	t := pickle.Table{
		named("torch.Size"):                      newSize,
		named("torch.device"):                    newDevice,
		named("torch.serialization._get_layout"): nil,
		authString:                               newAuthString,
		named("socket.AddressFamily"):            newEnum, named("socket.SocketKind"): newEnum,
		named("socket.AF_UNIX"): nil, named("socket.AF_INET"): nil, named("socket.AF_INET6"): nil,
		named("socket.SOCK_STREAM"): nil, named("socket.SOCK_DGRAM"): nil,
	}
	for _, g := range []Global{rebuildTensor, rebuildTyped, rebuildChild, rebuildFD, rebuildFilename, rebuildEmpty, untypedStorage,
		tensorClass, parameterClass, sharedFD, inheritedFD, rebuildConn, rebuildSocket, packedClass, rebuildProxy, autoProxy, tokenClass, rebuildCUDA, typedStorage} {
		t[g] = nil
	}
	for _, g := range proxyClasses {
		t[g] = nil
	}
	for g := range cannotCross {
		t[g] = nil
	}
	for name := range dtypeSizes {
		t[named("torch."+name)] = nil
	}
	for name := range storageTypes {
		t[named("torch."+name)] = nil
	}
	return t
}

// dtypeSizes are PyTorch's dtypes, in bytes of an element. Those that tensor.DType does not have are named in errors.
var dtypeSizes = map[string]int{
	"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8,
	"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4, "complex64": 8, "complex128": 16,
	"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
	"quint8": 1, "qint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
}

// storageTypes are the classes of PyTorch's typed storages.
var storageTypes = map[string]tensor.DType{
	"BoolStorage": tensor.Bool, "ByteStorage": tensor.Uint8, "CharStorage": tensor.Int8, "ShortStorage": tensor.Int16,
	"IntStorage": tensor.Int32, "LongStorage": tensor.Int64, "HalfStorage": tensor.Float16, "BFloat16Storage": tensor.BFloat16,
	"FloatStorage": tensor.Float32, "DoubleStorage": tensor.Float64, "ComplexFloatStorage": tensor.Complex64,
	"ComplexDoubleStorage": tensor.Complex128,
}

// dtypeOf returns the dtype that a name is.
func dtypeOf(v any) (tensor.DType, error) {
	g, ok := v.(Global)
	if !ok || g.Module != "torch" || dtypeSizes[g.Name] == 0 {
		return 0, protocolError("%v is no dtype", v)
	}
	dt, err := tensor.ParseDType(g.Name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w; use .view(torch.uint8) for its bytes", ErrUnsupported, err)
	}
	return dt, nil
}

func newSize(args Tuple) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	s, err := numbers(args[0])
	return Size(s), err
}

// numbers reads a tuple, list or Size of small natural numbers.
func numbers(v any) ([]int, error) {
	var items []any
	switch v := v.(type) {
	case Tuple:
		items = v
	case *pickle.List:
		items = v.Items
	case Size:
		return slices.Clone(v), nil
	default:
		return nil, protocolError("%T where sizes belong", v)
	}
	out := make([]int, len(items))
	for i, item := range items {
		n, ok := item.(int64)
		if !ok || n < 0 || n > 1<<48 {
			return nil, protocolError("%v is no size", item)
		}
		out[i] = int(n)
	}
	return out, nil
}

func newDevice(args Tuple) (any, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	kind, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("a device of %T", args[0])
	}
	if len(args) == 2 {
		return Device(fmt.Sprintf("%s:%v", kind, args[1])), nil
	}
	return Device(kind), nil
}

// newAuthString is how Python writes an authkey.
func newAuthString(args Tuple) (any, error) {
	if len(args) == 1 {
		if b, ok := args[0].([]byte); ok {
			return b, nil
		}
	}
	return nil, fmt.Errorf("an authkey of %d parts", len(args))
}

// newEnum is the number in an enum of Python's.
func newEnum(args Tuple) (any, error) {
	if len(args) == 1 {
		if n, ok := args[0].(int64); ok {
			return n, nil
		}
	}
	return nil, fmt.Errorf("an enum of %d parts", len(args))
}
