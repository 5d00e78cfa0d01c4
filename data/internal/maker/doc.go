// Package maker is how the packages beside data make single batches of a data.Loader by their
// numbers. Users do not see it.
package maker
