package pt

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// Names of the calls that create tensors and parameters in a file.
const (
	rebuildOld            = "torch._utils._rebuild_tensor"
	rebuildTensor         = "torch._utils._rebuild_tensor_v2"
	rebuildOther          = "torch._utils._rebuild_tensor_v3" // dtypes without a storage class
	rebuildParameter      = "torch._utils._rebuild_parameter"
	rebuildParameterState = "torch._utils._rebuild_parameter_with_state"
	rebuildFrom           = "torch._tensor._rebuild_from_type_v2"
)

// nestedClass is the class of nested tensors with the layout torch.jagged.
const nestedClass = "NestedTensor"

// noForm maps calls that create unsupported objects to an error text with a remedy.
var noForm = map[string]string{
	"torch._utils._rebuild_sparse_tensor": "a sparse tensor; save .to_dense(), or its " +
		"indices and values",
	"torch._utils._rebuild_sparse_csr_tensor": "a sparse tensor; save .to_dense(), or its " +
		"indices and values",
	"torch._utils._rebuild_nested_tensor":          "a nested tensor; save .unbind()",
	"torch._utils._rebuild_qtensor":                "a quantized tensor; save " + value.Dequantize,
	"torch._utils._rebuild_meta_tensor_no_storage": "a meta tensor, which has no elements",
	"torch._utils._rebuild_wrapper_subclass": "a subclass of Tensor; save " +
		".as_subclass(torch.Tensor)",
	"torch._utils._rebuild_device_tensor_from_numpy": "a tensor of a device that only its library " +
		"reads; save .cpu()",
	"torch._utils._rebuild_device_tensor_from_cpu_tensor": "a tensor of a device that only its library " +
		"reads; save .cpu()",
	"torch.jit._pickle.build_intlist":                           "a TorchScript program; save its state_dict()",
	"torch.distributed._shard.sharded_tensor.api.ShardedTensor": "a part of a distributed tensor",
	"torch.distributed.tensor.DTensor": "a part of a distributed tensor; save " +
		".full_tensor()",
	"torch.fx.graph_module.reduce_graph_module": "a graph module, whose code is in the file; " +
		"save its state_dict()",
	"torch.fx._lazy_graph_module._deserialize_lazy_graph_module": "a graph module, whose code is in the file; " +
		"save its state_dict()",
	"torch.nn.modules.lazy.LazyModuleMixin._rebuild_uninitialize": "a lazy module; run it once before it is saved",
}

// convertObject converts a call to a tensor, a parameter, a packed sequence or, in a file of
// torch.save, a record of any other class. In a pickle for [Unmarshal] a call may also be a
// storage. The error wraps [ErrUnsupported] for a class in noForm and, in a pickle, for any other
// class.
func (l *loader) convertObject(o *pickle.Object) (any, error) {
	if why, ok := noForm[o.Class.String()]; ok {
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, why)
	}
	switch o.Class.String() {
	case rebuildOld, rebuildTensor, rebuildOther:
		return l.convertTensor(o)
	case rebuildParameter, rebuildParameterState:
		return l.convertParameter(o)
	case rebuildFrom:
		return l.convertFromType(o)
	case value.PackedClass.String():
		p, err := l.Packed(o)
		return &PackedSequence{p[0], p[1], p[2], p[3]}, err
	}
	if in, ok := l.from.(*pickled); ok {
		return l.convertInside(in, o)
	}
	return l.Record(o)
}

// tensorStorage returns the storage of the tensor that the call o creates. Storages are
// persistent IDs in files and calls in pickles; see Note [Tensors in pickles].
func (l *loader) tensorStorage(o *pickle.Object) (*pickle.Persistent, error) {
	if in, ok := l.from.(*pickled); ok {
		storage, err := value.Arg[*pickle.Object](o, 0)
		if err != nil {
			return nil, err
		}
		return in.storageReference(storage)
	}
	return value.Arg[*pickle.Persistent](o, 0)
}

// convertTensor converts a call with the arguments (storage, offset, size, stride[,
// requires_grad, hooks][, dtype][, metadata]) to a *[tensor.Tensor]. The error wraps
// [ErrUnsupported] if the metadata is not empty: the tensor is conjugated or negated when it is
// read.
func (l *loader) convertTensor(o *pickle.Object) (any, error) {
	p, err := l.tensorStorage(o)
	if err != nil {
		return nil, err
	}
	offset, err := value.Arg[int64](o, 1)
	if err != nil {
		return nil, err
	}
	if len(o.Args) < 4 {
		return nil, malformed("%s of %d parts", o.Class, len(o.Args))
	}
	shape, err := value.Numbers(o.Args[2])
	if err != nil {
		return nil, err
	}
	strides, err := value.Numbers(o.Args[3])
	if err != nil {
		return nil, err
	}
	var said *tensor.DType
	metadata := 6
	if o.Class.String() == rebuildOther {
		if len(o.Args) < 7 {
			return nil, malformed("%s of %d parts", o.Class, len(o.Args))
		}
		dt, err := value.DTypeOf(o.Args[6])
		if err != nil {
			return nil, err
		}
		said, metadata = &dt, 7
	}
	if len(o.Args) > metadata {
		if d, _ := o.Args[metadata].(*value.Dict); d.Len() > 0 {
			return nil, fmt.Errorf(
				"%w: a tensor that is conjugated or negated when it is read; save its .resolve_conj()", ErrUnsupported)
		}
	}
	h, dt, err := l.coverStorage(p, said)
	if err != nil {
		return nil, err
	}
	return l.viewStorage(h, dt, shape, strides, offset)
}

// convertParameter converts a call with the arguments (tensor, requires_grad, hooks[, state]) to
// an *[autograd.Param]. The hooks and the state are dropped.
func (l *loader) convertParameter(o *pickle.Object) (any, error) {
	data, err := value.Arg[*pickle.Object](o, 0)
	if err != nil {
		return nil, err
	}
	v, err := l.Lift(data)
	if err != nil {
		return nil, err
	}
	t, ok := v.(*tensor.Tensor)
	learned, both := o.Args[min(1, len(o.Args)-1)].(bool)
	if !ok || !both {
		return nil, malformed("a parameter of %T", v)
	}
	return &autograd.Param{T: t, Frozen: !learned}, nil
}

// convertFromType converts a call with the arguments (call, class, arguments, state), which creates
// a tensor with Python attributes. The attributes are dropped. Other subclasses of Tensor are an
// error that wraps [ErrUnsupported].
func (l *loader) convertFromType(o *pickle.Object) (any, error) {
	call, err := value.Arg[value.Global](o, 0)
	if err != nil {
		return nil, err
	}
	class, err := value.Arg[value.Global](o, 1)
	if err != nil {
		return nil, err
	}
	args, err := value.Arg[value.Tuple](o, 2)
	if err != nil {
		return nil, err
	}
	if class.Name == nestedClass {
		return nil, fmt.Errorf("%w: a nested tensor; save .unbind()", ErrUnsupported)
	}
	if class != value.Named("torch.Tensor") && class != value.Named("torch.nn.parameter.Parameter") {
		return nil, fmt.Errorf("%w: a tensor of class %s; save .as_subclass(torch.Tensor)", ErrUnsupported, class)
	}
	if call.String() == rebuildFrom {
		return nil, malformed("%s of itself", rebuildFrom)
	}
	return l.convertObject(&pickle.Object{Class: call, Args: args})
}
