// Package registry holds values that a program registers by name during initialization, so that all
// its processes have the same values under the same names.
package registry
