// Package table makes samples of the rows of tables, whose columns have names: of lines of JSON, of
// rows of Parquet.
//
// The trap: [Tensors] makes tensors of lists of numbers as torch.tensor does: of int64, of float32
// if one of the numbers has a fraction. Columns whose rows are now of one kind and now of the other
// need a DType.
package table
