// Package value has what values of Python are in Go, and the other way round, for all that PyTorch
// pickles: messages (package torch) and files (package pt). What is peculiar to either, memory
// above all, it is given as a function.
package value
