// Package maker is how the packages beside data make single batches of a data.Loader by their
// numbers, or of a Stream by portions of its parts. Users do not see it.
package maker
