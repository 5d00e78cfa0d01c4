// Package registry keeps what a program gives names to before it begins, so that all its processes
// know the same under the same names.
package registry
