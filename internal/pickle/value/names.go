package value

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// Named returns the global with the given dotted Python name. It panics if the name does not
// contain a dot.
func Named(dotted string) Global {
	at := strings.LastIndexByte(dotted, '.')
	return Global{Module: dotted[:at], Name: dotted[at+1:]}
}

// Names returns the table of globals for plain values of PyTorch.
var Names = sync.OnceValue(func() pickle.Table {
	t := pickle.Table{Named("torch.Size"): newSize, Named("torch.device"): newDevice}
	for name := range dtypeSizes {
		t[Named("torch."+name)] = nil
	}
	for name := range StorageTypes {
		t[Named("torch."+name)] = nil
	}
	return t
})

// dtypeSizes maps PyTorch's dtypes to the size of an element in bytes. It includes dtypes that
// tensor.DType lacks, to name them in errors.
var dtypeSizes = map[string]int{
	"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint16": 2, "uint32": 4, "uint64": 8,
	"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4, "complex64": 8, "complex128": 16,
	"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
	"quint8": 1, "qint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1,
}

// quantized lists the dtypes of quantized tensors. A view of one as another dtype is still
// quantized, and PyTorch 2.15 crashes when it saves such a view.
var quantized = map[string]bool{"quint8": true, "qint8": true, "qint32": true, "quint4x2": true, "quint2x4": true}

// Dequantize is the advice in errors about quantized tensors.
const Dequantize = ".dequantize(), or .int_repr() with the scale and the zero point"

// QuantizedStorage reports whether class is a storage class of quantized tensors.
func QuantizedStorage(class Global) bool {
	name, ok := strings.CutSuffix(class.Name, "Storage")
	return ok && class.Module == "torch" && quantized[strings.ToLower(name)]
}

// StorageTypes maps PyTorch's typed storage classes to dtypes.
var StorageTypes = map[string]tensor.DType{
	"BoolStorage": tensor.Bool, "ByteStorage": tensor.Uint8, "CharStorage": tensor.Int8, "ShortStorage": tensor.Int16,
	"IntStorage": tensor.Int32, "LongStorage": tensor.Int64, "HalfStorage": tensor.Float16,
	"BFloat16Storage": tensor.BFloat16,
	"FloatStorage":    tensor.Float32, "DoubleStorage": tensor.Float64, "ComplexFloatStorage": tensor.Complex64,
	"ComplexDoubleStorage": tensor.Complex128,
}

// DTypeOf returns the dtype that v names. v should be a [Global] such as torch.float32. The error
// wraps [ErrProtocol] for any other value, or [ErrUnsupported] for a dtype of PyTorch that package
// tensor lacks.
func DTypeOf(v any) (tensor.DType, error) {
	g, ok := v.(Global)
	if !ok || g.Module != "torch" || dtypeSizes[g.Name] == 0 {
		return 0, Malformed("%v is not a dtype", v)
	}
	if quantized[g.Name] {
		return 0, fmt.Errorf("%w: tensor of torch.%s is quantized: send %s", ErrUnsupported, g.Name, Dequantize)
	}
	dt, err := tensor.ParseDType(g.Name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w: use .view(torch.uint8) for its bytes", ErrUnsupported, err)
	}
	return dt, nil
}

func newSize(args Tuple) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%d arguments", len(args))
	}
	s, err := Numbers(args[0])
	return Size(s), err
}

// Numbers converts a tuple, list or Size to new integers, which must be between 0 and 1<<48. The
// error wraps [ErrProtocol] for any other value.
func Numbers(v any) ([]int, error) {
	var items []any
	switch v := v.(type) {
	case Tuple:
		items = v
	case *pickle.List:
		items = v.Items
	case Size:
		return slices.Clone(v), nil
	default:
		return nil, Malformed("sizes are %T, want a tuple or list", v)
	}
	out := make([]int, len(items))
	for i, item := range items {
		n, ok := item.(int64)
		if !ok || n < 0 || n > 1<<48 {
			return nil, Malformed("%v is not a valid size", item)
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
		return nil, fmt.Errorf("device is %T, want a str", args[0])
	}
	if len(args) == 2 {
		return Device(fmt.Sprintf("%s:%v", kind, args[1])), nil
	}
	return Device(kind), nil
}
