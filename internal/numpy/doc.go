// Package numpy is what numpy calls dtypes, and how its bytes become those of tensors. It knows
// dtypes by the names that package tensor gives them, such as float32.
package numpy
