// Package maker lets packages beside data make single batches of a data.Loader by number, or
// batches of a data.Stream by portion. It is not visible to users.
package maker
