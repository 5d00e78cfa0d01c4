// Package numpy converts NumPy's dtypes and byte layouts. Dtypes are identified by their names in
// package tensor, such as float32.
package numpy
