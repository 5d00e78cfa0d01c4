package huggingface

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// stream returns a file as the library datasets writes it, of two batches of three rows.
func stream(t testing.TB, options ...ipc.Option) []byte {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String},
		{Name: "ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
		{Name: "pair", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean})},
	}, nil)
	var file bytes.Buffer
	w := ipc.NewWriter(&file, append(options, ipc.WithSchema(schema))...)
	for n := range int64(2) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range int64(3) {
			b.Field(0).(*array.Int64Builder).Append(3*n + i)
			b.Field(1).(*array.StringBuilder).Append("row")
			list := b.Field(2).(*array.ListBuilder)
			list.Append(true)
			list.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), 7}, nil)
			pair := b.Field(3).(*array.StructBuilder)
			pair.Append(true)
			pair.FieldBuilder(0).(*array.BooleanBuilder).Append(i == 1)
		}
		if err := w.Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// FuzzDecode wants an error, or rows, of any file.
func FuzzDecode(f *testing.F) {
	whole := stream(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(stream(f, ipc.WithZstd()))
	huge := bytes.Clone(whole)
	binary.LittleEndian.PutUint32(huge[4:], 1<<31)
	f.Add(huge)
	f.Fuzz(func(t *testing.T, file []byte) {
		recoverFaults(func() error {
			table, err := decode(file)
			if err != nil {
				return err
			}
			for i := range min(table.rowCount(), 10) {
				c, i := table.chunkAt(i)
				for k := range table.names {
					for _, m := range []maker{ofPython, ofTorch} {
						if m.makes(table, k) == nil {
							m.value(c[k], i)
						}
					}
				}
			}
			return nil
		})
	})
}

// TestDecode_DamageIsAnError changes every byte of a file, one after the other.
func TestDecode_DamageIsAnError(t *testing.T) {
	whole := stream(t)
	refused := 0
	for at := range whole {
		file := bytes.Clone(whole)
		file[at] ^= 0xFF
		err := recoverFaults(func() error {
			table, err := decode(file)
			for i := 0; err == nil && i < min(table.rowCount(), 10); i++ {
				c, i := table.chunkAt(i)
				for k := range table.names {
					if err = ofPython.makes(table, k); err == nil {
						_, err = ofPython.value(c[k], i)
					}
				}
			}
			return err
		})
		if err != nil {
			refused++
		}
	}
	if refused < len(whole)/10 {
		t.Errorf("of %d damaged files %d are errors", len(whole), refused)
	}
	t.Logf("of %d damaged files %d are errors", len(whole), refused)
	if table, err := decode(whole); err != nil || table.rowCount() != 6 {
		t.Errorf("the whole file: %v", err)
	}
}
