package huggingface

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// showValue shows a value with its types.
func showValue(v any) string {
	switch v := v.(type) {
	case *tensor.Tensor:
		return fmt.Sprintf("%v%v %v", v.DType(), v.Shape(), v)
	case *python.Dict:
		var all []string
		for k, item := range v.All() {
			all = append(all, fmt.Sprint(k, ":", showValue(item)))
		}
		return "{" + strings.Join(all, " ") + "}"
	case []any:
		var all []string
		for _, item := range v {
			all = append(all, showValue(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprintf("%T(%v)", v, v)
}

// TestValues_EveryArrowTypeIsAValueOrAnError makes an array of each type of Arrow. python is the
// first value of a data set without a format and torch that of the format torch; both are empty for
// types that are left to Python.
func TestValues_EveryArrowTypeIsAValueOrAnError(t *testing.T) {
	second := &arrow.TimestampType{Unit: arrow.Second}
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	seen := map[arrow.Type]bool{}
	for _, c := range []struct {
		of            arrow.DataType
		json          string // of an array; empty if the type alone is tested
		python, torch string
	}{
		{arrow.Null, `[null]`, "<nil>(<nil>)", ""},
		{arrow.FixedWidthTypes.Boolean, `[true]`, "bool(true)", "bool[] tensor(True)"},
		{arrow.PrimitiveTypes.Int8, `[-2]`, "int64(-2)", "int64[] tensor(-2)"},
		{arrow.PrimitiveTypes.Int16, `[-2]`, "int64(-2)", "int64[] tensor(-2)"},
		{arrow.PrimitiveTypes.Int32, `[-2]`, "int64(-2)", "int64[] tensor(-2)"},
		{arrow.PrimitiveTypes.Int64, `[-2]`, "int64(-2)", "int64[] tensor(-2)"},
		{arrow.PrimitiveTypes.Uint8, `[255]`, "int64(255)", "int64[] tensor(255)"},
		{arrow.PrimitiveTypes.Uint16, `[65535]`, "int64(65535)", "int64[] tensor(65535)"},
		{arrow.PrimitiveTypes.Uint32, `[4294967295]`, "int64(4294967295)", "int64[] tensor(4294967295)"},
		{arrow.PrimitiveTypes.Uint64, `[1]`, "", ""},
		{arrow.FixedWidthTypes.Float16, `[1.5]`, "float64(1.5)", "float32[] tensor(1.5000)"},
		{arrow.PrimitiveTypes.Float32, `[1.5]`, "float64(1.5)", "float32[] tensor(1.5000)"},
		{arrow.PrimitiveTypes.Float64, `[1.5]`, "float64(1.5)", "float32[] tensor(1.5000)"},
		{arrow.BinaryTypes.String, `["ab"]`, "string(ab)", "string(ab)"},
		{arrow.BinaryTypes.LargeString, `["ab"]`, "string(ab)", "string(ab)"},
		{arrow.BinaryTypes.StringView, `["ab"]`, "", ""},
		{arrow.BinaryTypes.Binary, `["YWI="]`, "", ""},
		{arrow.BinaryTypes.LargeBinary, `["YWI="]`, "", ""},
		{arrow.BinaryTypes.BinaryView, `["YWI="]`, "", ""},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, `["YWI="]`, "", ""},
		{arrow.FixedWidthTypes.Date32, `["2020-01-01"]`, "", ""},
		{arrow.FixedWidthTypes.Date64, `["2020-01-01"]`, "", ""},
		{second, `["2020-01-01"]`, "", ""},
		{arrow.FixedWidthTypes.Time32s, `["10:00:00"]`, "", ""},
		{arrow.FixedWidthTypes.Time64us, `["10:00:00"]`, "", ""},
		{arrow.FixedWidthTypes.Duration_s, `[5]`, "", ""},
		{arrow.FixedWidthTypes.MonthInterval, "", "", ""},
		{arrow.FixedWidthTypes.DayTimeInterval, "", "", ""},
		{arrow.FixedWidthTypes.MonthDayNanoInterval, "", "", ""},
		{&arrow.Decimal32Type{Precision: 5, Scale: 2}, `["1.50"]`, "", ""},
		{&arrow.Decimal64Type{Precision: 5, Scale: 2}, `["1.50"]`, "", ""},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["1.50"]`, "", ""},
		{&arrow.Decimal256Type{Precision: 5, Scale: 2}, `["1.50"]`, "", ""},
		{arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1, 2]]`, "[int64(1) int64(2)]", "int64[2] tensor([1, 2])"},
		{arrow.ListOf(arrow.BinaryTypes.String), `[["a", null]]`, "[string(a) <nil>(<nil>)]", ""},
		{arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Int32)), `[[[1], null, [2, 3]]]`,
			"[[int64(1)] <nil>(<nil>) [int64(2) int64(3)]]", ""},
		{arrow.ListOf(arrow.BinaryTypes.Binary), `[["YWI="]]`, "", ""},
		{arrow.LargeListOf(arrow.PrimitiveTypes.Float32), `[[1.5]]`, "[float64(1.5)]", "float32[1] tensor([1.5000])"},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8), `[[1, 2]]`, "[int64(1) int64(2)]",
			"int64[2] tensor([1, 2])"},
		{arrow.ListViewOf(arrow.PrimitiveTypes.Int32), `[[1, 2]]`, "[int64(1) int64(2)]", "int64[2] tensor([1, 2])"},
		{arrow.LargeListViewOf(arrow.PrimitiveTypes.Int32), `[[1, 2]]`, "[int64(1) int64(2)]",
			"int64[2] tensor([1, 2])"},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[[{"key": "a", "value": 1}]]`, "", ""},
		{arrow.StructOf(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int8},
			arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}), `[{"n": 1, "s": null}]`,
			"{n:int64(1) s:<nil>(<nil>)}", ""},
		{arrow.StructOf(arrow.Field{Name: "b", Type: arrow.BinaryTypes.Binary}), `[{"b": "YWI="}]`, "", ""},
		{arrow.SparseUnionOf([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int8}}, []int8{0}), "", "", ""},
		{arrow.DenseUnionOf([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int8}}, []int8{0}), "", "", ""},
		{dictionary, `["a"]`, "", ""},
		{arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8), "", "", ""},
	} {
		seen[c.of.ID()] = true
		err := checkPythonType(c.of)
		if (err == nil) != (c.python != "") {
			t.Errorf("%v: %v, want the value %q", c.of, err, c.python)
			continue
		}
		if err != nil {
			testutil.ErrorIs(t, err, value.ErrUnsupported)
		}
		if c.json == "" {
			continue
		}
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.of, strings.NewReader(c.json))
		if err != nil {
			t.Errorf("%v: %v", c.of, err)
			continue
		}
		if c.python != "" {
			if v, err := pythonValue(a, 0); err != nil || showValue(v) != c.python {
				t.Errorf("%v: %s, %v, want %s", c.of, showValue(v), err, c.python)
			}
		}
		err = checkTensorType(a)
		if (err == nil) != (c.torch != "") {
			t.Errorf("%v as torch: %v, want the value %q", c.of, err, c.torch)
			continue
		}
		if err != nil {
			testutil.ErrorIs(t, err, value.ErrUnsupported)
		} else if v, err := torchValue(a, 0); err != nil || showValue(v) != c.torch {
			t.Errorf("%v as torch: %s, %v, want %s", c.of, showValue(v), err, c.torch)
		}
	}
	for id := arrow.NULL; id <= arrow.DECIMAL64; id++ {
		if !seen[id] && id != arrow.EXTENSION {
			t.Errorf("the type %v was not tried", id)
		}
	}
}
