package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	columns "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/parquet"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// writeColumn writes a file with one row for each value of a column x.
func writeColumn(t *testing.T, logical schema.LogicalType, physical columns.Type, length int,
	write func(file.ColumnChunkWriter) error) string {
	t.Helper()
	x, err := schema.NewPrimitiveNodeLogical("x", columns.Repetitions.Required, logical, physical, length, -1)
	if err != nil {
		t.Fatal(err)
	}
	root := testutil.Value(schema.NewGroupNode("schema", columns.Repetitions.Required, schema.FieldList{x}, -1))(t)
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root)
	group := testutil.Value(w.AppendRowGroupChecked())(t)
	column := testutil.Value(group.NextColumn())(t)
	if err := errors.Join(write(column), column.Close(), group.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOpen_EveryTypeIsAValueOrAnError writes a column of each physical and logical type. want is
// its first value, or empty for a type that is not read.
func TestOpen_EveryTypeIsAValueOrAnError(t *testing.T) {
	bools := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.BooleanColumnChunkWriter).WriteBatch([]bool{true}, nil, nil)
		return err
	}
	int32s := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Int32ColumnChunkWriter).WriteBatch([]int32{-2}, nil, nil)
		return err
	}
	int64s := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Int64ColumnChunkWriter).WriteBatch([]int64{1 << 40}, nil, nil)
		return err
	}
	int96s := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Int96ColumnChunkWriter).WriteBatch([]columns.Int96{{1}}, nil, nil)
		return err
	}
	float32s := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Float32ColumnChunkWriter).WriteBatch([]float32{1.5}, nil, nil)
		return err
	}
	float64s := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Float64ColumnChunkWriter).WriteBatch([]float64{2.5}, nil, nil)
		return err
	}
	texts := func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.ByteArrayColumnChunkWriter).WriteBatch([]columns.ByteArray{[]byte("ab")}, nil, nil)
		return err
	}
	fixed := func(b string) func(w file.ColumnChunkWriter) error {
		return func(w file.ColumnChunkWriter) error {
			_, err := w.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch(
				[]columns.FixedLenByteArray{[]byte(b)}, nil, nil)
			return err
		}
	}
	none := schema.NoLogicalType{}
	types := columns.Types
	uuid := "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
	for _, c := range []struct {
		logical  schema.LogicalType
		physical columns.Type
		length   int
		write    func(file.ColumnChunkWriter) error
		want     string
	}{
		{none, types.Boolean, -1, bools, "bool(true)"},
		{none, types.Int32, -1, int32s, "int64(-2)"},
		{none, types.Int64, -1, int64s, "int64(1099511627776)"},
		{none, types.Int96, -1, int96s, ""},
		{none, types.Float, -1, float32s, "float64(1.5)"},
		{none, types.Double, -1, float64s, "float64(2.5)"},
		{none, types.ByteArray, -1, texts, "[]uint8([97 98])"},
		{none, types.FixedLenByteArray, 2, fixed("ab"), "[]uint8([97 98])"},
		{schema.NewIntLogicalType(8, true), types.Int32, -1, int32s, "int64(-2)"},
		{schema.NewIntLogicalType(16, true), types.Int32, -1, int32s, "int64(-2)"},
		{schema.NewIntLogicalType(32, true), types.Int32, -1, int32s, "int64(-2)"},
		{schema.NewIntLogicalType(64, true), types.Int64, -1, int64s, "int64(1099511627776)"},
		{schema.NewIntLogicalType(32, false), types.Int32, -1, int32s, "int64(4294967294)"},
		{schema.NewIntLogicalType(64, false), types.Int64, -1, int64s, "int64(1099511627776)"},
		{schema.DateLogicalType{}, types.Int32, -1, int32s, "int64(-2)"},
		{schema.NewTimeLogicalType(true, schema.TimeUnitMillis), types.Int32, -1, int32s, "int64(-2)"},
		{schema.NewTimeLogicalType(true, schema.TimeUnitNanos), types.Int64, -1, int64s, "int64(1099511627776)"},
		{schema.NewTimestampLogicalType(true, schema.TimeUnitMicros), types.Int64, -1, int64s, "int64(1099511627776)"},
		{schema.StringLogicalType{}, types.ByteArray, -1, texts, "string(ab)"},
		{schema.EnumLogicalType{}, types.ByteArray, -1, texts, "string(ab)"},
		{schema.JSONLogicalType{}, types.ByteArray, -1, texts, "string(ab)"},
		{schema.BSONLogicalType{}, types.ByteArray, -1, texts, ""},
		{schema.UUIDLogicalType{}, types.FixedLenByteArray, 16, fixed(uuid),
			"string(00112233-4455-6677-8899-aabbccddeeff)"},
		{schema.Float16LogicalType{}, types.FixedLenByteArray, 2, fixed("\x00\x3e"), "float64(1.5)"},
		{schema.IntervalLogicalType{}, types.FixedLenByteArray, 12, fixed("0123456789ab"), ""},
		{schema.GeometryLogicalType{}, types.ByteArray, -1, texts, ""},
		{schema.GeographyLogicalType{}, types.ByteArray, -1, texts, ""},
		{schema.NewDecimalLogicalType(5, 2), types.Int32, -1, int32s, ""},
		{schema.NewDecimalLogicalType(12, 2), types.Int64, -1, int64s, ""},
		{schema.NewDecimalLogicalType(4, 2), types.ByteArray, -1, texts, ""},
		{schema.NewDecimalLogicalType(4, 2), types.FixedLenByteArray, 2, fixed("ab"), ""},
	} {
		name := fmt.Sprint(c.logical, " ", c.physical)
		path := writeColumn(t, c.logical, c.physical, c.length, c.write)
		s, err := parquet.Open(parquet.Options{}, path)
		if c.want == "" {
			if !errors.Is(err, parquet.ErrKind) || !strings.Contains(err.Error(), `"x"`) {
				t.Errorf("%s: error %v, want ErrKind that names x", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		v, err := data.Value(t.Context(), s, 0)
		if got := shown(v); err != nil || got != "{x:"+c.want+"}" {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
		s.Close()
	}
	huge := writeColumn(t, schema.NewIntLogicalType(64, false), types.Int64, -1, func(w file.ColumnChunkWriter) error {
		_, err := w.(*file.Int64ColumnChunkWriter).WriteBatch([]int64{-1}, nil, nil)
		return err
	})
	s := testutil.Value(parquet.Open(parquet.Options{}, huge))(t)
	defer s.Close()
	if v, err := data.Value(t.Context(), s, 0); !errors.Is(err, parquet.ErrKind) {
		t.Errorf("an integer above int64: %v, %v", v, err)
	}
}

// TestOpen_HalvesAreFloat16 reads a list of halves, whose tensor keeps their dtype.
func TestOpen_HalvesAreFloat16(t *testing.T) {
	half := testutil.Value(schema.NewPrimitiveNodeLogical("element", columns.Repetitions.Optional,
		schema.Float16LogicalType{},
		columns.Types.FixedLenByteArray, 2, -1))(t)
	list := testutil.Value(schema.NewGroupNode("list", columns.Repetitions.Repeated, schema.FieldList{half}, -1))(t)
	x := testutil.Value(schema.NewGroupNodeLogical("x", columns.Repetitions.Optional, schema.FieldList{list},
		schema.ListLogicalType{}, -1))(t)
	root := testutil.Value(schema.NewGroupNode("schema", columns.Repetitions.Required, schema.FieldList{x}, -1))(t)
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root)
	group := testutil.Value(w.AppendRowGroupChecked())(t)
	column := testutil.Value(group.NextColumn())(t)
	// [1.5, 2], null, [], [null, 1.5]
	_, err := column.(*file.FixedLenByteArrayColumnChunkWriter).WriteBatch(
		[]columns.FixedLenByteArray{{0, 0x3e}, {0, 0x40}, {0, 0x3e}}, []int16{3, 3, 0, 1, 2, 3},
		[]int16{0, 1, 0, 0, 0, 1})
	if err := errors.Join(err, column.Close(), group.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := testutil.Value(parquet.Open(parquet.Options{}, path))(t)
	defer s.Close()
	for i, want := range []string{"{x:float16[1.5 2]}", "{x:<nil>(<nil>)}", "{x:float16[]}",
		"{x:[<nil>(<nil>) float64(1.5)]}"} {
		if v, err := data.Value(t.Context(), s, i); err != nil || shown(v) != want {
			t.Errorf("row %d: %s, %v, want %s", i, shown(v), err, want)
		}
	}
	o := parquet.Options{Columns: []row.Column{{Name: "x", DType: new(tensor.Float32)}}}
	as := testutil.Value(parquet.Open(o, path))(t)
	defer as.Close()
	if v, err := data.Value(t.Context(), as, 0); err != nil || shown(v) != "{x:float32[1.5 2]}" {
		t.Errorf("as float32: %s, %v", shown(v), err)
	}
}

// TestOpen_AnyOrderHasTheSameRows reads rows in order and shuffled, with caches that hold all rows,
// one block, and one block without a spill file.
func TestOpen_AnyOrderHasTheSameRows(t *testing.T) {
	const rows = 12_000
	path := written(t, rows, rows/2)
	for name, o := range map[string]parquet.Options{"memory": {}, "spill": {Cache: 1},
		"small spill": {Cache: 1, Spill: 100_000}} {
		s := testutil.Value(parquet.Open(o, path))(t)
		order := rand.New(rand.NewPCG(1, 2)).Perm(rows)
		for epoch := range 3 {
			if name == "small spill" {
				order = order[:200]
			}
			for k, i := range order {
				if epoch == 0 && name != "small spill" {
					i = k
				}
				v, err := data.Value(t.Context(), s, i)
				if err != nil {
					t.Fatalf("%s: row %d: %v", name, i, err)
				}
				if k%50 == 0 {
					if got, want := shown(v), want(of(i)); got != want {
						t.Fatalf("%s: row %d:\n     %s\nwant %s", name, i, got, want)
					}
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

// TestOpen_AVariantIsNoBytes opens a VARIANT, which is a group of two columns of bytes.
func TestOpen_AVariantIsNoBytes(t *testing.T) {
	var parts schema.FieldList
	for _, name := range []string{"metadata", "value"} {
		parts = append(parts, testutil.Value(schema.NewPrimitiveNode(name, columns.Repetitions.Required,
			columns.Types.ByteArray, -1, -1))(t))
	}
	x := testutil.Value(schema.NewGroupNodeLogical("x", columns.Repetitions.Required, parts,
		schema.VariantLogicalType{}, -1))(t)
	root := testutil.Value(schema.NewGroupNode("schema", columns.Repetitions.Required, schema.FieldList{x}, -1))(t)
	var b bytes.Buffer
	w := file.NewParquetWriter(&b, root)
	group := testutil.Value(w.AppendRowGroupChecked())(t)
	for range parts {
		column := testutil.Value(group.NextColumn())(t)
		_, err := column.(*file.ByteArrayColumnChunkWriter).WriteBatch([]columns.ByteArray{[]byte("ab")}, nil, nil)
		testutil.NoError(t, err, column.Close())
	}
	testutil.NoError(t, group.Close(), w.Close())
	path := filepath.Join(t.TempDir(), "x.parquet")
	testutil.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	_, err := parquet.Open(parquet.Options{}, path)
	testutil.ErrorIs(t, err, parquet.ErrKind)
	testutil.ErrorContains(t, err, "VARIANT")
}
