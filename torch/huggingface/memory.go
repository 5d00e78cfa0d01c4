package huggingface

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// restoreTable converts a pyarrow Table that is stored in the pickle itself. The table refers to
// the bytes of the pickle. The error wraps [value.ErrUnsupported].
func restoreTable(v any) (*table, error) {
	args, err := callArgs(v, "_reconstruct_table", 2)
	if err != nil {
		return nil, err
	}
	schema, err := callArgs(args[1], "schema", 2)
	if err != nil {
		return nil, err
	}
	t := new(table)
	fields, _ := schema[0].([]any)
	for _, f := range fields {
		field, err := fieldOf(f)
		if err != nil {
			return nil, err
		}
		t.names = append(t.names, field.Name)
	}
	list, _ := args[0].([]any)
	if len(list) != len(t.names) || len(list) == 0 {
		return nil, unsupportedError("table has %d columns and %d names", len(list), len(t.names))
	}
	columns := make([]arrow.Array, len(list))
	for k, c := range list {
		if columns[k], err = concatChunks(c); err != nil {
			return nil, err
		}
		if columns[k].Len() != columns[0].Len() {
			return nil,
				unsupportedError("columns have %d and %d rows, want equal numbers", columns[0].Len(), columns[k].Len())
		}
	}
	t.add(columns)
	return t, nil
}

// concatChunks converts a pickled ChunkedArray to one array. It concatenates the chunks, because
// other columns may be chunked differently.
func concatChunks(v any) (arrow.Array, error) {
	args, err := callArgs(v, "chunked_array", 2)
	if err != nil {
		return nil, err
	}
	list, _ := args[0].([]any)
	if len(list) == 0 {
		of, err := typeOf(args[1])
		if err != nil {
			return nil, err
		}
		return array.MakeArrayOfNull(memory.DefaultAllocator, of, 0), nil
	}
	parts := make([]arrow.Array, len(list))
	for k, part := range list {
		data, err := callArgs(part, "_restore_array", 1)
		if err != nil {
			return nil, err
		}
		d, err := dataOf(data[0])
		if err != nil {
			return nil, err
		}
		parts[k] = array.MakeFromData(d)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

// dataOf converts the pickled form of an array: type, length, null count, offset, buffers,
// children and dictionary. The result refers to the pickled buffers. The error wraps
// [value.ErrUnsupported] for another form or a dictionary.
func dataOf(v any) (*array.Data, error) {
	parts, _ := v.(value.Tuple)
	if len(parts) != 7 || parts[6] != nil {
		return nil, unsupportedError("pickled array has %d parts", len(parts))
	}
	of, err := typeOf(parts[0])
	if err != nil {
		return nil, err
	}
	var numbers [3]int
	for k := range numbers {
		n, ok := parts[1+k].(int64)
		if !ok || n < -1 || n > math.MaxInt32 || n < 0 && k != 1 {
			return nil, unsupportedError("pickled array has invalid length, null count or offset %v", parts[1:4])
		}
		numbers[k] = int(n)
	}
	var buffers []*memory.Buffer
	list, _ := parts[4].([]any)
	for _, b := range list {
		if b == nil {
			buffers = append(buffers, nil)
			continue
		}
		args, err := callArgs(b, "py_buffer", 1)
		if err != nil {
			return nil, err
		}
		switch b := args[0].(type) {
		case []byte:
			buffers = append(buffers, memory.NewBufferBytes(b))
		case *value.ByteArray:
			buffers = append(buffers, memory.NewBufferBytes(b.Bytes))
		default:
			return nil, unsupportedError("pickled buffer is %T, want bytes", b)
		}
	}
	var children []arrow.ArrayData
	list, _ = parts[5].([]any)
	for _, c := range list {
		child, err := dataOf(c)
		if err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	length, nulls, offset := numbers[0], numbers[1], numbers[2]
	if nulls < 0 && (len(buffers) == 0 || buffers[0] == nil) { // no bitmap, so there are no nulls
		nulls = 0
	}
	return array.NewData(of, length, buffers, children, nulls, offset), nil
}

// aliases maps pyarrow's type aliases to types.
var aliases = map[string]arrow.DataType{
	"bool": arrow.FixedWidthTypes.Boolean, "string": arrow.BinaryTypes.String,
	"large_string": arrow.BinaryTypes.LargeString, "int8": arrow.PrimitiveTypes.Int8,
	"int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32,
	"int64": arrow.PrimitiveTypes.Int64, "uint8": arrow.PrimitiveTypes.Uint8,
	"uint16": arrow.PrimitiveTypes.Uint16, "uint32": arrow.PrimitiveTypes.Uint32,
	"uint64": arrow.PrimitiveTypes.Uint64, "halffloat": arrow.FixedWidthTypes.Float16,
	"float": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
}

// typeOf converts a pickled pyarrow type. The error wraps [value.ErrUnsupported] if samples may
// not have the type.
func typeOf(v any) (arrow.DataType, error) {
	if args, err := callArgs(v, "type_for_alias", 1); err == nil {
		if name, ok := args[0].(string); ok && aliases[name] != nil {
			return aliases[name], nil
		}
		return nil, unsupportedError("pickled column has unsupported type %v", args[0])
	}
	if args, err := callArgs(v, "struct", 1); err == nil {
		return structType(args[0])
	}
	args, err := callArgs(v, "list_", 1)
	if err != nil {
		return nil, err
	}
	inner, err := fieldOf(args[0])
	if err != nil {
		inner.Name, inner.Nullable = "item", true
		if inner.Type, err = typeOf(args[0]); err != nil {
			return nil, err
		}
	}
	if len(args) == 1 {
		return arrow.ListOfField(inner), nil
	}
	n, ok := args[1].(int64)
	if !ok || n < -1 || n > math.MaxInt32 {
		return nil, unsupportedError("pickled lists have invalid size %v", args[1])
	}
	if n < 0 {
		return arrow.ListOfField(inner), nil
	}
	return arrow.FixedSizeListOfField(int32(n), inner), nil
}

// structType converts the pickled fields of a struct type to the type. The error wraps
// [value.ErrUnsupported].
func structType(v any) (arrow.DataType, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, unsupportedError("struct fields are %T, want a list", v)
	}
	fields := make([]arrow.Field, len(list))
	for k, f := range list {
		var err error
		if fields[k], err = fieldOf(f); err != nil {
			return nil, err
		}
	}
	return arrow.StructOf(fields...), nil
}

func fieldOf(v any) (f arrow.Field, err error) {
	args, err := callArgs(v, "field", 3)
	if err != nil {
		return f, err
	}
	f.Name, _ = args[0].(string)
	f.Nullable, _ = args[2].(bool)
	f.Type, err = typeOf(args[1])
	return f, err
}

// callArgs returns the arguments of a pickled call of the function name in module pyarrow.lib.
// The error wraps [value.ErrUnsupported] if v is another value or has fewer than least
// arguments.
func callArgs(v any, name string, least int) (value.Tuple, error) {
	r, _ := v.(*value.Record)
	if r == nil || r.Class != value.Named("pyarrow.lib."+name) || len(r.Args) < least {
		return nil, unsupportedError("pickled table contains %v, want a call of %s", classOrValue(v), name)
	}
	return r.Args, nil
}

func classOrValue(v any) any {
	if r, ok := v.(*value.Record); ok {
		return r.Class
	}
	return v
}
