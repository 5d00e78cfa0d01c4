// Package table makes samples of rows with named columns, such as lines of JSON and rows of Parquet
// files.
//
// [Tensors] converts lists of numbers as torch.tensor does: to int64, or to float32 if one of the
// numbers has a fraction. A column with both kinds of rows should have a DType.
package table
