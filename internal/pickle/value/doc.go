// Package value converts between Go values and the Python values in PyTorch's pickles: messages
// (package torch) and files (package pt). Callers pass functions for the parts that differ between
// the two, such as memory.
package value
