// Package row makes samples of the rows of tables, whose columns have names: of lines of JSON, of
// rows of Parquet.
//
//	columns := row.Columns{{Name: "ids", DType: new(tensor.Int64)}, {Name: "weight", DType: new(tensor.Float32)}}
//	sample, err := columns.Pick(map[string]any{"ids": []any{int64(1), int64(2)}, "weight": 0.5, "note": "none"})
//
// The trap: [Tensors] makes tensors of lists of numbers as torch.tensor does: of int64, of float32
// if one of the numbers has a fraction. Columns whose rows are now of one kind and now of the other
// need a DType.
package row
